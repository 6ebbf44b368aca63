package slurm

import (
	"context"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
)

// Suspending is an Engine whose jobs can be suspended. Slurm lets root and its operators do
// that alone, and slurmrestd has no call for it.
type Suspending struct{ *Engine }

var _ engine.Suspender = Suspending{}

// Open is New for a caller who asks for abilities: the engine is a Suspender where
// Config.Privileged says that it may suspend, and the way in can.
func Open(cfg Config) (engine.Engine, error) {
	e, err := New(cfg)
	if err != nil {
		return nil, err
	}
	if e.cfg.canSuspend() {
		return Suspending{e}, nil
	}
	return e, nil
}

// canSuspend reports whether jobs can be suspended.
func (c *Config) canSuspend() bool {
	s, ok := c.Site.(site.Limited)
	return c.Privileged && (!ok || s.Suspends())
}

// Suspend holds every process of an attempt.
func (s Suspending) Suspend(ctx context.Context, ref engine.Ref) error {
	return s.requestSuspend(ctx, ref, true)
}

// Resume lets them go on.
func (s Suspending) Resume(ctx context.Context, ref engine.Ref) error {
	return s.requestSuspend(ctx, ref, false)
}
