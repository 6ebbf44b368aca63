package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// keepEvery is the least time between two writes of the routes.
const keepEvery = time.Second

// keptRoutes is the file of the last routes.
type keptRoutes struct {
	Boot   string            `json:"boot"` // of the machine: addresses of before are other programs' after it
	Routes api.GatewayRoutes `json:"routes"`
}

// bootID names the boot of this machine; "" where the system does not say.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(id))
}

func (g *Server) keptFile() string { return filepath.Join(g.cfg.StateDir, "routes.json") }

// loadKept takes up the routes of before. A file that cannot be read is as none: the server tells them.
func (g *Server) loadKept() error {
	if g.cfg.StateDir == "" {
		return nil
	}
	if err := os.MkdirAll(g.cfg.StateDir, 0o700); err != nil {
		return fault.New(fault.KindOf(err), "folder of the gateway: %w", err).Advise("name one that you may write to with --state-dir")
	}
	text, err := os.ReadFile(g.keptFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var kept keptRoutes
	if err == nil {
		err = json.Unmarshal(text, &kept)
	}
	if err != nil {
		g.cfg.Log.Warn("the routes of before cannot be read; waiting for the server", "err", err)
		return nil
	}
	if kept.Boot != bootID() {
		for i := range kept.Routes.Services {
			kept.Routes.Services[i].Backends = nil
		}
	}
	kept.Routes.Reset = true
	g.Apply(kept.Routes)
	return nil
}

// noteRoutes has the routes written.
func (g *Server) noteRoutes() {
	select {
	case g.unkept <- struct{}{}:
	default:
	}
}

// keepRoutes writes the routes when they have changed, until ctx ends.
func (g *Server) keepRoutes(ctx context.Context) {
	for {
		select {
		case <-g.unkept:
		case <-g.over: // the file is the other gateway's
			return
		case <-ctx.Done():
			return
		}
		if err := g.writeRoutes(); err != nil {
			g.cfg.Log.Warn("the routes could not be written: after a restart without a server the gateway would not know them", "err", err)
		}
		sleepContext(ctx, keepEvery)
	}
}

// writeRoutes writes the file, which only its owner can read: it has the sums of tokens.
func (g *Server) writeRoutes() error {
	text, err := json.Marshal(keptRoutes{Boot: bootID(), Routes: g.Routes()})
	if err != nil {
		return err
	}
	next := g.keptFile() + ".new"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return os.Rename(next, g.keptFile())
}

// Routes are the routes that are in force.
func (g *Server) Routes() api.GatewayRoutes {
	g.applying.Lock()
	defer g.applying.Unlock()
	r := api.GatewayRoutes{Version: g.version.Load(), Reset: true}
	for _, s := range g.table.Load().named {
		r.Services = append(r.Services, s.routeNow())
	}
	return r
}

// routeNow is the route of a service with its backends.
func (s *service) routeNow() api.ServiceRoute {
	route := s.settings.Load().route
	s.mu.Lock()
	defer s.mu.Unlock()
	route.Backends = []api.Backend{}
	for _, b := range s.backends {
		if b.listed {
			is := b.Backend
			is.Ready = b.ready
			route.Backends = append(route.Backends, is)
		}
	}
	return route
}
