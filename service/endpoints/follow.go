package endpoints

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
)

// followAgain is how long Follow waits before it watches an engine again that failed.
const followAgain = time.Second

// Follow takes over what an engine says of endpoints, until ctx ends. An engine that fails is watched
// again; what it said before holds meanwhile.
func (h *Hub) Follow(ctx context.Context, pool string, e engine.EndpointWatcher) {
	for ctx.Err() == nil {
		err := e.WatchEndpoints(ctx, func(told engine.Endpoints) error {
			h.SetEndpoints(told)
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		h.cfg.Log.Warn("endpoints of a pool cannot be watched; trying again", "pool", pool, "err", err)
		select {
		case <-time.After(followAgain):
		case <-ctx.Done():
		}
	}
}
