package decide

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
)

// Submit applies a specification to the document of a schedule; old nil: there is none yet. The same
// specification again changes nothing, and the document is nil. Runs that were decided upon go on as they are. New times
// count from now; suspended stays as it is unless the specification says otherwise than the one before.
func Submit(old *schedule.Document, spec *schedule.Spec, by string, now time.Time) (*schedule.Document, error) {
	if err := checkSpec(spec, now); err != nil {
		return nil, err
	}
	if old == nil {
		d := &schedule.Document{Revision: 1, Spec: *spec, Created: now, At: now, By: by, Since: now}
		setSuspended(d, spec.Suspend, by, now)
		return d, nil
	}
	if sameSpec(&old.Spec, spec) {
		return nil, nil //nolint:nilnil // nothing changes
	}
	d := copyDocument(old)
	if spec.Cron != old.Spec.Cron || spec.Zone != old.Spec.Zone {
		d.Since = now
	}
	if spec.Suspend != old.Spec.Suspend && spec.Suspend != d.Suspended {
		setSuspended(d, spec.Suspend, by, now)
	}
	d.Revision, d.Spec, d.At, d.By = old.Revision+1, *spec, now, by
	return d, nil
}

// mostTasks bounds the array of a schedule: each change of a task is a decision upon all of them.
const mostTasks = 10_000

// checkSpec refuses what no schedule can have.
func checkSpec(s *schedule.Spec, now time.Time) error {
	if err := s.Check(); err != nil {
		remedy := ""
		var cron *schedule.CronError
		var zone *schedule.ZoneError
		switch {
		case errors.As(err, &cron):
			remedy = cron.Remedy
		case errors.As(err, &zone):
			remedy = zone.Remedy()
		}
		return fault.New(fault.Invalid, "schedule: %w", err).Advise("%s", remedy)
	}
	times, err := schedule.ParseCron(s.Cron, s.Zone)
	if err != nil {
		return err
	}
	if times.Never(now) {
		return neverFires(s)
	}
	if a := s.Job.Array; a != nil && len(a.Indices) > mostTasks {
		return fault.New(fault.Invalid, "schedule: its array has %d tasks, more than %d", len(a.Indices), mostTasks).
			Advise("make the array smaller, or split it into several schedules")
	}
	return nil
}

func neverFires(s *schedule.Spec) error {
	return fault.New(fault.Invalid, "schedule: %q never comes: no such day is in the calendar", s.Cron).Advise("for the last day of a month write the first of the next: \"0 0 1 * *\"")
}

func setSuspended(d *schedule.Document, on bool, by string, now time.Time) {
	d.Suspended, d.SuspendedAt, d.SuspendedBy = on, time.Time{}, ""
	switch {
	case on:
		d.SuspendedAt, d.SuspendedBy = now, by
	case !d.Spec.CatchUp:
		d.Since = now
	}
}

// sameSpec reports whether two specifications are alike. Where they were submitted from, and what was
// recorded of it, does not count.
func sameSpec(a, b *schedule.Spec) bool {
	plain := func(s schedule.Spec) []byte {
		s.Job.Source, s.Job.Provenance, s.Job.Chosen = job.Source{}, nil, nil
		s.Job.Env.Hash, s.Job.Program.ScriptHash = "", ""
		s.Env, s.Text = nil, ""
		out, err := json.Marshal(s)
		if err != nil {
			panic(err) // a specification came as JSON
		}
		return out
	}
	return bytes.Equal(plain(*a), plain(*b))
}

func copyDocument(old *schedule.Document) *schedule.Document {
	d := *old
	d.Runs = slices.Clone(old.Runs)
	return &d
}

// Suspend stops the runs by the clock; nil: they are stopped. Runs that were begun go on.
func Suspend(old *schedule.Document, by string, now time.Time) *schedule.Document {
	if old.Suspended {
		return nil
	}
	d := copyDocument(old)
	setSuspended(d, true, by, now)
	return d
}

// Resume begins with runs by the clock again; nil: nothing stops them.
func Resume(old *schedule.Document, now time.Time) *schedule.Document {
	if !old.Suspended {
		return nil
	}
	d := copyDocument(old)
	setSuspended(d, false, "", now)
	return d
}

// RunNow adds a run by hand. With overlap: skip one that has not ended is in its way, and the error is
// fault.Conflict.
func RunNow(old *schedule.Document, jobs []Job, name, by string, now time.Time) (*schedule.Document, *schedule.Run, error) {
	if other := findAlive(old, jobs); other != "" && old.Spec.Overlap == schedule.Skip {
		return nil, nil, fault.New(fault.Conflict, "schedule %s: %s has not ended, and its overlap is skip", name, other).
			Advise("cox schedule show %s shows it; cox cancel JOB ends it", name)
	}
	d := copyDocument(old)
	d.ByHand++
	run := schedule.Run{At: now.Truncate(time.Second), Try: d.ByHand, By: by, Revision: d.Revision, State: schedule.Due}
	d.Runs = append(d.Runs, run)
	return d, &run, nil
}
