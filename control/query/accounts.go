package query

import (
	"context"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// Holding is the resources that an account with a quota holds, borrows and lends.
type Holding = sched.Holding

// HoldingAmount is one resource of a flavor of it.
type HoldingAmount = sched.HoldingAmount

// Quotas lists the accounts with quotas, in the order of their trees; none where the
// rules have none.
func (rd *Reader) Quotas(context.Context) []Holding {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	return rd.of.Core.QuotaUsage()
}

// What a reservation in advance would meet.
type (
	// ReserveAsk is a reservation that somebody wants to make or to change.
	ReserveAsk = sched.ReserveAsk
	// Obstacle keeps a node from it.
	Obstacle = sched.Obstacle
	// Promised is the start that a waiting job was promised.
	Promised = sched.Promise
)

// Reservable says which nodes a reservation would get, what is in its way, and whose promised
// starts would become later, as of the last decision and of the policy in force. nodes is nil if
// it asks for more nodes than are free.
func (rd *Reader) Reservable(_ context.Context, ask *ReserveAsk) (nodes []string, way []Obstacle, late []Promised) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	var inForce []account.Reservation
	if p := rd.of.State.Policies.CurrentPolicy(); p != nil {
		inForce = p.Rules.Reservations
	}
	return rd.of.Core.Reservable(ask, inForce)
}

// Standing is the fair share of an account or a user, as of the last tick of priorities.
type Standing = sched.Share

// RestNames are the things that Standing.Rest is of.
var RestNames = sched.RestNames

// Shares lists accounts and users with their usage, in the order of the tree, and the names of
// the other resources in that usage. The list is empty if the rules name no account.
func (rd *Reader) Shares(context.Context) (list []Standing, tres []string) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	return rd.of.Core.Shares()
}

// Priority is the parts of a waiting job's priority.
type Priority struct {
	Job job.ID
	sched.Breakdown
}

// Priorities explains the priorities of jobs; those that do not wait are left out. No
// ids: of all that wait.
func (rd *Reader) Priorities(_ context.Context, ids ...job.ID) (list []Priority) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	if len(ids) == 0 {
		for _, e := range rd.of.State.Live {
			ids = append(ids, e.ID)
		}
	}
	for _, id := range ids {
		if b, ok := rd.of.Core.Explain(id); ok {
			list = append(list, Priority{id, b})
		}
	}
	return list
}

// PriorityOf is Priorities for one job.
func (rd *Reader) PriorityOf(ctx context.Context, id job.ID) (Priority, error) {
	if list := rd.Priorities(ctx, id); len(list) > 0 {
		return list[0], nil
	}
	return Priority{}, fault.New(fault.Conflict, "job %d does not wait: only waiting jobs have a place in the queue", id).
		Advise("cox queue lists the jobs that wait")
}

// withPriority puts the priority that is reckoned into the view of a waiting job. The state
// is locked.
func (rd *Reader) withPriority(v *state.View) *state.View {
	if v.Job.State == job.Pending && rd.of.Core.Ranked() {
		if p, ok := rd.of.Core.Priority(v.Job.ID); ok {
			v.Priority = p
		}
	}
	return v
}
