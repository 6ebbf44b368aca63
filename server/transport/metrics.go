package transport

import (
	"sync/atomic"
	"time"
)

// Metrics are the server's own counters.
type Metrics struct {
	Routes   []*RouteCount
	Panics   atomic.Uint64
	Refused  atomic.Uint64 // requests refused for who asked
	Cut      atomic.Uint64 // watchers that did not read
	Watchers atomic.Int64
	Waiters  atomic.Int64
	Conns    atomic.Int64

	other *RouteCount // requests that matched no route
}

// RouteCount counts the requests of one route.
type RouteCount struct {
	Name  string
	Codes [600]atomic.Uint64 // by status
	Took  [len(Bounds) + 1]atomic.Uint64
	Nanos atomic.Uint64
}

// Bounds are those of RouteCount.Took, in seconds.
var Bounds = [...]float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10, 60}

func newMetrics() *Metrics {
	m := &Metrics{}
	m.other = m.routeCounters("other")
	return m
}

func (m *Metrics) routeCounters(name string) *RouteCount {
	r := &RouteCount{Name: name}
	m.Routes = append(m.Routes, r)
	return r
}

func (m *Metrics) countRequest(c *Call, took time.Duration) {
	r := m.other
	if c.route != nil {
		r = c.route.count
	}
	if st := c.W.Status; st > 0 && st < len(r.Codes) {
		r.Codes[st].Add(1)
	}
	i := 0
	for i < len(Bounds) && took.Seconds() > Bounds[i] {
		i++
	}
	r.Took[i].Add(1)
	r.Nanos.Add(uint64(took))
}
