package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/agent/devicelock"
	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/server/config"
)

// poolName is the pool of the embedded engine, and the partition of a site that
// configures none.
const poolName = "local"

// room is what the embedded engine offers.
type room struct {
	nodes  []fleet.Node
	naming local.Naming
	notes  []string                 // for people, one sentence each
	shown  map[int]deviceenv.Device // how programs are told of the machine's own devices, by index
	numa   []local.NUMANode         // of the machine

	network local.Network
	leave   func() error // gives the network back; nil: there is none
}

// findRoom looks at the machine and makes the nodes that the configuration asks for.
func findRoom(ctx context.Context, opt *Options) (room, error) {
	cfg, dir, look := &opt.Config, opt.Config.State.Dir, opt.Look
	if look == nil {
		look = discover.Look
	}
	m, notes, err := look(ctx, discover.Options{NoGPU: cfg.Room.GPUsPerNode == 0})
	if err != nil {
		return room{}, err
	}
	for _, n := range notes {
		opt.Log.Debug("discovery", "note", n.String())
	}
	devices, names := discover.Fleet(m.GPUs, nil)
	r := room{naming: local.NamedByAddr, shown: map[int]deviceenv.Device{}, numa: local.NUMAOf(m)}
	for i, d := range devices {
		r.shown[d.Index] = names[i]
	}
	if cfg.Room.Nodes == 0 {
		node, err := local.RealNode(m, devices)
		if err != nil {
			return room{}, err
		}
		r.nodes = []fleet.Node{applyNodeSize(node, cfg)}
		_, err = local.OpenNetwork(local.NetworkRequest{Mode: local.NetworkShared, Root: engineDir(dir), Log: opt.Log.With("part", "network")})
		return r, err // one of virtual nodes that were here before is removed
	}
	if !cfg.Room.ByAddress {
		var why string
		if r.naming, why = local.FindNaming(ctx, opt.Cox); why != "" {
			r.notes = append(r.notes, why)
		}
	}
	base := fleet.Node{
		State:    fleet.Up,
		Capacity: local.MachineCapacity(m),
	}
	free := slices.DeleteFunc(devices, func(d fleet.Device) bool { return d.Foreign > 0 })
	sets, declared := dealDevices(free, cfg.Room.Nodes, cfg.Room.GPUsPerNode, cfg.Room.GPUType)
	if declared {
		r.notes = append(r.notes, fmt.Sprintf("the %d %s of each node are declared: numbers without hardware", cfg.Room.GPUsPerNode, cfg.Room.GPUType))
	}
	var bare []fleet.Node
	for i := range cfg.Room.Nodes {
		n := applyNodeSize(base, cfg)
		n.Devices, n.Path = sets[i], pathOf(i, &cfg.Room)
		bare = append(bare, n)
	}
	seed, err := local.AddressSeed(engineDir(dir), dir)
	if err != nil {
		return room{}, err
	}
	net, err := local.OpenNetwork(local.NetworkRequest{
		Mode: cfg.Room.Network, Naming: r.naming, Root: engineDir(dir), Nodes: local.NodeNames(cfg.Room.Names, cfg.Room.Nodes),
		Temporary: opt.ThrowAway, Names: true, Log: opt.Log.With("part", "network"),
	})
	if err != nil {
		return room{}, err
	}
	r.network, r.leave = net.Network, net.Close
	r.nodes = local.VirtualRoom(local.RoomConfig{Naming: r.naming, Seed: seed, Names: cfg.Room.Names, Address: net.Address}, bare)
	return r, nil
}

// pathOf is where a virtual node stands in the topology that the configuration declares.
func pathOf(i int, r *config.Room) []string {
	if r.NodesPerLeaf == 0 {
		return nil
	}
	leaf := i / r.NodesPerLeaf
	path := []string{fmt.Sprintf("leaf%d", leaf+1)}
	if r.LeavesPerBlock > 0 {
		path = append([]string{fmt.Sprintf("block%d", leaf/r.LeavesPerBlock+1)}, path...)
	}
	return path
}

// levelsOf names the levels of that topology, the outermost first.
func levelsOf(r *config.Room) []string {
	switch {
	case r.NodesPerLeaf == 0:
		return nil
	case len(r.Levels) > 0:
		return r.Levels
	case r.LeavesPerBlock > 0:
		return []string{"block", "leaf"}
	}
	return []string{"leaf"}
}

// applyNodeSize gives a node what the configuration says of all nodes.
func applyNodeSize(n fleet.Node, cfg *config.Config) fleet.Node {
	if cfg.Room.CPUs > 0 {
		n.Capacity.CPU = resource.CPUs(cfg.Room.CPUs)
	}
	if cfg.Room.Memory > 0 {
		n.Capacity.Memory = resource.Amount(cfg.Room.Memory)
	}
	n.Features = slices.Sorted(slices.Values(cfg.Room.Features))
	return n
}

// dealDevices gives each of n nodes its devices: the machine's own in equal parts, or
// declared ones where more are asked for than there are. per -1 takes what is there.
func dealDevices(have []fleet.Device, n, per int, kind string) (sets [][]fleet.Device, declared bool) {
	if per < 0 {
		per = len(have) / n
	}
	if declared = per*n > len(have); !declared {
		for i := range n {
			sets = append(sets, have[i*per:(i+1)*per])
		}
		return sets, false
	}
	for range n {
		var set []fleet.Device
		for i := range per {
			set = append(set, fleet.Device{Index: i, Minor: -1, Kind: "gpu", Type: kind, NUMA: -1, Declared: true})
		}
		sets = append(sets, set)
	}
	return sets, true
}

// rulesOf turns partitions and accounts of the configuration into the rules at the
// door, and tells the nodes of which partitions they are.
func rulesOf(cfg *config.Config, nodes []fleet.Node) (admission.Rules, error) {
	r := admission.Rules{Pool: poolName, MaxArray: cfg.Jobs.MaxArray, Levels: levelsOf(&cfg.Room)}
	parts := cfg.Partitions
	if len(parts) == 0 {
		parts = []config.Partition{{Name: poolName, Default: true}}
	}
	for _, p := range parts {
		part := admission.Partition{Name: p.Name, Default: p.Default, TimeLimit: time.Duration(p.TimeLimit), DefaultTime: time.Duration(p.DefaultTime)}
		names, err := hostlist.Expand(p.Nodes)
		if err != nil {
			return r, err
		}
		for i := range nodes {
			if p.Nodes == "" || slices.Contains(names, nodes[i].Name) {
				nodes[i].Parts = append(nodes[i].Parts, p.Name)
				part.Nodes = append(part.Nodes, nodes[i].Name)
			}
		}
		for _, n := range names {
			if !slices.ContainsFunc(nodes, func(have fleet.Node) bool { return have.Name == n }) {
				return r, fault.New(fault.Invalid, "partition %s: there is no node %s", p.Name, n).
					Advise("nodes here: %s", hostlist.Compress(nodeNames(nodes)))
			}
		}
		r.Partitions = append(r.Partitions, part)
	}
	for _, a := range cfg.Accounts {
		r.Accounts = append(r.Accounts, admission.Account{Name: a.Name, Users: a.Users})
	}
	return r, nil
}

func nodeNames(nodes []fleet.Node) []string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

// deviceLocker takes the locks of the machine's devices for a server.
func deviceLocker(cfg *config.Config) *devicelock.Locker {
	return &devicelock.Locker{Owner: devicelock.NewOwner("cox up", "", cfg.State.Dir, cfg.Listen.Socket), Folders: devicelock.Folders()}
}

// shareAdvice is what to do where somebody else has the machine's devices.
const shareAdvice = "send jobs to the server that has them, or end it first; --gpus-per-node 0 serves without GPUs; --share hands them out all the same: jobs of both are on one GPU then, slow each other down and may run out of its memory"

func engineDir(state string) string { return filepath.Join(state, "engine") }

// processLimit is how many processes and threads a job may have on a node; 0: any number.
func processLimit(configured int) int {
	switch {
	case configured > 0:
		return configured
	case configured < 0:
		return 0
	}
	most := 0
	for _, name := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && n > 0 && (most == 0 || n < most) {
			most = n
		}
	}
	return most / 2
}
