package kube

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kube/crew"
	"github.com/coxswain-sched/coxswain/fault"
)

var (
	_ engine.Suspender = (*Engine)(nil)
	_ engine.Keeping   = (*Engine)(nil)
)

// KeepsSuspended is engine.Keeping's: a pod holds what it asked for until it ends, whatever its
// processes do.
func (e *Engine) KeepsSuspended() bool { return true }

// Suspend holds every process of an attempt; see engine.Suspender. It is done when it returns.
func (e *Engine) Suspend(ctx context.Context, ref engine.Ref) error { return e.hold(ctx, ref, true) }

// Resume lets the processes of a suspended attempt go on. It is done when it returns.
func (e *Engine) Resume(ctx context.Context, ref engine.Ref) error { return e.hold(ctx, ref, false) }

// hold tells the crew, which answers once all members have done it. That an attempt is suspended
// is written down after that, that it is no more before: what is written is never more than is
// so. Numbers that only grow keep a call that comes late from undoing a later one.
func (e *Engine) hold(ctx context.Context, ref engine.Ref, on bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a, turn, err := e.turn(ref, on)
	if a == nil || err != nil {
		return err
	}
	err = e.speak(a, crew.Word{Hold: &crew.Hold{On: on, Turn: turn}})
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case a.ended || a.report.Phase >= engine.Ending:
		return nil
	case err != nil:
		return err
	case a.turn != turn:
		return fault.New(fault.Unavailable, "attempt %s was told otherwise meanwhile", ref)
	case on:
		return e.holds(a, true)
	}
	return nil
}

// turn begins to hold an attempt or to let it go on. nil, and no error: there is nothing to do.
func (e *Engine) turn(ref engine.Ref, on bool) (*attempt, uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.attempts[ref]
	switch {
	case a == nil:
		return nil, 0, unknown(ref)
	case a.ended || a.report.Phase >= engine.Ending:
		return nil, 0, nil
	case a.report.Phase < engine.Running:
		return nil, 0, fault.New(fault.Conflict, "attempt %s has not started", ref)
	}
	if !on {
		if err := e.holds(a, false); err != nil {
			return nil, 0, err
		}
	}
	e.turns++
	a.turn = e.log.epoch<<32 | e.turns
	return a, a.turn, nil
}

// holds writes down whether an attempt is suspended, and reports it. The caller holds the lock.
func (e *Engine) holds(a *attempt, on bool) error {
	if a.report.Suspended == on {
		return nil
	}
	if err := e.log.add(&entry{Kind: held, Ref: a.ref, On: on}); err != nil {
		return err
	}
	r := a.report
	r.Suspended = on
	e.tell(a, r)
	return nil
}
