package pools

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Missing is the engine of a pool that the ledger names and the configuration does not: every
// answer is that the pool is not configured.
type Missing struct{ pool string }

func (a Missing) notConfigured() error {
	return fault.New(fault.Unavailable, "pool %s is not configured", a.pool).Advise("add the pool again: what runs there is then found, and what has ended is freed")
}

func (a Missing) Info(context.Context) (engine.Info, error) {
	return engine.Info{}, a.notConfigured()
}

func (a Missing) Nodes(context.Context) ([]fleet.Node, error) { return nil, a.notConfigured() }

func (a Missing) Launch(context.Context, *engine.Launch) error { return a.notConfigured() }

func (a Missing) Stop(context.Context, engine.Ref, engine.Stop) error { return a.notConfigured() }

func (a Missing) Signal(context.Context, engine.Ref, int, engine.Scope) error {
	return a.notConfigured()
}

func (a Missing) Inspect(context.Context, engine.Ref) (engine.Report, error) {
	return engine.Report{}, a.notConfigured()
}

func (a Missing) List(context.Context) ([]engine.Report, error) { return nil, a.notConfigured() }

func (a Missing) Forget(context.Context, engine.Ref) error { return a.notConfigured() }

func (a Missing) Close() error { return nil }

// Watch waits until ctx ends: there is nothing to report.
func (a Missing) Watch(ctx context.Context, _ string, _ func(engine.Event) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// Unopened is the engine of a pool that could not be opened: every answer is why.
type Unopened struct {
	Missing
	why error
}
