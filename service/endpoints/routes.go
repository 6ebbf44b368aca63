package endpoints

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/engine"
)

// settleWithin is how long after Complete routes are held back for engines that have not said where
// running replicas serve: a gateway goes on with what it knew meanwhile.
const settleWithin = 10 * time.Second

// Complete says that SetService and SetReplica were called for everything that there is. Gateways get
// routes once the engines have spoken of each running replica, or 10 seconds after this call. Without
// that a restart of the server would take replicas that serve away from gateways for a moment.
func (h *Hub) Complete() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.complete.IsZero() {
		h.complete = h.cfg.Now()
	}
	h.settleIfKnown()
}

// settleIfKnown lets routes be given out when everything is known.
func (h *Hub) settleIfKnown() {
	select {
	case <-h.settled:
		return
	default:
	}
	if h.complete.IsZero() {
		return
	}
	if h.cfg.Now().Sub(h.complete) < settleWithin {
		for _, r := range h.replicas {
			if _, ok := h.told[r.Ref]; r.Running && !ok {
				return
			}
		}
	}
	close(h.settled)
}

// WatchRoutes calls f with all routes, and then with what has changed, until ctx ends or f fails. A
// gateway says with its load which version of the routes it knows (api.GatewayLoad.Routes).
func (h *Hub) WatchRoutes(ctx context.Context, f func(api.GatewayRoutes) error) error {
	select {
	case <-h.settled:
	case <-ctx.Done():
		return ctx.Err()
	}
	h.countStreams(1)
	defer h.countStreams(-1)
	for seen := uint64(0); ; {
		routes, wait := h.routesAfter(seen)
		if routes != nil {
			if err := f(*routes); err != nil {
				return err
			}
			seen = routes.Version
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// countStreams notes that a gateway begins to read routes, or ends.
func (h *Hub) countStreams(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streams += n
	h.wakeDrain()
}

// routesAfter returns what changed after a version, nil: nothing; wait is closed with the next change.
func (h *Hub) routesAfter(seen uint64) (routes *api.GatewayRoutes, wait <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if seen == h.version {
		return nil, h.changed
	}
	out := &api.GatewayRoutes{Version: h.version, Reset: seen <= h.lost}
	for _, name := range slices.Sorted(maps.Keys(h.services)) {
		if s := h.services[name]; s.routed && (out.Reset || s.version > seen) {
			out.Services = append(out.Services, h.routeOf(s))
		}
	}
	if !out.Reset {
		for name, v := range h.gone {
			if v > seen {
				out.Gone = append(out.Gone, name)
			}
		}
		slices.Sort(out.Gone)
	}
	return out, h.changed
}

// routeOf is the route of a service with its replicas. One that has an address is listed until its
// attempt has ended, so that what is in flight there is not cut off.
func (h *Hub) routeOf(s *service) api.ServiceRoute {
	route := s.route
	route.Weights = maps.Clone(route.Weights)
	route.Backends = []api.Backend{}
	for _, r := range h.replicasOf(s.name) {
		if at := r.Address(s.port); at != "" {
			route.Backends = append(route.Backends, api.Backend{
				ID: BackendID(r.Ref), Address: at, Replica: r.Index, Revision: r.Revision, Ready: r.Ready,
			})
		}
	}
	return route
}

// BackendID is api.Backend.ID of an attempt.
func BackendID(ref engine.Ref) string { return ref.String() }

func sameRoute(a, b api.ServiceRoute) bool { return reflect.DeepEqual(a, b) }
