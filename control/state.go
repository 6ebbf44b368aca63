package control

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/limit"
	"github.com/coxswain-sched/coxswain/sched/share"
	"github.com/coxswain-sched/coxswain/store"
)

// state is everything that the journal says, and nothing else decides about it:
// apply is the only way to change it, live and at replay. What follows from it
// without being in the journal (indexes, what the core was told, reasons) is kept
// beside it.
//
// The loop alone writes, under mu; it reads without. Everybody else reads under mu,
// which is never held while a disk is waited for.
//
// Invariants (checked by check):
//   - a job's State.Holds() is true exactly if the ledger has an allocation of it;
//   - that allocation's attempt is the job's Attempt;
//   - what was added to a job that holds is in the ledger, as added to that allocation;
//   - order has every job in memory, ascending, live those that have not ended;
//   - an array's open is the number of its tasks that are let.
type state struct {
	mu sync.RWMutex

	jobs   map[job.ID]*entry
	order  []*entry // ascending; may have jobs that are gone
	live   []*entry // ascending; may have jobs that have ended or are gone
	dead   int      // of order
	stale  int      // of live
	arrays arrays
	forms  *forms
	led    *ledger.Ledger
	next   job.ID
	seq    uint64
	lore   experience // has a lock of its own

	left   map[job.ID]uint64    // jobs that came back and left again → seq of their last record
	drains *fleet.ByNode[Drain] // without a pool: of every node of that name
	tokens map[string]Token
	pools  map[string]PoolSpec // that were added

	changing   map[string]bool // pools whose engine can change a running gang
	delegating map[string]bool // pools whose engine has a scheduler of its own; replaced, never written
	policies   policies
	usage      *usage        // nil: none was kept
	seen       *share.Memory // nil: nothing was learned of what arrives

	depend depends
	crowd  crowd
	lookup func(job.ID) (*entry, error) // while the journal is replayed: jobs that only the projection has; else nil

	proposal *sched.Proposal // of the core; nil: none

	passed []error // records of the journal that were replayed without effect

	events  []sched.Event // what the core has to hear of applied records
	touched []job.ID      // changed since they were last published
	gating  []*entry      // jobs of which eligible must be asked
	timers  timers        // when to ask it again
	dirty   []*entry      // what the projection lacks
	ended   []*entry      // in the order in which they ended; they leave memory in this order
	counts  counts
	now     time.Time // At of the record that is applied
}

// lastJob is the largest number that a job may have; nobody gets there.
const lastJob job.ID = 1 << 62

func newState() *state {
	return &state{
		jobs: map[job.ID]*entry{}, forms: newForms(), led: ledger.New(), next: 1,
		arrays: arrays{m: map[job.ID]*array{}}, left: map[job.ID]uint64{}, drains: fleet.NewByNode[Drain](), tokens: map[string]Token{}, pools: map[string]PoolSpec{},
		depend: newDepends(), crowd: crowd{n: map[limit.Key]int{}}, counts: newCounts(),
	}
}

// apply changes the state as a durable record says. staged is its payload where it
// was made by this process.
func (s *state) apply(r store.Record, staged any) error {
	if r.Seq <= s.seq {
		return fmt.Errorf("journal record %d after record %d", r.Seq, s.seq)
	}
	f, ok := appliers[r.Kind]
	if !ok {
		return fault.New(fault.Unsupported, "journal record %d is of kind %q, which this version does not know: it was written by a newer cox", r.Seq, r.Kind).
			Advise("use the newer cox, or another --state-dir")
	}
	s.now = r.At
	if err := f(s, &r, staged); err != nil {
		return fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Kind, err)
	}
	s.seq = r.Seq
	return nil
}

var appliers = map[string]func(*state, *store.Record, any) error{
	kindSubmitted: (*state).applySubmitted,
	kindHeld:      (*state).applyHeld,
	kindStarted:   (*state).applyStarted,
	kindEnded:     (*state).applyEnded,
	kindUncertain: (*state).applyUncertain,
	kindCancel:    (*state).applyCancel,
	kindHold:      (*state).applyHold,
	kindRequeue:   (*state).applyRequeue,
	kindPreempted: (*state).applyPreempted,
	kindSaved:     (*state).applySaved,
	kindExpired:   (*state).applyExpired,
	kindSuspend:   (*state).applySuspend,
	kindUpdate:    (*state).applyUpdate,
	kindTop:       (*state).applyTop,
	kindNodes:     (*state).applyNodes,
	kindToken:     (*state).applyToken,
	kindRevoked:   (*state).applyRevoked,
	kindPool:      (*state).applyPool,
	kindPoolGone:  (*state).applyPoolGone,
	kindPolicy:    (*state).applyPolicy,
	kindUsage:     (*state).applyUsage,
	kindLearned:   (*state).applyLearned,
	kindAdded:     (*state).applyAdded,
	kindJoined:    (*state).applyJoined,
	kindAsked:     (*state).applyAsked,
	kindDropped:   (*state).applyDropped,
}

func (s *state) applySubmitted(r *store.Record, staged any) error {
	v, err := s.forms.admittedOf(r, staged)
	if err != nil {
		return err
	}
	n := v.tasks()
	if v.first == 0 || v.first > lastJob || n > maxTasks {
		return fmt.Errorf("%d jobs from number %d on: such numbers are never given", n, v.first)
	}
	var a *array
	if v.own.Array != nil {
		if a = s.arrays.add(v.first, v.own.Array); !slices.Equal(a.spec.Indices, v.own.Array.Indices) {
			return fmt.Errorf("array %d is there already, with other tasks", v.first)
		}
	}
	s.forms.again(v.form, n)
	for i := range n {
		e := &entry{
			id: v.first + job.ID(i), form: v.form, owned: v.owned, array: a, seq: r.Seq, sent: nanos(r.At),
			priority: v.own.Priority - v.own.Nice, fixed: v.own.Priority != 0, at: nanos(r.At),
		}
		if a != nil {
			e.index = a.spec.Indices[i]
		}
		if v.own.Held {
			e.flags |= job.Held
		}
		e.ask(&v.own)
		if old, err := s.recall(e.id); err != nil || old != nil {
			s.forms.release(v.form) // a projection had it already, with what happened since
			switch {
			case err != nil:
				return err
			case old.seq < r.Seq:
				return fmt.Errorf("job %d is there already, since record %d", e.id, old.seq)
			}
			continue
		}
		s.insert(e)
		s.queue(e)
	}
	s.forms.release(v.form)
	s.depend.learn(v.past)
	s.counts.submitted += uint64(n)
	return nil
}

// ask notes what few jobs ask for.
func (e *entry) ask(o *own) {
	if !o.Begin.IsZero() || !o.Deadline.IsZero() || o.Depends != nil || e.more != nil {
		m := e.extra()
		m.begin, m.deadline, m.depends = nanos(o.Begin), nanos(o.Deadline), o.Depends
	}
}

// insert adds a job to memory.
func (s *state) insert(e *entry) {
	s.jobs[e.id] = e
	s.order = s.sorted(s.order, e, &s.dead)
	s.next = max(s.next, e.id+1)
	if e.array != nil {
		e.array.tasks++
	}
	s.counts.states[e.state]++
	s.alive(e)
	s.depend.add(e)
}

// alive puts a job that has not ended among the live ones.
func (s *state) alive(e *entry) {
	switch {
	case e.state.Final():
	case e.inLive:
		s.stale-- // it had ended and waits again before it was taken out
		s.crowd.add(&e.form.spec, 1)
	default:
		s.crowd.add(&e.form.spec, 1)
		e.inLive = true
		s.live = s.sorted(s.live, e, &s.stale)
	}
}

// sorted inserts a job, mostly at the end. One of the same number that is gone from
// memory makes room for it.
func (s *state) sorted(list []*entry, e *entry, gone *int) []*entry {
	n := len(list)
	if n == 0 || list[n-1].id < e.id {
		return append(list, e)
	}
	i := after(list, e.id)
	if i > 0 && list[i-1].id == e.id {
		list[i-1] = e
		*gone--
		return list
	}
	return slices.Insert(list, i, e)
}

// after is the index of the first job with a larger number.
func after(list []*entry, id job.ID) int {
	i, found := slices.BinarySearchFunc(list, id, func(e *entry, id job.ID) int { return int(int64(e.id) - int64(id)) })
	if found {
		i++
	}
	return i
}

// change notes that a record changed a job.
func (s *state) change(e *entry, r *store.Record) {
	e.seq = r.Seq
	s.touch(e)
}

// touch notes that a job is to be published and projected anew.
func (s *state) touch(e *entry) {
	s.touched = append(s.touched, e.id)
	if !e.dirty {
		e.dirty = true
		s.dirty = append(s.dirty, e)
	}
}

// move changes a job's state and everything that is counted by it.
func (s *state) move(e *entry, to job.State, by job.Cause) error {
	from := e.state
	if err := e.set(to, by); err != nil {
		return err
	}
	s.counts.states[from]--
	s.counts.states[to]++
	if from.Final() {
		s.alive(e)
	}
	if to.Final() {
		s.counts.ended[to]++
		s.ended = append(s.ended, e)
		s.stale++
		s.crowd.add(&e.form.spec, -1)
		s.arrays.unlet(e)
	}
	s.depend.changed(s, e)
	switch {
	case to.Final():
		s.depend.remove(e)
	case from.Final():
		s.depend.add(e)
	}
	return nil
}

// queue tells the core of a pending job.
func (s *state) queue(e *entry) {
	s.touch(e)
	e.gate = nil
	s.events = append(s.events, sched.Submitted{Job: e.id, Spec: s.asked(e.form), Priority: e.priority, At: sched.Instant(e.at), Fixed: e.fixed, Eligible: sched.Instant(e.eligible), Moved: sched.Instant(e.rare().moved)})
	s.regate(e)
}

// regate has eligible asked of a job in this turn.
func (s *state) regate(e *entry) {
	if !e.gating {
		e.gating = true
		s.gating = append(s.gating, e)
	}
}

// job finds the job that a record is about. One that a projection shows after the
// record is not found, and needs nothing (nil, nil).
func (s *state) job(r *store.Record) (*entry, error) { return s.numbered(job.ID(r.Job), r) }

func (s *state) numbered(id job.ID, r *store.Record) (*entry, error) {
	e, err := s.recall(id)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, fmt.Errorf("there is no job %d", id)
	case e.seq >= r.Seq:
		return nil, nil
	}
	return e, nil
}

// recall finds a job in memory, or while the journal is replayed in the projection.
func (s *state) recall(id job.ID) (*entry, error) {
	e := s.jobs[id]
	if e != nil || s.lookup == nil {
		return e, nil
	}
	return s.lookup(id)
}

// holder finds the job whose present attempt a ref names; a ref of an earlier
// attempt finds nothing.
func (s *state) holder(ref engine.Ref) (*entry, error) {
	a, ok := s.led.Get(ledger.ID(ref.Allocation))
	if !ok || reconcile.Ref(a) != ref {
		return nil, fmt.Errorf("nothing is held by %s", ref)
	}
	return s.jobs[a.Job], nil
}

// check reports the first invariant that does not hold.
func (s *state) check() error {
	if err := s.led.Check(); err != nil {
		return err
	}
	holding, known, live := 0, 0, 0
	open, crowd := map[*array]int{}, map[limit.Key]int{}
	for i, e := range s.order {
		if i > 0 && s.order[i-1].id >= e.id {
			return fmt.Errorf("job %d stands behind job %d", e.id, s.order[i-1].id)
		}
		if e.gone {
			continue
		}
		known++
		a, holds := s.led.Of(e.id)
		switch {
		case s.jobs[e.id] != e:
			return fmt.Errorf("job %s stands in the order and not in the map", e.Name())
		case holds != e.state.Holds():
			return fmt.Errorf("job %s is %s, and the ledger says that it holds: %v", e.Name(), e.state, holds)
		case holds && a.Attempt != e.attempt:
			return fmt.Errorf("job %s is at attempt %d, its allocation at %d", e.Name(), e.attempt, a.Attempt)
		case !e.state.Final() && !e.inLive:
			return fmt.Errorf("job %s is %s and not among the live", e.Name(), e.state)
		case e.let && e.state.Final():
			return fmt.Errorf("job %s is %s and counts among the open tasks", e.Name(), e.state)
		}
		if holds {
			holding += 1 + len(e.last.added)
			for _, x := range e.last.added {
				if a, ok := s.led.Get(x.ID); !ok || a.Job != e.id || a.Attempt != e.attempt || a.Adds != e.last.id {
					return fmt.Errorf("allocation %d was added to job %s, and the ledger does not say so", x.ID, e.Name())
				}
			}
		}
		if !e.state.Final() {
			live++
			crowd[crowdKey(&e.form.spec)]++
		}
		if e.let {
			open[e.array]++
		}
	}
	if known != len(s.jobs) || holding != len(s.led.Live()) || live != len(s.live)-s.stale {
		return fmt.Errorf("%d jobs in order, %d in the map; %d hold, %d allocations; %d live, %d counted", known, len(s.jobs), holding, len(s.led.Live()), live, len(s.live)-s.stale)
	}
	if !maps.Equal(crowd, s.crowd.n) {
		return fmt.Errorf("%v jobs are counted for limits on submissions, there are %v", s.crowd.n, crowd)
	}
	for _, a := range s.arrays.m {
		if a.open != open[a] {
			return fmt.Errorf("array %d counts %d open tasks, it has %d", a.first, a.open, open[a])
		}
	}
	return nil
}
