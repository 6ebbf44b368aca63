package local

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/nodenet"
	"github.com/coxswain-sched/coxswain/engine"
)

// portFence keeps other users of the machine from the ports of replicas, where nodes have networks of
// their own: the gateway's tokens and limits cannot be passed by then. What is said of ports is applied
// by one goroutine, the newest at a time.
type portFence struct {
	apply func([]nodenet.Port) error // nil: the nodes have the machine's network
	kick  chan struct{}

	mu    sync.Mutex
	ports map[engine.Ref][]nodenet.Port

	applying sync.Mutex // held by one apply at a time
}

func newPortFence(apply func([]nodenet.Port) error) *portFence {
	return &portFence{apply: apply, kick: make(chan struct{}, 1), ports: map[engine.Ref][]nodenet.Port{}}
}

// set says which ports an attempt has; none: it has ended.
func (f *portFence) set(ref engine.Ref, ports []nodenet.Port) {
	if f.apply == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if slices.Equal(f.ports[ref], ports) {
		return
	}
	if f.ports[ref] = ports; len(ports) == 0 {
		delete(f.ports, ref)
	}
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// all are the ports of all attempts, in order.
func (f *portFence) all() (all []nodenet.Port) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, ports := range f.ports {
		all = append(all, ports...)
	}
	slices.SortFunc(all, func(a, b nodenet.Port) int {
		return cmp.Or(cmp.Compare(a.Address, b.Address), cmp.Compare(a.Number, b.Number))
	})
	return all
}

// applyNow applies what is said of ports; the error says why they are open to all users.
func (f *portFence) applyNow() error {
	f.applying.Lock()
	defer f.applying.Unlock()
	return f.apply(f.all())
}

// keepFence applies what is said of ports until the engine ends.
func (e *Engine) keepFence() {
	for said := false; ; {
		select {
		case <-e.fence.kick:
		case <-e.ctx.Done():
			return
		}
		err := e.fence.applyNow()
		if err != nil && !said {
			e.cfg.Log.Warn("the ports of services are open to all users of this machine", "error", err)
		}
		said = err != nil
	}
}

// fencePorts says which ports the attempt has.
func (g *gang) fencePorts() {
	head := g.parts[0]
	uid := os.Geteuid()
	if u := g.launch.User; u != nil {
		uid = int(u.UID)
	}
	unique := map[nodenet.Port]bool{}
	for _, number := range head.state.Ports {
		unique[nodenet.Port{Address: head.node.Address, Number: number, UID: uid}] = true
	}
	ports := slices.SortedFunc(maps.Keys(unique), func(a, b nodenet.Port) int { return cmp.Compare(a.Number, b.Number) })
	g.e.fence.set(g.launch.Ref, ports)
}
