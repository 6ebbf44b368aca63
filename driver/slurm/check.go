package slurm

import (
	"context"

	"github.com/coxswain-sched/coxswain/driver/slurm/preflight"
	"github.com/coxswain-sched/coxswain/engine"
)

var _ engine.Checker = (*Engine)(nil)

// Check looks at the cluster, at what the pool may do there, and at the directory of locks (package
// preflight).
func (e *Engine) Check(ctx context.Context) ([]engine.Finding, error) {
	c := &e.cfg
	return preflight.Run(ctx, preflight.Config{
		Pool: c.Pool, Site: c.Site, Locks: c.Room, OnNodes: e.blind, Options: c.Options, Containers: c.Containers,
		Privileged: c.Privileged, Suspends: c.canSuspend(), RefusesRoot: c.Identity.Mode != AsService && !c.Identity.Root,
		Identity: e.owners.findings, Patience: c.Patience, Longest: c.Longest, Log: c.Log,
	})
}
