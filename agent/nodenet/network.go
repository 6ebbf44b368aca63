package nodenet

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/hostsfile"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/hostlist"
)

// Request is what a network is for.
type Request struct {
	Root      string   // the engine's directory, which has an identity
	Nodes     []string // names of the virtual nodes
	Temporary bool     // nobody opens Root again after this process
	Names     bool     // the machine resolves the names of the nodes
	Log       *slog.Logger
}

// Network is the network of a state directory's virtual nodes. It is safe for concurrent use.
type Network struct {
	record  *record
	nodes   []string
	machine string // the machine's name
	notes   []string
	changed []string // of the machine, each with its mark
	log     *slog.Logger
}

// Open makes the network of a root, or adopts the one that is there. It removes what is left of
// state directories that are gone. Its error says why this machine does not allow it; nothing is
// left of the network then, unless it was there before.
func Open(r Request) (*Network, error) {
	if os.Geteuid() != 0 {
		return nil, fault.New(fault.Permission, "only root may make network namespaces")
	}
	for _, name := range r.Nodes {
		if !isNodeName(name) {
			return nil, fault.New(fault.Invalid, "%q is no name for a network namespace", name)
		}
	}
	identity, err := attempt.ReadIdentity(r.Root)
	if err != nil {
		return nil, err
	}
	if identity == "" {
		return nil, fault.New(fault.Unsupported, "an older version made this state directory")
	}
	machine, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	machine, _, _ = strings.Cut(machine, ".")
	unlock, err := lockRegistry()
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := readRecords()
	if err != nil {
		return nil, err
	}
	n := &Network{nodes: slices.Clone(r.Nodes), machine: machine, log: r.Log}
	if n.log == nil {
		n.log = slog.New(slog.DiscardHandler)
	}
	all = n.sweepAbandoned(all)
	n.sweepNames(all)
	for _, have := range all {
		if have.Identity == identity {
			n.record = have
		}
	}
	isNew := n.record == nil
	if isNew {
		if n.record, err = newRecord(all, len(r.Nodes)); err != nil {
			return nil, err
		}
	}
	n.record.Identity, n.record.Root, n.record.Temporary, n.record.Owner = identity, r.Root, r.Temporary, thisProcess()
	if err := n.buildNetwork(all, r.Names); err != nil {
		if isNew {
			err = errors.Join(err, n.record.takeDown(all))
		}
		return nil, err
	}
	return n, nil
}

// buildNetwork makes what is missing. The record is saved before anything that it names is made.
func (n *Network) buildNetwork(all []*record, names bool) error {
	r := n.record
	if err := n.keepNodes(); err != nil {
		return err
	}
	if err := r.saveRecord(); err != nil {
		return err
	}
	mtu, out := wayOut()
	bridge, err := r.ensureBridge(mtu)
	if err != nil {
		return err
	}
	for _, node := range r.Nodes {
		if !slices.Contains(n.nodes, node.Name) {
			continue // work runs on it still
		}
		if err := r.ensureNode(node, bridge, mtu); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	n.notes = append(n.notes, fmt.Sprintf("each node has its own network, %s: localhost in a job is its node, and this machine is %s (%s)", r.describeAddresses(n.nodes), n.machine, r.addressAt(1)))
	if err := n.openWayOut(all, out); err != nil {
		return err
	}
	if names {
		if err := n.nameNodes(); err != nil {
			return err
		}
	}
	return r.saveRecord()
}

// keepNodes brings the record's nodes to those that are wanted, and those on which processes live.
func (n *Network) keepNodes() error {
	r := n.record
	var gone []nodeLink
	for _, node := range r.Nodes {
		if !slices.Contains(n.nodes, node.Name) {
			gone = append(gone, node)
		}
	}
	if len(gone) > 0 {
		busy := r.busyNodes()
		for _, node := range gone {
			if busy[node.Name] > 0 {
				continue
			}
			if err := r.removeNode(node); err != nil {
				return err
			}
			r.Nodes = slices.DeleteFunc(r.Nodes, func(o nodeLink) bool { return o.Name == node.Name })
		}
	}
	for _, name := range n.nodes {
		node, isNew := r.nodeOf(name)
		if isNew {
			r.Nodes = append(r.Nodes, node)
		}
		if !r.parseSubnet().Contains(r.addressAt(2 + node.Index)) { // the last one is for broadcasts
			return fault.New(fault.Unsupported, "the subnet %s is too small for %d nodes, and jobs run in it", r.Subnet, len(n.nodes)).Advise("end the jobs, cox down, and cox up again")
		}
	}
	return nil
}

// describeAddresses is "v1 198.18.0.2 to v4 198.18.0.5".
func (r *record) describeAddresses(names []string) string {
	var of []nodeLink
	for _, n := range r.Nodes {
		if slices.Contains(names, n.Name) {
			of = append(of, n)
		}
	}
	first, last := of[0], of[len(of)-1]
	return fmt.Sprintf("%s %s to %s %s", first.Name, first.Address, last.Name, last.Address)
}

// nameNodes writes the nodes' names into the machine's hosts file, as far as nobody has them.
func (n *Network) nameNodes() error {
	r := n.record
	b, err := os.ReadFile(hostsfile.Machine)
	if err != nil {
		n.notes = append(n.notes, fmt.Sprintf("this machine does not resolve the nodes' names: %v", err))
		return nil
	}
	taken := hostsfile.Names(hostsfile.Without(string(b), r.networkID()))
	var ours []hostsfile.Host
	var theirs []string
	for _, node := range r.Nodes {
		if taken[node.Name] {
			theirs = append(theirs, node.Name)
			continue
		}
		ours = append(ours, hostsfile.Host{Name: node.Name, Address: node.Address})
	}
	if len(theirs) > 0 {
		n.notes = append(n.notes, fmt.Sprintf("%s has %s already, for something else: on this machine use the addresses, inside jobs the names (room.names gives others)", hostsfile.Machine, hostlist.Compress(theirs)))
	}
	if len(ours) == 0 {
		return hostsfile.Remove(hostsfile.Machine, r.networkID())
	}
	r.Hosts = true
	if err := r.saveRecord(); err != nil {
		return err
	}
	if err := hostsfile.Put(hostsfile.Machine, r.networkID(), "virtual nodes of "+r.Root, ours); err != nil {
		r.Hosts = false
		n.notes = append(n.notes, fmt.Sprintf("this machine does not resolve the nodes' names: %v", err))
		return nil
	}
	n.changed = append(n.changed, fmt.Sprintf("a block %s in %s with the names of the nodes", r.networkID(), hostsfile.Machine))
	return nil
}

// Address is the address of a node; "" if the network has no such node.
func (n *Network) Address(node string) string {
	for _, l := range n.record.Nodes {
		if l.Name == node {
			return l.Address
		}
	}
	return ""
}

// Machine is the machine as the nodes reach it.
func (n *Network) Machine() hostsfile.Host {
	return hostsfile.Host{Name: n.machine, Address: n.record.addressAt(1).String()}
}

// Prefix is the name of a node's namespace file without the name of the node.
func (n *Network) Prefix() string { return n.record.namespacePrefix() }

// Notes says what there is now, what it lacks and what was changed of the machine, for people, a
// sentence each.
func (n *Network) Notes() []string {
	notes := slices.Clone(n.notes)
	if len(n.changed) > 0 {
		notes = append(notes, "changed on this machine until the end: "+strings.Join(n.changed, "; "))
	}
	return notes
}

// Close takes the network down and puts back what was changed of the machine. Where processes
// live in the namespaces of nodes it leaves all as it is, and returns the names of these nodes.
func (n *Network) Close() (busy []string, err error) {
	unlock, err := lockRegistry()
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, err := readRecords()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(r *record) bool { return r.Number == n.record.Number && r.Identity == n.record.Identity })
	if i < 0 {
		return nil, nil
	}
	r := all[i]
	for name := range r.busyNodes() {
		busy = append(busy, name)
	}
	if len(busy) > 0 {
		slices.Sort(busy)
		return busy, nil
	}
	return nil, r.takeDown(slices.Delete(all, i, i+1))
}

// Sweep removes networks of state directories that are gone, and the one of root where no process
// lives in it. It is for who makes no network.
func Sweep(root string, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	if _, err := os.Stat(registry); err != nil {
		return nil //nolint:nilerr // nobody made a network here
	}
	unlock, err := lockRegistry()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := readRecords()
	if err != nil {
		return err
	}
	n := &Network{log: log}
	all = n.sweepAbandoned(all)
	n.sweepNames(all)
	for _, r := range all {
		if r.Root == root && len(r.busyNodes()) == 0 {
			return r.takeDown(slices.DeleteFunc(slices.Clone(all), func(o *record) bool { return o == r }))
		}
	}
	return nil
}

// sweepNames removes blocks of the machine's hosts file that no record has: a machine that was
// started anew has lost the records.
func (n *Network) sweepNames(all []*record) {
	b, err := os.ReadFile(hostsfile.Machine)
	if err != nil {
		return
	}
	for _, id := range staleBlocks(string(b), all) {
		if err := hostsfile.Remove(hostsfile.Machine, id); err != nil {
			n.log.Warn("names of nodes that are gone cannot be removed", "file", hostsfile.Machine, "network", id, "error", err)
		}
	}
}

// staleBlocks are the blocks of networks in a hosts file's text that no record has.
func staleBlocks(text string, all []*record) []string {
	var out []string
	for _, id := range hostsfile.Blocks(text) {
		number, isNetwork := strings.CutPrefix(id, "cox")
		if _, err := strconv.Atoi(number); !isNetwork || err != nil {
			continue
		}
		if !slices.ContainsFunc(all, func(r *record) bool { return r.networkID() == id }) {
			out = append(out, id)
		}
	}
	return out
}

// sweepAbandoned takes down the networks of state directories that are gone, and returns the others.
func (n *Network) sweepAbandoned(all []*record) []*record {
	kept := slices.Clone(all)
	for _, r := range all {
		if !r.isAbandoned() || len(r.busyNodes()) > 0 {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(kept), func(o *record) bool { return o == r })
		if err := r.takeDown(rest); err != nil {
			n.log.Warn("the network of a state directory that is gone cannot be removed", "network", r.networkID(), "root", r.Root, "error", err)
			continue
		}
		n.log.Info("removed the network of a state directory that is gone", "network", r.networkID(), "root", r.Root)
		kept = rest
	}
	return kept
}

// newRecord chooses the number and the subnet of a new network: the first that nobody uses.
func newRecord(all []*record, nodes int) (*record, error) {
	bits := 24
	for 1<<(32-bits)-3 < nodes {
		bits--
	}
	routes, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("read the routes of the machine: %w", err)
	}
	var taken []netip.Prefix
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		if a, ok := netip.AddrFromSlice(r.Dst.IP.To4()); ok {
			ones, _ := r.Dst.Mask.Size()
			if ones > 0 {
				taken = append(taken, netip.PrefixFrom(a, ones))
			}
		}
	}
	numbers := map[int]bool{}
	for _, r := range all {
		numbers[r.Number] = true
		taken = append(taken, r.parseSubnet())
	}
	out := &record{}
	for numbers[out.Number] || linkExists(out.bridgeName()) {
		out.Number++
	}
	for k := 0; k < 2<<(24-8); k += 1 << (32 - bits) {
		base := netip.AddrFrom4([4]byte{198, byte(18 + k>>16), byte(k >> 8), 0})
		p := netip.PrefixFrom(base, bits)
		if !slices.ContainsFunc(taken, p.Overlaps) {
			out.Subnet = p.String()
			return out, nil
		}
	}
	return nil, fault.New(fault.Exhausted, "no subnet of 198.18.0.0/15 is free for %d nodes", nodes)
}
