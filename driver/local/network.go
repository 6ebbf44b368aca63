package local

import (
	"log/slog"
	"os"
	"strings"

	"github.com/coxswain-sched/coxswain/agent/nodenet"
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
	out.Network = Network{Prefix: out.own.Prefix(), Machine: out.own.Machine(), Notes: out.own.Notes(), Fence: out.own.Fence}
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
