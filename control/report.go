package control

import (
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/ledger"
	"github.com/coxswain-sched/coxswain/reconcile"
)

// maxLaunches bounds the attempts of a job that may be requeued and whose launches fail.
const maxLaunches = 3

// reported is the message for a report of the engine. A report about an attempt
// that holds nothing changes no job: an ended one is forgotten, a living one is
// ended, since nobody may run what the ledger does not hold.
func (l *loop) reported(r engine.Report) message {
	return message{r.Job, func(l *loop) {
		e, err := l.state.holder(r.Ref)
		switch {
		case err != nil && r.Phase == engine.Ended:
			l.dispatch.Forget(r.Ref)
			return
		case err != nil:
			l.orphan(r.Ref)
			return
		case r.Version < e.report.Version:
			return
		}
		e.report = r
		l.state.touch(e.ID)
		switch {
		case r.Phase == engine.Ended && r.Gone:
			l.stageEnd(e, r)
			return
		case r.Phase >= engine.Running && e.Flags&job.Configuring != 0 && !r.Started.IsZero():
			l.stage(kindStarted, e.ID, started{r.Ref, r.Started}, func() { l.extend(e) }, nil)
		}
		if r.Uncertain != (e.Flags&job.Uncertain != 0) {
			l.stage(kindUncertain, e.ID, uncertain{r.Ref, r.Uncertain, r.Message}, nil, nil)
		}
	}, nil}
}

func (l *loop) stageEnd(e *entry, r engine.Report) {
	v := ended{Ref: r.Ref, Report: r}
	v.State, v.By, v.Flags = outcome(e, r)
	if e.Flags&job.Configuring != 0 && !r.Started.IsZero() { // it ended before its start was heard of
		l.stage(kindStarted, e.ID, started{r.Ref, r.Started}, nil, nil)
	}
	l.stage(kindEnded, e.ID, v, func() { l.dispatch.Forget(r.Ref) }, nil)
}

// outcome maps how an attempt ended, and what was asked of it, to the job's next
// state. A job whose end was asked for does not wait again.
func outcome(e *entry, r engine.Report) (job.State, job.Cause, job.Flags) {
	stopped := r.Cause == engine.Stopped || r.Cause == engine.LaunchFailed
	switch {
	case e.cancel != nil && (stopped || r.Cause == engine.NodeLost):
		return job.Cancelled, job.ByUser, 0
	case e.requeue && stopped:
		return job.Pending, job.ByUser, job.Requeued
	}
	switch r.Cause {
	case engine.TimedOut:
		return job.Timeout, job.ByEngine, 0
	case engine.OutOfMemory:
		return job.OutOfMemory, job.ByEngine, 0
	case engine.NodeLost:
		if e.Spec.Requeue {
			return job.Pending, job.ByEngine, job.Requeued
		}
		return job.NodeFail, job.ByEngine, 0
	case engine.LaunchFailed:
		if e.Spec.Requeue && e.Attempt < maxLaunches {
			return job.Pending, job.ByEngine, job.Requeued | job.LaunchFailed
		}
		return job.Failed, job.ByEngine, job.LaunchFailed
	}
	if r.Cause == engine.Exited && r.Exit.OK() {
		return job.Completed, job.ByEngine, 0
	}
	return job.Failed, job.ByEngine, 0
}

// refused is the message for a launch that the engine does not take.
func (l *loop) refused(id job.ID, ref engine.Ref, why error) message {
	return message{id, func(l *loop) {
		e, err := l.state.holder(ref)
		if err != nil {
			return
		}
		l.stageEnd(e, engine.Report{
			Ref: ref, Job: id, Phase: engine.Ended, Cause: engine.LaunchFailed, Gone: true,
			Exit: job.ExitCode{Status: 1}, Ended: l.cfg.Clock.Now(), Message: why.Error(),
		})
	}, nil}
}

func (l *loop) orphan(ref engine.Ref) {
	l.cfg.Log.Warn("the engine runs what the ledger does not hold, ending it", "ref", ref)
	l.dispatch.Stop(ref, engine.Stop{Grace: 0, Reason: "not in the ledger"})
}

// extend tells the core when a job that has now started will reach its limit.
func (l *loop) extend(e *entry) {
	l.state.events = append(l.state.events, extended(e, l.until(e)))
}

// resume takes up what the journal says is held: a launch is repeated where the
// engine is not known to have begun it, and what was asked for is asked again.
func (l *loop) resume() {
	for _, a := range l.state.led.Live() {
		e := l.state.jobs[a.Job]
		if e.Flags&job.Configuring != 0 {
			l.launch(e, a)
		}
		if e.cancel != nil {
			l.dispatch.Stop(reconcile.Ref(a), engine.Stop{Signal: e.cancel.Signal, Grace: e.cancel.Grace, Reason: "cancelled"})
		} else if e.requeue {
			l.dispatch.Stop(reconcile.Ref(a), engine.Stop{Grace: l.cfg.Grace, Reason: "requeued"})
		}
	}
}

// compare asks the engine for everything it has, apart from the loop, and posts
// what disagrees with the ledger as it was before.
func (l *loop) compare() {
	live := l.state.led.Live()
	var running []ledger.Allocation
	for _, a := range live {
		if l.state.jobs[a.Job].Flags&job.Configuring == 0 { // others are still on their way to the engine
			running = append(running, a)
		}
	}
	l.helpers.Go(func() {
		reports, err := l.cfg.Engine.List(l.ctx)
		if err != nil {
			l.cfg.Log.Warn("the engine's list cannot be had", "error", err)
			return
		}
		for _, f := range reconcile.Compare(running, reports) {
			if f.Kind != reconcile.Missing {
				continue
			}
			if _, err := l.cfg.Engine.Inspect(l.ctx, f.Ref); fault.KindOf(err) == fault.NotFound {
				_ = l.control.post(l.ctx, l.missing(f.Alloc)) // a closed loop hears nothing more
			}
		}
	})
}

// missing is the message for an attempt that was running and of which the engine,
// asked again, is certain to have nothing.
func (l *loop) missing(a ledger.Allocation) message {
	return message{a.Job, func(l *loop) {
		ref := reconcile.Ref(a)
		e, err := l.state.holder(ref)
		if err != nil {
			return
		}
		l.stageEnd(e, engine.Report{
			Ref: ref, Job: a.Job, Phase: engine.Ended, Cause: engine.NodeLost, Gone: true, Started: e.Started,
			Exit: job.ExitCode{Status: 1}, Ended: l.cfg.Clock.Now(), Message: "the engine lost all trace of it",
		})
	}, nil}
}
