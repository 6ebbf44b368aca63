package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

// This file carries out what the core decides about elastic jobs that run. What is
// added to one is an allocation of its own, with an attempt of its own at the engine:
// everything that holds of those (durable before the engine hears of it, fenced, freed
// on proof) holds of it too. It belongs to the present attempt of the job and ends with
// it: the job's own allocation is freed last.
//
// Whoever runs in the job is told of each change: of what was added once it runs, of
// what is asked back before it is ended, of what has gone.

// jobAddition is what was added to the present attempt of a job. It is not written once it
// is in last.added: a change replaces it.
type jobAddition struct {
	ID      ledger.ID     `json:"id"`
	Epoch   uint64        `json:"epoch"`
	Claims  []fleet.Claim `json:"claims"`
	First   int           `json:"first"` // rank
	Began   int64         `json:"began"`
	Started int64         `json:"started,omitempty"` // its barrier was opened
	Asked   *askedBack    `json:"asked,omitempty"`   // back; nil: it was not

	Uncertain bool           `json:"uncertain,omitempty"` // part of it cannot be proved running or gone
	report    *engine.Report `json:"-"`                   // the last one, as far as known; never written
}

// added gives a running job more.
type added struct {
	Allocation ledger.Allocation `json:"allocation"`
	First      int               `json:"first"`
	State      *job.State        `json:"state,omitempty"`
}

// joined says that what was added runs.
type joined struct {
	Ref     engine.Ref `json:"ref"`
	Started time.Time  `json:"started"`
	State   *job.State `json:"state,omitempty"`
}

// askedBack asks for an addition back, so that another job can start where it is.
type askedBack struct {
	Ref   engine.Ref    `json:"ref"`
	For   job.ID        `json:"for"`
	Grace time.Duration `json:"grace"`
	State *job.State    `json:"state,omitempty"`
}

// dropped says that nothing of an addition lives, and that it is free.
type dropped struct {
	Ref     engine.Ref   `json:"ref"`
	Settled bool         `json:"settled,omitempty"` // the job is not to grow any more
	Message string       `json:"message,omitempty"` // how it ended, for people
	State   *job.State   `json:"state,omitempty"`
	Used    []fair.Entry `json:"used,omitempty"` // what is charged for it and the last kindUsage has not
}

// additionByRef finds one by the name under which the engine knows it; nil: it is none.
func (e *jobRecord) additionByRef(ref engine.Ref) *jobAddition {
	if e.last == nil || ref.Attempt != e.attempt {
		return nil
	}
	for _, x := range e.last.added {
		if x.ID == ledger.ID(ref.Allocation) {
			return x
		}
	}
	return nil
}

// additionRef is how the engine knows an addition.
func (e *jobRecord) additionRef(x *jobAddition) engine.Ref {
	return engine.Ref{Allocation: uint64(x.ID), Attempt: e.attempt}
}

// additionAllocation is what an addition holds.
func (e *jobRecord) additionAllocation(x *jobAddition) ledger.Allocation {
	a := ledger.Allocation{ID: x.ID, Job: e.id, Attempt: e.attempt, Epoch: x.Epoch, Pool: e.last.pool, Status: ledger.Held, Claims: x.Claims, Adds: e.last.id}
	if x.Uncertain {
		a.Status = ledger.Uncertain
	}
	return a
}

// onlyAdditionsLeft reports whether a job's own attempt has ended and only what was added to it is left.
func (e *jobRecord) onlyAdditionsLeft() bool {
	return e.state.Holds() && len(e.last.added) > 0 && e.lastReport().Phase == engine.Ended && e.lastReport().Gone
}

// isUncertain reports whether part of a job's work cannot be proved running or gone.
func (e *jobRecord) isUncertain() bool {
	return e.flags&job.Uncertain != 0 || e.last != nil && slices.ContainsFunc(e.last.added, func(x *jobAddition) bool { return x.Uncertain })
}

// replaceAddition replaces an addition, or takes it away.
func (l *attempt) replaceAddition(id ledger.ID, by *jobAddition) {
	l.added = slices.Clone(l.added) // whoever reads has the old one
	i := slices.IndexFunc(l.added, func(x *jobAddition) bool { return x.ID == id })
	switch {
	case i < 0:
		l.added = append(l.added, by)
	case by == nil:
		l.added = slices.Delete(l.added, i, i+1)
	default:
		l.added[i] = by
	}
}

// additionFor is what a decision gives a job in addition; nil: the job can have no more.
func (l *loop) additionFor(d sched.Grow) *ledger.Allocation {
	e := l.state.jobs[d.Job]
	if e == nil || e.state != job.Running || e.flags&(job.Configuring|job.Stopping) != 0 || e.lastReport().Phase >= engine.Ending {
		return nil
	}
	return &ledger.Allocation{
		Job: e.id, Attempt: e.attempt, Epoch: l.epoch, Pool: e.last.pool, Status: ledger.Held, Claims: d.Claims, Adds: e.last.id,
	}
}

// acceptGrowth takes in what the ledger says of an addition, and reports whether it is made. One that
// is refused is refused for good: it would be decided again at once.
func (l *loop) acceptGrowth(d sched.Grow, p proposed) bool {
	s := l.state
	if p.refused != nil {
		s.counts.refused++
		l.cfg.Log.Error("the core proposed what the ledger refuses", "job", s.jobs[d.Job].Name(), "error", p.refused)
	}
	if p.hold == nil || p.refused != nil {
		s.events = append(s.events, sched.Dropped{Job: d.Job, Node: d.Claims[0].Node, Settled: true})
		return false
	}
	return true
}

// stageGrowth makes what was added durable; the ledger holds it until then no longer.
func (l *loop) stageGrowth(all []ledger.Allocation) {
	next := map[job.ID]int{}
	for _, a := range all {
		e := l.state.jobs[a.Job]
		first := max(next[a.Job], e.last.ranks)
		next[a.Job] = first + tasksOf(a.Claims)
		l.stageRecord(kindAdded, e.id, job.Actor{}, added{Allocation: a, First: first, State: statePointer(e.state)}, func() {
			if x := e.additionByRef(reconcile.Ref(a)); x != nil {
				l.launchMore(e, x)
			}
		})
	}
}

func (s *state) applyAdded(r *store.Record, staged any) error {
	v, err := payloadOf[added](r, staged)
	if err != nil {
		return err
	}
	s.ledger.Skip(v.Allocation.ID + 1)
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	a := v.Allocation
	if !e.state.Holds() || a.Attempt != e.attempt || a.Adds != e.last.id {
		return fmt.Errorf("job %s is at attempt %d (%s), and allocation %d is added to attempt %d", e.Name(), e.attempt, e.state, a.ID, a.Attempt)
	}
	if err := s.ledger.Restore(a); err != nil {
		return err
	}
	e.last.replaceAddition(a.ID, &jobAddition{ID: a.ID, Epoch: a.Epoch, Claims: a.Claims, First: v.First, Began: toNanos(r.At)})
	e.last.ranks = v.First + tasksOf(a.Claims)
	s.markChanged(e, r)
	return nil
}

// launchMore hands an addition to the engine.
func (l *loop) launchMore(e *jobRecord, x *jobAddition) {
	a := e.additionAllocation(x)
	ref := reconcile.Ref(a)
	snapshot := viewOf(e).Job
	first, to := x.First, reconcile.Ref(e.heldAllocation())
	l.callsOf(a).Launch(ref, func(ctx context.Context) (*engine.Launch, error) {
		out, err := l.loadLaunch(ctx, &snapshot, a)
		if out != nil {
			out.Adds = &engine.Joining{To: to, First: first}
		}
		return out, err
	}, func(err error) {
		_ = l.postMessage(l.ctx, l.lostMore(e.id, ref, true, err.Error())) // a closed loop hears nothing more
	})
}

// moreReported is about a report of an addition.
func (l *loop) moreReported(e *jobRecord, x *jobAddition, r engine.Report) {
	was := x.report
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
	next.report = &r
	e.last.replaceAddition(x.ID, &next)
	l.state.Unlock()
	l.drainStuckNodes(e, was, r)
	if held := e.state == job.Suspended; r.Phase == engine.Running && r.Suspended != held && e.flags&job.Stopping == 0 {
		l.whileLeading(func() { // it joined meanwhile, or a restart came between
			if e.additionByRef(r.Ref) != nil && (e.state == job.Suspended) == held {
				l.callsFor(e).Suspend(r.Ref, held)
			}
		})
	}
	switch {
	case r.Phase == engine.Ended && r.Gone:
		own := r.Cause == engine.Exited || r.Cause == engine.OutOfMemory || r.Cause == engine.LaunchFailed
		l.stageDrop(e, r.Ref, own && x.Asked == nil, r.Message)
	case r.Phase == engine.Running && x.Started == 0 && !r.Started.IsZero():
		l.stageRecord(kindJoined, e.id, job.Actor{}, joined{Ref: r.Ref, Started: r.Started, State: statePointer(e.state)}, func() { l.tellGang(e) })
	}
	if r.Uncertain != x.Uncertain && !(r.Phase == engine.Ended && r.Gone) {
		l.stageRecord(kindUncertain, e.id, job.Actor{}, uncertain{r.Ref, r.Uncertain, r.Message}, nil)
	}
}

// updateAddition changes the addition that a record is about.
func (s *state) updateAddition(r *store.Record, ref engine.Ref, by func(*jobAddition)) error {
	e, x, err := s.additionOf(r, ref)
	if e == nil {
		return err
	}
	next := *x
	by(&next)
	e.last.replaceAddition(x.ID, &next)
	s.markChanged(e, r)
	return nil
}

// additionOf finds the addition that a record is about, with its job; no job: its row
// reflects the record, or the error says what is wrong.
func (s *state) additionOf(r *store.Record, ref engine.Ref) (*jobRecord, *jobAddition, error) {
	e, err := s.jobOfRecord(r)
	if e == nil {
		return nil, nil, err
	}
	if x := e.additionByRef(ref); x != nil {
		return e, x, nil
	}
	return nil, nil, fmt.Errorf("%s was not added to job %s", ref, e.Name())
}

func (s *state) applyJoined(r *store.Record, staged any) error {
	v, err := payloadOf[joined](r, staged)
	if err != nil {
		return err
	}
	return s.updateAddition(r, v.Ref, func(x *jobAddition) { x.Started = toNanos(v.Started) })
}

// stageShrink stages a decision to ask for an addition back.
func (l *loop) stageShrink(d sched.Shrink) {
	e := l.state.jobs[d.Job]
	if e == nil || !e.state.Holds() {
		return
	}
	grace := d.Grace
	if grace == 0 {
		grace = l.cfg.Grace
	}
	for _, x := range e.last.added {
		if x.Claims[0].Node == d.Node && x.Asked == nil {
			l.stageRecord(kindAsked, e.id, job.Actor{}, askedBack{Ref: e.additionRef(x), For: d.For, Grace: grace, State: statePointer(e.state)}, func() {
				l.tellGang(e)
				if x := e.additionByRef(e.additionRef(x)); x != nil {
					l.stopMore(e, x)
				}
			})
		}
	}
}

func (s *state) applyAsked(r *store.Record, staged any) error {
	v, err := payloadOf[askedBack](r, staged)
	if err != nil {
		return err
	}
	return s.updateAddition(r, v.Ref, func(x *jobAddition) { x.Asked = &v })
}

// stopMore asks the engine to end an addition that was asked back.
func (l *loop) stopMore(e *jobRecord, x *jobAddition) {
	ref := e.additionRef(x)
	l.callsFor(e).Stop(ref, engine.Stop{Grace: x.Asked.Grace, Reason: x.Asked.askedBackMessage()}, l.vanishedMore(e, ref))
}

func (v *askedBack) askedBackMessage() string { return fmt.Sprintf("given back for job %d", v.For) }

func (l *loop) vanishedMore(e *jobRecord, ref engine.Ref) func() {
	m := l.lostMore(e.id, ref, false, "the engine has nothing of it")
	return func() { _ = l.postMessage(l.ctx, m) } // a closed loop hears nothing more
}

// lostMore is the message for an addition of which the engine has nothing, and never
// will; settled says that the job is not to grow any more, if nobody asked it back.
func (l *loop) lostMore(id job.ID, ref engine.Ref, settled bool, why string) message {
	return message{job: id, run: func(l *loop) {
		if e, err := l.state.jobByRef(ref); err == nil && e.additionByRef(ref) != nil {
			l.stageDrop(e, ref, settled && e.additionByRef(ref).Asked == nil, why)
		}
	}}
}

// stageDrop stages the end of an addition. If the job has ended itself and this was the last
// one, the job's end follows.
func (l *loop) stageDrop(e *jobRecord, ref engine.Ref, settled bool, why string) {
	v := dropped{Ref: ref, Settled: settled, Message: why, State: statePointer(e.state)}
	if x := e.additionByRef(ref); x != nil {
		v.Used = l.core.OwesFor(sched.Instant(l.cfg.Clock.Now().UnixNano()), sched.Member{Job: e.id, Node: x.Claims[0].Node})
	}
	calls := l.callsFor(e)
	l.stageRecord(kindDropped, e.id, job.Actor{}, v, func() {
		calls.Forget(ref)
		if len(e.last.added) > 0 || e.lastReport().Phase != engine.Ended {
			l.tellGang(e)
			return
		}
		l.carry = append(l.carry, message{job: e.id, run: func(l *loop) { // the record is one of the next batch
			if r := e.lastReport(); e.state.Holds() && len(e.last.added) == 0 && r.Phase == engine.Ended && r.Gone {
				l.stageEnd(e, *r)
			}
		}})
	})
}

func (s *state) applyDropped(r *store.Record, staged any) error {
	v, err := payloadOf[dropped](r, staged)
	if err != nil {
		return err
	}
	s.addUsage(v.Used) // also where the job's row is newer
	e, x, err := s.additionOf(r, v.Ref)
	if e == nil {
		return err
	}
	if err := s.ledger.Free(x.ID, v.Ref.Attempt); err != nil {
		return err
	}
	e.last.replaceAddition(x.ID, nil)
	e.last.settled = e.last.settled || v.Settled
	s.events = append(s.events, sched.Dropped{Job: e.id, Node: x.Claims[0].Node, Settled: v.Settled})
	s.markChanged(e, r)
	return nil
}

// endFirst reports whether something was added to a job that has ended, and has it
// ended too: the job's own end waits for it. Until then nobody else takes its place.
func (l *loop) endFirst(e *jobRecord, r engine.Report) bool {
	if e.last == nil || len(e.last.added) == 0 {
		return false
	}
	l.state.Lock()
	e.last.report = &r
	l.state.markDirty(e)
	l.state.events = append(l.state.events, sched.Stopping{Job: e.id})
	l.state.Unlock()
	l.whileLeading(func() {
		if e.attempt == r.Ref.Attempt {
			l.stopAdded(e, l.cfg.Grace, 0, "the job has ended")
		}
	})
	return true
}

// endedBefore reports whether a job to which something was added had ended by itself when it
// was asked to make room: the rest of it was ending then, and a server that was restarted had
// not heard of that. Of other jobs the end is heard at once, and clocks may differ.
func (e *jobRecord) endedBefore(r *engine.Report) bool {
	a := e.last
	return a.ranks > tasksOf(a.claims) && r.Cause == engine.Exited && !r.Ended.IsZero() && toNanos(r.Ended) < a.asked
}

// stopAdded ends all that was added to a job.
func (l *loop) stopAdded(e *jobRecord, grace time.Duration, signal int, why string) {
	if e.last == nil || !e.state.Holds() {
		return
	}
	for _, x := range e.last.added {
		ref := e.additionRef(x)
		l.callsFor(e).Stop(ref, engine.Stop{Signal: signal, Grace: grace, Reason: why}, l.vanishedMore(e, ref))
	}
}

// runningRefs names all that runs of a job, its own attempt first.
func (l *loop) runningRefs(e *jobRecord) []engine.Ref {
	a, ok := l.state.ledger.Of(e.id)
	if !ok {
		return nil
	}
	out := []engine.Ref{reconcile.Ref(a)}
	for _, x := range e.last.added {
		if x.Started != 0 {
			out = append(out, e.additionRef(x))
		}
	}
	return out
}

// tellGang tells a job who is in it now.
func (l *loop) tellGang(e *jobRecord) {
	if !e.state.Holds() || e.flags&job.Configuring != 0 || e.lastReport().Phase >= engine.Ending {
		return
	}
	l.callsFor(e).Regroup(l.runningRefs(e), rosterOf(e))
}

// rosterOf lists who is in a job: what it started with, and what was added and runs.
func rosterOf(e *jobRecord) engine.Roster {
	r := engine.Roster{Generation: e.seq, Job: e.id}
	rank := 0
	for i := range e.last.claims {
		c := &e.last.claims[i]
		r.Members = append(r.Members, engine.Member{Node: c.Node, Group: c.Group, Rank: rank, Tasks: c.Tasks})
		rank += c.Tasks
	}
	for _, x := range e.last.added {
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

// begunOf reports whether the core is to be told that a job may grow, if it asks for that and the engine can.
func (s *state) begunOf(e *jobRecord) bool {
	return s.isElastic(e) && e.state == job.Running && e.flags&job.Configuring == 0
}

// primeAdded tells the core what was added to a job before.
func (s *state) primeAdded(e *jobRecord) {
	for _, x := range e.last.added {
		s.events = append(s.events, sched.Added{Job: e.id, Claims: fleet.InPool(e.last.pool, x.Claims), Began: sched.Instant(x.Began), Stopping: x.Asked != nil})
	}
	if e.last.settled {
		s.events = append(s.events, sched.Dropped{Job: e.id, Settled: true})
	}
}

// resumeAdded takes up what was added to a job before a restart.
func (l *loop) resumeAdded(e *jobRecord) {
	for _, x := range e.last.added {
		switch {
		case x.Asked != nil:
			l.stopMore(e, x)
		case x.Started == 0 && !e.last.endRequested() && e.lastReport().Phase < engine.Ending:
			l.launchMore(e, x)
		}
	}
}

// endRequested reports whether the end of the attempt, or that it goes on elsewhere, was asked
// for.
func (l *attempt) endRequested() bool {
	return l.cancel != nil || l.expired != nil || l.requeue != nil || l.preempted != nil
}

// tellGangAgain tells a gang that has changed who is in it, as the one who was to tell it
// may not have come to that.
func (l *loop) tellGangAgain(e *jobRecord) {
	if e.last != nil && e.last.ranks > tasksOf(e.last.claims) {
		l.tellGang(e)
	}
}

// tasksOf counts the tasks of claims.
func tasksOf(claims []fleet.Claim) (n int) {
	for i := range claims {
		n += claims[i].Tasks
	}
	return n
}

// allClaims is what the attempt holds, what was added to it last.
func (l *attempt) allClaims() []fleet.Claim {
	if len(l.added) == 0 {
		return l.claims
	}
	out := slices.Clone(l.claims)
	for _, x := range l.added {
		out = append(out, x.Claims...)
	}
	return out
}

// nodesOf lists the nodes of claims, each once.
func nodesOf(claims []fleet.Claim) (out []string) {
	for i := range claims {
		if !slices.Contains(out, claims[i].Node) {
			out = append(out, claims[i].Node)
		}
	}
	return out
}
