package kit

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/watchcache"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Reports answers the calls of engine.Engine that need only the last reports. A driver embeds it.
type Reports struct {
	engine string
	cache  *watchcache.Cache
	closed <-chan struct{}
}

// NewReports answers from a cache, until the engine of this name is closed.
func NewReports(name string, c *watchcache.Cache, closed <-chan struct{}) *Reports {
	return &Reports{engine: name, cache: c, closed: closed}
}

// Inspect reports one attempt.
func (r *Reports) Inspect(ctx context.Context, ref engine.Ref) (engine.Report, error) {
	if err := ctx.Err(); err != nil {
		return engine.Report{}, err
	}
	last, ok := r.cache.Last(ref)
	if !ok {
		return last, UnknownAttempt(r.engine, ref)
	}
	return last, nil
}

// List reports every attempt.
func (r *Reports) List(ctx context.Context) ([]engine.Report, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r.cache.All(), nil
}

// Watch follows changes; see engine.Engine.
func (r *Reports) Watch(ctx context.Context, after string, f func(engine.Event) error) error {
	if err := r.cache.Watch(ctx, r.closed, after, f); err != nil {
		return err
	}
	return Closed(r.engine)
}

// UnknownAttempt is the error of a call for an attempt that the engine of this name does not have.
func UnknownAttempt(name string, ref engine.Ref) error {
	return fault.New(fault.NotFound, "the %s engine has no attempt %s", name, ref)
}

// Closed is the error of a call to the engine of this name after its Close.
func Closed(name string) error {
	return fault.New(fault.Unavailable, "the %s engine is closed", name)
}
