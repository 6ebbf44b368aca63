package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
)

// Status is a schedule as it is shown. What its fields point at is shared and not to be written to.
type Status struct {
	Name    string // "team/nightly"
	Owner   job.Owner
	Doc     *schedule.Document
	Zone    *time.Location
	Next    time.Time // in the zone; zero: it is suspended, or has no time
	Jobs    []RunJob  // of its runs that have not ended
	Trouble string    // why nothing is decided, for people
}

// RunJob is a job of a run that has not ended.
type RunJob struct {
	ID    job.ID
	Part  job.Part // without its controller
	State job.State
}

// List shows every schedule by name.
func (c *Controller) List(ctx context.Context) (out []Status, err error) {
	err = c.askRun(ctx, func(ctx context.Context) error {
		for _, name := range slices.Sorted(maps.Keys(c.schedules)) {
			out = append(out, c.statusOf(ctx, c.schedules[name]))
		}
		return nil
	})
	return out, err
}

// Get shows one schedule; fault.NotFound: there is none of that name.
func (c *Controller) Get(ctx context.Context, name string) (out Status, err error) {
	err = c.askRun(ctx, func(ctx context.Context) error {
		m := c.schedules[name]
		if m == nil {
			return unknownSchedule(name)
		}
		out = c.statusOf(ctx, m)
		return nil
	})
	return out, err
}

func (c *Controller) statusOf(ctx context.Context, m *managed) Status {
	s := Status{Name: m.name, Owner: m.doc.Spec.Owner, Doc: m.doc, Zone: time.UTC, Trouble: m.trouble}
	if times, err := schedule.ParseCron(m.doc.Spec.Cron, m.doc.Spec.Zone); err == nil {
		s.Zone = times.Zone()
		if !m.doc.Suspended {
			s.Next = times.Next(m.doc.Since)
		}
	}
	for _, j := range c.inMemory(m) {
		if !j.State.Final() {
			s.Jobs = append(s.Jobs, RunJob{j.ID, j.Part, j.State})
		}
	}
	return s
}
