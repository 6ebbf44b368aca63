package state

import (
	"cmp"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/eligible"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// JobRecord is one job in memory. A pending job that depends on nothing has only the packed
// delta to the shared specification beside it: a few hundred bytes in all. Times are nanoseconds
// since the Unix epoch, 0 for none.
type JobRecord struct {
	ID        job.ID
	Shared    *SharedSpec
	delta     PackedDelta
	Array     *Array    // nil: not part of an array
	Last      *Attempt  // the present attempt, or the last; nil: there was none
	Extra     *JobExtra // what few jobs have; nil: nothing of it
	Seq       uint64    // of the last record that changed it
	Priority  int64
	QueuedAt  int64 // its place in the queue beside the priority
	Submitted int64 // submitted
	Eligible  int64
	Gate      *reason.Reason // why the core was told not to consider it; nil: it may
	Why       *reason.Reason // the first reason why it waits, without the three below
	Since     int64          // of why, in Unix seconds
	Before    job.ID         // Reason.Job of why
	Ahead     int32          // Reason.Ahead of why
	Index     uint32         // in the array
	Attempt   uint32
	Flags     job.Flags
	State     job.State
	Open      bool // counts among the open tasks of its array
	Dirty     bool // it changed since its row was made
	writing   bool // its row was made and is not written yet
	gating    bool // is in State.gating
	inLive    bool // is in State.Live
	Gone      bool // left memory
	fixed     bool // somebody set its priority: no rules reckon it
	revived   bool // came back from the projection
}

// Attempt is the present or last attempt of a job.
type Attempt struct {
	AllocationID     ledger.ID // of its allocation
	epoch            uint64
	Pool             string
	Claims           []fleet.Claim  // never written
	Flavors          []string       // of quotas, in which the job is counted; never written
	License          string         // of alternatives that it asked for, the one that it has
	seen             []fleet.Claim  // on the real nodes, where claims are on a pool as a whole; never written
	Handed           int64          // when it was handed over to the pool's own scheduler; 0: to none
	Renewed          int64          // when it was last put off when it is to end, because it has not begun
	Report           *engine.Report // as far as known; not journaled while it runs; never written
	Cancel           *Cancel        // asked for, not carried out yet
	Requeue          *Requeue       // asked for, not carried out yet
	Preempted        *Preempted     // to make room, not carried out yet
	asked            int64          // when it was asked to
	Saved            int64          // when it last reported a checkpoint
	Proof            uint64         // version from which on reports say whether it is suspended as asked; 0: not known yet
	Stopped          bool           // its grace to save is over, and it is asked to end
	Expired          *Expired       // its time is over, it has not ended yet
	started          int64
	ended            int64
	exit             job.ExitCode
	limit            time.Duration  // where it is shorter than the job's; 0: it is not
	PreemptSuspended bool           // it is suspended to make room
	UserSuspended    bool           // with PreemptSuspended: somebody suspended it too, so it stays suspended when it has its place again
	SuspendedAt      int64          // since when it is suspended; 0: it is not
	suspendedFor     time.Duration  // how long it was suspended before
	lastSuspended    [2]int64       // from when to when it was suspended last, and is not now
	Added            []*JobAddition // to an elastic job while it runs; never written
	Ranks            int            // the next rank that nobody has had
	settled          bool           // it is not to grow any more
}

// JobExtra has the fields that only few jobs need.
type JobExtra struct {
	Begin, Deadline int64
	Depends         *job.Dependency
	Part            *job.Part     // of a controller's work; nil: it is none
	Again           int64         // not before, after a failed attempt
	Failed          int           // attempts that failed in a row
	Retried         int           // retries that its Retries allowed so far
	Past            []PastAttempt // attempts that ran before the last one, oldest first
	StartsBy        int64         // promised by the core
	Foretold        int64         // the first estimate of its start …
	ForetoldAt      int64         // … and when it was made
	LimitEnd        int64         // of a running job whose limit was lowered
	Benched         int64         // not before, because the ledger refused it …
	Refused         int           // … so often
	Refusal         string
	Moved           int64 // when it was last asked to move
	PoolMoves       PoolMoves
	message         string        // why it was ended
	cancelledBy     *uint32       // the user who asked for the end; nil: nobody
	failed          []FailedNodes // on which earlier attempts failed, the last one last; no element is changed
	kept            int64         // when an attempt last reported a checkpoint …
	keptAs          string        // … and what; engine.Saved
}

// PoolMoves is how a job has moved between pools while it waited. Names are a format on disk.
type PoolMoves struct {
	Count int       `json:"count,omitempty"`
	At    int64     `json:"at,omitempty"`    // of the last one
	From  string    `json:"from,omitempty"`  // the pool that it left then
	To    string    `json:"to,omitempty"`    // and the one to which it went
	Why   string    `json:"why,omitempty"`   // for people
	Under *PoolMove `json:"under,omitempty"` // it is being taken back from a pool's scheduler for this one; nil: it is not
}

// Bounds of moves between pools of a job that waits.
const (
	MostPoolMoves = 3
	PoolMoveRest  = time.Hour // between two of them
)

// PastAttempt is an attempt that ran and after which the job waited again. Names are a format on
// disk.
type PastAttempt struct {
	Attempt uint32       `json:"attempt"`
	Started int64        `json:"started"`
	Ended   int64        `json:"ended"`
	Cause   engine.Cause `json:"cause"`
	Exit    job.ExitCode `json:"exit,omitzero"`
	Nodes   string       `json:"nodes,omitempty"` // a host list
	Message string       `json:"message,omitempty"`
	Retry   int          `json:"retry,omitempty"` // of Retries, that followed; 0: it was requeued for another reason

	Failure  engine.Failure `json:"failure,omitempty"`   // whose fault the end was
	FailedOn string         `json:"failed_on,omitempty"` // a host list of the nodes on which it failed; empty: not known
	Pool     string         `json:"pool,omitempty"`      // with FailedOn: whose nodes they are
	KeepOff  time.Duration  `json:"keep_off,omitempty"`  // for how long the job is kept off them
}

// maxPast bounds PastAttempts of a job: the first ones are dropped.
const maxPast = 20

// IsRetry reports whether a job whose last attempt has a number waits for a retry of its Retries.
func (m *JobExtra) IsRetry(attempt uint32) bool {
	n := len(m.Past)
	return n > 0 && m.Past[n-1].Attempt == attempt && m.Past[n-1].Retry > 0
}

// EnsureExtra returns the extra fields for writing.
func (e *JobRecord) EnsureExtra() *JobExtra {
	if e.Extra == nil {
		e.Extra = &JobExtra{}
	}
	return e.Extra
}

// ExtraOrZero returns a copy of the extra fields; zero ones if the job has none.
func (e *JobRecord) ExtraOrZero() JobExtra {
	if e.Extra == nil {
		return JobExtra{}
	}
	return *e.Extra
}

// Name is the number under which the job is shown: "7", "7_3".
func (e *JobRecord) Name() string {
	j := job.Job{ID: e.ID, Array: e.arrayTask(nil)}
	return j.Name()
}

// arrayTask describes its place in an array, in buf if there is one.
func (e *JobRecord) arrayTask(buf *job.ArrayTask) *job.ArrayTask {
	a := e.Array
	if a == nil {
		return nil
	}
	if buf == nil {
		buf = new(job.ArrayTask)
	}
	*buf = job.ArrayTask{
		Job: a.first, Index: e.Index, Count: uint32(len(a.Spec.Indices)), Min: a.Spec.Indices[0],
		Max: a.Spec.Indices[len(a.Spec.Indices)-1], Step: max(a.Spec.Step, 1), MaxRunning: a.Limit,
	}
	return buf
}

// changeState moves the job to another state if the table allows it by that cause.
func (e *JobRecord) changeState(to job.State, by job.Cause) error {
	j := job.Job{ID: e.ID, State: e.State, Array: e.arrayTask(nil)}
	if err := j.Set(to, by); err != nil {
		return err
	}
	e.State = to
	return nil
}

// Allocation is the allocation that the job holds; meaningful while it holds one.
func (e *JobRecord) Allocation() ledger.Allocation {
	a := ledger.Allocation{
		ID: e.Last.AllocationID, Job: e.ID, Attempt: e.Attempt, Epoch: e.Last.epoch, Pool: e.Last.Pool,
		Status: ledger.Held, Claims: e.Last.Claims, Flavors: e.Last.Flavors, License: e.Last.License, Parked: e.Last.PreemptSuspended,
	}
	if e.Flags&job.Uncertain != 0 {
		a.Status = ledger.Uncertain
	}
	return a
}

// TimeLimit is the job's time limit, or that of its attempt; 0: none.
func (e *JobRecord) TimeLimit() time.Duration {
	if e.Last != nil && e.Last.limit > 0 && e.State.Holds() {
		return e.Last.limit
	}
	return max(e.Shared.Spec.TimeLimit, 0)
}

// MinTime is the shortest time limit that the job accepts.
func (e *JobRecord) MinTime() time.Duration {
	if m := e.Shared.Spec.TimeMin; m > 0 {
		return m
	}
	return e.TimeLimit()
}

// StartTime is when the last attempt started; the zero time if it has not.
func (e *JobRecord) StartTime() time.Time {
	if e.Last == nil {
		return time.Time{}
	}
	return FromNanos(e.Last.started)
}

func (e *JobRecord) endTime() time.Time {
	if e.Last == nil {
		return time.Time{}
	}
	return FromNanos(e.Last.ended)
}

// ensureAttempt returns the last attempt to write to.
func (e *JobRecord) ensureAttempt() *Attempt {
	if e.Last == nil {
		e.Last = &Attempt{}
	}
	return e.Last
}

// waitReason is the first reason why it waits. A job that is held has one before the core has looked at it.
func (e *JobRecord) waitReason() reason.Reason {
	switch {
	case e.State != job.Pending, e.Why == nil && e.Flags&job.Held == 0:
		return reason.Reason{}
	case e.Why == nil:
		r := eligible.HeldBy(e.Flags, e.ExtraOrZero().Failed)
		r.Since = e.Since
		return r
	}
	r := *e.Why
	r.Since, r.Ahead, r.Job = e.Since, int(e.Ahead), uint64(e.Before)
	return r
}

// NoReport is the report of an attempt of which nothing is known.
var NoReport = &engine.Report{}

// Report is the last report about the last attempt, or NoReport; never nil.
func (e *JobRecord) Report() *engine.Report {
	if e.Last == nil || e.Last.Report == nil {
		return NoReport
	}
	return e.Last.Report
}

// ChargedUntil is when the charge of an attempt ends whose end is heard of at an instant: when
// it ended, which may be long ago, but not after that instant. The core never charges until
// before the start.
func ChargedUntil(r *engine.Report, heard time.Time) sched.Instant {
	if r.Ended.IsZero() || r.Ended.After(heard) {
		return sched.Instant(ToNanos(heard))
	}
	return sched.Instant(ToNanos(r.Ended))
}

// IsBefore reports whether a job is before another in the queue.
func (e *JobRecord) IsBefore(o *JobRecord) bool {
	return cmp.Or(cmp.Compare(o.Priority, e.Priority), cmp.Compare(e.QueuedAt, o.QueuedAt), cmp.Compare(e.ID, o.ID)) < 0
}

// UntilOf is when its limit ends a job that holds an allocation; 0 for never.
func UntilOf(e *JobRecord, now time.Time) sched.Instant {
	limit := e.TimeLimit()
	if limit == 0 {
		return 0
	}
	from := e.StartTime()
	if from.IsZero() {
		from = now
	}
	if e.Last != nil && e.State.Holds() {
		limit += e.Last.suspendedFor // the limit waits while it is suspended
	}
	return sched.Instant(from.Add(limit).UnixNano())
}

// BeganOf is when a job that holds an allocation started; now if its engine has not said so.
func BeganOf(e *JobRecord, now time.Time) sched.Instant {
	if from := e.StartTime(); !from.IsZero() {
		if IsDelegated(e.Last.Claims) {
			return e.Last.ChargedFrom(ToNanos(from))
		}
		return sched.Instant(from.UnixNano())
	}
	return sched.Instant(now.UnixNano())
}

// NoSuchJob is the error for a number that no job has.
func NoSuchJob(id job.ID) error {
	return fault.New(fault.NotFound, "there is no job %d", id)
}

// TellTimeLimit tells the core when a job that has started will reach its limit.
func (s *State) TellTimeLimit(e *JobRecord, now time.Time) {
	s.Events = append(s.Events, sched.Extended{Job: e.ID, Until: UntilOf(e, now)})
}
