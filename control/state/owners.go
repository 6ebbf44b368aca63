package state

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/store"
)

// OwnersSet says who owns machines from then on, each by a record of its own. Where At is zero, it is
// that of the journal record.
type OwnersSet struct {
	Owners []fleet.MachineOwner `json:"owners,omitempty"`
	Freed  []string             `json:"freed,omitempty"` // machines that have no owner any more: their pool was removed
}

// docMachines begins the names of the projection's documents with the owners of some machines each: one
// for each machine would be too many, and one for all too large.
const docMachines = "machines-"

// Owners has the owner of each machine that has a record.
type Owners struct {
	m     map[string]*fleet.MachineOwner // what is in it is never written to
	shard map[string]map[string]bool     // document → machines in it
	dirty map[string]uint64              // documents that the projection lacks → how often they changed
	turn  uint64
}

func newOwners() Owners {
	return Owners{m: map[string]*fleet.MachineOwner{}, shard: map[string]map[string]bool{}, dirty: map[string]uint64{}}
}

// Of returns the record of a machine; nil: it has none.
func (o *Owners) Of(machine string) *fleet.MachineOwner { return o.m[machine] }

// Len is the number of machines with a record.
func (o *Owners) Len() int { return len(o.m) }

// Machines lists the machines that have a record, in order.
func (o *Owners) Machines() []string { return slices.Sorted(maps.Keys(o.m)) }

// shardOf is the document with a machine's record.
func shardOf(machine string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(machine))
	return fmt.Sprintf("%s%02x", docMachines, h.Sum32()%256)
}

// set writes a record; nil removes it.
func (o *Owners) set(machine string, v *fleet.MachineOwner) {
	doc := shardOf(machine)
	if v == nil {
		delete(o.m, machine)
		delete(o.shard[doc], machine)
	} else {
		if o.shard[doc] == nil {
			o.shard[doc] = map[string]bool{}
		}
		o.m[machine], o.shard[doc][machine] = v, true
	}
	o.turn++
	o.dirty[doc] = o.turn
}

func (s *State) applyOwners(r *store.Record, v OwnersSet) error {
	for i := range v.Owners {
		next := v.Owners[i]
		if next.At.IsZero() {
			next.At = r.At
		}
		now, err := s.Owners.m[next.Machine], error(nil)
		if now != nil {
			err = now.CheckNext(&next)
		} else if err = next.Check(); err == nil && next.Moving() {
			err = fmt.Errorf("machine %.70s: a hand-over of a machine that nobody owns", next.Machine)
		}
		if err != nil {
			return err
		}
		s.Owners.set(next.Machine, &next)
	}
	for _, m := range v.Freed {
		if s.Owners.m[m] == nil {
			return fmt.Errorf("machine %.70s has no owner and is freed", m)
		}
		s.Owners.set(m, nil)
	}
	return nil
}

// documents lists the documents that have records.
func (o *Owners) documents() (names []string) {
	for _, doc := range slices.Sorted(maps.Keys(o.shard)) {
		if len(o.shard[doc]) > 0 {
			names = append(names, doc)
		}
	}
	return names
}

// pendingDocs adds the documents that the projection lacks; nil takes one away. written has to hear that
// they were written.
func (o *Owners) pendingDocs(into map[string][]byte) (written func()) {
	turns := maps.Clone(o.dirty)
	for doc := range turns {
		into[doc] = nil
		if len(o.shard[doc]) == 0 {
			continue
		}
		list := make([]*fleet.MachineOwner, 0, len(o.shard[doc]))
		for _, m := range slices.Sorted(maps.Keys(o.shard[doc])) {
			list = append(list, o.m[m])
		}
		into[doc] = MustJSON(list)
	}
	return func() {
		for doc, turn := range turns {
			if o.dirty[doc] == turn { // it has not changed since
				delete(o.dirty, doc)
			}
		}
	}
}

// restore reads the documents that a projection names.
func (o *Owners) restore(ctx context.Context, st store.Store, names []string) error {
	for _, doc := range names {
		b, err := st.Doc(ctx, doc)
		if err != nil {
			return DamagedError(fmt.Errorf("document %s: %w", doc, err))
		}
		var list []*fleet.MachineOwner
		if err := json.Unmarshal(b, &list); err != nil {
			return DamagedError(fmt.Errorf("document %s: %w", doc, err))
		}
		for _, v := range list {
			switch {
			case v == nil || shardOf(v.Machine) != doc:
				return DamagedError(fmt.Errorf("document %s has a machine that belongs elsewhere", doc))
			case o.m[v.Machine] != nil:
				return DamagedError(fmt.Errorf("document %s: machine %.70s is there twice", doc, v.Machine))
			}
			if err := v.Check(); err != nil {
				return DamagedError(fmt.Errorf("document %s: %w", doc, err))
			}
			o.set(v.Machine, v)
		}
	}
	clear(o.dirty)
	return nil
}

// NodesByMachine finds the nodes that pools report on machines. It is made anew when nodes come, go or
// turn out to be on other machines, and never written.
type NodesByMachine struct {
	on    map[string][]fleet.NodeKey
	alias map[fleet.NodeKey]bool // nodes that may also be the machine of their own name
}

// NewNodesByMachine makes it of all nodes, the real ones of pools that are one node to the core among
// them. A machine's nodes are in the order of the nodes given.
//
// Two nodes of one name are taken for one machine unless both say on which machines they are: one that
// does also needs the machine of its own name then.
func NewNodesByMachine(nodes []fleet.Node) NodesByMachine {
	b := NodesByMachine{on: make(map[string][]fleet.NodeKey, len(nodes)), alias: map[fleet.NodeKey]bool{}}
	var aliases []*fleet.Node
	for i := range nodes {
		n := &nodes[i]
		for _, m := range n.Machines() {
			b.on[m] = append(b.on[m], n.Key())
		}
		if len(n.Hosts) > 0 && !slices.Contains(n.Hosts, n.Name) {
			aliases = append(aliases, n)
		}
	}
	if len(aliases) == 0 {
		return b
	}
	plain := map[string][]string{} // name → pools with a node of that name that says no machine
	for i := range nodes {
		if n := &nodes[i]; len(n.Hosts) == 0 {
			plain[n.Name] = append(plain[n.Name], n.Pool)
		}
	}
	for _, n := range aliases {
		if slices.ContainsFunc(plain[n.Name], func(pool string) bool { return pool != n.Pool }) {
			b.on[n.Name] = append(b.on[n.Name], n.Key())
			b.alias[n.Key()] = true
		}
	}
	return b
}

// On lists the nodes on a machine; it is not to be changed.
func (b *NodesByMachine) On(machine string) []fleet.NodeKey { return b.on[machine] }

// Machines lists the machines that pools report, in order.
func (b *NodesByMachine) Machines() []string { return slices.Sorted(maps.Keys(b.on)) }

// Of lists the machines that a node needs to own before work starts on it.
func (b *NodesByMachine) Of(n *fleet.Node) []string {
	if b.alias[n.Key()] {
		return append(slices.Clone(n.Machines()), n.Name)
	}
	return n.Machines()
}

// WhyNotOwned says why no work may start on a node because of who owns its machines; empty: it may. With
// one pool, a machine needs no record.
func (s *State) WhyNotOwned(n *fleet.Node) string {
	if aggregate.Is(n.Name) || s.Owners.Len() == 0 && !s.ManyPools {
		return ""
	}
	for _, m := range s.OnMachines.Of(n) {
		o := s.Owners.Of(m)
		switch {
		case o == nil && s.ManyPools && n.Fence != 0:
			return "machine " + m + " has no owner: the journal has none, and Coxswain's fence stands on its nodes; remove it, in the engine of the pool that is to have the machine"
		case o == nil && s.ManyPools:
			return "machine " + m + " has no owner yet: its record is being written"
		case o != nil:
			if why := o.WhyNot(n.Pool); why != "" {
				if !o.Moving() && len(s.PoolNames) > 0 && !slices.Contains(s.PoolNames, o.Pool) {
					why += ", which is not configured any more; to give it away: cox pool remove " + o.Pool + " --force"
				}
				return why
			}
		}
	}
	return ""
}

// mostNamed is how many machines an event names; of more it gives the number.
const mostNamed = 64

// OwnerOf is the record of a node's machine: of several, one that keeps work off the node, else the first; nil: it
// has none. It is not to be written to.
func (s *State) OwnerOf(n *fleet.Node) (first *fleet.MachineOwner) {
	if aggregate.Is(n.Name) {
		return nil
	}
	for _, m := range s.OnMachines.Of(n) {
		o := s.Owners.Of(m)
		switch {
		case o == nil:
		case !o.MayPlace(n.Pool):
			return o
		case first == nil:
			first = o
		}
	}
	return first
}

// machines lists the machines of a record, if these are few.
func (v *OwnersSet) machines() []string {
	if len(v.Owners)+len(v.Freed) > mostNamed {
		return nil
	}
	out := make([]string, 0, len(v.Owners)+len(v.Freed))
	for i := range v.Owners {
		out = append(out, v.Owners[i].Machine)
	}
	return append(out, v.Freed...)
}

// message says of a record what has changed, for people.
func (v *OwnersSet) message() string {
	switch n := len(v.Owners) + len(v.Freed); {
	case n > mostNamed:
		return strconv.Itoa(n) + " machines"
	case len(v.Owners) == 0:
		return "of no pool any more"
	}
	return v.Owners[0].String()
}
