package endpoints

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/engine"
)

// silentAfter is how long a gateway that posts nothing counts.
const silentAfter = 10 * time.Second

// forgetAfter is how long it is remembered after that there was a gateway that became silent.
const forgetAfter = time.Hour

// rateOver is the time over which requests a second are counted.
const rateOver = time.Minute

// Load is what gateways together observe of a service.
type Load struct {
	InFlight int     // requests that were begun and not answered
	Held     int     // requests that wait for a replica
	Rate     float64 // requests a second, over the last minute or since the first gateway posted
	Requests uint64  // begun since the server's start
	Failed   uint64  // of these, answered with 5xx by a replica, or not at all

	FailedRate float64  // of these a second, over the same time as Rate
	Latency    *Latency // of the last minute; nil: unknown

	// LastRequest is when the newest request was seen to be begun, held or in flight; zero: none was
	// since the server's start.
	LastRequest time.Time
	// Known says that a gateway posts. Without one every number is 0 and proves nothing.
	Known bool
}

// totals count a service over all gateways since the start of the hub.
type totals struct {
	requests, failed uint64
	last             time.Time
	samples          []sample // of the last rateOver, one a second at most
	latency          latencyWindow
}

// sample is how many requests had been begun, and had failed, at a time.
type sample struct {
	at               time.Time
	requests, failed uint64
}

// gateway is what one gateway posted last.
type gateway struct {
	at     time.Time
	routes uint64 // version that it knew
	load   map[string]api.ServiceLoad
}

func (g *gateway) isSilent(now time.Time) bool { return now.Sub(g.at) > silentAfter }

// PutLoad takes what a gateway posts.
func (h *Hub) PutLoad(l api.GatewayLoad) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.cfg.Now()
	if l.Leaving {
		delete(h.gateways, l.Gateway)
		h.wakeDrain()
		return
	}
	g := h.gateways[l.Gateway]
	if g == nil {
		g = &gateway{load: map[string]api.ServiceLoad{}}
		h.gateways[l.Gateway] = g
	}
	before := g.load
	g.at, g.routes, g.load = now, l.Routes, make(map[string]api.ServiceLoad, len(l.Services))
	for _, s := range l.Services {
		g.load[s.Service] = s
		if h.services[s.Service] != nil {
			was, known := before[s.Service]
			h.services[s.Service].totals.addLoad(now, was, s, known)
		}
	}
	h.wakeDrain()
}

// addLoad counts what has come since a gateway posted before. What it counted before the hub's start is
// not of now.
func (t *totals) addLoad(now time.Time, was, is api.ServiceLoad, known bool) {
	if !known {
		was = is
	}
	if is.Requests > was.Requests {
		t.requests += is.Requests - was.Requests
	}
	if is.Failed > was.Failed {
		t.failed += is.Failed - was.Failed
	}
	t.latency.add(now, was.Latency, is.Latency)
	if is.Requests > was.Requests || is.Held > 0 || inFlightOf(is) > 0 {
		t.last = now
	}
	if n := len(t.samples); n == 0 || now.Sub(t.samples[n-1].at) >= time.Second {
		t.samples = append(t.samples, sample{now, t.requests, t.failed})
	}
	for len(t.samples) > 1 && now.Sub(t.samples[1].at) >= rateOver {
		t.samples = t.samples[1:]
	}
}

// rates are requests, and failed ones, a second since the oldest sample.
func (t *totals) rates(now time.Time) (requests, failed float64) {
	if len(t.samples) == 0 {
		return 0, 0
	}
	over := now.Sub(t.samples[0].at)
	if over < time.Second {
		return 0, 0
	}
	return float64(t.requests-t.samples[0].requests) / over.Seconds(), float64(t.failed-t.samples[0].failed) / over.Seconds()
}

func inFlightOf(l api.ServiceLoad) int {
	n := 0
	for _, k := range l.InFlight {
		n += k
	}
	return n
}

// Load sums what gateways posted of a service in the last 10 seconds.
func (h *Hub) Load(name string) Load {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.cfg.Now()
	var out Load
	for _, g := range h.gateways {
		if g.isSilent(now) {
			continue
		}
		out.Known = true
		l := g.load[name]
		out.InFlight += inFlightOf(l)
		out.Held += l.Held
	}
	if s := h.services[name]; s != nil {
		out.Requests, out.Failed, out.LastRequest = s.totals.requests, s.totals.failed, s.totals.last
		out.Rate, out.FailedRate = s.totals.rates(now)
		out.Latency = s.totals.latency.quantiles(now)
	}
	return out
}

// InFlight is how many requests gateways have in flight at an attempt. Known is false if a gateway may
// have some of which the hub knows nothing.
func (h *Hub) InFlight(ref engine.Ref) (n int, known bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.replicas {
		if r.Ref == ref {
			return h.inFlightAt(r)
		}
	}
	return 0, false
}

// inFlightAt counts the requests at a replica. It is not known where a gateway was not heard since it
// got the routes without the replica, and where one became silent. Just after the hub's start gateways
// have yet to post, so it is known only of an attempt that they have from this hub alone, once each of
// those that read its routes has posted.
func (h *Hub) inFlightAt(r *replica) (n int, known bool) {
	now := h.cfg.Now()
	known = now.Sub(h.opened) > silentAfter || r.fresh && len(h.gateways) >= h.streams
	for _, g := range h.gateways {
		if g.isSilent(now) || g.routes < r.unready {
			known = false
		}
		n += g.load[r.Service].InFlight[BackendID(r.Ref)]
	}
	return n, known
}

func (h *Hub) wakeDrain() {
	select {
	case h.drained <- struct{}{}:
	default:
	}
}

// Run tells Config.Drained of replicas that are drained, and forgets gateways, until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ctx.Err() == nil {
		for _, r := range h.takeDrained() {
			if err := h.cfg.Drained(ctx, r.Job, r.Ref); err != nil {
				h.retryDrained(ctx, r, err)
			}
		}
		select {
		case <-h.drained:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// takeDrained returns the replicas that are drained and of which nobody was told.
func (h *Hub) takeDrained() (out []Replica) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settleIfKnown()
	now := h.cfg.Now()
	for name, g := range h.gateways {
		if now.Sub(g.at) > silentAfter+forgetAfter {
			delete(h.gateways, name)
		}
	}
	if h.cfg.Drained == nil {
		return nil
	}
	for _, r := range h.replicas {
		if !r.Ending || r.drained || r.Ref == (engine.Ref{}) {
			continue
		}
		if n, known := h.inFlightAt(r); n == 0 && known {
			r.drained = true
			out = append(out, r.Replica)
		}
	}
	return out
}

// retryDrained has Drained told again of a replica of which it could not be told.
func (h *Hub) retryDrained(ctx context.Context, of Replica, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.replicas[of.Job]
	if r == nil || r.Ref != of.Ref {
		return
	}
	if !r.failed && ctx.Err() == nil {
		h.cfg.Log.Warn("a drained replica could not be told to end; trying again", "job", of.Job, "error", err)
	}
	r.drained, r.failed = false, true
}
