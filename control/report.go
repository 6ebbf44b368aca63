package control

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/dispatch"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
)

// Bounds of the attempts of a job that may be requeued.
const (
	maxFailures = 5               // in a row; then it is held, as Slurm's max_batch_requeue
	maxBackoff  = 5 * time.Minute // between two of them

	// After how many pauses (Config.Backoff) a job is launched again for which the engine
	// was not ready. It is not the job's failure, so it is not counted as one.
	unreadyPauses = 5
	// … for which a limit of the engine's had no room, if nobody says before that there is …
	limitedPauses = 30
	// … and for how long that may have been said before the refusal was heard of.
	limitedSoon = 5
)

// reportMessage is the message for a report of the engine. A report about an attempt that holds
// nothing changes no job: if the attempt has ended it is forgotten, and if it lives it is ended,
// since nobody may run without an allocation in the ledger.
func (l *loop) reportMessage(p *pools.Member, r engine.Report) message {
	return message{job: r.Job, run: func(l *loop) {
		e, err := l.state.JobByRef(r.Ref)
		if a, ok := l.state.Ledger.Of(r.Job); planted.LateReport && err != nil && ok {
			r.Ref = reconcile.Ref(a)
			e, err = l.state.JobByRef(r.Ref)
		}
		if planted.FreeUnproved && r.Uncertain && !r.Started.IsZero() {
			r.Phase, r.Gone, r.Cause = engine.Ended, true, engine.NodeLost
		}
		if err == nil && e.Last.Pool != p.Name {
			err = fault.New(fault.Conflict, "attempt %s is held in pool %s", r.Ref, e.Last.Pool)
		}
		switch {
		case err != nil && r.Phase == engine.Ended:
			l.whileLeading(func() { p.Calls.Forget(r.Ref) })
			return
		case err != nil:
			l.whileLeading(func() { l.endOrphan(p, r.Ref) })
			return
		case e.ID != r.Job: // the batch may have a message about e already
			l.recheckReport(p, e, r)
			return
		case e.AdditionByRef(r.Ref) != nil:
			l.moreReported(e, e.AdditionByRef(r.Ref), r)
			return
		case r.Version < e.Report().Version:
			return
		}
		was := e.Report()
		l.state.Lock()
		e.Last.Report = &r
		e.Last.NoteNodes(state.NodesIn(&r))
		l.state.MarkDirty(e)
		l.state.Unlock()
		l.noteSaved(e, &r)
		if r.Phase >= engine.Accepted && r.Cause != engine.Limited {
			l.backpressure.acceptedByEngine(e)
		}
		if r.Phase == engine.Running {
			l.stagePreemptSuspended(e, &r)
			l.repeatSuspend(e, &r)
		}
		switch {
		case r.Phase == engine.Ended && r.Gone, planted.NotUndone && r.Cause == engine.LaunchFailed:
			l.stageEnd(e, r)
			return
		case r.Phase >= engine.Running && e.Flags&job.Configuring != 0 && !r.Started.IsZero():
			l.stageRecord(state.KindStarted, e.ID, job.Actor{}, l.startedWithUsage(e, &r), func() { l.state.TellTimeLimit(e, l.cfg.Clock.Now()); l.suspendLate(e) })
		}
		l.drainStuckNodes(e, was, r)
		if r.Held && r.Phase < engine.Ready && e.Flags&(job.Held|job.HeldAdmin) == 0 && e.IsRequeuedToMove() { // who holds it there means it to stay
			m := e.Extra.PoolMoves.Under
			l.stageRecord(state.KindPoolMove, e.ID, job.Actor{}, state.PoolMove{From: m.From, To: m.To, Why: "held in " + m.From, Undone: true, State: state.StatePointer(e.State)}, nil)
		}
		if r.Uncertain != (e.Flags&job.Uncertain != 0) {
			l.stageRecord(state.KindUncertain, e.ID, job.Actor{}, state.Uncertain{Ref: r.Ref, Uncertain: r.Uncertain, Message: r.Message}, nil)
		}
	}}
}

// recheckReport handles a report that names the attempt of one job and the number of another.
// The engine is asked again; nothing else follows from it.
func (l *loop) recheckReport(p *pools.Member, e *state.JobRecord, r engine.Report) {
	id := e.ID
	l.cfg.Log.Warn("a report names another job than the ledger, asking again", "ref", r.Ref, "ledger", id, "report", r.Job)
	l.helpers.Go(func() {
		if again, err := p.Engine.Inspect(l.ctx, r.Ref); err == nil && again.Job == id {
			_ = l.postMessage(l.ctx, l.reportMessage(p, again)) // a closed loop hears nothing more
		}
	})
}

func (l *loop) stageEnd(e *state.JobRecord, r engine.Report) {
	if l.endFirst(e, r) {
		return
	}
	r.Failure, r.FailedOn = reconcile.FailureOf(&r), reconcile.FailedOn(&r)
	if fenced := l.state.FencedUnder(e); r.Cause == engine.Exited && r.Failure == engine.JobFailure && len(fenced) > 0 {
		r.Failure, r.FailedOn = engine.NodeFailure, fenced
	}
	if r.Failure != engine.NoFailure && len(r.FailedOn) == 0 {
		r.FailedOn = e.Last.OnlyNode()
	}
	v := state.Ended{Ref: r.Ref, Report: r}
	v.State, v.By, v.Flags = attemptOutcome(e, r)
	if n := e.ExtraOrZero().Retried + 1; mayRetry(e, r, v.State, n) {
		v.State, v.By, v.Flags, v.Retried = job.Pending, job.ByEngine, job.Requeued, n
		v.Again = l.cfg.Clock.Now().Add(e.Shared.Spec.Retries.Pause(n))
	} else if v.State == job.Pending && r.Cause == engine.Unready {
		v.Failed = e.ExtraOrZero().Failed
		if r.Failure != engine.NodeFailure { // else it goes to other nodes at once
			v.Again = l.cfg.Clock.Now().Add(unreadyPauses * l.cfg.Backoff)
		}
	} else if v.State == job.Pending && r.Cause == engine.Limited {
		v.Failed, v.Again = e.ExtraOrZero().Failed, l.backpressure.retryTime(e)
		l.backpressure.addLimitedJob(e)
	} else if v.State == job.Pending && v.By == job.ByEngine && v.Flags&job.SpecialExit == 0 {
		v.Failed = e.ExtraOrZero().Failed + 1
		if v.Failed >= maxFailures {
			v.Flags |= job.Held | job.HeldFailed
		} else if v.Failed > 1 {
			v.Again = l.cfg.Clock.Now().Add(min(l.cfg.Backoff<<(v.Failed-2), maxBackoff))
		}
	}
	if v.State == job.Pending {
		v.KeepOff = l.state.KeepsOff(l.core, e, &r, l.cfg.Clock.Now(), state.DefaultKeepOff)
	}
	if e.Flags&job.Configuring != 0 && !r.Started.IsZero() { // it ended before its start was heard of
		l.stageRecord(state.KindStarted, e.ID, job.Actor{}, startedOf(e, &r), nil)
	}
	until := state.ChargedUntil(&r, l.cfg.Clock.Now())
	v.Used = l.core.Owes(until, e.ID)
	if e.Flags&job.Configuring != 0 && !r.Started.IsZero() && state.IsDelegated(e.Last.Claims) {
		v.Used = l.core.OwesLate(until, e.ID, e.Last.ChargedFrom(state.ToNanos(r.Started)))
	}
	calls := l.callsFor(e)
	l.stageRecord(state.KindEnded, e.ID, job.Actor{}, v, func() { calls.Forget(r.Ref) })
}

// mayRetry reports whether retry n of a job follows an attempt that leaves it in a state. A job
// whose end was asked for, or that could not be started at all, is not retried.
func mayRetry(e *state.JobRecord, r engine.Report, ended job.State, n int) bool {
	a, retries := e.Last, e.Shared.Spec.Retries
	switch {
	case retries == nil || n > retries.Count || a.Cancel != nil:
		return false
	case ended == job.Failed && r.Cause != engine.Exited:
		return false
	case ended == job.Failed && a.Expired != nil: // it was told to end, and failed on the way
		ended = a.Expired.State
	}
	return retries.Covers(ended, r.Exit) || ended == job.Failed && r.Failure == engine.NodeFailure && retries.Covers(job.NodeFail, r.Exit)
}

// drainStuckNodes drains the nodes on which nothing ends a process of the job: the next job
// would find its devices in use, and this one, requeued, would spoil node after node. Whoever
// resumes such a node has looked at it.
func (l *loop) drainStuckNodes(e *state.JobRecord, was *engine.Report, r engine.Report) {
	for i, n := range r.Nodes {
		if n.Stuck == "" || i < len(was.Nodes) && was.Nodes[i].Stuck != "" {
			continue
		}
		k, _ := l.state.Nodes.Find(fleet.NodeKey{Pool: e.Last.Pool, Name: n.Node})
		if _, _, drained := l.state.DrainOf(k); drained {
			continue
		}
		why := fmt.Sprintf("SIGKILL does not end process %s of job %s on %s", n.Stuck, e.Name(), n.Node)
		l.stageRecord(state.KindNodes, 0, job.Actor{}, state.NodesRecord([]fleet.NodeKey{k}, true, why), func() { l.tellNodes(k.Name) })
	}
}

// attemptOutcome maps the end of an attempt, and the requests about it, to the job's next state.
// A job whose end was asked for does not wait again.
func attemptOutcome(e *state.JobRecord, r engine.Report) (job.State, job.Cause, job.Flags) {
	a := e.Last
	stopped := r.Cause == engine.Stopped || r.Cause == engine.LaunchFailed || r.Cause == engine.Unready || r.Cause == engine.Limited || r.Cause == engine.Refused ||
		r.Cause == engine.Cancelled || r.Cause == engine.Preempted
	switch {
	case a.Cancel != nil && (stopped || r.Cause == engine.NodeLost):
		return job.Cancelled, job.ByUser, 0
	case a.Expired != nil && (stopped || r.Cause == engine.NodeLost):
		return a.Expired.State, job.ByControl, 0
	case a.Requeue != nil && (stopped || r.Cause == engine.NodeLost) && (r.Started.IsZero() || !e.IsRequeuedToMove()):
		return job.Pending, job.ByUser, job.Requeued
	case a.Preempted != nil && !e.EndedBefore(&r):
		if to, flags, ok := a.Preempted.Outcome(&r, a.HasSaved(&r)); ok {
			return to, job.ByScheduler, flags
		}
	}
	switch r.Cause {
	case engine.TimedOut:
		return job.Timeout, job.ByEngine, 0
	case engine.OutOfMemory:
		return job.OutOfMemory, job.ByEngine, 0
	case engine.NodeLost:
		if e.Shared.Spec.Requeue {
			return job.Pending, job.ByEngine, job.Requeued
		}
		return job.NodeFail, job.ByEngine, 0
	case engine.Unready, engine.Limited: // nothing of it began, so --no-requeue does not speak of it
		return job.Pending, job.ByEngine, job.Requeued
	case engine.LaunchFailed, engine.Stopped: // stopped, and nobody asked: its launch was given up, and had arrived
		if r.Cause == engine.Stopped && r.Started.IsZero() && state.IsDelegated(a.Claims) {
			return job.Pending, job.ByEngine, job.Requeued // taken back for a move that was given up meanwhile
		}
		if e.Shared.Spec.Requeue {
			return job.Pending, job.ByEngine, job.Requeued | job.LaunchFailed
		}
		return job.Failed, job.ByEngine, job.LaunchFailed
	case engine.Cancelled:
		return job.Cancelled, job.ByUser, 0
	case engine.Preempted:
		if e.Shared.Spec.Requeue {
			return job.Pending, job.ByScheduler, job.Requeued
		}
		return job.Preempted, job.ByScheduler, 0
	case engine.Refused: // again it would be refused again
		return job.Failed, job.ByEngine, job.LaunchFailed
	}
	switch s := &e.Shared.Spec; {
	case r.Cause == engine.Exited && r.Exit.OK():
		return job.Completed, job.ByEngine, 0
	case r.Cause != engine.Exited || a.Cancel != nil || a.Expired != nil:
	case r.Failure == engine.NodeFailure && s.Requeue: // a device of it broke
		return job.Pending, job.ByEngine, job.Requeued
	case s.RequeueExit.Has(r.Exit):
		return job.Pending, job.ByEngine, job.Requeued
	case s.RequeueExitHold.Has(r.Exit):
		return job.Pending, job.ByEngine, job.Requeued | job.Held | job.SpecialExit
	}
	return job.Failed, job.ByEngine, 0
}

// launchRefused is the message for a launch that the engine does not take. One that was repeated after a
// restart may have been refused before it, and barred, which nobody lived to write down: all that
// the engine knows by now is that. Why is not known, so the job is not blamed for it. One that is known
// to have begun was lost since by the engine: it does not run again as if nothing of it had.
func (l *loop) launchRefused(id job.ID, ref engine.Ref, why error, repeated bool) message {
	return message{job: id, run: func(l *loop) {
		e, err := l.state.JobByRef(ref)
		if err != nil {
			return
		}
		began := e.StartTime()
		cause, text := engine.LaunchFailed, why.Error()
		switch k := fault.KindOf(why); {
		case !began.IsZero():
			cause, text = engine.NodeLost, "the engine lost all trace of it, and its launch was refused: "+text
		case repeated && k == fault.Conflict && !errors.Is(why, dispatch.ErrStopped):
			cause, text = engine.Unready, "its launch was given up when the server ended: "+text
		case k == fault.Exhausted:
			cause = engine.Unready
			if _, ok := l.pools.ByNameOrFirst(e.Last.Pool).Engine.(engine.CapacityNotifier); ok {
				cause = engine.Limited
			}
		case state.IsDelegated(e.Last.Claims) && (k == fault.Invalid || k == fault.Unsupported):
			cause = engine.Refused
		}
		l.stageEnd(e, engine.Report{
			Ref: ref, Job: id, Phase: engine.Ended, Cause: cause, Gone: true, Started: began,
			Exit: job.ExitCode{Status: 1}, Ended: l.cfg.Clock.Now(), Message: text,
		})
	}}
}

func (l *loop) endOrphan(p *pools.Member, ref engine.Ref) {
	l.cfg.Log.Warn("the engine runs what the ledger does not hold, ending it", "pool", p.Name, "ref", ref)
	p.Calls.Stop(ref, engine.Stop{Grace: 0, Reason: "not in the ledger"}, nil)
}

// resumeAttempts takes up the allocations in the ledger: a launch is repeated if the engine is
// not known to have begun it, and requests to the engine are repeated. An attempt that should
// end is not launched first: a stop that finds nothing bars the launch. of names pools whose
// work alone is taken up; none: all.
func (l *loop) resumeAttempts(of ...string) {
	for _, a := range l.state.Ledger.Live() {
		e := l.state.Jobs[a.Job]
		if a.Adds != 0 || len(of) > 0 && !slices.Contains(of, a.Pool) {
			continue
		}
		l.resumeAdded(e)
		l.tellGangAgain(e)
		switch v := e.Last; {
		case v.Cancel != nil, v.Expired != nil, v.Requeue != nil && e.ExtraOrZero().PoolMoves.Under == nil:
			s, _ := l.stopAsked(e)
			l.stopAttempt(e, s)
		case v.Preempted != nil:
			l.requestEviction(e)
		case e.State == job.Suspended:
			l.callsOf(a).Suspend(reconcile.Ref(a), true)
		case e.Flags&job.Configuring != 0:
			l.launchAttempt(e, a, true)
			if planted.LaunchAgain {
				a.Attempt++
				l.launchAttempt(e, a, true)
			}
		}
		if e.Extra != nil && e.Extra.LimitEnd > 0 {
			l.relimitAttempt(e)
		}
	}
}

// missingMessage is the message for an attempt that the engine accepted and of which it has
// nothing now. Its allocation is not free yet: a repeated launch may still be on its way.
func (l *loop) missingMessage(a ledger.Allocation) message {
	return message{job: a.Job, run: func(l *loop) {
		ref := reconcile.Ref(a)
		l.whileLeading(func() {
			if _, err := l.state.JobByRef(ref); err == nil && !l.callsOf(a).Busy(ref) {
				l.callsOf(a).Stop(ref, engine.Stop{Reason: "the engine has lost it"}, l.vanishedCallback(a))
			}
		})
	}}
}

// vanishedCallback ends an attempt of which the engine has nothing, and never will.
func (l *loop) vanishedCallback(a ledger.Allocation) func() {
	ref := reconcile.Ref(a)
	m := message{job: a.Job, run: func(l *loop) {
		e, err := l.state.JobByRef(ref)
		switch {
		case err != nil:
			return
		case e.AdditionByRef(ref) != nil:
			l.stageDrop(e, ref, false, "the engine lost all trace of it")
			return
		}
		l.stageEnd(e, engine.Report{
			Ref: ref, Job: a.Job, Phase: engine.Ended, Cause: engine.NodeLost, Gone: true, Started: e.StartTime(),
			Exit: job.ExitCode{Status: 1}, Ended: l.cfg.Clock.Now(), Message: "the engine lost all trace of it",
		})
	}}
	return func() { _ = l.postMessage(l.ctx, m) } // a closed loop hears nothing more
}
