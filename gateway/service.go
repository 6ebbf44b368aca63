package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/coxswain-sched/coxswain/api"
)

// service is one service with its backends and counters.
type service struct {
	name    string
	gateway *Server

	settings atomic.Pointer[settings]
	requests atomic.Uint64
	failed   atomic.Uint64
	retried  atomic.Uint64
	latency  []atomic.Uint64 // of api.ServiceLoad
	unmet    *meter          // of requests that no backend got

	mu       sync.Mutex
	backends []*backend // listed ones in the order of the route, then those that only end what is in flight
	shares   []share
	turn     uint64 // how often a backend was chosen
	gone     bool   // it has no route any more
	held     int
	inFlight int
	changed  chan struct{} // closed when a request that is held may look again
}

// settings are what requests need of a route without a lock. They are not written to.
type settings struct {
	route     api.ServiceRoute
	tokens    map[string]bool // nil: everybody may ask
	limiter   *rate.Limiter   // nil: no bound
	transport *transport
	hold      time.Duration
	mostHeld  int
}

// errors of a request that no backend took.
var (
	errGone   = errors.New("the service has gone")
	errFull   = errors.New("too many requests wait for a replica")
	errWaited = errors.New("no replica was ready in time")
	errBusy   = errors.New("the service has too many requests at once")
)

func newService(g *Server, name string) *service {
	return &service{
		name: name, gateway: g, changed: make(chan struct{}), unmet: g.meterOf(name, 0),
		latency: make([]atomic.Uint64, len(latencyBounds)+1),
	}
}

// setRoute takes over a route.
func (s *service) setRoute(route *api.ServiceRoute) {
	old := s.settings.Load()
	s.settings.Store(s.gateway.settingsOf(route, old))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = false
	s.shares = sharesOf(route.Weights, s.shares)
	known := map[string]*backend{}
	for _, b := range s.backends {
		known[b.ID] = b
		b.listed = false
	}
	list := make([]*backend, 0, len(route.Backends))
	for _, is := range route.Backends {
		b := known[is.ID]
		if b == nil || b.Address != is.Address || b.Revision != is.Revision {
			if b != nil && b.inFlight == 0 {
				delete(known, is.ID)
			}
			b = &backend{Backend: is, cookie: cookieOf(s.name, is.ID), meter: s.gateway.meterOf(s.name, is.Revision)}
		} else {
			delete(known, is.ID)
		}
		if is.Ready && !b.ready { // what failed before is over
			b.refused.Store(0)
			b.out = time.Time{}
		}
		b.ready, b.listed = is.Ready, true
		list = append(list, b)
	}
	for _, b := range s.backends {
		if !b.listed && b.inFlight > 0 {
			list = append(list, b)
		}
	}
	s.backends = list
	s.wakeHeld()
}

// removeRoute ends a service: what is in flight goes on, what is held is refused.
func (s *service) removeRoute() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = true
	for _, b := range s.backends {
		b.listed, b.ready = false, false
	}
	s.dropUnlisted()
	s.wakeHeld()
}

// dropUnlisted forgets backends that are not listed and have nothing in flight. The caller has the lock.
func (s *service) dropUnlisted() {
	list := s.backends[:0:0]
	for _, b := range s.backends {
		if b.listed || b.inFlight > 0 {
			list = append(list, b)
		}
	}
	s.backends = list
}

// isIdle says that a service that has gone has nothing in flight any more.
func (s *service) isIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone && s.inFlight == 0
}

// wakeHeld lets requests that are held look again. The caller has the lock.
func (s *service) wakeHeld() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// admitRequest counts a request in; errBusy: there are too many.
func (s *service) admitRequest() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight >= s.gateway.cfg.Limits.Requests {
		return errBusy
	}
	s.inFlight++
	s.requests.Add(1)
	return nil
}

// endRequest counts a request out. With the last one a service that has gone is forgotten.
func (s *service) endRequest() {
	s.mu.Lock()
	s.inFlight--
	last := s.gone && s.inFlight == 0
	s.mu.Unlock()
	if last {
		s.gateway.applying.Lock()
		defer s.gateway.applying.Unlock()
		s.gateway.forgetIdle()
	}
}

// acquireBackend picks a backend and counts the request in flight there. If none is usable it waits
// for one, as long as until allows. wait is how long it was held.
func (s *service) acquireBackend(ctx context.Context, cookie string, avoid *backend, until time.Time) (b *backend, wait time.Duration, err error) {
	start, held := time.Now(), false
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if held {
			s.held--
		}
	}()
	for now := start; ; now = time.Now() {
		if s.gone {
			return nil, now.Sub(start), errGone
		}
		if b = s.pickBackend(now, cookie, avoid); b != nil {
			b.inFlight++
			return b, now.Sub(start), nil
		}
		if !now.Before(until) {
			return nil, now.Sub(start), errWaited
		}
		if !held { // it is counted once, for all of its wait
			if s.held >= s.settings.Load().mostHeld {
				return nil, now.Sub(start), errFull
			}
			held = true
			s.held++
		}
		changed, again := s.changed, s.nextUsable(now)
		s.mu.Unlock()
		s.gateway.postSoon()
		err = waitChange(ctx, changed, now, until, again)
		s.mu.Lock()
		if err != nil {
			return nil, time.Since(start), err
		}
	}
}

// nextUsable is when the first backend that is left out gets requests again; zero: none is left out.
func (s *service) nextUsable(now time.Time) (at time.Time) {
	for _, b := range s.backends {
		if b.ready && b.listed && b.out.After(now) && (at.IsZero() || b.out.Before(at)) {
			at = b.out
		}
	}
	return at
}

// waitChange waits for a change or one of two times; an error is that of ctx.
func waitChange(ctx context.Context, changed <-chan struct{}, now, until, again time.Time) error {
	if again.IsZero() || until.Before(again) {
		again = until
	}
	timer := time.NewTimer(again.Sub(now))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// noteAnswered forgets that connections to a backend failed: it answers.
func (s *service) noteAnswered(b *backend) {
	if b.refused.Load() == 0 {
		return // as nearly always
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.refused.Store(0)
	b.out = time.Time{}
}

// releaseBackend ends a request at a backend; refused: its connection failed.
func (s *service) releaseBackend(b *backend, refused bool) {
	s.mu.Lock()
	b.inFlight--
	if refused {
		b.noteRefused(time.Now())
	}
	drained := b.inFlight == 0 && (!b.listed || !b.ready)
	if drained && !b.listed {
		s.dropUnlisted()
	}
	s.mu.Unlock()
	if drained {
		s.gateway.postSoon()
	}
}

// load is what is posted of the service.
func (s *service) load() api.ServiceLoad {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := api.ServiceLoad{Service: s.name, Requests: s.requests.Load(), Failed: s.failed.Load(), Held: s.held}
	l.Latency = s.latencies()
	for _, b := range s.backends {
		if b.inFlight > 0 {
			if l.InFlight == nil {
				l.InFlight = map[string]int{}
			}
			l.InFlight[b.ID] += b.inFlight
		}
	}
	return l
}

// noteLatency counts an answer by the time until its head.
func (s *service) noteLatency(first time.Duration) {
	at, _ := slices.BinarySearch(latencyBounds, first.Seconds())
	s.latency[at].Add(1)
}

// latencies are the counts of answers by time; nil: there was no answer.
func (s *service) latencies() []uint64 {
	out, all := make([]uint64, len(s.latency)), uint64(0)
	for i := range out {
		out[i] = s.latency[i].Load()
		all += out[i]
	}
	if all == 0 {
		return nil
	}
	return out
}

// counts are the numbers of replicas that are told to people: ready ones, and those that are known.
func (s *service) counts() (ready, known int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.backends {
		if b.listed {
			known++
			if b.ready {
				ready++
			}
		}
	}
	return ready, known
}

// cookieOf is the value of the cookie that leads to a backend. It does not tell which job that is.
func cookieOf(service, backend string) string {
	sum := sha256.Sum256([]byte(service + "\x00" + backend))
	return hex.EncodeToString(sum[:8])
}

// settingsOf makes the settings of a route. What has not changed, as connections and what a limiter
// has counted, is taken from old, which may be nil.
func (g *Server) settingsOf(route *api.ServiceRoute, old *settings) *settings {
	l := &g.cfg.Limits
	n := &settings{route: *route, hold: l.Hold, mostHeld: l.Held}
	n.route.Backends = nil
	if old != nil && reflect.DeepEqual(n.route, old.route) {
		return old
	}
	if route.Held > 0 {
		n.mostHeld = route.Held
	}
	if route.Timeout > 0 {
		n.hold = min(n.hold, route.Timeout)
	}
	if len(route.Tokens) > 0 {
		n.tokens = map[string]bool{}
		for _, t := range route.Tokens {
			n.tokens[t] = true
		}
	}
	switch {
	case route.Rate <= 0:
	case old != nil && old.limiter != nil && old.route.Rate == route.Rate:
		n.limiter = old.limiter
	default:
		n.limiter = rate.NewLimiter(rate.Limit(route.Rate), max(1, int(math.Ceil(route.Rate))))
	}
	if old != nil && old.route.H2C == route.H2C && old.route.Timeout == route.Timeout {
		n.transport = old.transport
	} else {
		n.transport = newTransport(l, route.H2C, route.Timeout)
		if old != nil {
			old.transport.dispose()
		}
	}
	return n
}
