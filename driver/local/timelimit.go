package local

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.Relimiter = (*Engine)(nil)

// Relimit changes the time limit of an attempt; see engine.Relimiter. The supervisors keep it in
// their journals.
func (e *Engine) Relimit(ctx context.Context, ref engine.Ref, limit time.Duration) error {
	return e.askGang(ctx, ref, func(g *gang) error {
		if g.ended || g.decided == attempt.EntryAbort {
			return nil
		}
		g.newLimit = &limit
		if g.decided == attempt.EntryGo && !g.tellLimit() {
			return fault.New(fault.Unavailable, "attempt %s: a supervisor is too far behind to be told its time limit", g.launch.Ref)
		}
		return nil
	})
}

// tellLimit tells the supervisors a limit that was changed.
func (g *gang) tellLimit() bool {
	if g.newLimit == nil {
		return true
	}
	all := true
	for _, p := range g.parts {
		all = (p.isGone() || p.sendCommand(attempt.Command{Op: attempt.OpLimit, Limit: *g.newLimit})) && all
	}
	g.planLimit()
	return all
}

// timeLimit is the limit of the attempt, 0: none.
func (g *gang) timeLimit() time.Duration {
	switch said := g.parts[0].state.Limit; {
	case g.newLimit != nil:
		return *g.newLimit
	case said != nil:
		return *said
	}
	return g.launch.Job.Spec.TimeLimit
}

// planLimit sets the moment at which the time limit is enforced from here. The supervisors
// have seen to it before, unless they hang: they know best how long the attempt was suspended.
func (g *gang) planLimit() {
	g.limit.Stop()
	if limit := g.timeLimit(); limit > 0 && g.decided == attempt.EntryGo {
		g.limit.Reset(time.Until(g.started.Add(limit + g.launch.Grace + g.e.cfg.Overdue)))
	}
}

// enforceLimit ends an attempt that runs although its time limit has long passed. A
// supervisor that does not act on that is ended.
func (g *gang) enforceLimit() {
	head := g.parts[0]
	limit := g.timeLimit()
	switch {
	case g.cause != "" || head.dead || head.state.Phase >= engine.Ending || limit == 0:
		return
	case time.Since(g.started) < limit:
		g.planLimit()
		return
	}
	for _, p := range g.parts {
		if p.state.Turn > 0 {
			return // it was suspended, and only its supervisor knows for how long
		}
	}
	g.cause, g.text = engine.TimedOut, attempt.LimitText(limit)
	g.tellAll(attempt.Command{Op: attempt.OpStop, Grace: g.launch.Grace, Cause: g.cause, Text: g.text})
}
