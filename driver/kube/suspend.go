package kube

import (
	"context"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var (
	_ engine.Suspender      = (*Engine)(nil)
	_ engine.SuspendHolds   = (*Engine)(nil)
	_ engine.UploadReceiver = (*Engine)(nil)
)

// KeepsSuspended is engine.SuspendHolds's: a pod holds what it asked for until it ends, whatever its
// processes do.
func (e *Engine) KeepsSuspended() bool { return true }

// Suspend holds every process of an attempt; see engine.Suspender. It is done when it returns.
func (e *Engine) Suspend(ctx context.Context, ref engine.Ref) error {
	return e.setSuspended(ctx, ref, true)
}

// Resume lets the processes of a suspended attempt go on. It is done when it returns.
func (e *Engine) Resume(ctx context.Context, ref engine.Ref) error {
	return e.setSuspended(ctx, ref, false)
}

// setSuspended tells the crew, which answers once all members have done it. What it is told is written
// down before, so that it is told again after a restart, and that it is so after. Numbers that
// only grow keep a call that comes late from undoing a later one.
func (e *Engine) setSuspended(ctx context.Context, ref engine.Ref, on bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a, turn, err := e.beginSuspend(ref, on)
	if a == nil || err != nil {
		return err
	}
	if a.hasNoAgent() {
		return agentlessError("cox cannot suspend", "cancel the job, or let it end")
	}
	err = e.calls.tellAgent(a, podagent.Word{Scope: podagent.Holding, Hold: &podagent.Hold{On: on, Turn: turn}})
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case a.ended || a.report.Phase >= engine.Ending:
		return nil
	case err != nil && strings.Contains(err.Error(), "is no scope"):
		return fault.New(fault.Conflict, "attempt %s: its cox-pod is older than suspending", ref).Advise("give the pool a newer agent_image; jobs that run go on as they are")
	case err != nil:
		return err
	case a.suspension.turn != turn:
		return fault.New(fault.Unavailable, "attempt %s was told otherwise meanwhile", ref)
	}
	return e.recordSuspend(a, pausing{On: on, Sure: true})
}

// tellAgain tells the crew what an earlier driver had told it, or was about to, if nobody knows
// whether it was heard.
func (e *Engine) tellAgain(a *attempt) error {
	e.mu.Lock()
	h, running := a.suspension.told, !a.ended && a.suspension.turn == 0 && a.stop == nil && a.report.Phase == engine.Running
	e.mu.Unlock()
	if h == nil || h.Sure || !running {
		return nil
	}
	err := e.setSuspended(e.ctx, a.ref, h.On)
	if k := fault.KindOf(err); err == nil || k == fault.Conflict || k == fault.NotFound {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a.suspension.turn = 0 // nobody else has told it anything
	return err
}

// beginSuspend begins to hold an attempt or to let it go on. nil, and no error: there is nothing to do.
func (e *Engine) beginSuspend(ref engine.Ref, on bool) (*attempt, uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.attempts[ref]
	switch {
	case a == nil:
		return nil, 0, kit.UnknownAttempt(engineName, ref)
	case a.ended || a.report.Phase >= engine.Ending:
		return nil, 0, nil
	case a.report.Phase < engine.Running:
		return nil, 0, fault.New(fault.Conflict, "attempt %s has not started", ref)
	}
	if err := e.recordSuspend(a, pausing{On: on}); err != nil {
		return nil, 0, err
	}
	e.turns++
	a.suspension.turn = e.log.Epoch()<<32 | e.turns
	return a, a.suspension.turn, nil
}

// recordSuspend writes down what an attempt is told of suspending, or that it is so, and reports it: it
// is suspended once that is sure, and no more as soon as it is told to go on. The caller holds
// the lock.
func (e *Engine) recordSuspend(a *attempt, h pausing) error {
	if a.suspension.told != nil && *a.suspension.told == (pausing{On: h.On, Sure: true}) {
		return nil // it is so
	}
	if err := e.log.Append(&entry{Kind: held, Ref: a.ref, On: h.On, Sure: h.Sure}); err != nil {
		return err
	}
	a.suspension.told = &h
	r := a.report
	r.Suspended = h.On && h.Sure
	e.publishReport(a, r)
	return nil
}
