package gateway

import (
	"context"
	"net/http"
	"time"
)

// HandOver ends the gateway for one that has taken over its listeners (internal/handover). Nobody waits
// for its end, so it has time: each client of HTTP/1 is asked to make a new connection with its next
// answer, and each of HTTP/2 with its next request, because a connection that is closed while it is
// idle may lose the request that is just under way. What is idle for Limits.Idle is closed, as ever.
// It may be called once, by any goroutine.
func (g *Server) HandOver() {
	g.succeeded.Store(true)
	close(g.over)
}

// sendClientAway has a client make a new connection, if another gateway has taken over.
func (g *Server) sendClientAway(w http.ResponseWriter, r *http.Request) {
	if g.succeeded.Load() && r.Header.Get("Upgrade") == "" {
		w.Header().Set("Connection", "close")
	}
}

// awaitClients waits until all clients have gone, ctx ends, or those that are left were silent for long.
func (g *Server) awaitClients(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(g.cfg.Limits.Idle + time.Second)
	defer late.Stop()
	for g.metrics.open.Load() > 0 {
		select {
		case <-tick.C:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}
