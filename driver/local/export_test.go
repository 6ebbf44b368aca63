package local

import (
	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Closed reports whether the engine was closed.
func (e *Engine) Closed() bool { return e.ctx.Err() != nil }

// Root is the engine's state directory.
func (e *Engine) Root() string { return e.cfg.Root }

// Room is what the engine runs on.
func (e *Engine) Room() []fleet.Node { return e.cfg.Nodes }

// DropIdle ends the supervisors that have no attempt.
func (e *Engine) DropIdle() { e.pool.dropSlots() }

// Idle are the processes of supervisors that have no attempt.
func (e *Engine) Idle() (pids []int) {
	e.pool.mu.Lock()
	defer e.pool.mu.Unlock()
	for _, s := range e.pool.idle {
		pids = append(pids, s.Identity.PID)
	}
	return pids
}

// SwapLog has another log take the place of the engine's, which it returns. No attempt lives.
func (e *Engine) SwapLog(by *attempt.Log) *attempt.Log {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.log
	e.log = by
	return was
}
