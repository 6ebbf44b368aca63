package services

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/server/transport"
)

// Hub tells routes and takes load; *endpoints.Hub is one.
type Hub interface {
	WatchRoutes(ctx context.Context, f func(api.GatewayRoutes) error) error
	PutLoad(l api.GatewayLoad)
}

// linesType is the media type of a stream of JSON, one value a line.
const linesType = "application/x-ndjson"

// registerGateway adds the routes that gateways use.
func (s *Service) registerGateway(t *transport.Server) {
	transport.AddStreamRoute(t, transport.Route{
		Method: http.MethodGet, Path: "/v1/gateway/routes", Verb: auth.Gateway, ID: "gatewayRoutes", Tag: "services", Lasts: true,
		Media: []string{linesType}, Answer: transport.TypeOf[api.GatewayRoutes](),
		Summary: "The routes of gateways, and their changes",
		About: "One JSON value a line, the first with all routes, each after it with what has changed. An empty line is a heartbeat. " +
			"After a start of the server the first line comes when the engines have said where replicas serve.",
	}, func(c *call, _ *transport.Nothing) error { return s.writeRoutes(c) })
	transport.AddRoute(t, transport.Route{
		Method: http.MethodPost, Path: "/v1/gateway/load", Verb: auth.Gateway, ID: "gatewayLoad", Tag: "services", Status: http.StatusNoContent,
		Body: transport.TypeOf[api.GatewayLoad](), Summary: "What a gateway counts, each second",
		Example: &api.GatewayLoad{Gateway: "g-1", Routes: 7, Services: []api.ServiceLoad{{Service: "team/chat", Requests: 120, Latency: []uint64{0, 0, 4, 30, 60, 20, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}, InFlight: map[string]int{"12.1": 3}}}},
	}, func(c *call, _ *transport.Nothing) (*transport.None, error) {
		if s.cfg.Hub == nil {
			return nil, refuseServices()
		}
		l, err := transport.DecodeBody[api.GatewayLoad](c)
		switch {
		case err != nil:
			return nil, err
		case l.Gateway == "":
			return nil, fault.New(fault.Invalid, "gateway: the name of the gateway is missing").Advise("give one that is new with each start of the gateway")
		}
		s.cfg.Hub.PutLoad(*l)
		return nil, nil
	})
}

// writeRoutes writes routes until the gateway goes.
func (s *Service) writeRoutes(c *call) error {
	if s.cfg.Hub == nil {
		return refuseServices()
	}
	ctx, cancel := c.WatchSession(c.Ctx())
	defer cancel()
	h := c.W.Header()
	h.Set("Content-Type", linesType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.W.WriteHeader(http.StatusOK)
	w := &lineWriter{c: c, ctl: http.NewResponseController(c.W.ResponseWriter), stall: s.cfg.Stall}
	if w.writeLine(nil) != nil {
		return nil
	}
	var beat sync.WaitGroup
	defer beat.Wait()
	defer cancel()
	beat.Go(func() {
		tick := time.NewTicker(s.cfg.Heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if w.writeLine(nil) != nil {
					cancel()
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	_ = s.cfg.Hub.WatchRoutes(ctx, func(r api.GatewayRoutes) error { // it ends when the gateway has gone
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return w.writeLine(line)
	})
	return nil
}

// lineWriter writes lines to a gateway, and gives up on one that does not read.
type lineWriter struct {
	mu    sync.Mutex
	c     *call
	ctl   *http.ResponseController
	stall time.Duration
}

func (w *lineWriter) writeLine(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.ctl.SetWriteDeadline(time.Now().Add(w.stall)) // a recorder of a test has none
	if _, err := w.c.W.Write(append(line, '\n')); err != nil {
		return err
	}
	return w.ctl.Flush()
}
