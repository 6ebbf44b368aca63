package control

import (
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/ledger"
	"github.com/coxswain-sched/coxswain/reason"
	"github.com/coxswain-sched/coxswain/reconcile"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

// state is everything that the journal says, and nothing else decides about it:
// apply is the only way to change it, live and at replay.
// Invariants:
//   - a job's State.Holds() is true exactly if the ledger has an allocation of it;
//   - that allocation's attempt is the job's Attempt.
type state struct {
	jobs  map[job.ID]*entry
	order []job.ID // ascending
	led   *ledger.Ledger
	next  job.ID
	seq   uint64

	// events collects what the scheduling core has to hear of applied records.
	events []sched.Event
	// touched are the jobs that changed since they were last published.
	touched []job.ID
}

// entry is one job with what is known beside its record.
type entry struct {
	job.Job
	cancel  *cancel       // asked for, not carried out yet
	requeue bool          // asked for, not carried out yet
	report  engine.Report // the last of the present or last attempt; not journaled while it runs
	why     reason.Reason
	claims  []fleet.Claim // of the present or last attempt
}

func newState() *state {
	return &state{jobs: map[job.ID]*entry{}, led: ledger.New(), next: 1}
}

// apply changes the state as a durable record says.
func (s *state) apply(r store.Record) error {
	if r.Seq <= s.seq {
		return fmt.Errorf("journal record %d after record %d", r.Seq, s.seq)
	}
	f, ok := appliers[r.Kind]
	if !ok {
		return fmt.Errorf("journal record %d is of kind %q, which this version does not know", r.Seq, r.Kind)
	}
	if err := f(s, r); err != nil {
		return fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Kind, err)
	}
	s.seq = r.Seq
	return nil
}

var appliers = map[string]func(*state, store.Record) error{
	kindSubmitted: (*state).applySubmitted,
	kindHeld:      (*state).applyHeld,
	kindStarted:   (*state).applyStarted,
	kindEnded:     (*state).applyEnded,
	kindUncertain: (*state).applyUncertain,
	kindCancel:    (*state).applyCancel,
	kindHold:      (*state).applyHold,
	kindRequeue:   (*state).applyRequeue,
}

func (s *state) applySubmitted(r store.Record) error {
	v, err := decode[submitted](r)
	if err != nil {
		return err
	}
	if v.Spec == nil || len(v.Spec.Groups) == 0 || v.First < s.next {
		return fmt.Errorf("job %d has no task group or a number that is taken", v.First)
	}
	add := func(id job.ID, task *job.ArrayTask) {
		e := &entry{Job: job.Job{ID: id, Array: task, Spec: v.Spec, Submitted: r.At}}
		if v.Spec.Held {
			e.Flags |= job.Held
		}
		s.jobs[id] = e
		s.order = append(s.order, id)
		s.next = id + 1
		s.queue(e)
	}
	a := v.Spec.Array
	if a == nil {
		add(v.First, nil)
		return nil
	}
	for i, index := range a.Indices {
		add(v.First+job.ID(i), &job.ArrayTask{
			Job: v.First, Index: index, Count: uint32(len(a.Indices)), Min: a.Indices[0],
			Max: a.Indices[len(a.Indices)-1], Step: max(a.Step, 1), MaxRunning: a.MaxRunning,
		})
	}
	return nil
}

// queue tells the core of a pending job.
func (s *state) queue(e *entry) {
	s.touch(e.ID)
	s.events = append(s.events, sched.Submitted{
		Job: e.ID, Spec: e.Spec, Priority: e.Spec.Priority - e.Spec.Nice, At: sched.Instant(e.Submitted.UnixNano()),
	})
}

func (s *state) applyHeld(r store.Record) error {
	v, err := decode[held](r)
	if err != nil {
		return err
	}
	a := v.Allocation
	e, err := s.job(a.Job)
	if err != nil {
		return err
	}
	if a.Attempt != e.Attempt+1 {
		return fmt.Errorf("job %s: attempt %d after attempt %d", e.Name(), a.Attempt, e.Attempt)
	}
	if err := e.Set(job.Running, job.ByScheduler); err != nil {
		return err
	}
	if err := s.led.Restore(a); err != nil {
		return err
	}
	e.Attempt = a.Attempt
	e.Flags = e.Flags&^(job.Requeued|job.LaunchFailed) | job.Configuring
	e.claims, e.report, e.why = a.Claims, engine.Report{}, reason.Reason{}
	e.Started, e.Ended = time.Time{}, time.Time{}
	s.touch(e.ID)
	return nil
}

func (s *state) applyStarted(r store.Record) error {
	v, err := decode[started](r)
	if err != nil {
		return err
	}
	e, err := s.holder(v.Ref)
	if err != nil {
		return err
	}
	e.Started = v.Started
	e.Flags &^= job.Configuring
	s.touch(e.ID)
	return nil
}

func (s *state) applyEnded(r store.Record) error {
	v, err := decode[ended](r)
	if err != nil {
		return err
	}
	e, err := s.holder(v.Ref)
	if err != nil {
		return err
	}
	if err := e.Set(v.State, v.By); err != nil {
		return err
	}
	if err := s.led.Free(ledger.ID(v.Ref.Allocation), v.Ref.Attempt); err != nil {
		return err
	}
	e.Flags = e.Flags&job.Held | v.Flags
	e.Exit, e.report = v.Report.Exit, v.Report
	e.cancel, e.requeue = nil, false
	s.events = append(s.events, sched.Released{Job: e.ID})
	s.touch(e.ID)
	if v.State == job.Pending {
		s.queue(e)
		return nil
	}
	e.Ended = v.Report.Ended
	if e.Ended.IsZero() {
		e.Ended = r.At
	}
	return nil
}

func (s *state) applyUncertain(r store.Record) error {
	v, err := decode[uncertain](r)
	if err != nil {
		return err
	}
	e, err := s.holder(v.Ref)
	if err != nil {
		return err
	}
	e.Flags &^= job.Uncertain
	if v.Uncertain {
		e.Flags |= job.Uncertain
	}
	s.touch(e.ID)
	return s.led.MarkUncertain(ledger.ID(v.Ref.Allocation), v.Uncertain)
}

func (s *state) applyCancel(r store.Record) error {
	v, err := decode[cancel](r)
	if err != nil {
		return err
	}
	e, err := s.job(job.ID(r.Job))
	if err != nil {
		return err
	}
	s.touch(e.ID)
	if e.State != job.Pending {
		e.cancel, e.requeue = &v, false
		e.Flags |= job.Stopping
		return nil
	}
	if err := e.Set(job.Cancelled, job.ByUser); err != nil {
		return err
	}
	e.Ended = r.At
	s.events = append(s.events, sched.Withdrawn{Job: e.ID})
	return nil
}

func (s *state) applyHold(r store.Record) error {
	v, err := decode[hold](r)
	if err != nil {
		return err
	}
	e, err := s.job(job.ID(r.Job))
	if err != nil {
		return err
	}
	e.Flags &^= job.Held
	if v.Held {
		e.Flags |= job.Held
	}
	s.touch(e.ID)
	return nil
}

func (s *state) applyRequeue(r store.Record) error {
	e, err := s.job(job.ID(r.Job))
	if err != nil {
		return err
	}
	s.touch(e.ID)
	if e.State.Holds() {
		e.requeue = true
		e.Flags |= job.Stopping
		return nil
	}
	if err := e.Set(job.Pending, job.ByUser); err != nil {
		return err
	}
	e.Flags |= job.Requeued
	e.cancel = nil
	s.queue(e)
	return nil
}

func (s *state) touch(id job.ID) { s.touched = append(s.touched, id) }

func (s *state) job(id job.ID) (*entry, error) {
	e := s.jobs[id]
	if e == nil {
		return nil, fmt.Errorf("there is no job %d", id)
	}
	return e, nil
}

// holder finds the job whose present attempt a ref names; a ref of an earlier
// attempt finds nothing.
func (s *state) holder(ref engine.Ref) (*entry, error) {
	a, ok := s.led.Get(ledger.ID(ref.Allocation))
	if !ok || reconcile.Ref(a) != ref {
		return nil, fmt.Errorf("nothing is held by %s", ref)
	}
	return s.job(a.Job)
}

// arrayRunning counts the tasks of an array that hold an allocation.
func (s *state) arrayRunning(first job.ID, count uint32) int {
	n := 0
	for id := first; id < first+job.ID(count); id++ {
		if e := s.jobs[id]; e != nil && e.State.Holds() {
			n++
		}
	}
	return n
}

// check reports the first invariant that does not hold.
func (s *state) check() error {
	if err := s.led.Check(); err != nil {
		return err
	}
	for _, id := range s.order {
		e := s.jobs[id]
		a, holds := s.led.Of(id)
		switch {
		case holds != e.State.Holds():
			return fmt.Errorf("job %s is %s, and the ledger says that it holds: %v", e.Name(), e.State, holds)
		case holds && a.Attempt != e.Attempt:
			return fmt.Errorf("job %s is at attempt %d, its allocation at %d", e.Name(), e.Attempt, a.Attempt)
		}
	}
	return nil
}
