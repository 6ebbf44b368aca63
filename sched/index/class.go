package index

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Class is what nodes have in common that differ in name, address and place alone:
// what an empty one of them can take, each of them can.
type Class struct {
	Pool     string
	State    fleet.NodeState
	Parts    []string // partitions
	Features []string // and what DeviceFeature says of devices
	Groups   []Set    // device positions by what a request can tell apart; unusable ones are in none
}

// classSignature is equal for two nodes of one class.
func (n *Node) classSignature() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %q %v %d", n.Pool, n.State, n.Parts, n.Features, n.Capacity, n.Sockets)
	for p, d := range n.Devices[:min(len(n.Devices), MaxDevices)] { // links and NUMA too: which devices are picked is decided once for a class
		fmt.Fprintf(&b, " %q %q %q %d %d %v %v %v", d.Kind, d.Type, d.Profile, d.Memory, d.NUMA, d.Links, n.Usable.Has(p), n.Ideal.Has(p))
	}
	return b.String()
}

func newClass(n *Node) *Class {
	c := &Class{Pool: n.Pool, State: n.State, Parts: n.Parts, Features: n.Qualities}
	at := map[Match]int{}
	for p, d := range n.Devices[:min(len(n.Devices), MaxDevices)] {
		if !n.Usable.Has(p) {
			continue
		}
		m := Match{Kind: d.Kind, Type: d.Type, Profile: d.Profile, Memory: d.Memory}
		i, ok := at[m]
		if !ok {
			i = len(c.Groups)
			at[m] = i
			c.Groups = append(c.Groups, Set{})
		}
		c.Groups[i] = c.Groups[i].With(p)
	}
	return c
}

// rowKey is equal for two rows of one class of which each can take what the other can:
// the same is free, and devices that a request cannot tell apart are held alike.
func (r *Row) rowKey(class int32, c *Class, b []byte) []byte {
	flags := byte(0)
	if r.Holds == 0 {
		flags |= 1
	}
	if r.Whole > 0 {
		flags |= 2
	}
	b = append(b, flags)
	b = binary.AppendVarint(b, int64(class))
	b = binary.AppendVarint(b, int64(r.Free.CPU))
	b = binary.AppendVarint(b, int64(r.Free.Memory))
	b = binary.AppendVarint(b, int64(r.Free.Disk))
	for _, g := range c.Groups {
		b = append(b, byte(g.And(r.Devices).Len()))
	}
	b = append(b, byte(len(r.Free.Named)))
	for _, x := range r.Free.Named {
		b = append(append(b, x.Name...), 0)
		b = binary.AppendVarint(b, int64(x.Amount))
	}
	if len(r.Parts) > 0 { // which of the devices is held in part matters to what can be put beside it
		for _, p := range r.Parts {
			b = binary.AppendVarint(append(b, byte(p.Pos)), int64(p.Held))
		}
		b = binary.LittleEndian.AppendUint64(b, r.Full[0])
		b = binary.LittleEndian.AppendUint64(b, r.Full[1])
	}
	return b
}
