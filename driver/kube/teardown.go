package kube

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Leave is engine.Leaver's: it waits until no pod has our finalizer any more, deletes the roots that are
// left, and gives back the nodes that were kept. fault.Conflict: there are pods of which nobody can
// say whether they ended.
func (e *Engine) Leave(ctx context.Context) error {
	if e.cfg.Trial {
		return nil
	}
	return errors.Join(e.clearCluster(ctx), e.releaseReservedNodes(ctx))
}

// clearCluster has everything gone that attempts have left in the cluster. None is launched any more.
func (e *Engine) clearCluster(ctx context.Context) error {
	e.mu.Lock()
	e.wakeCleanup()
	e.mu.Unlock()
	for {
		e.mu.Lock()
		left := make([]string, 0, len(e.graves))
		for name := range e.graves {
			left = append(left, name)
		}
		roots := map[engine.Ref]string{}
		for ref, a := range e.attempts {
			if roots[ref] = a.namespace; !a.ended {
				left = append(left, "attempt "+ref.String())
			}
		}
		e.mu.Unlock()
		if len(left) == 0 {
			for ref, namespace := range roots {
				if err := e.deleteRoot(ctx, namespace, ref); err != nil {
					return err
				}
			}
			return nil
		}
		select {
		case <-e.buried:
		case <-ctx.Done():
			slices.Sort(left)
			return fault.New(fault.Conflict, "%s: %w", strings.Join(left, ", "), ctx.Err()).
				Advise("look whether they have ended; then: kubectl patch pod NAME --type=merge -p '{\"metadata\":{\"finalizers\":null}}'")
		}
	}
}
