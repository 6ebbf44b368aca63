package endpoints

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Replica is what control knows of a job that is a part of a service.
type Replica struct {
	Service  string // "team/chat"
	Job      job.ID
	Ref      engine.Ref // the attempt that holds something; zero: none
	Pool     string
	Index    uint32
	Revision uint32
	Try      uint32
	Running  bool // the attempt runs, and is not uncertain
	Ending   bool // a record asks for its end
}

// State is a replica with what its engine says of it.
type State struct {
	Replica
	List   []engine.Endpoint // empty: not known yet
	Ready  bool              // it gets new requests
	Since  time.Time         // when it became ready; zero: it is not
	Failed string            // what its engine says against it, for people
}

// Address is host:port of a port by name, of the first for an empty name; "" if it is not known.
func (s *State) Address(port string) string {
	i := slices.IndexFunc(s.List, func(e engine.Endpoint) bool { return port == "" || e.Port == port })
	if i < 0 || s.List[i].Number == 0 {
		return ""
	}
	return net.JoinHostPort(s.List[i].Host, strconv.Itoa(s.List[i].Number))
}

// Config is what a Hub needs; every field may be zero.
type Config struct {
	// Drained is told once of each attempt that is being ended and at which no request is in flight
	// any more; after an error it is told again. It runs on the goroutine of Run, which waits for it;
	// nil: nobody.
	Drained func(ctx context.Context, id job.ID, ref engine.Ref) error

	Now func() time.Time // nil: time.Now
	Log *slog.Logger     // nil: none
}

// Hub joins endpoints, jobs, routes and load.
type Hub struct {
	cfg Config

	mu       sync.Mutex
	version  uint64        // of the routes and states; grows with each change
	changed  chan struct{} // closed with the next change
	services map[string]*service
	gone     map[string]uint64 // services without a route: the version at which it went
	lost     uint64            // a watcher that knows only versions before this one has to begin anew
	replicas map[job.ID]*replica
	told     map[engine.Ref]engine.Endpoints
	gateways map[string]*gateway
	opened   time.Time
	complete time.Time     // when Complete was called; zero: it was not
	settled  chan struct{} // closed when routes may be given out
	drained  chan struct{} // there may be a replica that is drained; holds one at most
	streams  int           // of routes, that gateways read
}

// service is what is known of one service.
type service struct {
	name    string
	route   api.ServiceRoute
	port    string // that gets the requests
	routed  bool
	version uint64 // of its last change
	totals  totals
}

// replica is a job with its state.
type replica struct {
	State
	unready uint64 // the version of the routes with which it got no more requests
	drained bool   // Drained was told
	failed  bool   // Drained could not be told
	fresh   bool   // its attempt began after Complete: no gateway knows it from an earlier hub
}

// New makes a Hub. Run has to run for as long as it is used.
func New(cfg Config) *Hub {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Hub{
		cfg: cfg, changed: make(chan struct{}), services: map[string]*service{}, gone: map[string]uint64{},
		replicas: map[job.ID]*replica{}, told: map[engine.Ref]engine.Endpoints{}, gateways: map[string]*gateway{},
		opened: cfg.Now(), settled: make(chan struct{}), drained: make(chan struct{}, 1),
		version: uint64(cfg.Now().UnixNano()), // larger than that of any hub before
	}
}

// SetService says how gateways find a service; Backends of the route are not looked at. Port is the
// name of the port that gets the requests; empty: the first.
func (h *Hub) SetService(route api.ServiceRoute, port string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.serviceOf(route.Service)
	route.Backends = nil
	if s.routed && s.port == port && sameRoute(s.route, route) {
		return
	}
	s.route, s.port, s.routed = route, port, true
	delete(h.gone, s.name)
	h.noteChange(s)
}

// RemoveService takes the route of a service away from gateways.
func (h *Hub) RemoveService(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.services[name]
	if s == nil || !s.routed {
		return
	}
	s.routed = false
	h.noteChange(s)
	h.gone[name] = s.version
	h.forgetIfUnused(s)
	for len(h.gone) > mostGone {
		for n, v := range h.gone {
			h.lost = max(h.lost, v)
			delete(h.gone, n)
			break
		}
	}
}

// mostGone is how many services that are gone are remembered for watchers that are behind.
const mostGone = 1000

// SetReplica says how a job is now. A job that has ended is to be removed.
func (h *Hub) SetReplica(r Replica) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.replicas[r.Job]
	if known != nil && known.Replica == r {
		return
	}
	if known != nil && known.Service != r.Service {
		h.dropReplica(known)
		known = nil
	}
	if known == nil {
		known = &replica{}
		h.replicas[r.Job] = known
	}
	if known.Ref != r.Ref {
		delete(h.told, known.Ref)
		known.fresh = !h.complete.IsZero()
	}
	if known.Ref != r.Ref || !r.Ending { // it drains anew when its end is asked for again
		known.drained, known.failed, known.unready = false, false, 0
	}
	was := known.State
	known.Replica = r
	h.joinReplica(known, was)
}

// RemoveReplica forgets a job.
func (h *Hub) RemoveReplica(id job.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.replicas[id]; r != nil {
		h.dropReplica(r)
	}
}

func (h *Hub) dropReplica(r *replica) {
	delete(h.replicas, r.Job)
	delete(h.told, r.Ref)
	s := h.serviceOf(r.Service)
	h.noteChange(s)
	h.forgetIfUnused(s)
}

// SetEndpoints takes what an engine says. What it said before, by version, is ignored.
func (h *Hub) SetEndpoints(e engine.Endpoints) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old, ok := h.told[e.Ref]; ok && old.Version >= e.Version {
		return
	}
	h.told[e.Ref] = e
	r := h.replicas[e.Job]
	if r == nil || r.Ref != e.Ref { // of a job that control has yet to speak of, or has ended
		if len(e.List) == 0 && !e.Ready {
			delete(h.told, e.Ref)
		}
		return
	}
	h.joinReplica(r, r.State)
}

// joinReplica makes the state of a replica anew.
func (h *Hub) joinReplica(r *replica, was State) {
	told := h.told[r.Ref]
	r.List, r.Failed = slices.Clone(told.List), told.Failed
	r.Ready = told.Ready && r.Running && !r.Ending && r.Ref != engine.Ref{}
	switch {
	case !r.Ready:
		r.Since = time.Time{}
	case r.Since.IsZero():
		r.Since = h.cfg.Now()
	}
	h.settleIfKnown()
	if reflect.DeepEqual(was, r.State) {
		return
	}
	h.noteChange(h.serviceOf(r.Service))
	if r.Ending && (was.Ready || r.unready == 0) {
		r.unready = h.version
		h.wakeDrain()
	}
}

func (h *Hub) serviceOf(name string) *service {
	s := h.services[name]
	if s == nil {
		s = &service{name: name}
		h.services[name] = s
	}
	return s
}

// forgetIfUnused forgets a service that has neither a route nor a replica.
func (h *Hub) forgetIfUnused(s *service) {
	if s.routed {
		return
	}
	for _, r := range h.replicas {
		if r.Service == s.name {
			return
		}
	}
	delete(h.services, s.name)
}

// noteChange wakes everybody who waits.
func (h *Hub) noteChange(s *service) {
	h.version++
	s.version = h.version
	close(h.changed)
	h.changed = make(chan struct{})
}

// Replicas lists the replicas of a service by index, then job.
func (h *Hub) Replicas(name string) []State {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.replicasOf(name)
}

func (h *Hub) replicasOf(name string) []State {
	var out []State
	for _, r := range h.replicas {
		if r.Service == name {
			s := r.State
			s.List = slices.Clone(s.List)
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Job, b.Job))
	})
	return out
}

// Replica is the state of one job; false if it is none.
func (h *Hub) Replica(id job.ID) (State, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.replicas[id]
	if r == nil {
		return State{}, false
	}
	s := r.State
	s.List = slices.Clone(s.List)
	return s, true
}

// Next waits until services have changed after a version, by their replicas or their routes, and
// returns their names with the version to go on from. After version 0 it returns all of them at once.
func (h *Hub) Next(ctx context.Context, after uint64) (names []string, version uint64, err error) {
	for {
		h.mu.Lock()
		wait := h.changed
		version = h.version
		for name, s := range h.services {
			if s.version > after {
				names = append(names, name)
			}
		}
		for name, v := range h.gone {
			if v > after && h.services[name] == nil {
				names = append(names, name)
			}
		}
		h.mu.Unlock()
		if len(names) > 0 || after == 0 {
			slices.Sort(names)
			return names, version, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, after, ctx.Err()
		}
	}
}
