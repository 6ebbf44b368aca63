package control

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

// usage is what accounts, users and QOS had used at a second, as the core reckoned it
// then. It is kept at each tick at which something was charged. What jobs used that
// ended since is part of the record of their end; those that run on are charged from
// that second. So a restart loses nothing.
type usage struct {
	At      int64        `json:"at"` // Unix seconds
	Entries []fair.Entry `json:"entries,omitempty"`
	Since   []fair.Entry `json:"since,omitempty"` // in the projection: by jobs that have ended since
}

// keepUsage stages what the core has reckoned.
func (l *loop) keepUsage() {
	at, entries := l.core.Usage()
	if at > 0 {
		l.stageRecord(kindUsage, 0, job.Actor{}, usage{At: at, Entries: entries}, nil)
	}
}

// keptAt is the second of the usage that is kept, or is about to be; 0: there is none.
func (l *loop) keptAt() int64 {
	for i := range slices.Backward(l.batch) {
		if v, ok := l.batch[i].val.(usage); ok {
			return v.At
		}
	}
	if l.state.usage == nil {
		return 0
	}
	return l.state.usage.At
}

// addUsage notes what a job used that has ended.
func (s *state) addUsage(entries []fair.Entry) {
	if len(entries) > 0 {
		if s.usage == nil {
			s.usage = &usage{}
		}
		s.usage.Since = fair.Merge(s.usage.Since, entries)
	}
}

// addLateUsage notes what a job used before its start was heard of. Where nothing was kept yet,
// what is charged counts from that second on.
func (s *state) addLateUsage(at int64, entries []fair.Entry) {
	s.addUsage(entries)
	if len(entries) > 0 && s.usage.At == 0 {
		s.usage.At = at
	}
}

func (s *state) applyUsage(r *store.Record, staged any) error {
	v, err := payloadOf[usage](r, staged)
	if err != nil {
		return err
	}
	s.usage = &v
	return nil
}

// Standing is how an account or a user stands, as of the last tick of priorities.
type Standing = sched.Share

// RestNames are the things that Standing.Rest is of.
var RestNames = sched.RestNames

// Shares lists accounts and users with what they have used, in the order of the tree,
// and what their usage of other things is of. Nobody where the rules name no account.
func (c *Control) Shares(context.Context) (list []Standing, tres []string) {
	c.state.RLock()
	defer c.state.RUnlock()
	return c.core.Shares()
}

// Priority is how the priority of a waiting job comes about.
type Priority struct {
	Job job.ID
	sched.Breakdown
}

// Priorities explains the priorities of jobs; those that do not wait are left out. No
// ids: of all that wait.
func (c *Control) Priorities(_ context.Context, ids ...job.ID) (list []Priority) {
	c.state.RLock()
	defer c.state.RUnlock()
	if len(ids) == 0 {
		for _, e := range c.state.live {
			ids = append(ids, e.id)
		}
	}
	for _, id := range ids {
		if b, ok := c.core.Explain(id); ok {
			list = append(list, Priority{id, b})
		}
	}
	return list
}

// PriorityOf is Priorities for one job.
func (c *Control) PriorityOf(ctx context.Context, id job.ID) (Priority, error) {
	if list := c.Priorities(ctx, id); len(list) > 0 {
		return list[0], nil
	}
	return Priority{}, fault.New(fault.Conflict, "job %d does not wait: only waiting jobs have a place in the queue", id).
		Advise("cox queue lists the jobs that wait")
}

// withPriority puts the priority that is reckoned into the view of a waiting job. The state
// is locked.
func (c *Control) withPriority(v *View) *View {
	if v.Job.State == job.Pending && c.core.Ranked() {
		if p, ok := c.core.Priority(v.Job.ID); ok {
			v.Priority = p
		}
	}
	return v
}
