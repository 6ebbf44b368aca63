package control

import (
	"context"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/sched"
)

// This file carries out the core's decisions about elastic jobs that run. An addition to a job
// is an allocation of its own, with an attempt of its own at the engine, and follows the rules
// of these: durable before the engine hears of it, fenced, freed on proof. It belongs to the
// present attempt of the job and ends with it: the job's own allocation is freed last.
//
// The job's members are told of each change: of an addition once it runs, of one that is asked
// back before it is ended, and of one that has gone.

// additionFor is the allocation that a decision adds to a job; nil: the job can have no more.
func (l *loop) additionFor(d sched.Grow) *ledger.Allocation {
	e := l.state.Jobs[d.Job]
	if e == nil || e.State != job.Running || e.Flags&(job.Configuring|job.Stopping) != 0 || e.Report().Phase >= engine.Ending {
		return nil
	}
	return &ledger.Allocation{
		Job: e.ID, Attempt: e.Attempt, Epoch: l.epoch, Pool: e.Last.Pool, Status: ledger.Held, Claims: d.Claims, Adds: e.Last.AllocationID,
	}
}

// acceptGrowth notes what the ledger says of an addition, and reports whether it is made. A
// refusal is final: else the core would decide the same again at once.
func (l *loop) acceptGrowth(d sched.Grow, p proposed) bool {
	s := l.state
	if p.refused != nil {
		s.Counts.Refused++
		l.cfg.Log.Error("the core proposed what the ledger refuses", "job", s.Jobs[d.Job].Name(), "error", p.refused)
	}
	if p.hold == nil || p.refused != nil {
		s.Events = append(s.Events, sched.Dropped{Job: d.Job, Node: d.Claims[0].Node, Settled: true})
		return false
	}
	return true
}

// stageGrowth stages the records of additions. The ledger holds them when these are durable.
func (l *loop) stageGrowth(all []ledger.Allocation) {
	next := map[job.ID]int{}
	for _, a := range all {
		e := l.state.Jobs[a.Job]
		first := max(next[a.Job], e.Last.Ranks)
		next[a.Job] = first + state.TasksOf(a.Claims)
		l.stageRecord(state.KindAdded, e.ID, job.Actor{}, state.Added{Allocation: a, First: first, State: state.StatePointer(e.State)}, func() {
			if x := e.AdditionByRef(reconcile.Ref(a)); x != nil {
				l.launchMore(e, x)
			}
		})
	}
}

// launchMore hands an addition to the engine.
func (l *loop) launchMore(e *state.JobRecord, x *state.JobAddition) {
	a := e.AdditionAllocation(x)
	ref := reconcile.Ref(a)
	snapshot := state.ViewOf(e).Job
	first, to := x.First, reconcile.Ref(e.Allocation())
	l.callsOf(a).Launch(ref, func(ctx context.Context) (*engine.Launch, error) {
		out, err := l.ctl.loadLaunch(ctx, &snapshot, a)
		if out != nil {
			out.Adds = &engine.Joining{To: to, First: first}
		}
		return out, err
	}, func(err error) {
		_ = l.postMessage(l.ctx, l.lostMore(e.ID, ref, true, err.Error())) // a closed loop hears nothing more
	})
}

// moreReported handles a report about an addition.
func (l *loop) moreReported(e *state.JobRecord, x *state.JobAddition, r engine.Report) {
	was := x.Report
	switch {
	case was != nil && r.Version < was.Version:
		return
	case was == nil && x.Uncertain:
		was = &r // which was acted on before a restart
	case was == nil:
		was = &engine.Report{}
	}
	l.state.Lock()
	next := *x
	next.Report = &r
	e.Last.ReplaceAddition(x.ID, &next)
	l.state.Unlock()
	l.drainStuckNodes(e, was, r)
	if held := e.State == job.Suspended; r.Phase == engine.Running && r.Suspended != held && e.Flags&job.Stopping == 0 {
		l.whileLeading(func() { // it joined meanwhile, or a restart came between
			if e.AdditionByRef(r.Ref) != nil && (e.State == job.Suspended) == held {
				l.callsFor(e).Suspend(r.Ref, held)
			}
		})
	}
	switch {
	case r.Phase == engine.Ended && r.Gone:
		own := r.Cause == engine.Exited || r.Cause == engine.OutOfMemory || r.Cause == engine.LaunchFailed || r.Cause == engine.Refused
		l.stageDrop(e, r.Ref, own && x.Asked == nil, r.Message)
	case r.Phase == engine.Running && x.Started == 0 && !r.Started.IsZero():
		l.stageRecord(state.KindJoined, e.ID, job.Actor{}, state.Joined{Ref: r.Ref, Started: r.Started, State: state.StatePointer(e.State)}, func() { l.tellGang(e) })
	}
	if r.Uncertain != x.Uncertain && !(r.Phase == engine.Ended && r.Gone) {
		l.stageRecord(state.KindUncertain, e.ID, job.Actor{}, state.Uncertain{Ref: r.Ref, Uncertain: r.Uncertain, Message: r.Message}, nil)
	}
}

// stageShrink stages a decision to ask for an addition back.
func (l *loop) stageShrink(d sched.Shrink) {
	e := l.state.Jobs[d.Job]
	if e == nil || !e.State.Holds() {
		return
	}
	grace := d.Grace
	if grace == 0 {
		grace = l.cfg.Grace
	}
	for _, x := range e.Last.Added {
		if x.Claims[0].Node == d.Node && x.Asked == nil {
			l.stageRecord(state.KindAsked, e.ID, job.Actor{}, state.AskedBack{Ref: e.AdditionRef(x), For: d.For, Grace: grace, State: state.StatePointer(e.State)}, func() {
				l.tellGang(e)
				if x := e.AdditionByRef(e.AdditionRef(x)); x != nil {
					l.stopMore(e, x)
				}
			})
		}
	}
}

// stopMore asks the engine to end an addition that was asked back.
func (l *loop) stopMore(e *state.JobRecord, x *state.JobAddition) {
	ref := e.AdditionRef(x)
	l.callsFor(e).Stop(ref, engine.Stop{Grace: x.Asked.Grace, Reason: x.Asked.Message()}, l.vanishedMore(e, ref))
}

func (l *loop) vanishedMore(e *state.JobRecord, ref engine.Ref) func() {
	m := l.lostMore(e.ID, ref, false, "the engine has nothing of it")
	return func() { _ = l.postMessage(l.ctx, m) } // a closed loop hears nothing more
}

// lostMore is the message for an addition of which the engine has nothing, and never will.
// settled says that the job should not grow any more, unless the addition was asked back.
func (l *loop) lostMore(id job.ID, ref engine.Ref, settled bool, why string) message {
	return message{job: id, run: func(l *loop) {
		if e, err := l.state.JobByRef(ref); err == nil && e.AdditionByRef(ref) != nil {
			l.stageDrop(e, ref, settled && e.AdditionByRef(ref).Asked == nil, why)
		}
	}}
}

// stageDrop stages the end of an addition. If the job has ended itself and this was the last
// one, the job's end follows.
func (l *loop) stageDrop(e *state.JobRecord, ref engine.Ref, settled bool, why string) {
	v := state.Dropped{Ref: ref, Settled: settled, Message: why, State: state.StatePointer(e.State)}
	if x := e.AdditionByRef(ref); x != nil {
		v.Used = l.core.OwesFor(sched.Instant(l.cfg.Clock.Now().UnixNano()), sched.Member{Job: e.ID, Node: x.Claims[0].Node})
	}
	calls := l.callsFor(e)
	l.stageRecord(state.KindDropped, e.ID, job.Actor{}, v, func() {
		calls.Forget(ref)
		if len(e.Last.Added) > 0 || e.Report().Phase != engine.Ended {
			l.tellGang(e)
			return
		}
		l.carry = append(l.carry, message{job: e.ID, run: func(l *loop) { // the record is one of the next batch
			if r := e.Report(); e.State.Holds() && len(e.Last.Added) == 0 && r.Phase == engine.Ended && r.Gone {
				l.stageEnd(e, *r)
			}
		}})
	})
}

// endFirst reports whether a job that has ended has additions, and has them ended too: the job's
// own end waits for that. Until then no other job takes its place.
func (l *loop) endFirst(e *state.JobRecord, r engine.Report) bool {
	if e.Last == nil || len(e.Last.Added) == 0 {
		return false
	}
	l.state.Lock()
	e.Last.Report = &r
	l.state.MarkDirty(e)
	l.state.Events = append(l.state.Events, sched.Stopping{Job: e.ID})
	l.state.Unlock()
	l.whileLeading(func() {
		if e.Attempt == r.Ref.Attempt {
			l.stopAdded(e, engine.Stop{Grace: l.cfg.Grace, Reason: "the job has ended"})
		}
	})
	return true
}

// stopAdded ends all additions to a job.
func (l *loop) stopAdded(e *state.JobRecord, s engine.Stop) {
	if e.Last == nil || !e.State.Holds() {
		return
	}
	for _, x := range e.Last.Added {
		ref := e.AdditionRef(x)
		l.callsFor(e).Stop(ref, s, l.vanishedMore(e, ref))
	}
}

// tellGang tells a job its present members.
func (l *loop) tellGang(e *state.JobRecord) {
	if !e.State.Holds() || e.Flags&job.Configuring != 0 || e.Report().Phase >= engine.Ending {
		return
	}
	l.callsFor(e).Regroup(l.state.RunningRefs(e), rosterOf(e))
}

// rosterOf lists the members of a job: its own tasks, and those of additions that run.
func rosterOf(e *state.JobRecord) engine.Roster {
	r := engine.Roster{Generation: e.Seq, Job: e.ID}
	rank := 0
	for i := range e.Last.Claims {
		c := &e.Last.Claims[i]
		r.Members = append(r.Members, engine.Member{Node: c.Node, Group: c.Group, Rank: rank, Tasks: c.Tasks})
		rank += c.Tasks
	}
	for _, x := range e.Last.Added {
		rank := x.First
		for i := range x.Claims {
			c := &x.Claims[i]
			if x.Started != 0 {
				r.Members = append(r.Members, engine.Member{Node: c.Node, Group: c.Group, Rank: rank, Tasks: c.Tasks, Leaving: x.Asked != nil})
			}
			rank += c.Tasks
		}
	}
	return r
}

// resumeAdded takes up the additions to a job after a restart.
func (l *loop) resumeAdded(e *state.JobRecord) {
	for _, x := range e.Last.Added {
		switch {
		case x.Asked != nil:
			l.stopMore(e, x)
		case x.Started == 0 && !e.Last.EndRequested() && e.Report().Phase < engine.Ending:
			l.launchMore(e, x)
		}
	}
}

// tellGangAgain tells a changed gang its members: the server before this one may not have done
// so.
func (l *loop) tellGangAgain(e *state.JobRecord) {
	if e.Last != nil && e.Last.Ranks > state.TasksOf(e.Last.Claims) {
		l.tellGang(e)
	}
}
