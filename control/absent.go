package control

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// missingEngine is the engine of a pool of which the ledger knows and the configuration does
// not: whatever it is asked, the answer is not known.
type missingEngine struct{ pool string }

func (a missingEngine) notConfigured() error {
	return fault.New(fault.Unavailable, "pool %s is not configured", a.pool).Advise("add the pool again: what runs there is then found, and what has ended is freed")
}

func (a missingEngine) Info(context.Context) (engine.Info, error) {
	return engine.Info{}, a.notConfigured()
}

func (a missingEngine) Nodes(context.Context) ([]fleet.Node, error) { return nil, a.notConfigured() }

func (a missingEngine) Launch(context.Context, *engine.Launch) error { return a.notConfigured() }

func (a missingEngine) Stop(context.Context, engine.Ref, engine.Stop) error { return a.notConfigured() }

func (a missingEngine) Signal(context.Context, engine.Ref, int, engine.Scope) error {
	return a.notConfigured()
}

func (a missingEngine) Inspect(context.Context, engine.Ref) (engine.Report, error) {
	return engine.Report{}, a.notConfigured()
}

func (a missingEngine) List(context.Context) ([]engine.Report, error) { return nil, a.notConfigured() }
func (a missingEngine) Forget(context.Context, engine.Ref) error      { return a.notConfigured() }
func (a missingEngine) Close() error                                  { return nil }

// Watch has nothing to tell.
func (a missingEngine) Watch(ctx context.Context, _ string, _ func(engine.Event) error) error {
	<-ctx.Done()
	return ctx.Err()
}
