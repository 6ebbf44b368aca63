package control

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// keepUsage stages what the core has reckoned.
func (l *loop) keepUsage() {
	at, entries := l.core.Usage()
	if at > 0 {
		l.stageRecord(state.KindUsage, 0, job.Actor{}, state.Usage{At: at, Entries: entries}, nil)
	}
}

// keptAt is the second of the usage that is kept, or is about to be; 0: there is none.
func (l *loop) keptAt() int64 {
	for i := range slices.Backward(l.batch) {
		if v, ok := l.batch[i].val.(state.Usage); ok {
			return v.At
		}
	}
	if l.state.Usage == nil {
		return 0
	}
	return l.state.Usage.At
}

// Standing is how an account or a user stands, as of the last tick of priorities.
type Standing = sched.Share

// RestNames are the things that Standing.Rest is of.
var RestNames = sched.RestNames

// Shares lists accounts and users with what they have used, in the order of the tree,
// and what their usage of other things is of. Nobody where the rules name no account.
func (rd *reader) Shares(context.Context) (list []Standing, tres []string) {
	rd.of.state.RLock()
	defer rd.of.state.RUnlock()
	return rd.of.core.Shares()
}

// Priority is how the priority of a waiting job comes about.
type Priority struct {
	Job job.ID
	sched.Breakdown
}

// Priorities explains the priorities of jobs; those that do not wait are left out. No
// ids: of all that wait.
func (rd *reader) Priorities(_ context.Context, ids ...job.ID) (list []Priority) {
	rd.of.state.RLock()
	defer rd.of.state.RUnlock()
	if len(ids) == 0 {
		for _, e := range rd.of.state.Live {
			ids = append(ids, e.ID)
		}
	}
	for _, id := range ids {
		if b, ok := rd.of.core.Explain(id); ok {
			list = append(list, Priority{id, b})
		}
	}
	return list
}

// PriorityOf is Priorities for one job.
func (rd *reader) PriorityOf(ctx context.Context, id job.ID) (Priority, error) {
	if list := rd.Priorities(ctx, id); len(list) > 0 {
		return list[0], nil
	}
	return Priority{}, fault.New(fault.Conflict, "job %d does not wait: only waiting jobs have a place in the queue", id).
		Advise("cox queue lists the jobs that wait")
}

// withPriority puts the priority that is reckoned into the view of a waiting job. The state
// is locked.
func (rd *reader) withPriority(v *state.View) *state.View {
	if v.Job.State == job.Pending && rd.of.core.Ranked() {
		if p, ok := rd.of.core.Priority(v.Job.ID); ok {
			v.Priority = p
		}
	}
	return v
}
