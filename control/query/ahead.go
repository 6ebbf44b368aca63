package query

import (
	"context"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
)

// Ahead is the state of the core as of now, for callers that look ahead from it.
type Ahead struct {
	State *sched.Snapshot // shared, never written
	Now   sched.Instant
	Took  whatif.Took
	Why   map[job.ID]reason.Code // the first reason why a job waits

	Owners []fleet.MachineOwner // the records of machines, by name
}

// LookAhead calls work with the state of the core. It waits for its turn among those that look ahead; the
// control loop waits for none of them.
func (rd *Reader) LookAhead(ctx context.Context, work func(*Ahead)) error {
	return rd.runAhead(ctx, func(s *sched.Snapshot, now sched.Instant, took whatif.Took) {
		work(rd.aheadOf(s, now, took))
	})
}

func (rd *Reader) aheadOf(s *sched.Snapshot, now sched.Instant, took whatif.Took) *Ahead {
	a := &Ahead{State: s, Now: now, Took: took, Why: map[job.ID]reason.Code{}}
	rd.Scan(Filter{Live: true}, func(v *state.View) bool {
		if v.Why.Code != reason.None {
			a.Why[v.Job.ID] = v.Why.Code
		}
		return true
	})
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	for _, m := range rd.of.State.Owners.Machines() {
		a.Owners = append(a.Owners, *rd.of.State.Owners.Of(m))
	}
	return a
}
