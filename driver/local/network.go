package local

import (
	"cmp"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/nodenet"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// The networks that virtual nodes can have. Empty: NetworkOwn for root with more than one node, where
// the machine allows it, else NetworkShared.
const (
	NetworkOwn    = "own"    // a network namespace and an address for each
	NetworkShared = "shared" // the machine's
)

// NetworkRequest says which network a room's nodes are to have.
type NetworkRequest struct {
	Mode      string // NetworkOwn, NetworkShared or empty
	Naming    Naming
	Root      string   // the engine's directory, which has an identity
	Nodes     []string // see NodeNames
	Temporary bool     // nobody opens Root again after this process
	Names     bool     // the machine resolves the nodes' names
	Log       *slog.Logger
}

// OpenedNetwork is the network of a room's nodes.
type OpenedNetwork struct {
	Network
	Address func(node string) string // see RoomConfig; nil: the nodes share the machine's network
	own     *nodenet.Network
	log     *slog.Logger
}

// OpenNetwork makes the network of a room's nodes. Where the nodes are to have their own and cannot,
// it is an error only if NetworkOwn was asked for; else a note says why they share the machine's.
func OpenNetwork(r NetworkRequest) (*OpenedNetwork, error) {
	out := &OpenedNetwork{log: r.Log}
	asked := r.Mode == NetworkOwn
	switch {
	case r.Mode != "" && !asked && r.Mode != NetworkShared:
		return nil, fault.New(fault.Invalid, "network %q is neither own nor shared", r.Mode)
	case asked && os.Geteuid() != 0:
		return nil, fault.New(fault.Permission, "network own: only root may make network namespaces").Advise("run as root, or leave it out: virtual nodes share the machine's network then")
	case asked && r.Naming != NamedByRoot:
		return nil, fault.New(fault.Unsupported, "network own: nodes without host names have no networks of their own").Advise("leave one of them out")
	case r.Mode == NetworkShared || os.Geteuid() != 0 || !asked && (r.Naming != NamedByRoot || len(r.Nodes) < 2):
		sweepNetworks(r)
		return out, nil
	}
	var err error
	out.own, err = nodenet.Open(nodenet.Request{Root: r.Root, Nodes: r.Nodes, Temporary: r.Temporary, Names: r.Names, Log: r.Log})
	switch {
	case err != nil && asked:
		return nil, fault.New(fault.Unsupported, "network own: %w", err).Advise("--network shared, or network: shared under room: in the configuration, needs nothing of the machine")
	case err != nil:
		sweepNetworks(r)
		out.Notes = []string{"virtual nodes share this machine's network: " + strings.ReplaceAll(err.Error(), "\n", "; ")}
		return out, nil
	}
	out.Network = Network{Prefix: out.own.Prefix(), Machine: out.own.Machine(), Notes: out.own.Notes(), Fence: out.own.Fence, Fenced: out.own.HasFence()}
	out.Address = out.own.Address
	return out, nil
}

// sweepNetworks removes networks that are left, where the nodes get none.
func sweepNetworks(r NetworkRequest) {
	if err := nodenet.Sweep(r.Root, r.Log); err != nil {
		r.Log.Warn("look for networks that are left", "error", err)
	}
}

// Close gives the network back, unless work runs on in it: then the next engine of the root takes it.
func (o *OpenedNetwork) Close() error {
	if o.own == nil {
		return nil
	}
	busy, err := o.own.Close()
	if len(busy) > 0 {
		o.log.Info("the nodes' network stays: work runs in it, and the next server of this state directory takes it", "nodes", strings.Join(busy, " "))
	}
	return err
}

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
	f.applySoon()
}

// applySoon has what is said of ports applied.
func (f *portFence) applySoon() {
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

// keepFence applies what is said of ports until the engine ends. It begins when the attempts of before
// are known: then rules for those that have ended go.
func (e *Engine) keepFence() {
	if e.cfg.Network.Fenced {
		e.fence.applySoon()
	}
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
