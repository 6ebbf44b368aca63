package state

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

// State is what the journal says. Only Apply changes that, while the server runs and at replay.
// What follows from it without being in the journal (indexes, events for the core, reasons) is
// kept beside it.
//
// The control loop alone writes, under the lock; it reads without it. Everybody else reads under
// the lock, which nobody holds while a disk is waited for.
//
// Invariants (verified by Check):
//   - a job's State.Holds() is true exactly if the ledger has an allocation of it;
//   - that allocation's attempt is the job's Attempt;
//   - additions to a job that holds an allocation are in the ledger, as additions to that
//     allocation;
//   - Order has every job in memory, ascending, and Live those that have not ended;
//   - the open tasks of an array are those of its jobs that are Open.
type State struct {
	sync.RWMutex
	jobTable
	outbox

	Ledger *ledger.Ledger
	Next   job.ID // the first number that no record uses
	Seq    uint64 // of the last record

	Drains      *fleet.ByNode[Drain] // without a pool: of every node of that name
	Health      map[fleet.NodeKey]NodeHealth
	Tokens      TokenSet
	Policies    Policies
	Controllers Controllers
	Owners      Owners
	Usage       *Usage        // nil: none was kept
	Arrivals    *share.Memory // nil: nothing was learned of arriving jobs

	Pools          map[string]PoolSpec // that were added
	ElasticPools   map[string]bool     // pools whose engine can change a running gang
	DelegatedPools map[string]bool     // pools whose engine has a scheduler of its own; replaced, never written
	AddressedPools map[string]bool     // pools whose engine gives each task a network of its own; replaced, never written
	Ports          FixedPorts
	Nodes          *fleet.ByNode[fleet.Node] // as the engines report them
	PoolNames      []string                  // those that are configured; replaced, never written
	ManyPools      bool                      // there is more than one: a machine needs a record before work starts there
	OnMachines     NodesByMachine            // the nodes of all pools, the real ones of delegated pools among them
	Proposal       *sched.Proposal           // of the core; nil: none

	Estimates EstimateHistory // has a lock of its own
	Submits   SubmitCounts
	Counts    Counts
	Skipped   []error   // records of the journal that were replayed without effect
	now       time.Time // At of the record that is applied
}

// jobTable has the jobs in memory and their indexes.
type jobTable struct {
	Jobs   map[job.ID]*JobRecord
	Order  []*JobRecord // ascending; may have jobs that are gone
	Live   []*JobRecord // ascending; may have jobs that have ended or are gone
	dead   int          // of Order
	stale  int          // of Live
	Arrays Arrays
	Specs  *SharedSpecs
	Depend DependencyIndex
	Parts  Parts

	departed map[job.ID]uint64                // jobs that came back and left again → seq of their last record
	lookup   func(job.ID) (*JobRecord, error) // while the journal is replayed: jobs that only the projection has; else nil
}

// outbox has what follows from applied records and is not done yet.
type outbox struct {
	Events  []sched.Event // what the core has to hear of applied records
	touched []job.ID      // changed since they were last published
	gating  []*JobRecord  // jobs whose eligibility must be checked
	timers  timers        // when to check it again
	dirty   []*JobRecord  // what the projection lacks
	ended   []*JobRecord  // in the order in which they ended; they leave memory in this order
}

// LastJob is the largest number that a job may have; nobody gets there.
const LastJob job.ID = 1 << 62

// New returns the state of an empty journal.
func New() *State {
	return &State{
		jobTable: jobTable{
			Jobs: map[job.ID]*JobRecord{}, Arrays: Arrays{m: map[job.ID]*Array{}}, Specs: NewSharedSpecs(),
			Depend: newDependencyIndex(), Parts: newParts(), departed: map[job.ID]uint64{},
		},
		Ledger: ledger.New(), Next: 1,
		Controllers: newControllers(), Owners: newOwners(), Drains: fleet.NewByNode[Drain](), Health: map[fleet.NodeKey]NodeHealth{}, Nodes: fleet.NewByNode[fleet.Node](), Ports: newFixedPorts(), Tokens: TokenSet{}, Pools: map[string]PoolSpec{},
		Submits: SubmitCounts{n: map[limit.Key]int{}}, Counts: newCounts(),
	}
}

// Apply changes the state as a durable record says. staged is its payload where it
// was made by this process.
func (s *State) Apply(r store.Record, staged any) error {
	if r.Seq <= s.Seq {
		return fmt.Errorf("journal record %d after record %d", r.Seq, s.Seq)
	}
	f, ok := Appliers[r.Kind]
	if !ok {
		return fault.New(fault.Unsupported, "journal record %d is of kind %q, which this version does not know: it was written by a newer cox", r.Seq, r.Kind).
			Advise("use the newer cox, or another --state-dir")
	}
	s.now = r.At
	if err := f(s, &r, staged); err != nil {
		return fmt.Errorf("journal record %d (%s): %w", r.Seq, r.Kind, err)
	}
	s.Seq = r.Seq
	return nil
}

// applier applies a record. staged is the payload where this process made it; nil: it is read
// from the record.
type applier = func(s *State, r *store.Record, staged any) error

// onPayload is an applier that needs the payload alone.
func onPayload[T any](apply func(*State, *store.Record, T) error) applier {
	return func(s *State, r *store.Record, staged any) error {
		v, err := payloadOf[T](r, staged)
		if err != nil {
			return err
		}
		return apply(s, r, v)
	}
}

// onJob is an applier that needs the payload and the job that the record is about. Where a
// projection shows the job after the record, it does nothing.
func onJob[T any](apply func(*State, *store.Record, *JobRecord, T) error) applier {
	return onPayload(func(s *State, r *store.Record, v T) error {
		e, err := s.jobOfRecord(r)
		if e == nil {
			return err
		}
		return apply(s, r, e, v)
	})
}

// Appliers apply the payload of a record, by its kind.
var Appliers = map[string]applier{
	KindSubmitted:      (*State).applySubmitted,
	KindHeld:           onPayload((*State).applyHeld),
	KindStarted:        onPayload((*State).applyStarted),
	KindEnded:          onPayload((*State).applyEnded),
	KindUncertain:      onPayload((*State).applyUncertain),
	KindCancel:         onJob((*State).applyCancel),
	KindHold:           (*State).applyHold,
	KindRequeue:        onJob((*State).applyRequeue),
	KindPreempted:      (*State).applyPreempted,
	KindSaved:          onJob((*State).applySaved),
	KindExpired:        onJob((*State).applyExpired),
	KindSuspend:        onJob((*State).applySuspend),
	KindUpdate:         onJob((*State).applyUpdate),
	KindPoolMove:       onJob((*State).applyPoolMove),
	KindTop:            onPayload((*State).applyTop),
	KindNodes:          onPayload((*State).applyNodes),
	KindHealth:         onPayload((*State).applyNodeHealth),
	KindToken:          onPayload((*State).applyToken),
	KindRevoked:        onPayload((*State).applyRevoked),
	KindPool:           onPayload((*State).applyPool),
	KindPoolGone:       onPayload((*State).applyPoolGone),
	KindPolicy:         onPayload((*State).applyPolicy),
	KindUsage:          onPayload((*State).applyUsage),
	KindLearned:        onPayload((*State).applyLearned),
	KindAdded:          onPayload((*State).applyAdded),
	KindJoined:         onPayload((*State).applyJoined),
	KindAsked:          onPayload((*State).applyAsked),
	KindDropped:        onPayload((*State).applyDropped),
	KindController:     onPayload((*State).applyController),
	KindControllerGone: onPayload((*State).applyControllerGone),
	KindOwner:          onPayload((*State).applyOwners),
}

func (s *State) applySubmitted(r *store.Record, staged any) error {
	v, err := s.Specs.admittedOf(r, staged)
	if err != nil {
		return err
	}
	n := v.TaskCount()
	if v.First == 0 || v.First > LastJob || n > MaxTasks {
		return fmt.Errorf("%d jobs from number %d on: such numbers are never given", n, v.First)
	}
	var a *Array
	if v.OwnDelta.Array != nil {
		if a = s.Arrays.add(v.First, v.OwnDelta.Array); !slices.Equal(a.Spec.Indices, v.OwnDelta.Array.Indices) {
			return fmt.Errorf("array %d is there already, with other tasks", v.First)
		}
	}
	s.Specs.addUses(v.Shared, n)
	for i := range n {
		e := &JobRecord{
			ID: v.First + job.ID(i), Shared: v.Shared, delta: v.Delta, Array: a, Seq: r.Seq, Submitted: ToNanos(r.At),
			Priority: v.OwnDelta.Priority - v.OwnDelta.Nice, fixed: v.OwnDelta.Priority != 0, QueuedAt: ToNanos(r.At),
		}
		if a != nil {
			e.Index = a.Spec.Indices[i]
		}
		if v.OwnDelta.Held {
			e.Flags |= job.Held
		}
		e.setExtras(&v.OwnDelta)
		if old, err := s.findJob(e.ID); err != nil || old != nil {
			s.Specs.ReleaseSpec(v.Shared) // a projection had it already, with what happened since
			switch {
			case err != nil:
				return err
			case old.Seq < r.Seq:
				return fmt.Errorf("job %d is there already, since record %d", e.ID, old.Seq)
			}
			continue
		}
		s.insertJob(e)
		s.QueuePending(e)
	}
	s.Specs.ReleaseSpec(v.Shared)
	s.Depend.AddFates(v.Past)
	s.Counts.Submitted += uint64(n)
	return nil
}

// setExtras notes what few jobs ask for.
func (e *JobRecord) setExtras(o *SpecDelta) {
	if !o.Begin.IsZero() || !o.Deadline.IsZero() || o.Depends != nil || o.Part != nil || e.Extra != nil {
		m := e.EnsureExtra()
		m.Begin, m.Deadline, m.Depends, m.Part = ToNanos(o.Begin), ToNanos(o.Deadline), o.Depends, o.Part
	}
}

// insertJob adds a job to memory.
func (s *State) insertJob(e *JobRecord) {
	s.Jobs[e.ID] = e
	s.Order = s.insertSorted(s.Order, e, &s.dead)
	s.Next = max(s.Next, e.ID+1)
	if e.Array != nil {
		e.Array.tasks++
	}
	s.Counts.States[e.State]++
	s.markLive(e)
	s.Depend.add(e)
	s.Parts.add(e)
	s.Ports.count(e, 1)
}

// markLive puts a job that has not ended among the live ones.
func (s *State) markLive(e *JobRecord) {
	switch {
	case e.State.Final():
	case e.inLive:
		s.stale-- // it had ended and waits again before it was taken out
		s.Submits.add(&e.Shared.Spec, 1)
	default:
		s.Submits.add(&e.Shared.Spec, 1)
		e.inLive = true
		s.Live = s.insertSorted(s.Live, e, &s.stale)
	}
}

// insertSorted inserts a job, mostly at the end. One of the same number that is gone from
// memory makes room for it.
func (s *State) insertSorted(list []*JobRecord, e *JobRecord, gone *int) []*JobRecord {
	n := len(list)
	if n == 0 || list[n-1].ID < e.ID {
		return append(list, e)
	}
	i := IndexAfter(list, e.ID)
	if i > 0 && list[i-1].ID == e.ID {
		list[i-1] = e
		*gone--
		return list
	}
	return slices.Insert(list, i, e)
}

// IndexAfter is the index of the first job with a larger number.
func IndexAfter(list []*JobRecord, id job.ID) int {
	i, found := slices.BinarySearchFunc(list, id, func(e *JobRecord, id job.ID) int { return int(int64(e.ID) - int64(id)) })
	if found {
		i++
	}
	return i
}

// markChanged notes that a record changed a job.
func (s *State) markChanged(e *JobRecord, r *store.Record) {
	e.Seq = r.Seq
	s.MarkDirty(e)
}

// MarkDirty notes that a job is to be published and projected anew.
func (s *State) MarkDirty(e *JobRecord) {
	s.MarkTouched(e)
	s.MarkUnprojected(e)
}

// moveJob changes a job's state and everything that is counted by it.
func (s *State) moveJob(e *JobRecord, to job.State, by job.Cause) error {
	from := e.State
	if err := e.changeState(to, by); err != nil {
		return err
	}
	s.Counts.States[from]--
	s.Counts.States[to]++
	if from.Final() {
		s.markLive(e)
	}
	if to.Final() {
		s.Counts.Ended[to]++
		s.ended = append(s.ended, e)
		s.stale++
		s.Submits.add(&e.Shared.Spec, -1)
		s.Arrays.CloseTask(e)
	}
	s.Depend.recheckDependents(s, e)
	switch {
	case to.Final():
		s.Depend.remove(e)
	case from.Final():
		s.Depend.add(e)
	}
	return nil
}

// HasNews reports whether the core has something to hear, or eligibility is to be checked.
func (s *State) HasNews() bool { return len(s.Events)+len(s.gating)+len(s.Arrays.dirty) > 0 }

// TakeTouched returns the jobs that changed since it was last called, each once.
func (s *State) TakeTouched() []job.ID {
	ids := UniqueIDs(s.touched)
	s.touched = s.touched[:0]
	return ids
}

// UniqueIDs drops repetitions.
func UniqueIDs(ids []job.ID) []job.ID {
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

// MarkUnprojected notes that a job's row in the projection is not what the job is.
func (s *State) MarkUnprojected(e *JobRecord) {
	if !e.Dirty {
		e.Dirty = true
		s.dirty = append(s.dirty, e)
	}
}

// MarkTouched notes that a job is to be published anew. Nothing of it is projected.
func (s *State) MarkTouched(e *JobRecord) { s.touched = append(s.touched, e.ID) }

// QueueRestored tells the core of a pending job that a start has found. Its row stays as it is.
func (s *State) QueueRestored(e *JobRecord) {
	e.Open = false
	dirty := e.Dirty
	e.Dirty = true // so that it is not projected
	s.QueuePending(e)
	e.Dirty = dirty
}

// QueuePending tells the core of a pending job.
func (s *State) QueuePending(e *JobRecord) {
	s.MarkDirty(e)
	e.Gate = nil
	s.Events = append(s.Events, sched.Submitted{Job: e.ID, Spec: s.CoreSpecOf(e), Priority: e.Priority, At: sched.Instant(e.QueuedAt), Fixed: e.fixed, Eligible: sched.Instant(e.Eligible), Moved: sched.Instant(e.ExtraOrZero().Moved)})
	s.RecheckEligible(e)
}

// RecheckEligible has the eligibility of a job checked before the next decision.
func (s *State) RecheckEligible(e *JobRecord) {
	if !e.gating {
		e.gating = true
		s.gating = append(s.gating, e)
	}
}

// jobOfRecord finds the job that a record is about. One that a projection shows after the
// record is not found, and needs nothing (nil, nil).
func (s *State) jobOfRecord(r *store.Record) (*JobRecord, error) {
	return s.jobByNumber(job.ID(r.Job), r)
}

func (s *State) jobByNumber(id job.ID, r *store.Record) (*JobRecord, error) {
	e, err := s.findJob(id)
	switch {
	case err != nil:
		return nil, err
	case e == nil:
		return nil, fmt.Errorf("there is no job %d", id)
	case e.Seq >= r.Seq:
		return nil, nil
	}
	return e, nil
}

// findJob finds a job in memory, or while the journal is replayed in the projection.
func (s *State) findJob(id job.ID) (*JobRecord, error) {
	e := s.Jobs[id]
	if e != nil || s.lookup == nil {
		return e, nil
	}
	return s.lookup(id)
}

// JobByRef finds the job whose present attempt a ref names; a ref of an earlier
// attempt finds nothing.
func (s *State) JobByRef(ref engine.Ref) (*JobRecord, error) {
	a, ok := s.Ledger.Get(ledger.ID(ref.Allocation))
	if !ok || reconcile.Ref(a) != ref {
		return nil, fmt.Errorf("nothing is held by %s", ref)
	}
	return s.Jobs[a.Job], nil
}

// Check reports the first invariant that does not hold.
func (s *State) Check() error {
	if err := s.Ledger.Check(); err != nil {
		return err
	}
	holding, known, live := 0, 0, 0
	open, crowd := map[*Array]int{}, map[limit.Key]int{}
	for i, e := range s.Order {
		if i > 0 && s.Order[i-1].ID >= e.ID {
			return fmt.Errorf("job %d stands behind job %d", e.ID, s.Order[i-1].ID)
		}
		if e.Gone {
			continue
		}
		known++
		a, holds := s.Ledger.Of(e.ID)
		switch {
		case s.Jobs[e.ID] != e:
			return fmt.Errorf("job %s stands in the order and not in the map", e.Name())
		case holds != e.State.Holds():
			return fmt.Errorf("job %s is %s, and the ledger says that it holds: %v", e.Name(), e.State, holds)
		case holds && a.Attempt != e.Attempt:
			return fmt.Errorf("job %s is at attempt %d, its allocation at %d", e.Name(), e.Attempt, a.Attempt)
		case !e.State.Final() && !e.inLive:
			return fmt.Errorf("job %s is %s and not among the live", e.Name(), e.State)
		case e.Open && e.State.Final():
			return fmt.Errorf("job %s is %s and counts among the open tasks", e.Name(), e.State)
		}
		if holds {
			holding += 1 + len(e.Last.Added)
			for _, x := range e.Last.Added {
				if a, ok := s.Ledger.Get(x.ID); !ok || a.Job != e.ID || a.Attempt != e.Attempt || a.Adds != e.Last.AllocationID {
					return fmt.Errorf("allocation %d was added to job %s, and the ledger does not say so", x.ID, e.Name())
				}
			}
		}
		if !e.State.Final() {
			live++
			crowd[SubmitKey(&e.Shared.Spec)]++
		}
		if e.Open {
			open[e.Array]++
		}
	}
	if known != len(s.Jobs) || holding != len(s.Ledger.Live()) || live != len(s.Live)-s.stale {
		return fmt.Errorf("%d jobs in order, %d in the map; %d hold, %d allocations; %d live, %d counted", known, len(s.Jobs), holding, len(s.Ledger.Live()), live, len(s.Live)-s.stale)
	}
	if !maps.Equal(crowd, s.Submits.n) {
		return fmt.Errorf("%v jobs are counted for limits on submissions, there are %v", s.Submits.n, crowd)
	}
	for _, a := range s.Arrays.m {
		if a.Open != open[a] {
			return fmt.Errorf("array %d counts %d open tasks, it has %d", a.first, a.Open, open[a])
		}
	}
	return nil
}

// ForgetEnded takes jobs out of memory that ended before a time and whose rows in the
// projection show them as they are.
func (s *State) ForgetEnded(before int64) {
	for len(s.ended) > 0 {
		e := s.ended[0]
		current := e.State.Final() && !e.Gone
		if current && (e.Dirty || e.writing || e.Last != nil && e.Last.ended > before) {
			return
		}
		s.ended[0] = nil
		s.ended = s.ended[1:]
		if current {
			s.removeJob(e)
		}
	}
}

// removeJob takes a job out of memory.
func (s *State) removeJob(e *JobRecord) {
	s.Depend.keepFate(e)
	delete(s.Jobs, e.ID)
	s.Parts.remove(e)
	s.Ports.count(e, -1)
	e.Gone = true
	if e.revived {
		s.departed[e.ID] = e.Seq
	}
	s.dead++
	s.Counts.States[e.State]--
	s.Specs.ReleaseSpec(e.Shared)
	if a := e.Array; a != nil {
		if a.tasks--; a.tasks == 0 {
			delete(s.Arrays.m, a.first)
		}
	}
}
