package gateway

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// Source is the server as a gateway sees it; *client.Client is one.
type Source interface {
	// WatchRoutes calls f with all routes, then with every change, until ctx ends, f fails, or the
	// connection breaks.
	WatchRoutes(ctx context.Context, f func(api.GatewayRoutes) error) error
	// PutLoad posts what the gateway counts.
	PutLoad(ctx context.Context, l api.GatewayLoad) error
}

// Times of the talk with the server.
const (
	postEvery  = time.Second
	postSooner = 50 * time.Millisecond // between two posts when something happened that the server waits for
	postTime   = 5 * time.Second       // of one post
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// followRoutes takes over routes until ctx ends. Without the server it goes on with those it has.
func (g *Server) followRoutes(ctx context.Context) {
	pause := firstPause
	for ctx.Err() == nil {
		err := g.cfg.Source.WatchRoutes(ctx, func(r api.GatewayRoutes) error {
			if !g.connected.Swap(true) {
				g.cfg.Log.Info("the server tells routes", "services", len(r.Services))
			}
			pause = firstPause
			g.Apply(r)
			g.noteRoutes()
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		if g.connected.Swap(false) || pause == firstPause {
			g.cfg.Log.Warn("the server does not tell routes; going on with those that are known", "err", err)
		}
		sleepContext(ctx, pause)
		pause = min(2*pause, lastPause)
	}
}

// postLoads posts the load each second, and sooner after postSoon, until ctx ends.
func (g *Server) postLoads(ctx context.Context) {
	tick := time.NewTicker(postEvery)
	defer tick.Stop()
	for failed := false; ctx.Err() == nil; {
		err := g.postLoad(ctx, g.load())
		if err != nil && !failed && ctx.Err() == nil {
			g.cfg.Log.Warn("the load could not be posted; trying again each second", "err", err)
		}
		failed = err != nil
		g.access.flush()
		if !failed { // with a server that does not answer there is no hurry
			sleepContext(ctx, postSooner)
			select {
			case <-g.soon:
				continue
			default:
			}
		}
		soon := g.soon
		if failed {
			soon = nil
		}
		select {
		case <-tick.C:
		case <-soon:
		case <-ctx.Done():
		}
	}
}

func (g *Server) postLoad(ctx context.Context, l api.GatewayLoad) error {
	ctx, cancel := context.WithTimeout(ctx, postTime)
	defer cancel()
	return g.cfg.Source.PutLoad(ctx, l)
}

// postSoon has the load posted before its second is over.
func (g *Server) postSoon() {
	select {
	case g.soon <- struct{}{}:
	default:
	}
}

// load is what the gateway counts. The version of the routes is read first: what was sent by older
// routes is counted.
func (g *Server) load() api.GatewayLoad {
	l := api.GatewayLoad{Gateway: g.identity, Routes: g.version.Load(), Services: []api.ServiceLoad{}}
	g.applying.Lock()
	defer g.applying.Unlock()
	for _, s := range g.table.Load().named {
		l.Services = append(l.Services, s.load())
	}
	for _, s := range g.leaving {
		l.Services = append(l.Services, s.load())
	}
	return l
}

// sleepContext waits, or until ctx ends.
func sleepContext(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func newIdentity() string { return "g-" + rand.Text()[:12] }
