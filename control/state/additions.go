package state

import (
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

// JobAddition is an allocation that was added to the present attempt of an elastic job. Nobody
// writes it once it is in Attempt.Added: a change replaces it.
type JobAddition struct {
	ID      ledger.ID     `json:"id"`
	Epoch   uint64        `json:"epoch"`
	Claims  []fleet.Claim `json:"claims"`
	First   int           `json:"first"` // rank
	Began   int64         `json:"began"`
	Started int64         `json:"started,omitempty"` // its barrier was opened
	Asked   *AskedBack    `json:"asked,omitempty"`   // back; nil: it was not

	Uncertain bool           `json:"uncertain,omitempty"` // part of it cannot be proved running or gone
	Report    *engine.Report `json:"-"`                   // the last one, as far as known; never written
}

// Added gives a running job more.
type Added struct {
	Allocation ledger.Allocation `json:"allocation"`
	First      int               `json:"first"`
	State      *job.State        `json:"state,omitempty"`
}

// Joined says that an addition runs.
type Joined struct {
	Ref     engine.Ref `json:"ref"`
	Started time.Time  `json:"started"`
	State   *job.State `json:"state,omitempty"`
}

// AskedBack asks for an addition back, so that another job can start where it is.
type AskedBack struct {
	Ref   engine.Ref    `json:"ref"`
	For   job.ID        `json:"for"`
	Grace time.Duration `json:"grace"`
	State *job.State    `json:"state,omitempty"`
}

// Dropped says that nothing of an addition lives any more, and that its allocation is free.
type Dropped struct {
	Ref     engine.Ref   `json:"ref"`
	Settled bool         `json:"settled,omitempty"` // the job is not to grow any more
	Message string       `json:"message,omitempty"` // how it ended, for people
	State   *job.State   `json:"state,omitempty"`
	Used    []fair.Entry `json:"used,omitempty"` // what is charged for it and the last KindUsage has not
}

// AdditionByRef finds an addition by the name under which the engine knows it; nil: there is
// none.
func (e *JobRecord) AdditionByRef(ref engine.Ref) *JobAddition {
	if e.Last == nil || ref.Attempt != e.Attempt {
		return nil
	}
	for _, x := range e.Last.Added {
		if x.ID == ledger.ID(ref.Allocation) {
			return x
		}
	}
	return nil
}

// AdditionRef is the name under which the engine knows an addition.
func (e *JobRecord) AdditionRef(x *JobAddition) engine.Ref {
	return engine.Ref{Allocation: uint64(x.ID), Attempt: e.Attempt}
}

// AdditionAllocation is the allocation that an addition holds.
func (e *JobRecord) AdditionAllocation(x *JobAddition) ledger.Allocation {
	a := ledger.Allocation{ID: x.ID, Job: e.ID, Attempt: e.Attempt, Epoch: x.Epoch, Pool: e.Last.Pool, Status: ledger.Held, Claims: x.Claims, Adds: e.Last.AllocationID}
	if x.Uncertain {
		a.Status = ledger.Uncertain
	}
	return a
}

// OnlyAdditionsLeft reports whether the job's own attempt has ended and only additions to it are
// left.
func (e *JobRecord) OnlyAdditionsLeft() bool {
	return e.State.Holds() && len(e.Last.Added) > 0 && e.Report().Phase == engine.Ended && e.Report().Gone
}

// isUncertain reports whether part of a job's work cannot be proved running or gone.
func (e *JobRecord) isUncertain() bool {
	return e.Flags&job.Uncertain != 0 || e.Last != nil && slices.ContainsFunc(e.Last.Added, func(x *JobAddition) bool { return x.Uncertain })
}

// ReplaceAddition replaces an addition; nil: removes it.
func (l *Attempt) ReplaceAddition(id ledger.ID, by *JobAddition) {
	l.Added = slices.Clone(l.Added) // whoever reads has the old one
	i := slices.IndexFunc(l.Added, func(x *JobAddition) bool { return x.ID == id })
	switch {
	case i < 0:
		l.Added = append(l.Added, by)
	case by == nil:
		l.Added = slices.Delete(l.Added, i, i+1)
	default:
		l.Added[i] = by
	}
}

func (s *State) applyAdded(r *store.Record, v Added) error {
	s.Ledger.Skip(v.Allocation.ID + 1)
	e, err := s.jobOfRecord(r)
	if e == nil {
		return err
	}
	a := v.Allocation
	if !e.State.Holds() || a.Attempt != e.Attempt || a.Adds != e.Last.AllocationID {
		return fmt.Errorf("job %s is at attempt %d (%s), and allocation %d is added to attempt %d", e.Name(), e.Attempt, e.State, a.ID, a.Attempt)
	}
	if err := s.Ledger.Restore(a); err != nil {
		return err
	}
	e.Last.ReplaceAddition(a.ID, &JobAddition{ID: a.ID, Epoch: a.Epoch, Claims: a.Claims, First: v.First, Began: ToNanos(r.At)})
	e.Last.Ranks = v.First + TasksOf(a.Claims)
	s.markChanged(e, r)
	return nil
}

// updateAddition changes the addition that a record is about.
func (s *State) updateAddition(r *store.Record, ref engine.Ref, by func(*JobAddition)) error {
	e, x, err := s.additionOf(r, ref)
	if e == nil {
		return err
	}
	next := *x
	by(&next)
	e.Last.ReplaceAddition(x.ID, &next)
	s.markChanged(e, r)
	return nil
}

// additionOf finds the addition that a record is about, with its job; no job: its row
// reflects the record, or the error says what is wrong.
func (s *State) additionOf(r *store.Record, ref engine.Ref) (*JobRecord, *JobAddition, error) {
	e, err := s.jobOfRecord(r)
	if e == nil {
		return nil, nil, err
	}
	if x := e.AdditionByRef(ref); x != nil {
		return e, x, nil
	}
	return nil, nil, fmt.Errorf("%s was not added to job %s", ref, e.Name())
}

func (s *State) applyJoined(r *store.Record, v Joined) error {
	return s.updateAddition(r, v.Ref, func(x *JobAddition) { x.Started = ToNanos(v.Started) })
}

func (s *State) applyAsked(r *store.Record, v AskedBack) error {
	return s.updateAddition(r, v.Ref, func(x *JobAddition) { x.Asked = &v })
}

// Message says, for people, why the addition was asked back.
func (v *AskedBack) Message() string { return fmt.Sprintf("given back for job %d", v.For) }

func (s *State) applyDropped(r *store.Record, v Dropped) error {
	s.addUsage(v.Used) // also where the job's row is newer
	e, x, err := s.additionOf(r, v.Ref)
	if e == nil {
		return err
	}
	if err := s.Ledger.Free(x.ID, v.Ref.Attempt); err != nil {
		return err
	}
	e.Last.ReplaceAddition(x.ID, nil)
	e.Last.settled = e.Last.settled || v.Settled
	s.Events = append(s.Events, sched.Dropped{Job: e.ID, Node: x.Claims[0].Node, Settled: v.Settled})
	s.markChanged(e, r)
	return nil
}

// EndedBefore reports whether a job with additions had ended by itself when it was asked to make
// room: the additions were ending then, and a server that was restarted had not heard of that.
// The end of other jobs is heard at once, and clocks may differ.
func (e *JobRecord) EndedBefore(r *engine.Report) bool {
	a := e.Last
	return a.Ranks > TasksOf(a.Claims) && r.Cause == engine.Exited && !r.Ended.IsZero() && ToNanos(r.Ended) < a.asked
}

// BegunOf reports whether the core may grow a job: the job asks for that, it runs, and its
// engine can.
func (s *State) BegunOf(e *JobRecord) bool {
	return s.isElastic(e) && e.State == job.Running && e.Flags&job.Configuring == 0
}

// PrimeAdded tells the core about the additions to a restored job.
func (s *State) PrimeAdded(e *JobRecord) {
	for _, x := range e.Last.Added {
		s.Events = append(s.Events, sched.Added{Job: e.ID, Claims: fleet.InPool(e.Last.Pool, x.Claims), Began: sched.Instant(x.Began), Stopping: x.Asked != nil})
	}
	if e.Last.settled {
		s.Events = append(s.Events, sched.Dropped{Job: e.ID, Settled: true})
	}
}

// EndRequested reports whether somebody asked for the attempt to end, or to go on elsewhere.
func (l *Attempt) EndRequested() bool {
	return l.Cancel != nil || l.Expired != nil || l.Requeue != nil || l.Preempted != nil
}

// TasksOf counts the tasks of claims.
func TasksOf(claims []fleet.Claim) (n int) {
	for i := range claims {
		n += claims[i].Tasks
	}
	return n
}

// allClaims is what the attempt holds, what was added to it last.
func (l *Attempt) allClaims() []fleet.Claim {
	if len(l.Added) == 0 {
		return l.Claims
	}
	out := slices.Clone(l.Claims)
	for _, x := range l.Added {
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

// RunningRefs names all attempts that run for a job, its own first.
func (s *State) RunningRefs(e *JobRecord) []engine.Ref {
	a, ok := s.Ledger.Of(e.ID)
	if !ok {
		return nil
	}
	out := []engine.Ref{reconcile.Ref(a)}
	for _, x := range e.Last.Added {
		if x.Started != 0 {
			out = append(out, e.AdditionRef(x))
		}
	}
	return out
}
