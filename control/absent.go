package control

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// absent is the engine of a pool of which the ledger knows and the configuration does
// not: whatever it is asked, the answer is not known.
type absent struct{ pool string }

func (a absent) err() error {
	return fault.New(fault.Unavailable, "pool %s is not configured", a.pool).Advise("add the pool again: what runs there is then found, and what has ended is freed")
}

func (a absent) Info(context.Context) (engine.Info, error) { return engine.Info{}, a.err() }

func (a absent) Nodes(context.Context) ([]fleet.Node, error)                 { return nil, a.err() }
func (a absent) Launch(context.Context, *engine.Launch) error                { return a.err() }
func (a absent) Stop(context.Context, engine.Ref, engine.Stop) error         { return a.err() }
func (a absent) Signal(context.Context, engine.Ref, int, engine.Scope) error { return a.err() }
func (a absent) Inspect(context.Context, engine.Ref) (engine.Report, error) {
	return engine.Report{}, a.err()
}

func (a absent) List(context.Context) ([]engine.Report, error) { return nil, a.err() }
func (a absent) Forget(context.Context, engine.Ref) error      { return a.err() }
func (a absent) Close() error                                  { return nil }

// Watch has nothing to tell.
func (a absent) Watch(ctx context.Context, _ string, _ func(engine.Event) error) error {
	<-ctx.Done()
	return ctx.Err()
}
