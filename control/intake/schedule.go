package intake

import (
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/spec/native"
)

// notScheduled is something that a job asks for and that makes no sense of one that runs many times.
type notScheduled struct {
	option      string // of sbatch
	asked       func(*job.Spec) bool
	why, remedy string
}

var notForSchedules = []notScheduled{
	{"begin", func(s *job.Spec) bool { return !s.Begin.IsZero() }, "a run begins at the times of its schedule", "leave it out"},
	{"deadline", func(s *job.Spec) bool { return !s.Deadline.IsZero() }, "a deadline is one time, and the job runs many times", "limit each run by its time limit (--time), and how late it may begin by --missed 2h"},
	{"dependency", func(s *job.Spec) bool { return !s.Depends.IsZero() }, "a run depends on no other job", "leave it out; with overlap: skip a run does not begin while an earlier one has not ended"},
	{"hold", func(s *job.Spec) bool { return s.Held }, "each run would wait until somebody releases it", "leave it out; cox schedule suspend keeps the schedule back"},
}

// setSchedule settles when the job runs.
func (r *Request) setSchedule(o *Options) error {
	if t := o.Schedule; t != nil && !o.Once {
		now := o.Now
		if now.IsZero() {
			now = time.Now()
		}
		switch {
		case r.Service != nil:
			return fault.New(fault.Invalid, "--schedule: %s is a service, which runs all the time", r.Text.Name).Advise("leave --schedule out")
		case r.Text.Form == api.FormAllocation:
			return fault.New(fault.Invalid, "--schedule: an allocation has nobody to use it at that time").Advise("submit a script or a command: cox submit --schedule \"0 3 * * *\" FILE")
		}
		var err error
		if r.Schedule, err = native.ParseSchedule(native.ScheduleText{Cron: t.Cron, Zone: t.TimeZone, Overlap: t.Overlap, Missed: t.Missed}, now); err != nil {
			return err
		}
	}
	if o.Once {
		r.Schedule = nil
	}
	if r.Schedule == nil {
		return nil
	}
	for _, f := range notForSchedules {
		if f.asked(r.Spec) {
			return r.errorAt(f.why, f.remedy, []string{f.option})
		}
	}
	if err := schedule.CheckName(r.Spec.Name); err != nil {
		return r.errorAt("the name of a schedule: "+err.Error(), "give it another name: --job-name nightly, or name: nightly", []string{"job-name"})
	}
	return nil
}

// Scheduled is the schedule with what the site's rules made of the job of a run; nil: it runs once.
func (r *Request) Scheduled() *schedule.Spec {
	if r.Schedule == nil {
		return nil
	}
	out := &schedule.Spec{
		Name: r.Spec.Name, Account: r.Spec.Account, Owner: r.Spec.Owner, Settings: *r.Schedule,
		Job: *r.Spec, Script: r.Script, Env: r.Env, Text: r.keptText(),
	}
	return out
}
