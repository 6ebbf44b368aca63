package control

import (
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// PoolView is a pool as people see it.
type PoolView struct {
	fleet.Pool
	Default  bool            // jobs that name none go there
	Answered bool            // it has said which nodes it has
	Gone     bool            // not configured any more; only what the ledger holds there is left
	Broken   error           // why it could not be opened
	Added    *state.PoolSpec // nil: it is of the configuration
	Nodes    int
	Devices  int
	Declared int // of its devices, those that are numbers without hardware

	Delegated bool // its engine's own scheduler chooses the nodes

	Info   *engine.Info // what its engine last said of itself; nil: nothing yet
	Heard  time.Time    // when the engine last answered all that it was asked
	Failed error        // why the last question got no answer; nil: it did
	Since  time.Time    // with Failed: when the first was asked of the questions that got none since
	Asked  time.Time    // of the question that waits for its answer; zero: none does

	Pulses bool      // its engine is asked for a sign of life every few seconds
	Quiet  time.Time // since when it was asked for one and gave none, the question that waits for its answer among them; zero: it gave one
	Hush   error     // why there was none; nil: there was one, or nobody knows
}

// engineStatus is what an engine has answered, and whether it does. It is safe for concurrent use.
type engineStatus struct {
	mu     sync.Mutex
	info   *engine.Info
	heard  time.Time
	failed error
	asked  time.Time
	last   time.Time // when it was last asked
	since  time.Time // with failed: when the first was asked that failed

	quiet time.Time     // when it was first asked for a sign of life of the times since when there was none
	hush  error         // why there was none
	pause time.Duration // with failed: how long it is not asked again by a sign of life; grows while it lives and fails
}

// noteAsked says that the engine is being asked.
func (s *engineStatus) noteAsked(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.last = now, now
}

// noteAnswer takes in an answer. One that failed leaves what was known before.
func (s *engineStatus) noteAnswer(now time.Time, info engine.Info, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Time{}
	s.setFailure(err)
	if err == nil {
		s.info, s.heard = &info, now
	}
}

// noteFailure takes in that the engine does not answer, while more is asked of it.
func (s *engineStatus) noteFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setFailure(err)
}

func (s *engineStatus) fillView(v *PoolView) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.Info, v.Heard, v.Failed, v.Since, v.Asked, v.Quiet, v.Hush = s.info, s.heard, s.failed, s.since, s.asked, s.quiet, s.hush
}

// AddedEngine is the engine of a pool that was added while a server ran, for what an engine
// can do beside running work (engine.Logger, engine.Execer). It is not to be closed. nil:
// the pool is of the configuration, or there is none of that name.
func (c *Control) AddedEngine(pool string) engine.Engine {
	if p := c.pools.byName(pool); p != nil && p.own {
		return p.Engine
	}
	return nil
}

// Pools lists the pools that are configured and those that were added. No engine is asked.
func (c *Control) Pools() []PoolView {
	c.state.RLock()
	defer c.state.RUnlock()
	all := c.pools.allPools()
	out := make([]PoolView, len(all))
	at := make(map[string]*PoolView, len(all))
	for i, p := range all {
		v := &out[i]
		*v = PoolView{Pool: p.Pool.Pool, Default: i == 0, Answered: p.known, Gone: p.isUnconfigured()}
		v.Broken = p.openFailure()
		if s, ok := c.state.Pools[p.Name]; ok {
			v.Added = &s
		}
		v.Pulses = p.hasHeartbeat()
		p.status.fillView(v)
		at[p.Name] = v
	}
	for _, n := range c.state.Nodes.All() {
		if v := at[n.Pool]; v != nil {
			v.Nodes++
			v.Devices += len(n.Devices)
			for k := range n.Devices {
				if n.Devices[k].Declared {
					v.Declared++
				}
			}
		}
	}
	for i, p := range all {
		if v := &out[i]; p.Delegated {
			v.Delegated = true
			v.Nodes, v.Devices = len(p.real.nodes), 0
			for k := range p.real.nodes {
				v.Devices += len(p.real.nodes[k].Devices)
			}
		}
	}
	return out
}
