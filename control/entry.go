package control

import (
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// jobRecord is one job in memory. A pending job that depends on nothing has no part of
// its own beside it but the packed own part: hundreds of bytes in all. Times are
// nanoseconds since the Unix epoch, 0 for none.
type jobRecord struct {
	id        job.ID
	shared    *sharedSpec
	delta     packedDelta
	array     *array    // nil: not part of an array
	last      *attempt  // the present attempt, or the last; nil: there was none
	extra     *jobExtra // what few jobs have; nil: nothing of it
	seq       uint64    // of the last record that changed it
	priority  int64
	at        int64 // its place in the queue beside the priority
	submitted int64 // submitted
	eligible  int64
	gate      *reason.Reason // why the core was told not to consider it; nil: it may
	why       *reason.Reason // the first reason why it waits, without the three below
	since     int64          // of why, in Unix seconds
	before    job.ID         // Reason.Job of why
	ahead     int32          // Reason.Ahead of why
	index     uint32         // in the array
	attempt   uint32
	flags     job.Flags
	state     job.State
	open      bool // counts among the open tasks of its array
	dirty     bool // it changed since its row was made
	writing   bool // its row was made and is not written yet
	gating    bool // stands in state.gating
	inLive    bool // stands in state.live
	gone      bool // left memory
	fixed     bool // somebody set its priority: no rules reckon it
	revived   bool // came back from the projection
}

// attempt is the present or last attempt.
type attempt struct {
	id               ledger.ID // of its allocation
	epoch            uint64
	pool             string
	claims           []fleet.Claim  // never written
	flavors          []string       // of quotas, in which the job is counted; never written
	license          string         // of alternatives that it asked for, the one that it has
	seen             []fleet.Claim  // on the real nodes, where claims are on a pool as a whole; never written
	handed           int64          // when it was handed over to the pool's own scheduler; 0: to none
	renewed          int64          // when it was last put off when it is to end, because it has not begun
	report           *engine.Report // as far as known; not journaled while it runs; never written
	cancel           *cancel        // asked for, not carried out yet
	requeue          *requeue       // asked for, not carried out yet
	preempted        *preempted     // to make room, not carried out yet
	asked            int64          // when it was asked to
	saved            int64          // when it last reported a checkpoint
	proof            uint64         // version from which on reports say whether it is suspended as asked; 0: not known yet
	stopped          bool           // its grace to save is over, and it is asked to end
	expired          *expired       // its time is over, it has not ended yet
	started          int64
	ended            int64
	exit             job.ExitCode
	limit            time.Duration  // where it is shorter than the job's; 0: it is not
	preemptSuspended bool           // it is suspended to make room
	userSuspended    bool           // parked, and somebody suspended it too: it stays suspended when it has its place again
	suspendedAt      int64          // since when it is suspended; 0: it is not
	suspendedFor     time.Duration  // how long it was suspended before
	added            []*jobAddition // to an elastic job while it runs; never written
	ranks            int            // the next rank that nobody has had
	settled          bool           // it is not to grow any more
}

// jobExtra is what few jobs have.
type jobExtra struct {
	begin, deadline int64
	depends         *job.Dependency
	again           int64 // not before, after a failed attempt
	failed          int   // attempts that failed in a row
	startsBy        int64 // promised by the core
	foretold        int64 // the first estimate of its start …
	foretoldAt      int64 // … and when it was made
	limitEnd        int64 // of a running job whose limit was lowered
	benched         int64 // not before, because the ledger refused it …
	refused         int   // … so often
	refusal         string
	moved           int64  // when it was last asked to move
	message         string // why it was ended
	kept            int64  // when an attempt last reported a checkpoint …
	keptAs          string // … and what; engine.Saved
}

// ensureExtra returns the rare part to write to.
func (e *jobRecord) ensureExtra() *jobExtra {
	if e.extra == nil {
		e.extra = &jobExtra{}
	}
	return e.extra
}

// extraOrZero returns the rare part to read.
func (e *jobRecord) extraOrZero() jobExtra {
	if e.extra == nil {
		return jobExtra{}
	}
	return *e.extra
}

// Name is how the job is shown.
func (e *jobRecord) Name() string {
	j := job.Job{ID: e.id, Array: e.arrayTask(nil)}
	return j.Name()
}

// arrayTask describes its place in an array, in buf if there is one.
func (e *jobRecord) arrayTask(buf *job.ArrayTask) *job.ArrayTask {
	a := e.array
	if a == nil {
		return nil
	}
	if buf == nil {
		buf = new(job.ArrayTask)
	}
	*buf = job.ArrayTask{
		Job: a.first, Index: e.index, Count: uint32(len(a.spec.Indices)), Min: a.spec.Indices[0],
		Max: a.spec.Indices[len(a.spec.Indices)-1], Step: max(a.spec.Step, 1), MaxRunning: a.limit,
	}
	return buf
}

// changeState moves the job to another state if the table allows it by that cause.
func (e *jobRecord) changeState(to job.State, by job.Cause) error {
	j := job.Job{ID: e.id, State: e.state, Array: e.arrayTask(nil)}
	if err := j.Set(to, by); err != nil {
		return err
	}
	e.state = to
	return nil
}

// heldAllocation is the allocation that the job holds; meaningful while it holds one.
func (e *jobRecord) heldAllocation() ledger.Allocation {
	a := ledger.Allocation{
		ID: e.last.id, Job: e.id, Attempt: e.attempt, Epoch: e.last.epoch, Pool: e.last.pool,
		Status: ledger.Held, Claims: e.last.claims, Flavors: e.last.flavors, License: e.last.license, Parked: e.last.preemptSuspended,
	}
	if e.flags&job.Uncertain != 0 {
		a.Status = ledger.Uncertain
	}
	return a
}

// timeLimit is the job's time limit, or that of its attempt; 0: none.
func (e *jobRecord) timeLimit() time.Duration {
	if e.last != nil && e.last.limit > 0 && e.state.Holds() {
		return e.last.limit
	}
	return max(e.shared.spec.TimeLimit, 0)
}

// minTime is the shortest time that it may be given.
func (e *jobRecord) minTime() time.Duration {
	if m := e.shared.spec.TimeMin; m > 0 {
		return m
	}
	return e.timeLimit()
}

// startTime is when the last attempt started; the zero time if it has not.
func (e *jobRecord) startTime() time.Time {
	if e.last == nil {
		return time.Time{}
	}
	return fromNanos(e.last.started)
}

func (e *jobRecord) endTime() time.Time {
	if e.last == nil {
		return time.Time{}
	}
	return fromNanos(e.last.ended)
}

// ensureAttempt returns the last attempt to write to.
func (e *jobRecord) ensureAttempt() *attempt {
	if e.last == nil {
		e.last = &attempt{}
	}
	return e.last
}

// waitReason is the first reason why it waits.
func (e *jobRecord) waitReason() reason.Reason {
	if e.why == nil || e.state != job.Pending {
		return reason.Reason{}
	}
	r := *e.why
	r.Since, r.Ahead, r.Job = e.since, int(e.ahead), uint64(e.before)
	return r
}

// noReport stands for an attempt of which nothing is known.
var noReport = &engine.Report{}

// lastReport is what is known of the last attempt; never nil.
func (e *jobRecord) lastReport() *engine.Report {
	if e.last == nil || e.last.report == nil {
		return noReport
	}
	return e.last.report
}
