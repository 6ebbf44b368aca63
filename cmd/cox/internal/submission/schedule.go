package submission

import (
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/native"
)

// times are the times that the command line gives; nil: it gives none.
func (f *submitFlags) times() (*api.ScheduleTimes, error) {
	t := f.schedule
	switch {
	case t == api.ScheduleTimes{}:
		return nil, nil //nolint:nilnil // it gives none
	case t.Cron == "":
		return nil, fault.New(fault.Invalid, "--time-zone, --overlap and --missed go with --schedule").
			Advise("add --schedule \"0 3 * * *\", or write them into the file: schedule: {cron: …, overlap: …}")
	}
	return &t, nil
}

// checkWait refuses to wait for a schedule.
func checkWait(f *submitFlags, r *intake.Request) error {
	if r == nil || r.Schedule == nil || !f.wait && !f.follow {
		return nil
	}
	return fault.New(fault.Invalid, "--wait and --follow wait for one job, and a schedule has many").
		Advise("leave them out; cox schedule run %s begins one run now", r.Spec.Name)
}

// printSubmittedSchedule says what became of a schedule: "schedule nightly: next run 2026-11-30 03:00
// Europe/Zurich".
func printSubmittedSchedule(a *cli.App, f *submitFlags, done *api.Submitted) error {
	s := done.Schedule
	switch {
	case f.format.IsData():
		return a.WriteData(f.format, done)
	case f.parsable || f.format == cli.AsName:
		return cli.WriteNames(a.Out, []string{s.Name})
	case f.quiet:
		return nil
	}
	p := a.Page(a.Out)
	line := printer.SubmittedSchedule(p, s)
	if p.Width > 0 {
		line += p.Paint(printer.Dim, fmt.Sprintf("          cox schedule show %s   cox schedule run %s", s.Name, s.Name))
	}
	_, err := fmt.Fprintln(a.Out, line)
	return err
}

// convertSchedule adds to a text of another form when the job runs, or says that the form cannot say it.
func convertSchedule(r *intake.Request, to string, out []byte) ([]byte, []spec.Warning) {
	if r.Schedule == nil {
		return out, nil
	}
	if to == api.FormNative {
		line, missing := native.RenderSchedule(r.Schedule)
		return append(out, line...), missing
	}
	return out, []spec.Warning{{
		File: r.Text.Name, Option: "schedule", Message: fmt.Sprintf("has no counterpart in this form: submit the file with cox submit --schedule %q", r.Schedule.Cron),
	}}
}

// printTimes says when the job of a dry run would run.
func printTimes(a *cli.App, r *intake.Request) error {
	if r.Schedule == nil {
		return nil
	}
	times, err := schedule.ParseCron(r.Schedule.Cron, r.Schedule.Zone)
	if err != nil {
		return err
	}
	line := "schedule " + r.Spec.Name + ":"
	at := time.Now()
	for range 3 {
		if at = times.Next(at); at.IsZero() {
			break
		}
		line += " " + at.Format("2006-01-02 15:04,")
	}
	zone := r.Schedule.Zone
	if zone == "" {
		zone = "the server's time zone"
	}
	_, err = fmt.Fprintf(a.Out, "%s … in %s\n", line, zone)
	return err
}
