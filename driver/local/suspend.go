package local

import (
	"context"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Suspend and Resume are commands to the supervisors, which obey when they come to it. Each
// has a number that only grows, also over a restart of the engine, and a supervisor says by
// which one it is as it is: an answer to an earlier command is none to the last one.

var _ engine.Suspender = (*Engine)(nil)

// Suspend holds every process of an attempt; see engine.Suspender.
func (e *Engine) Suspend(ctx context.Context, ref engine.Ref) error {
	return e.askGang(ctx, ref, func(g *gang) error { return g.suspendGang(attempt.OpSuspend) })
}

// Resume lets the processes of a suspended attempt go on.
func (e *Engine) Resume(ctx context.Context, ref engine.Ref) error {
	return e.askGang(ctx, ref, func(g *gang) error { return g.suspendGang(attempt.OpResume) })
}

func (g *gang) suspendGang(op attempt.Op) error {
	switch {
	case g.decided != attempt.EntryGo:
		return fault.New(fault.Conflict, "attempt %s has not started", g.launch.Ref)
	case g.ended:
		return nil
	}
	all := true
	for _, p := range g.parts {
		all = p.suspendPart(op) && all
	}
	g.publishState() // before it is answered: what Inspect says then is about this call
	if !all {
		return fault.New(fault.Unavailable, "attempt %s: a supervisor is too far behind to be told %s", g.launch.Ref, op)
	}
	return nil
}

// suspendPart tells a part's supervisor, unless it was told before and has done it.
func (p *nodeAttempt) suspendPart(op attempt.Op) bool {
	if p.dead || p.lost || p.isGone() {
		return true
	}
	if p.hold.Op != op {
		p.gang.holds++
		p.hold = attempt.Command{Op: op, Turn: p.gang.e.epoch<<32 | p.gang.holds}
	}
	return p.suspendSettled() || p.sendCommand(p.hold)
}

// suspendSettled reports whether a supervisor is as it was told to be last.
func (p *nodeAttempt) suspendSettled() bool {
	return p.state.Turn >= p.hold.Turn && p.state.Held == (p.hold.Op == attempt.OpSuspend)
}

// isSuspended reports whether every process of a part is suspended, and stays so.
func (p *nodeAttempt) isSuspended() bool {
	return p.state.Held && (p.hold.Op == "" || p.suspendSettled())
}
