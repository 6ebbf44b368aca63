package pools

import (
	"context"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// NewUnopened makes a pool whose engine could not be opened. What its engine said when it was
// added still holds.
func NewUnopened(spec state.PoolSpec, why error) Pool {
	return Pool{
		Pool: fleet.Pool{Name: spec.Name, Engine: spec.Engine}, Engine: Unopened{Missing{spec.Name}, why},
		Elastic: spec.Elastic, Delegated: spec.Delegated,
	}
}

// OpenFailure is why the engine could not be opened; nil: it was.
func (p *Pool) OpenFailure() error {
	if b, ok := p.Engine.(Unopened); ok {
		return b.why
	}
	return nil
}

func (b Unopened) openError() error {
	return fault.New(fault.Unavailable, "pool %s: %w", b.pool, b.why)
}

func (b Unopened) Info(context.Context) (engine.Info, error) {
	return engine.Info{}, b.openError()
}

func (b Unopened) Nodes(context.Context) ([]fleet.Node, error) { return nil, b.openError() }

func (b Unopened) Launch(context.Context, *engine.Launch) error { return b.openError() }

func (b Unopened) List(context.Context) ([]engine.Report, error) { return nil, b.openError() }

// IsNameTaken reports whether there is a pool of that name that is more than a place for what
// the ledger holds in it.
func (ps *Set) IsNameTaken(name string) bool {
	p := ps.ByName(name)
	return p != nil && !p.IsUnconfigured()
}

// IsUnconfigured reports whether a pool is only there for what the ledger holds in it.
func (p *Member) IsUnconfigured() bool {
	_, gone := p.Engine.(Missing)
	return gone
}
