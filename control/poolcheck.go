package control

import (
	"context"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// CheckPool looks at a pool that might be added: its engine is opened for the look alone.
// What is wrong with the pool is a finding; errors are those of AddPool.
func (c *Control) CheckPool(ctx context.Context, spec state.PoolSpec) (*pools.Check, error) {
	if err := pools.CheckName(spec.Name); err != nil {
		return nil, err
	}
	if c.pools.IsNameTaken(spec.Name) {
		return nil, pools.NameTaken(spec.Name)
	}
	spec.Trial = true
	p, err := c.cfg.openPool(ctx, spec)
	if err != nil {
		return nil, err
	}
	out := pools.CheckEngine(ctx, spec.Name, p.Engine, c.findOverlap)
	if err := p.Engine.Close(); err != nil {
		c.cfg.Log.Warn("a pool's engine does not close well", "pool", spec.Name, "error", err)
	}
	return out, nil
}

// RecheckPool looks at a pool that is there.
func (c *Control) RecheckPool(ctx context.Context, name string) (*pools.Check, error) {
	p := c.pools.ByName(name)
	if p == nil {
		return nil, c.pools.NoSuchPool(name)
	}
	return pools.CheckEngine(ctx, name, p.Engine, c.findOverlap), nil
}

// findOverlap looks for nodes of a pool that other pools have.
func (c *Control) findOverlap(pool string, nodes []fleet.Node) pools.Overlap {
	c.state.RLock()
	defer c.state.RUnlock()
	return pools.FindOverlap(pool, c.state.Nodes, nodes)
}
