package local

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.Relimiter = (*Engine)(nil)

// limitPatience is how long Relimit waits for the supervisors. It is short: a stop may be next.
const limitPatience = time.Second

// Relimit changes the time limit of an attempt; see engine.Relimiter. It returns when the
// supervisors have the limit in their journals; fault.Unavailable: one has not said so yet. An
// attempt whose barrier is closed is told when it opens.
func (e *Engine) Relimit(ctx context.Context, ref engine.Ref, limit time.Duration) error {
	written := make(chan struct{})
	var ended <-chan struct{}
	err := e.askGang(ctx, ref, func(g *gang) error {
		ended = g.done
		if g.ended || g.decided == attempt.EntryAbort {
			close(written)
			return nil
		}
		g.newLimit = &limit
		if g.decided != attempt.EntryGo {
			close(written)
			return nil
		}
		g.tellLimit()
		g.limitWaiters = append(g.limitWaiters, written)
		return nil
	})
	if err != nil || ended == nil { // nil: it has just ended
		return err
	}
	patience := time.NewTimer(limitPatience)
	defer patience.Stop()
	select {
	case <-written:
	case <-ended:
	case <-ctx.Done():
		return ctx.Err()
	case <-e.ctx.Done():
		return fault.New(fault.Unavailable, "the local engine is closed")
	case <-patience.C:
		return fault.New(fault.Unavailable, "attempt %s: a supervisor has not written down its time limit yet", ref)
	}
	return nil
}

// tellLimit tells a limit that was changed to the supervisors that do not have it.
func (g *gang) tellLimit() {
	if g.newLimit == nil {
		return
	}
	for _, p := range g.parts {
		if !p.hasLimit(*g.newLimit) {
			p.sendCommand(attempt.Command{Op: attempt.OpLimit, Limit: *g.newLimit})
		}
	}
	g.planLimit()
}

// hasLimit reports whether a supervisor has written down a limit, or never needs to.
func (p *nodeAttempt) hasLimit(limit time.Duration) bool {
	return p.isGone() || p.state.Phase > engine.Running || p.state.Limit != nil && *p.state.Limit == limit
}

// answerLimitWaiters tells who waits for a new limit once every supervisor has it.
func (g *gang) answerLimitWaiters() {
	if len(g.limitWaiters) == 0 || !g.allAttempts(func(p *nodeAttempt) bool { return p.hasLimit(*g.newLimit) }) {
		return
	}
	for _, written := range g.limitWaiters {
		close(written)
	}
	g.limitWaiters = nil
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
