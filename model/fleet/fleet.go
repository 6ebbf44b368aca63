// Package fleet describes what jobs run on: pools of nodes, their devices and how
// these are linked, and the claims that allocations hold on them.
//
// It is data without behaviour in time: engines report nodes, sched chooses among
// them, ledger keeps who holds what. A node belongs to exactly one pool, a pool to
// exactly one engine.
package fleet

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// Pool is a set of nodes that are scheduled together.
type Pool struct {
	Name   string `json:"name"`
	Engine string `json:"engine"` // the engine that owns it: "local", "slurm", "kube", "fake"
}

// NodeState says whether new work may start on a node.
type NodeState string

// The states of a node.
const (
	Up       NodeState = "up"
	Draining NodeState = "draining" // running work goes on, nothing new starts
	Down     NodeState = "down"     // the engine says that it is gone
	Unknown  NodeState = "unknown"  // nobody answers; what it holds stays held
)

// Node is one machine, or one virtual node of this machine.
type Node struct {
	Name    string    `json:"name"`
	Pool    string    `json:"pool"`
	State   NodeState `json:"state"`
	Why     string    `json:"why,omitempty"`     // reason of a state other than up
	Address string    `json:"address,omitempty"` // host or IP by which its tasks reach it
	Virtual bool      `json:"virtual,omitempty"`
	// Fence is the epoch of our own fence that stands in the engine; 0: none. A fenced node is not up, and
	// Why is empty unless something else closes it too, as an administrator's drain.
	Fence    uint64   `json:"fence,omitempty"`
	Hosts    []string `json:"hosts,omitempty"`    // the machines that it is on, where these have other names; sorted
	Features []string `json:"features,omitempty"` // sorted
	Parts    []string `json:"partitions,omitempty"`

	Capacity resource.Vector `json:"capacity"`
	Sockets  int             `json:"sockets,omitempty"` // 0: not known, one is assumed
	Devices  []Device        `json:"devices,omitempty"` // sorted by Index
	Path     []string        `json:"path,omitempty"`    // topology from the top down, without the node: ["spine1","leaf3"]
}

// In reports whether a node belongs to a partition. One that names none belongs to all.
func (n *Node) In(partition string) bool {
	return len(n.Parts) == 0 || slices.Contains(n.Parts, partition)
}

// Machines are the names of the machines that a node is on: its own, where no other is said.
// Nodes of two pools that have one in common are the same machine twice.
func (n *Node) Machines() []string {
	if len(n.Hosts) > 0 {
		return n.Hosts
	}
	return []string{n.Name}
}

// Device is one GPU-like unit of a node.
type Device struct {
	Index    int             `json:"index"` // as the driver numbers it on its node
	Minor    int             `json:"minor"` // of its character device; -1: none
	Kind     string          `json:"kind"`  // "gpu"
	Type     string          `json:"type"`  // "h100"; lower case, no spaces
	UUID     string          `json:"uuid,omitempty"`
	Memory   resource.Amount `json:"memory,omitempty"`   // bytes
	NUMA     int             `json:"numa"`               // node-local NUMA index; -1: not known
	Bus      string          `json:"bus,omitempty"`      // PCI address
	Declared bool            `json:"declared,omitempty"` // stands in a configuration, no such hardware was found
	Profile  string          `json:"profile,omitempty"`  // set: this is a MIG instance of that profile
	Parent   string          `json:"parent,omitempty"`   // UUID of the device that a MIG instance is part of
	Foreign  resource.Amount `json:"foreign,omitempty"`  // bytes held by processes that are not ours; such a device is not free
	Fenced   string          `json:"fenced,omitempty"`   // why no new work gets it, since a check of it failed; empty: it is not fenced (Node.WithFences)
	Links    []Link          `json:"links,omitempty"`    // to other devices of the node, sorted by Peer
}

// LinkKind orders how close two devices are; a larger kind is closer.
type LinkKind uint8

// The kinds of link, farthest first (the words of nvidia-smi topo -m in brackets).
const (
	LinkUnknown LinkKind = iota
	LinkSystem           // across NUMA nodes (SYS)
	LinkNUMA             // same NUMA node, across host bridges (NODE)
	LinkHost             // same host bridge (PHB)
	LinkSwitch           // same PCIe switch or several of them (PIX, PXB)
	LinkDirect           // NVLink or XGMI (NV#)
)

// Link is the connection of a device to a peer on the same node.
type Link struct {
	Peer  int      `json:"peer"` // the peer's Index
	Kind  LinkKind `json:"kind"`
	Lanes int      `json:"lanes,omitempty"` // NVLinks or XGMI hops for LinkDirect
}

// ClaimedDevices are the devices of a node that claims take, in the node's order.
func ClaimedDevices(n Node, claims []Claim) []Device {
	var out []Device
	for _, d := range n.Devices {
		if slices.ContainsFunc(claims, func(c Claim) bool {
			return c.Node == n.Name && slices.ContainsFunc(c.Devices, func(have DeviceClaim) bool { return have.Index == d.Index })
		}) {
			out = append(out, d)
		}
	}
	return out
}

// Claim is what one task group of an allocation takes from one node.
type Claim struct {
	Node    string          `json:"node"`
	Pool    string          `json:"-"`     // of the node; where claims are written down their allocation says it (InPool)
	Group   int             `json:"group"` // index into job.Spec.Groups
	Tasks   int             `json:"tasks"`
	Take    resource.Vector `json:"take"`
	Devices []DeviceClaim   `json:"devices,omitempty"` // sorted by Index
	Whole   bool            `json:"whole,omitempty"`   // nobody else may use the node
}

// DeviceClaim is a device, or a share of one.
type DeviceClaim struct {
	Index int            `json:"index"`
	Share resource.Share `json:"share"` // resource.WholeDevice: alone, if Bytes is 0
	// Bytes of its memory are held, instead of thousandths: Share is only what it counts for
	// in usage, limits and quotas (the sum over parts, which may round up to more than a device).
	Bytes resource.Amount `json:"bytes,omitempty"`
}
