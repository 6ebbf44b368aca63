package control

import (
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/sched"
)

// This file carries out the core's decisions about jobs that make room for others. They are
// durable before a signal is sent, so a restart asks again. The job's allocation stays held
// until the engine has proved that the job is gone.

// stagePreempt stages a decision of the core about a job that holds resources, or that this step
// starts too.
func (l *loop) stagePreempt(d sched.Preempt, starting []state.Held, by job.Actor) {
	e := l.state.Jobs[d.Job]
	starts := slices.ContainsFunc(starting, func(h state.Held) bool { return h.Allocation.Job == d.Job })
	if e == nil || !e.State.Holds() && !starts {
		return // the ledger has refused its start
	}
	if e.OnlyAdditionsLeft() {
		return // it makes room anyway, and has ended as it did
	}
	jobState := job.Running
	if e.State == job.Suspended {
		jobState = job.Suspended
	}
	v := state.Preempted{For: d.For, Mode: d.Mode, Grace: d.Grace, State: &jobState, Home: d.Home}
	if v.Grace == 0 {
		v.Grace = l.cfg.Grace
	}
	if d.Mode == account.PreemptCheckpoint {
		if e.State == job.Running && !starts && e.Flags&job.Configuring == 0 {
			v.Warn = true
			v.Signal, v.To = saveSignal(e, l.state.Policies.CurrentPolicy())
		} else { // there is nothing to save, or nobody who could
			v.Grace = l.cfg.Grace
		}
	}
	l.stageRecord(state.KindPreempted, e.ID, by, v, func() { l.requestEviction(e) })
}

// saveSignal is the signal by which a job is told to save, and its receivers: as its --signal
// says, else as the site's rules do.
func saveSignal(e *state.JobRecord, p *state.Policy) (signal int, to engine.Scope) {
	if s := e.Shared.Spec.Signal; s != nil {
		if s.BatchOnly {
			return s.Signal, engine.ToBatch
		}
		return s.Signal, engine.ToTasks
	}
	if p != nil && p.Rules.Preemption.Signal != "" {
		if n, err := slurmfmt.ParseSignalName(p.Rules.Preemption.Signal); err == nil {
			return n, engine.ToAll
		}
	}
	return sigterm, engine.ToAll
}

const sigterm = 15

// requestEviction asks a job to end that makes room, now or again after a restart. A job that
// may save first is told so, and is asked to end when it has, or when its grace is over.
func (l *loop) requestEviction(e *state.JobRecord) {
	v := e.Last.Preempted
	switch {
	case v == nil || !e.State.Holds():
	case v.Mode == account.PreemptSuspend:
		if a, ok := l.state.Ledger.Of(e.ID); ok && !e.Last.PreemptSuspended {
			e.Last.Proof = 0
			l.callsOf(a).Park(reconcile.Ref(a), func(r engine.Report) {
				_ = l.postMessage(l.ctx, l.suspendReported(e.ID, v, r)) // a closed loop hears nothing more
			})
		}
	case !v.Warn:
		l.stopAttempt(e, engine.Stop{Grace: v.Grace, Signal: v.Signal, Reason: v.Message(), Why: engine.ForPreemption})
	case e.Last.HasSaved(nil) || l.cfg.Clock.Now().UnixNano() >= e.Last.GraceEnd():
		l.stopAttempt(e, engine.Stop{Grace: l.cfg.Grace, Reason: v.Message(), Why: engine.ForPreemption})
	default:
		for i, ref := range l.state.RunningRefs(e) {
			if i == 0 || v.To != engine.ToBatch {
				l.callsFor(e).Signal(ref, v.Signal, v.To) // what was added saves its part
			}
		}
		l.state.AddTimer(e.ID, e.Last.GraceEnd())
	}
}

// evictSaved ends a job that was told to save, once it has.
func (l *loop) evictSaved(e *state.JobRecord) {
	if p := e.Last.Preempted; p != nil && p.Warn {
		l.requestEviction(e)
	}
}

// evictOverdue ends a job that was told to save once its grace is over.
func (l *loop) evictOverdue(e *state.JobRecord, now time.Time) {
	if a := e.Last; a.Preempted != nil && a.Preempted.Warn && !a.Stopped && now.UnixNano() >= a.GraceEnd() {
		a.Stopped = true
		l.whileLeading(func() { l.requestEviction(e) })
	}
}

// noteSaved stages the checkpoint of a report, if it is new.
func (l *loop) noteSaved(e *state.JobRecord, r *engine.Report) {
	if r.Saved == nil || state.ToNanos(r.Saved.At) <= e.Last.Saved {
		return
	}
	l.stageRecord(state.KindSaved, e.ID, job.Actor{}, state.Saved{Saved: *r.Saved, State: state.StatePointer(e.State)}, func() { l.evictSaved(e) })
}

// askSaved notes that a job has reported a checkpoint.
func (l *loop) askSaved(w *changeRequest, e *state.JobRecord, req *request, op Saved) error {
	if !e.State.Holds() {
		return fault.New(fault.Conflict, "job %s does not run", e.Name())
	}
	l.stageFor(req, state.KindSaved, e.ID, w.by, state.Saved{Saved: engine.Saved{As: op.As}, State: state.StatePointer(e.State)}, func() { l.evictSaved(e) })
	return nil
}

// Moves are preemptions with a new place. A proposal of the core is not in the journal: it
// follows from the state, and a restart makes it again. The requests to the jobs of an approved
// proposal, with their new places, are in the journal when the approval is answered.

// approval is an approved proposal of which the core has not heard.
type approval struct {
	of     sched.Approved
	by     job.Actor
	answer func(error)
}

// ApproveMoves has a proposal carried out. It is durable when it returns. If the proposal cannot
// be carried out any more, nothing is moved.
func (c *Control) ApproveMoves(ctx context.Context, by job.Actor, id string) error {
	return c.askLoop(ctx, message{bulk: true}, func(l *loop, answer func(error)) {
		s := l.state
		s.Lock()
		defer s.Unlock()
		p := s.Proposal
		switch {
		case l.approval != nil: // the journal cannot be written, and the core has not heard of it
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "somebody else has approved moves just now").Advise("cox defrag shows what is proposed then"))
			return
		case p == nil:
			l.refuseWhenLeading(answer, fault.New(fault.NotFound, "no moves are proposed").Advise("cox defrag shows what is"))
			return
		case id != query.ProposalID(p):
			l.refuseWhenLeading(answer, fault.New(fault.Conflict, "%s is not what is proposed now, which is %s: things have changed", id, query.ProposalID(p)).Advise("cox defrag shows it; approve that"))
			return
		}
		a := &approval{of: sched.Approved{For: p.For, Claims: p.Claims, Moves: p.Moves}, by: by, answer: answer}
		s.Events = append(s.Events, a.of)
		l.approval = a
	})
}

// refuseLapsedApproval answers whoever approved moves of which none is made any more. The
// approval of moves that are made is answered when the batch is durable, which it is as a whole.
func (l *loop) refuseLapsedApproval() {
	a := l.granted
	if a == nil || slices.ContainsFunc(l.batch, func(b staged) bool {
		v, moves := b.val.(state.Preempted)
		return moves && v.Home != nil && v.For == a.of.For
	}) {
		return
	}
	l.granted = nil
	l.refuseWhenLeading(a.answer, fault.New(fault.Conflict, "the moves cannot be made any more: things have changed").Advise("cox defrag shows what is proposed now"))
}
