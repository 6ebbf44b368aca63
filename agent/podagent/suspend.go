package podagent

import (
	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Hold is a Word that suspends every process of an attempt, or lets them go on.
type Hold struct {
	On bool `json:"on"`
	// Turn only grows from one Hold to the next, also over restarts of the driver: one that
	// comes late, after a later one, is not obeyed.
	Turn uint64 `json:"turn"`
}

// holding is what an attempt was told of that last, and who waits until it is so.
type holding struct {
	Hold
	waiting []func(error)
}

// suspendAll tells every member. done is called once all are as they were told to be, or are ending:
// on the member's goroutine, once.
func (g *gang) suspendAll(h Hold, done func(error)) {
	switch {
	case g.decided != attempt.EntryGo:
		done(fault.New(fault.Conflict, "attempt %s has not started", g.plan.Ref))
		return
	case h.Turn < g.held.Turn:
		done(fault.New(fault.Conflict, "attempt %s was told otherwise since", g.plan.Ref))
		return
	case h.Turn > g.held.Turn:
		for _, f := range g.held.waiting {
			f(fault.New(fault.Conflict, "attempt %s was told otherwise meanwhile", g.plan.Ref))
		}
		g.held = holding{Hold: h}
	}
	g.held.waiting = append(g.held.waiting, done)
	g.settleHold()
}

// settleHold tells those members that have not heard of the last Hold, and answers who waits if all
// are as it says.
func (g *gang) settleHold() {
	all := true
	for _, p := range g.parts {
		if p.isGone() || p.state.Phase >= engine.Ending || p.state.Turn >= g.held.Turn && p.state.Held == g.held.On {
			continue
		}
		all = false
		if p.state.Phase == engine.Running && p.link != nil && p.turn < g.held.Turn {
			p.turn = g.held.Turn
			op := attempt.OpResume
			if g.held.On {
				op = attempt.OpSuspend
			}
			p.sendCommand(attempt.Command{Op: op, Ref: g.plan.Ref, Turn: g.held.Turn})
		}
	}
	if all || g.end != nil {
		for _, f := range g.held.waiting {
			f(nil)
		}
		g.held.waiting = nil
	}
}
