package control

import (
	"time"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// This file carries out that jobs make room by being suspended (mode suspend). Asked for
// is journaled as for every other mode; once the engine has proved that the processes are
// stopped, that is journaled too, and only then the ledger has CPUs and devices for others.
// They go on after the ledger has verified that all of it is free again.

// suspendRequested reports whether a job was asked to make room by being suspended.
func (a *attempt) suspendRequested() bool {
	return a.preempted != nil && a.preempted.Mode == account.PreemptSuspend
}

// setPreemptSuspended has the ledger count what a parked job holds.
func (s *state) setPreemptSuspended(e *jobRecord, on bool) error {
	if err := s.ledger.Park(e.last.id, on); err != nil {
		return err
	}
	e.last.preemptSuspended = on
	if e.extra != nil && !on {
		e.extra.message = ""
	}
	if on {
		e.last.preempted = nil
		s.events = append(s.events, sched.Suspended{Job: e.id})
	}
	return nil
}

// trackSuspension notes since when a job is suspended, or how long it was: its time limit waits.
func (s *state) trackSuspension(e *jobRecord, on bool, at int64) {
	a := e.last
	switch {
	case on && a.suspendedAt == 0:
		a.suspendedAt = at
	case on:
	case a.suspendedAt > 0:
		a.suspendedFor += time.Duration(max(at-a.suspendedAt, 0))
		a.suspendedAt = 0
		s.events = append(s.events, sched.Extended{Job: e.id, Until: untilOf(e, s.now)})
	}
}

// suspendReported is the message for the engine's word about a job after it was told to suspend it.
// Earlier words may be about another time that it was suspended, after which it went on.
func (l *loop) suspendReported(id job.ID, asked *preempted, r engine.Report) message {
	return message{job: id, run: func(l *loop) {
		if e, err := l.state.jobByRef(r.Ref); err == nil && e.id == id && e.last.preempted == asked {
			e.last.proof = max(r.Version, 1)
			if now := e.lastReport(); now.Version >= r.Version && now.Phase == engine.Running {
				l.stagePreemptSuspended(e, now)
				return
			}
			l.reportMessage(l.pools.byNameOrFirst(e.last.pool), r).run(l)
		}
	}}
}

// stagePreemptSuspended stages that a job was suspended as asked for.
func (l *loop) stagePreemptSuspended(e *jobRecord, r *engine.Report) {
	if p := e.last.proof; r.Suspended && !r.Uncertain && e.last.suspendRequested() && e.flags&job.Stopping == 0 && p != 0 && r.Version >= p {
		to := job.Suspended
		l.stageRecord(kindSuspend, e.id, job.Actor{}, suspend{On: true, Parked: true, State: &to}, nil)
	}
}

// suspendLate asks again of a job that had not started when it was first asked.
func (l *loop) suspendLate(e *jobRecord) {
	if e.last.suspendRequested() {
		l.requestEviction(e)
	}
}

// repeatSuspend has the engine do again what it was told, where its word differs: the call was
// lost with the server that made it, or one that a server which was followed had made
// before came late.
func (l *loop) repeatSuspend(e *jobRecord, r *engine.Report) {
	ref, on := r.Ref, e.state == job.Suspended
	differs := func() bool {
		return e.state.Holds() && e.state == job.Suspended == on && !e.last.suspendRequested() && e.flags&(job.Configuring|job.Stopping) == 0
	}
	if r.Suspended != on && !r.Uncertain && differs() {
		l.whileLeading(func() {
			if differs() {
				l.callsFor(e).Suspend(ref, on)
			}
		})
	}
}

// canUnpark reports whether a job is parked and may go on.
func (e *jobRecord) canUnpark() bool {
	return e != nil && e.state == job.Suspended && e.last.preemptSuspended && e.flags&job.Stopping == 0
}

// stagePreemptResume stages that a parked job goes on. Of one that the ledger has no room for, which is
// a defect, nothing changes: it goes on when somebody resumes it.
func (l *loop) stagePreemptResume(d sched.Resume, p proposed) {
	e := l.state.jobs[d.Job]
	if p.refused != nil {
		l.state.counts.refused++
		l.cfg.Log.Error("the core lets a job go on that the ledger refuses", "job", e.Name(), "error", p.refused)
	}
	if !p.resumes || p.refused != nil {
		return
	}
	to := job.Running
	if e.last.userSuspended {
		to = job.Suspended
	}
	l.stageRecord(kindSuspend, e.id, job.Actor{}, suspend{Parked: true, State: &to}, func() {
		if a, ok := l.state.ledger.Of(e.id); ok && e.state == job.Running {
			l.callsOf(a).Suspend(reconcile.Ref(a), false)
		}
	})
}

// checkSuspendMode refuses rules by which jobs are suspended to make room where that makes none.
func (c *Control) checkSuspendMode(p *account.Policy) error {
	if cannot := c.poolsNotFreedBySuspend(); len(cannot) > 0 {
		return refuseSuspendMode(p, cannot[0])
	}
	return nil
}

// refuseSuspendMode refuses rules by which jobs are suspended to make room, for a pool in which that makes
// none. nil: there are no rules.
func refuseSuspendMode(p *account.Policy, pool string) error {
	if p == nil {
		return nil
	}
	modes := []string{p.Preemption.Mode}
	for i := range p.QOS {
		modes = append(modes, p.QOS[i].PreemptMode)
	}
	for i := range p.Partitions {
		modes = append(modes, p.Partitions[i].PreemptMode)
		if p.Partitions[i].TimeSlice > 0 {
			modes = append(modes, account.PreemptSuspend)
		}
	}
	for _, m := range modes {
		if m == account.PreemptSuspend {
			return fault.New(fault.Unsupported, "the engine of pool %s cannot suspend jobs to make room for others", pool).
				Advise("write requeue, cancel or checkpoint as the mode of preemption, and no time_slice")
		}
	}
	return nil
}

// poolsNotFreedBySuspend names the pools in which suspending a job makes no room for others.
func (c *Control) poolsNotFreedBySuspend() (names []string) {
	for _, p := range c.pools.allPools() {
		if !suspendFreesRoom(p.Engine) {
			names = append(names, p.Name)
		}
	}
	return names
}

// suspendFreesRoom reports whether suspending a job of an engine makes room for others.
func suspendFreesRoom(e engine.Engine) bool {
	_, can := e.(engine.Suspender)
	k, ok := e.(engine.Keeping)
	return can && (!ok || !k.KeepsSuspended())
}

// poolsWithoutSuspend names the pools whose engines cannot suspend jobs.
func (c *Control) poolsWithoutSuspend() (names []string) {
	for _, p := range c.pools.allPools() {
		if _, ok := p.Engine.(engine.Suspender); !ok {
			names = append(names, p.Name)
		}
	}
	return names
}

func cannotSuspendError(pool string) error {
	return fault.New(fault.Unsupported, "the engine of pool %s cannot suspend jobs", pool).
		Advise("requeue the job, or send SIGSTOP to it")
}
