package place

import (
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/topo"
)

// Picks remembers which devices of a node are the best ones to take. Nodes of one
// class have the same devices and links, so that the choice is made once for each
// set of free ones. It is good until the table changes, and not safe for concurrent
// use.
type Picks struct {
	known map[pick]index.Set
	slab  []fleet.DeviceClaim
	work  work
}

type pick struct {
	class int32
	free  index.Set
	count int
}

// maxPicks bounds what is remembered.
const maxPicks = 1 << 16

// NewPicks returns an empty memory.
func NewPicks() *Picks { return &Picks{known: map[pick]index.Set{}} }

// claimWhole chooses undivided devices of one node.
func (m *Picks) claimWhole(t *index.Table, pos int, row *index.Row, w want) []fleet.DeviceClaim {
	free := row.Devices.And(w.mask)
	set := free
	if free.Len() != w.count {
		key := pick{t.Class(pos), free, w.count}
		var ok bool
		if set, ok = m.known[key]; !ok {
			set, _ = topo.Pick(t.Node(pos).Devices, free, w.count)
			if len(m.known) >= maxPicks {
				clear(m.known)
			}
			m.known[key] = set
		}
	}
	devices := t.Node(pos).Devices
	out := m.takeClaims(w.count)
	i := 0
	for p := range index.MaxDevices {
		if i == w.count {
			break
		}
		if set.Has(p) {
			out[i] = fleet.DeviceClaim{Index: devices[p].Index, Share: resource.WholeDevice}
			i++
		}
	}
	return out
}

// takeClaims cuts claims from a larger piece of memory, which lives as long as one of them.
func (m *Picks) takeClaims(n int) []fleet.DeviceClaim {
	if n > len(m.slab) {
		m.slab = make([]fleet.DeviceClaim, max(256, n))
	}
	out := m.slab[:n:n]
	m.slab = m.slab[n:]
	return out
}
