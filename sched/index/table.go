// Package index is the core's picture of the fleet: the nodes in node order, and
// states that say what is free on them.
//
// A Table holds what is fixed between two events (descriptions, which devices
// match a request, topology domains). A State holds what claims change. States
// are cheap to copy, so that a what-if is a copy and never has to be rolled back.
//
// Neither is safe for concurrent use. Both are blind to jobs and to time.
package index

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Node is a node and what is derived from its description.
type Node struct {
	fleet.Node
	Usable    Set      // devices that may be handed out: not foreign, not fenced, not the parent of an instance
	Ideal     Set      // as Usable, and foreign use and fences are taken to have ended
	Qualities []string // features, and one for each type of device
	Domains   []int    // topology domain at each level, outermost first, then the leaf; empty: no path known
	sign      string
}

// Table is the set of nodes in node order (CompareNames, then by pool). A position is an
// index into it and is good until the next Put or Remove.
type Table struct {
	nodes   []*Node
	stale   bool                   // what follows is to be made anew
	moved   bool                   // since then nodes came or went
	at      map[string]int         // name → position of the first node of that name; the others follow it
	twins   bool                   // some name is that of several nodes
	apart   map[fleet.NodeKey]bool // removed while another node of the name was there: another machine; nil: none
	masks   map[Match][]Set
	domains map[string]int
	levels  int
	pools   []string

	ranks   []int32   // by position: its place in rank order; nil: positions are
	vacant  [2]*State // Vacant; nil: not asked for
	class   []int32   // by position
	classes []*Class
	page    []slot // by position
	pages   []Page
	leaves  []Leaf
}

// Match is what a device must be to serve a request.
type Match struct {
	Kind, Type, Profile string
	Memory              resource.Amount
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{at: map[string]int{}, masks: map[Match][]Set{}, domains: map[string]int{}}
}

// Len is the number of nodes.
func (t *Table) Len() int { return len(t.nodes) }

// Node returns the node at a position.
func (t *Table) Node(i int) *Node { return t.nodes[i] }

// Find returns the position of a node, or -1. Where the pool of the key has no node of that
// name, it is the only node of the name, whichever pool has it now, unless both were there at
// one time: then they are two machines.
func (t *Table) Find(k fleet.NodeKey) int {
	t.renewDerived()
	first, ok := t.at[k.Name]
	switch {
	case !ok:
		return -1
	case t.nodes[first].Pool == k.Pool:
		return first
	case t.apart[k]:
		return -1
	case !t.twins:
		return first
	}
	n := 1
	for ; first+n < len(t.nodes) && t.nodes[first+n].Name == k.Name; n++ {
		if t.nodes[first+n].Pool == k.Pool {
			return first + n
		}
	}
	if n > 1 {
		return -1
	}
	return first
}

// Named lists the positions of the nodes that a text means: pool/name, or the name of one node
// or of several.
func (t *Table) Named(text string) []int { return t.AppendNamed(nil, text) }

// AppendNamed appends the positions that Named lists.
func (t *Table) AppendNamed(out []int, text string) []int {
	t.renewDerived()
	first, ok := t.at[text]
	if !ok {
		if first, ok = t.at[fleet.ParseNodeKey(text).Name]; !ok {
			return out
		}
	}
	for pos := first; pos < len(t.nodes) && t.nodes[pos].Name == t.nodes[first].Name; pos++ {
		if t.nodes[pos].Is(text) {
			out = append(out, pos)
		}
	}
	return out
}

// Label names a node so that Named finds it alone: by its name, or pool/name where other
// nodes have that name.
func (t *Table) Label(pos int) string {
	t.renewDerived()
	n := t.nodes[pos]
	if t.twins && (pos > 0 && t.nodes[pos-1].Name == n.Name || pos+1 < len(t.nodes) && t.nodes[pos+1].Name == n.Name) {
		return n.Key().String()
	}
	return n.Name
}

// Meet reports whether two claims are on one node.
func (t *Table) Meet(a, b *fleet.Claim) bool {
	return a.Node == b.Node && (a.Pool == b.Pool || t.Find(a.Key()) == t.Find(b.Key()))
}

// Levels is how deep the deepest known topology path is.
func (t *Table) Levels() int { t.renewDerived(); return t.levels }

// Pools lists the pools that nodes belong to, sorted.
func (t *Table) Pools() []string { t.renewDerived(); return t.pools }

// Put adds a node or replaces its description. It reports whether anything
// changed, and whether positions did.
func (t *Table) Put(n fleet.Node) (changed, moved bool) {
	dropEmptyLists(&n)
	i, found := t.searchNode(n.Key())
	if found && reflect.DeepEqual(t.nodes[i].Node, n) {
		return false, false
	}
	node := &Node{Node: n}
	node.Ideal, node.Usable = usableDevices(n.Devices)
	node.Qualities = nodeQualities(&node.Node)
	node.sign = node.classSignature()
	if found {
		t.nodes[i] = node
	} else {
		t.nodes = slices.Insert(t.nodes, i, node)
		delete(t.apart, n.Key())
	}
	t.stale, t.moved = true, t.moved || !found
	return true, !found
}

// dropEmptyLists makes lists without elements nil, so that a description is the same one after
// it was written down and read.
func dropEmptyLists(n *fleet.Node) {
	n.Features, n.Parts, n.Path, n.Devices = orNil(n.Features), orNil(n.Parts), orNil(n.Path), orNil(n.Devices)
	n.Capacity.Named = orNil(n.Capacity.Named)
	bare := func(d fleet.Device) bool { return d.Links != nil && len(d.Links) == 0 }
	if slices.ContainsFunc(n.Devices, bare) {
		n.Devices = slices.Clone(n.Devices)
		for i := range n.Devices {
			n.Devices[i].Links = orNil(n.Devices[i].Links)
		}
	}
}

func orNil[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// searchNode is where a node is, or would be.
func (t *Table) searchNode(k fleet.NodeKey) (int, bool) {
	return slices.BinarySearchFunc(t.nodes, k, func(x *Node, k fleet.NodeKey) int {
		return cmp.Or(CompareNames(x.Name, k.Name), strings.Compare(x.Pool, k.Pool))
	})
}

// Remove takes a node away and reports whether it was there. Without a pool it is the only
// node of that name.
func (t *Table) Remove(k fleet.NodeKey) bool {
	i, found := t.searchNode(k)
	if !found && k.Pool == "" { // as events without a pool were written
		found = i < len(t.nodes) && t.nodes[i].Name == k.Name && (i+1 == len(t.nodes) || t.nodes[i+1].Name != k.Name)
	}
	if !found {
		return false
	}
	if i > 0 && t.nodes[i-1].Name == k.Name || i+1 < len(t.nodes) && t.nodes[i+1].Name == k.Name {
		t.SetApart(t.nodes[i].Key())
	}
	t.nodes = slices.Delete(t.nodes, i, i+1)
	t.stale, t.moved = true, true
	return true
}

// SetApart notes that a node that is not there is no other one of its name.
func (t *Table) SetApart(k fleet.NodeKey) {
	if t.apart == nil {
		t.apart = map[fleet.NodeKey]bool{}
	}
	t.apart[k] = true
}

// Apart lists the nodes that are not there and are no others of their names, by name.
func (t *Table) Apart() []fleet.NodeKey {
	return slices.SortedFunc(maps.Keys(t.apart), fleet.NodeKey.Compare)
}

// renewDerived renews what is derived from all nodes together, once after any number of
// changes.
func (t *Table) renewDerived() {
	if !t.stale {
		return
	}
	clear(t.masks)
	clear(t.domains)
	t.vacant = [2]*State{}
	t.levels, t.pools = 0, nil
	if t.moved {
		clear(t.at)
	}
	t.stale, t.moved = false, false
	t.twins = false
	for i, n := range t.nodes {
		if i > 0 && t.nodes[i-1].Name == n.Name {
			t.twins = true
		} else {
			t.at[n.Name] = i
		}
		t.levels = max(t.levels, len(n.Path))
		if p, found := slices.BinarySearch(t.pools, n.Pool); !found {
			t.pools = slices.Insert(t.pools, p, n.Pool)
		}
	}
	for _, n := range t.nodes {
		n.Domains = n.Domains[:0]
		for level := range n.Path {
			key := strings.Join(n.Path[:level+1], "\x00")
			id, ok := t.domains[key]
			if !ok {
				id = len(t.domains)
				t.domains[key] = id
			}
			n.Domains = append(n.Domains, id)
		}
	}
	t.buildPages()
	t.computeRanks()
}

// Mask returns, by position, which devices of each node match. It counts devices
// that are not usable too: intersect with a row's free devices.
func (t *Table) Mask(m Match) []Set {
	t.renewDerived()
	if sets, ok := t.masks[m]; ok {
		return sets
	}
	sets := make([]Set, len(t.nodes))
	for i, n := range t.nodes {
		for p, d := range n.Devices[:min(len(n.Devices), MaxDevices)] {
			if m.Accepts(d) {
				sets[i] = sets[i].With(p)
			}
		}
	}
	t.masks[m] = sets
	return sets
}

// Accepts reports whether a device is what is asked for.
func (m Match) Accepts(d fleet.Device) bool {
	return d.Kind == m.Kind && d.Profile == m.Profile && (m.Type == "" || d.Type == m.Type) && d.Memory >= m.Memory
}

// Name is how reasons call the devices: "gpu", "gpu:h100", "gpu:1g.10gb".
func (m Match) Name() string {
	switch {
	case m.Profile != "":
		return m.Kind + ":" + m.Profile
	case m.Type != "":
		return m.Kind + ":" + m.Type
	}
	return m.Kind
}

// DeviceFeature is the feature of nodes that have GPUs of a type.
func DeviceFeature(kind string) string { return "gpu:" + kind }

func nodeQualities(n *fleet.Node) []string {
	out := n.Features
	for _, d := range n.Devices {
		if f := DeviceFeature(d.Type); d.Kind == "gpu" && d.Type != "" && !slices.Contains(out, f) {
			out = append(slices.Clip(out), f)
		}
	}
	return out
}

func usableDevices(devices []fleet.Device) (ideal, now Set) {
	parents := map[string]bool{}
	for _, d := range devices {
		if d.Parent != "" {
			parents[d.Parent] = true
		}
	}
	for p, d := range devices[:min(len(devices), MaxDevices)] {
		if d.UUID != "" && parents[d.UUID] {
			continue
		}
		ideal = ideal.With(p)
		if d.Foreign <= 0 && d.Fenced == "" {
			now = now.With(p)
		}
	}
	return ideal, now
}
