package fake

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.Suspender = (*Engine)(nil)

// Suspend holds an attempt: what it would do by itself, and its time limit, wait.
func (e *Engine) Suspend(ctx context.Context, ref engine.Ref) error {
	return e.runCall(ctx, Call{Name: "suspend", Ref: ref}, func() error { return e.w.pauseAttempt(ref, true) })
}

// Resume lets a suspended attempt go on.
func (e *Engine) Resume(ctx context.Context, ref engine.Ref) error {
	return e.runCall(ctx, Call{Name: "resume", Ref: ref}, func() error { return e.w.pauseAttempt(ref, false) })
}

func (w *World) pauseAttempt(ref engine.Ref, on bool) error {
	a := w.attempts[ref]
	switch {
	case a == nil:
		return unknownAttempt(ref)
	case a.report.Phase < engine.Running:
		return fault.New(fault.Conflict, "attempt %s has not started", ref)
	}
	w.suspendAttempt(a, on)
	return nil
}

// suspendAttempt changes a running attempt; one that is ending ends.
func (w *World) suspendAttempt(a *attempt, on bool) {
	if len(a.away) > 0 {
		a.asked = append(a.asked, func() { w.suspendAttempt(a, on) })
		return
	}
	r := &a.report
	if r.Phase != engine.Running || r.Suspended == on {
		return
	}
	now := w.cfg.Now()
	r.Suspended = on
	if on {
		a.since, a.still = now, a.takeOwnEvents()
	} else {
		for _, h := range a.still {
			a.planEvent(h.tag, h.at.Add(now.Sub(a.since)), h.do)
		}
		a.still = nil
	}
	w.publishReport(a)
}

// takeOwnEvents takes what an attempt does by itself off the plan.
func (a *attempt) takeOwnEvents() (out []happening) {
	var next []happening
	for _, h := range a.next {
		if h.tag == "run" || h.tag == "limit" {
			out = append(out, h)
		} else {
			next = append(next, h)
		}
	}
	a.next = next
	return out
}

// Regroup keeps the newest roster of a gang; see World.Roster.
func (e *Engine) Regroup(ctx context.Context, ref engine.Ref, r engine.Roster) error {
	return e.runCall(ctx, Call{Name: "regroup", Ref: ref}, func() error {
		a := e.w.attempts[ref]
		switch {
		case a == nil:
			return unknownAttempt(ref)
		case a.report.Phase < engine.Running:
			return fault.New(fault.Conflict, "attempt %s has not started", ref)
		case a.roster == nil || a.roster.Generation < r.Generation:
			a.roster = &r
		}
		return nil
	})
}

// Roster returns the last roster that a gang was told; nil: none.
func (w *World) Roster(ref engine.Ref) *engine.Roster {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.attempts[ref]; a != nil {
		return a.roster
	}
	return nil
}
