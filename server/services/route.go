package services

import (
	"strings"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/service"
)

// RouteOf is how gateways find a service, without its backends. hash returns SHA-256 in hex of the value
// of a secret of the service's owner, "" where there is none: a request cannot bear it then.
func RouteOf(name string, s *service.Spec, hash func(secret string) string) api.ServiceRoute {
	r := &s.Route
	out := api.ServiceRoute{
		Service: name, Host: s.HostName(), Path: strings.TrimSuffix(r.Path, "/"),
		Timeout: r.Timeout, Sticky: r.Sticky, Rate: r.Rate, Held: r.Held, H2C: r.H2C,
	}
	for _, secret := range r.Tokens {
		out.Tokens = append(out.Tokens, hash(secret))
	}
	return out
}
