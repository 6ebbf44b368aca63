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
	sync.RWMutex

	jobs      map[job.ID]*jobRecord
	order     []*jobRecord // ascending; may have jobs that are gone
	live      []*jobRecord // ascending; may have jobs that have ended or are gone
	dead      int          // of order
	stale     int          // of live
	arrays    arrays
	specs     *sharedSpecs
	ledger    *ledger.Ledger
	next      job.ID
	seq       uint64
	estimates estimateHistory // has a lock of its own

	departed map[job.ID]uint64    // jobs that came back and left again → seq of their last record
	drains   *fleet.ByNode[Drain] // without a pool: of every node of that name
	tokens   map[string]Token
	pools    map[string]PoolSpec // that were added

	elasticPools   map[string]bool // pools whose engine can change a running gang
	delegatedPools map[string]bool // pools whose engine has a scheduler of its own; replaced, never written
	policies       policies
	usage          *usage        // nil: none was kept
	arrivals       *share.Memory // nil: nothing was learned of what arrives

	depend  dependencyIndex
	submits submitCounts
	lookup  func(job.ID) (*jobRecord, error) // while the journal is replayed: jobs that only the projection has; else nil

	nodes *fleet.ByNode[fleet.Node] // as the engines report them

	proposal *sched.Proposal // of the core; nil: none

	skipped []error // records of the journal that were replayed without effect

	events  []sched.Event // what the core has to hear of applied records
	touched []job.ID      // changed since they were last published
	gating  []*jobRecord  // jobs of which eligible must be asked
	timers  timers        // when to ask it again
	dirty   []*jobRecord  // what the projection lacks
	ended   []*jobRecord  // in the order in which they ended; they leave memory in this order
	counts  counts
	now     time.Time // At of the record that is applied
}

// lastJob is the largest number that a job may have; nobody gets there.
const lastJob job.ID = 1 << 62

func newState() *state {
	return &state{
		jobs: map[job.ID]*jobRecord{}, specs: newSharedSpecs(), ledger: ledger.New(), next: 1,
		arrays: arrays{m: map[job.ID]*array{}}, departed: map[job.ID]uint64{}, drains: fleet.NewByNode[Drain](), nodes: fleet.NewByNode[fleet.Node](), tokens: map[string]Token{}, pools: map[string]PoolSpec{},
		depend: newDependencyIndex(), submits: submitCounts{n: map[limit.Key]int{}}, counts: newCounts(),
	}
}

// applyRecord changes the state as a durable record says. staged is its payload where it
// was made by this process.
func (s *state) applyRecord(r store.Record, staged any) error {
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
	v, err := s.specs.admittedOf(r, staged)
	if err != nil {
		return err
	}
	n := v.taskCount()
	if v.first == 0 || v.first > lastJob || n > maxTasks {
		return fmt.Errorf("%d jobs from number %d on: such numbers are never given", n, v.first)
	}
	var a *array
	if v.ownDelta.Array != nil {
		if a = s.arrays.add(v.first, v.ownDelta.Array); !slices.Equal(a.spec.Indices, v.ownDelta.Array.Indices) {
			return fmt.Errorf("array %d is there already, with other tasks", v.first)
		}
	}
	s.specs.addUses(v.shared, n)
	for i := range n {
		e := &jobRecord{
			id: v.first + job.ID(i), shared: v.shared, delta: v.delta, array: a, seq: r.Seq, submitted: toNanos(r.At),
			priority: v.ownDelta.Priority - v.ownDelta.Nice, fixed: v.ownDelta.Priority != 0, at: toNanos(r.At),
		}
		if a != nil {
			e.index = a.spec.Indices[i]
		}
		if v.ownDelta.Held {
			e.flags |= job.Held
		}
		e.setExtras(&v.ownDelta)
		if old, err := s.findJob(e.id); err != nil || old != nil {
			s.specs.releaseSpec(v.shared) // a projection had it already, with what happened since
			switch {
			case err != nil:
				return err
			case old.seq < r.Seq:
				return fmt.Errorf("job %d is there already, since record %d", e.id, old.seq)
			}
			continue
		}
		s.insertJob(e)
		s.queuePending(e)
	}
	s.specs.releaseSpec(v.shared)
	s.depend.addFates(v.past)
	s.counts.submitted += uint64(n)
	return nil
}

// setExtras notes what few jobs ask for.
func (e *jobRecord) setExtras(o *specDelta) {
	if !o.Begin.IsZero() || !o.Deadline.IsZero() || o.Depends != nil || e.extra != nil {
		m := e.ensureExtra()
		m.begin, m.deadline, m.depends = toNanos(o.Begin), toNanos(o.Deadline), o.Depends
	}
}

// insertJob adds a job to memory.
func (s *state) insertJob(e *jobRecord) {
	s.jobs[e.id] = e
	s.order = s.insertSorted(s.order, e, &s.dead)
	s.next = max(s.next, e.id+1)
	if e.array != nil {
		e.array.tasks++
	}
	s.counts.states[e.state]++
	s.markLive(e)
	s.depend.add(e)
}

// markLive puts a job that has not ended among the live ones.
func (s *state) markLive(e *jobRecord) {
	switch {
	case e.state.Final():
	case e.inLive:
		s.stale-- // it had ended and waits again before it was taken out
		s.submits.add(&e.shared.spec, 1)
	default:
		s.submits.add(&e.shared.spec, 1)
		e.inLive = true
		s.live = s.insertSorted(s.live, e, &s.stale)
	}
}

// insertSorted inserts a job, mostly at the end. One of the same number that is gone from
// memory makes room for it.
func (s *state) insertSorted(list []*jobRecord, e *jobRecord, gone *int) []*jobRecord {
	n := len(list)
	if n == 0 || list[n-1].id < e.id {
		return append(list, e)
	}
	i := indexAfter(list, e.id)
	if i > 0 && list[i-1].id == e.id {
		list[i-1] = e
		*gone--
		return list
	}
	return slices.Insert(list, i, e)
}

// indexAfter is the index of the first job with a larger number.
func indexAfter(list []*jobRecord, id job.ID) int {
	i, found := slices.BinarySearchFunc(list, id, func(e *jobRecord, id job.ID) int { return int(int64(e.id) - int64(id)) })
	if found {
		i++
	}
	return i
}

// markChanged notes that a record changed a job.
func (s *state) markChanged(e *jobRecord, r *store.Record) {
	e.seq = r.Seq
	s.markDirty(e)
}

// markDirty notes that a job is to be published and projected anew.
func (s *state) markDirty(e *jobRecord) {
	s.markTouched(e)
	s.markUnprojected(e)
}

// moveJob changes a job's state and everything that is counted by it.
func (s *state) moveJob(e *jobRecord, to job.State, by job.Cause) error {
	from := e.state
	if err := e.changeState(to, by); err != nil {
		return err
	}
	s.counts.states[from]--
	s.counts.states[to]++
	if from.Final() {
		s.markLive(e)
	}
	if to.Final() {
		s.counts.ended[to]++
		s.ended = append(s.ended, e)
		s.stale++
		s.submits.add(&e.shared.spec, -1)
		s.arrays.closeTask(e)
	}
	s.depend.recheckDependents(s, e)
	switch {
	case to.Final():
		s.depend.remove(e)
	case from.Final():
		s.depend.add(e)
	}
	return nil
}

// hasNews reports whether the core has something to hear, or eligibility is to be checked.
func (s *state) hasNews() bool { return len(s.events)+len(s.gating)+len(s.arrays.dirty) > 0 }

// takeTouched returns the jobs that changed since it was last called, each once.
func (s *state) takeTouched() []job.ID {
	ids := uniqueIDs(s.touched)
	s.touched = s.touched[:0]
	return ids
}

// uniqueIDs drops repetitions.
func uniqueIDs(ids []job.ID) []job.ID {
	seen := make(map[job.ID]bool, len(ids))
	out := make([]job.ID, 0, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// markUnprojected notes that a job's row in the projection is not what the job is.
func (s *state) markUnprojected(e *jobRecord) {
	if !e.dirty {
		e.dirty = true
		s.dirty = append(s.dirty, e)
	}
}

// markTouched notes that a job is to be published anew. Nothing of it is projected.
func (s *state) markTouched(e *jobRecord) { s.touched = append(s.touched, e.id) }

// queueRestored tells the core of a pending job that a start has found. Its row stays as it is.
func (s *state) queueRestored(e *jobRecord) {
	e.open = false
	dirty := e.dirty
	e.dirty = true // so that it is not projected
	s.queuePending(e)
	e.dirty = dirty
}

// queuePending tells the core of a pending job.
func (s *state) queuePending(e *jobRecord) {
	s.markDirty(e)
	e.gate = nil
	s.events = append(s.events, sched.Submitted{Job: e.id, Spec: s.coreSpec(e.shared), Priority: e.priority, At: sched.Instant(e.at), Fixed: e.fixed, Eligible: sched.Instant(e.eligible), Moved: sched.Instant(e.extraOrZero().moved)})
	s.recheckEligible(e)
}

// recheckEligible has eligible asked of a job in this turn.
func (s *state) recheckEligible(e *jobRecord) {
	if !e.gating {
		e.gating = true
		s.gating = append(s.gating, e)
	}
}

// jobOfRecord finds the job that a record is about. One that a projection shows after the
// record is not found, and needs nothing (nil, nil).
func (s *state) jobOfRecord(r *store.Record) (*jobRecord, error) {
	return s.jobByNumber(job.ID(r.Job), r)
}

func (s *state) jobByNumber(id job.ID, r *store.Record) (*jobRecord, error) {
	e, err := s.findJob(id)
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

// findJob finds a job in memory, or while the journal is replayed in the projection.
func (s *state) findJob(id job.ID) (*jobRecord, error) {
	e := s.jobs[id]
	if e != nil || s.lookup == nil {
		return e, nil
	}
	return s.lookup(id)
}

// jobByRef finds the job whose present attempt a ref names; a ref of an earlier
// attempt finds nothing.
func (s *state) jobByRef(ref engine.Ref) (*jobRecord, error) {
	a, ok := s.ledger.Get(ledger.ID(ref.Allocation))
	if !ok || reconcile.Ref(a) != ref {
		return nil, fmt.Errorf("nothing is held by %s", ref)
	}
	return s.jobs[a.Job], nil
}

// checkInvariants reports the first invariant that does not hold.
func (s *state) checkInvariants() error {
	if err := s.ledger.Check(); err != nil {
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
		a, holds := s.ledger.Of(e.id)
		switch {
		case s.jobs[e.id] != e:
			return fmt.Errorf("job %s stands in the order and not in the map", e.Name())
		case holds != e.state.Holds():
			return fmt.Errorf("job %s is %s, and the ledger says that it holds: %v", e.Name(), e.state, holds)
		case holds && a.Attempt != e.attempt:
			return fmt.Errorf("job %s is at attempt %d, its allocation at %d", e.Name(), e.attempt, a.Attempt)
		case !e.state.Final() && !e.inLive:
			return fmt.Errorf("job %s is %s and not among the live", e.Name(), e.state)
		case e.open && e.state.Final():
			return fmt.Errorf("job %s is %s and counts among the open tasks", e.Name(), e.state)
		}
		if holds {
			holding += 1 + len(e.last.added)
			for _, x := range e.last.added {
				if a, ok := s.ledger.Get(x.ID); !ok || a.Job != e.id || a.Attempt != e.attempt || a.Adds != e.last.id {
					return fmt.Errorf("allocation %d was added to job %s, and the ledger does not say so", x.ID, e.Name())
				}
			}
		}
		if !e.state.Final() {
			live++
			crowd[submitKey(&e.shared.spec)]++
		}
		if e.open {
			open[e.array]++
		}
	}
	if known != len(s.jobs) || holding != len(s.ledger.Live()) || live != len(s.live)-s.stale {
		return fmt.Errorf("%d jobs in order, %d in the map; %d hold, %d allocations; %d live, %d counted", known, len(s.jobs), holding, len(s.ledger.Live()), live, len(s.live)-s.stale)
	}
	if !maps.Equal(crowd, s.submits.n) {
		return fmt.Errorf("%v jobs are counted for limits on submissions, there are %v", s.submits.n, crowd)
	}
	for _, a := range s.arrays.m {
		if a.open != open[a] {
			return fmt.Errorf("array %d counts %d open tasks, it has %d", a.first, a.open, open[a])
		}
	}
	return nil
}
