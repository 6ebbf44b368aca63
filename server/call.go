package server

import (
	"github.com/coxswain-sched/coxswain/server/transport"
)

// call is one request that is being answered by a handler of this package.
type call struct {
	*transport.Call
	s *Server
}

// addRoute registers a route whose answer is JSON; a nil answer is 204.
func addRoute[I, O any](s *Server, r transport.Route, h func(c *call, in *I) (*O, error)) {
	transport.AddRoute(s.Server, r, func(c *transport.Call, in *I) (*O, error) { return h(&call{c, s}, in) })
}

// addStreamRoute registers a route that writes its answer itself. An error that it returns
// before it wrote anything is the answer.
func addStreamRoute[I any](s *Server, r transport.Route, h func(c *call, in *I) error) {
	transport.AddStreamRoute(s.Server, r, func(c *transport.Call, in *I) error { return h(&call{c, s}, in) })
}
