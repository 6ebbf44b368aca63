package control

import (
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// This file suspends jobs to make room (mode suspend). The request is journaled as for every
// other mode. Once the engine has proved that the processes are stopped, that is journaled too,
// and only then the ledger has their CPUs and devices for others. The jobs go on after the
// ledger has verified that everything they hold is free again.

// suspendReported is the message for the engine's report about a job after it was told to
// suspend it. Earlier reports may be about an earlier suspension.
func (l *loop) suspendReported(id job.ID, asked *state.Preempted, r engine.Report) message {
	return message{job: id, run: func(l *loop) {
		if e, err := l.state.JobByRef(r.Ref); err == nil && e.ID == id && e.Last.Preempted == asked {
			e.Last.Proof = max(r.Version, 1)
			if now := e.Report(); now.Version >= r.Version && now.Phase == engine.Running {
				l.stagePreemptSuspended(e, now)
				return
			}
			l.reportMessage(l.pools.ByNameOrFirst(e.Last.Pool), r).run(l)
		}
	}}
}

// stagePreemptSuspended stages that a job was suspended to make room, as asked.
func (l *loop) stagePreemptSuspended(e *state.JobRecord, r *engine.Report) {
	if p := e.Last.Proof; r.Suspended && !r.Uncertain && e.Last.SuspendRequested() && e.Flags&job.Stopping == 0 && p != 0 && r.Version >= p {
		to := job.Suspended
		l.stageRecord(state.KindSuspend, e.ID, job.Actor{}, state.Suspend{On: true, Parked: true, State: &to}, nil)
	}
}

// suspendLate asks again for the suspension of a job that had not started when it was first
// asked.
func (l *loop) suspendLate(e *state.JobRecord) {
	if e.Last.SuspendRequested() {
		l.requestEviction(e)
	}
}

// repeatSuspend tells the engine again whether a job is suspended, if its report differs: the
// call was lost with the server that made it, or a late call of a server that was followed undid
// it.
func (l *loop) repeatSuspend(e *state.JobRecord, r *engine.Report) {
	ref, on := r.Ref, e.State == job.Suspended
	differs := func() bool {
		return e.State.Holds() && e.State == job.Suspended == on && !e.Last.SuspendRequested() && e.Flags&(job.Configuring|job.Stopping) == 0
	}
	if r.Suspended != on && !r.Uncertain && differs() {
		l.whileLeading(func() {
			if differs() {
				l.callsFor(e).Suspend(ref, on)
			}
		})
	}
}

// stagePreemptResume stages that a job goes on which was suspended to make room. If the ledger
// has no room for it, which is a defect, nothing changes: it goes on when somebody resumes it.
func (l *loop) stagePreemptResume(d sched.Resume, p proposed) {
	e := l.state.Jobs[d.Job]
	if p.refused != nil {
		l.state.Counts.Refused++
		l.cfg.Log.Error("the core lets a job go on that the ledger refuses", "job", e.Name(), "error", p.refused)
	}
	if !p.resumes || p.refused != nil {
		return
	}
	to := job.Running
	if e.Last.UserSuspended {
		to = job.Suspended
	}
	l.stageRecord(state.KindSuspend, e.ID, job.Actor{}, state.Suspend{Parked: true, State: &to}, func() {
		if a, ok := l.state.Ledger.Of(e.ID); ok && e.State == job.Running {
			l.callsOf(a).Suspend(reconcile.Ref(a), false)
		}
	})
}

// checkSuspendMode refuses rules that suspend jobs to make room, if that makes none in some
// pool.
func (c *Control) checkSuspendMode(p *account.Policy) error {
	if cannot := c.pools.NotFreedBySuspend(); len(cannot) > 0 {
		return pools.RefuseSuspendMode(p, cannot[0])
	}
	return nil
}
