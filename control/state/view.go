package state

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// View is a job as it is shown: a copy that nobody writes to. What its fields point
// at is shared.
type View struct {
	Job    job.Job
	Claims []fleet.Claim // of the present or last attempt
	Report engine.Report // of the present or last attempt, as far as known
	Why    reason.Reason // the first reason why it waits
	Ref    engine.Ref    // of the present attempt; zero: it holds nothing

	Priority             int64     // as the queue is ordered; larger goes first
	Eligible             time.Time // since when nothing but the queue keeps it waiting; zero: something else does
	StartsBy             time.Time // promised by the scheduler; zero: nothing is promised
	Foretold, ForetoldAt time.Time // the first estimate of its start, and when it was made; zero: there was none
	Pool                 string    // of the present or last attempt
	Message              string    // why it was ended, as who ended it said
	CancelledBy          *uint32   // the user who asked for its end; nil: nobody

	// When the last attempt was suspended last, zero: never; and when it went on, zero: it is suspended
	// still, or ended so.
	SuspendedAt, ResumedAt time.Time
	SuspendedFor           time.Duration // how long it was suspended in all, without a time that lasts still

	Past      []PastAttempt // attempts that ran before the last one, oldest first
	PoolMoves PoolMoves     // while it waited
	Retried   int           // of its Retries, so many were begun or wait to begin

	// Ending says that a record asks for the end of the present attempt: what it serves gets nothing new.
	Ending bool

	Saved engine.Saved // what it last reported as saved; zero: nothing
	Added []Addition   // to the present attempt, while it runs
}

// Addition is an allocation that was added to an elastic job. The engine knows it under a name
// of its own, and counts its ranks from 0.
type Addition struct {
	Ref    engine.Ref
	Claims []fleet.Claim
	First  int // rank in the job
}

// Where finds the name under which the engine knows a rank of the job, or a node, and the rank
// within that. Without either it is the attempt itself.
func (v *View) Where(node string, rank *int) (engine.Ref, *int) {
	for i := range v.Added {
		a := &v.Added[i]
		switch {
		case rank != nil && *rank >= a.First && *rank < a.First+TasksOf(a.Claims):
			own := *rank - a.First
			return a.Ref, &own
		case rank == nil && node != "" && slices.Contains(nodesOf(a.Claims), node):
			return a.Ref, nil
		}
	}
	return v.Ref, rank
}

// Viewer makes views one after another, in the same memory.
type Viewer struct {
	view View
	spec job.Spec
	task job.ArrayTask
}

// View makes the view of a job. It is valid until the next call.
func (vr *Viewer) View(e *JobRecord, whole bool) *View {
	e.Shared.unpackSpec(e.delta, whole, &vr.spec)
	if e.Array != nil {
		vr.spec.Array = e.Array.Spec
	}
	v := &vr.view
	*v = View{
		Job: job.Job{
			ID: e.ID, Array: e.arrayTask(&vr.task), Spec: &vr.spec, State: e.State, Flags: e.Flags,
			Attempt: e.Attempt, Submitted: FromNanos(e.Submitted),
		},
		Report: *e.Report(), Why: e.waitReason(), Priority: e.Priority,
	}
	if e.isUncertain() {
		v.Job.Flags |= job.Uncertain
	}
	if a := e.Last; a != nil {
		v.Job.Started, v.Job.Ended, v.Job.Exit = FromNanos(a.started), FromNanos(a.ended), a.exit
		v.Claims, v.Pool = a.allClaims(), a.Pool
		if e.State == job.Pending && e.Shared.Spec.Pool != a.Pool { // it has moved since
			v.Pool = e.Shared.Spec.Pool
		}
		if IsDelegated(a.Claims) {
			v.Claims = a.seen
		}
		v.SuspendedAt, v.ResumedAt, v.SuspendedFor = FromNanos(a.lastSuspended[0]), FromNanos(a.lastSuspended[1]), a.suspendedFor
		if a.SuspendedAt > 0 {
			v.SuspendedAt, v.ResumedAt = FromNanos(a.SuspendedAt), time.Time{}
		}
		for _, x := range a.Added {
			v.Added = append(v.Added, Addition{Ref: e.AdditionRef(x), Claims: x.Claims, First: x.First})
		}
		if a.limit > 0 && e.State != job.Pending {
			vr.spec.TimeLimit = a.limit
		}
		if a.License != "" && e.State != job.Pending {
			vr.spec.Licenses = a.License
		}
		if e.State.Final() {
			v.Report.Failure = reconcile.FailureOf(&v.Report)
		}
		if e.State.Holds() {
			v.Ref = reconcile.Ref(e.Allocation())
			v.Ending = a.Cancel != nil || a.Requeue != nil || a.Expired != nil || a.Preempted != nil
		}
	}
	if e.State != job.Pending || e.Gate == nil {
		v.Eligible = FromNanos(e.Eligible)
	}
	if e.WaitsInPool() {
		v.Job.State, v.Why = job.Pending, e.PoolWaitReason()
		v.Job.Flags &^= job.Configuring
	}
	if m := e.Extra; m != nil {
		v.Message, v.CancelledBy = m.message, m.cancelledBy
		v.Past, v.Retried, v.PoolMoves = m.Past, m.Retried, m.PoolMoves
		if m.kept != 0 {
			v.Saved = engine.Saved{At: FromNanos(m.kept), As: m.keptAs}
		}
		v.Foretold, v.ForetoldAt = FromNanos(m.Foretold), FromNanos(m.ForetoldAt)
		if e.State == job.Pending {
			v.StartsBy = FromNanos(m.StartsBy)
		}
	}
	return v
}

// ViewOf makes the whole view of a job, in memory of its own.
func ViewOf(e *JobRecord) View { return *new(Viewer).View(e, true) }
