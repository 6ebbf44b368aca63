package controller

import (
	"strings"

	"github.com/coxswain-sched/coxswain/api"
)

// noToken is the hash of no token: a request cannot bear it.
const noToken = "none"

// routeOf is how gateways find a service, without its backends.
func (c *Controller) routeOf(m *managed) api.ServiceRoute {
	spec := c.wanted(m)
	r := &spec.Route
	out := api.ServiceRoute{
		Service: m.name, Host: spec.HostName(), Path: strings.TrimSuffix(r.Path, "/"), Weights: m.last.Weights,
		Timeout: r.Timeout, Sticky: r.Sticky, Rate: r.Rate, Held: r.Held, H2C: r.H2C,
		Want:   m.doc.Want,
		Asleep: m.doc.Want == 0 && spec.Scale != nil && !m.doc.Stopping,
	}
	if len(r.Tokens) == 0 {
		return out
	}
	out.Tokens = []string{noToken}
	if c.cfg.Tokens == nil {
		m.tokenTrouble = "this server keeps no secrets, so the route answers nobody"
		return out
	}
	tokens, err := c.cfg.Tokens(spec.Owner, r.Tokens)
	switch {
	case err != nil:
		m.tokenTrouble = "the route answers nobody: " + err.Error()
	case len(tokens) > 0:
		out.Tokens, m.tokenTrouble = tokens, ""
	}
	return out
}

// setRoute tells gateways how to find a service.
func (c *Controller) setRoute(m *managed) {
	c.cfg.Hub.SetService(c.routeOf(m), c.wanted(m).Route.Port)
}
