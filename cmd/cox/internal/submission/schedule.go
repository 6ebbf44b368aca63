package submission

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/printer"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/model/fault"
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
