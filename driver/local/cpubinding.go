package local

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// An attempt that has devices runs on the CPUs of the NUMA nodes that these hang on: all
// CPUs of those nodes, not particular ones, so that it may still use what others leave
// idle there. It is the affinity of its processes, which a program may change: it brings
// work close to its devices and keeps nobody out.
//
// The CPUs that attempts bound to a NUMA node were given never exceed what it has: where
// an attempt asks for more than is left there, the nearest other node is added, and where
// all would have to be, or its devices hang on all, it is not bound, and counts against none.
// Attempts without devices are never bound, nor those with devices of which the NUMA node is
// not known, or machines with only one.

// NUMANode is a part of the machine's memory and its CPUs.
type NUMANode struct {
	ID       int
	CPUs     []int
	Distance []int // to each of Config.NUMA, in their order; nil: not known
}

// bindCPUs says on which CPUs an attempt runs on each of its nodes. Nodes on which it is not
// bound are left out. The caller holds e.binding.
func (e *Engine) bindCPUs(claims []fleet.Claim, nodes []fleet.Node) []attempt.Binding {
	if len(e.cfg.NUMA) < 2 {
		return nil
	}
	var out []attempt.Binding
	held := e.liveBindings()
	for i := range nodes {
		near, asked := nearestNUMA(&nodes[i], claims)
		if len(near) == 0 {
			continue
		}
		b := attempt.Binding{Node: nodes[i].Name, NUMA: e.addNUMANodes(near, asked, held), Asked: asked}
		if b.NUMA == nil {
			continue
		}
		for _, n := range e.cfg.NUMA {
			if slices.Contains(b.NUMA, n.ID) {
				b.CPUs = append(b.CPUs, n.CPUs...)
			}
		}
		slices.Sort(b.CPUs)
		out, held = append(out, b), append(held, b)
	}
	return out
}

// liveBindings lists the bindings of attempts that are not proved gone.
func (e *Engine) liveBindings() (out []attempt.Binding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.gangs {
		select {
		case <-g.done:
		default:
			out = append(out, g.launch.Bind...)
		}
	}
	return out
}

// nearestNUMA is the NUMA nodes of the devices that claims have on a node, and the CPUs that
// they have there; none: there are no devices, or of some it is not known.
func nearestNUMA(n *fleet.Node, claims []fleet.Claim) (near []int, asked resource.Amount) {
	for _, c := range claims {
		if c.Node != n.Name {
			continue
		}
		asked += c.Take.CPU
		for _, d := range c.Devices {
			i := slices.IndexFunc(n.Devices, func(x fleet.Device) bool { return x.Index == d.Index })
			if i < 0 || n.Devices[i].NUMA < 0 {
				return nil, 0
			}
			if !slices.Contains(near, n.Devices[i].NUMA) {
				near = append(near, n.Devices[i].NUMA)
			}
		}
	}
	slices.Sort(near)
	return near, asked
}

// addNUMANodes adds NUMA nodes, the nearest first, until so many CPUs are left beside what is
// bound to any of them; nil: all would have to be, or one is not known.
func (e *Engine) addNUMANodes(near []int, asked resource.Amount, held []attempt.Binding) []int {
	for _, id := range near {
		if !slices.ContainsFunc(e.cfg.NUMA, func(n NUMANode) bool { return n.ID == id && len(n.CPUs) > 0 }) {
			return nil
		}
	}
	set := slices.Clone(near)
	for _, id := range e.byDistance(near) {
		if e.unboundCPUs(set, held) >= asked {
			break
		}
		set = append(set, id)
	}
	if len(set) == len(e.cfg.NUMA) || e.unboundCPUs(set, held) < asked {
		return nil
	}
	slices.Sort(set)
	return set
}

// unboundCPUs is the CPUs of some NUMA nodes less what is bound to any of them.
func (e *Engine) unboundCPUs(set []int, held []attempt.Binding) resource.Amount {
	left := resource.Amount(0)
	for _, n := range e.cfg.NUMA {
		if slices.Contains(set, n.ID) {
			left += resource.CPUs(len(n.CPUs))
		}
	}
	for _, b := range held {
		if slices.ContainsFunc(b.NUMA, func(id int) bool { return slices.Contains(set, id) }) {
			left -= b.Asked
		}
	}
	return left
}

// byDistance lists the other NUMA nodes, those that are nearest to the first of near
// first.
func (e *Engine) byDistance(near []int) []int {
	type other struct{ id, distance int }
	var others []other
	from := slices.IndexFunc(e.cfg.NUMA, func(n NUMANode) bool { return n.ID == near[0] })
	for i, n := range e.cfg.NUMA {
		if slices.Contains(near, n.ID) {
			continue
		}
		o := other{id: n.ID}
		if d := e.cfg.NUMA[from].Distance; i < len(d) {
			o.distance = d[i]
		}
		others = append(others, o)
	}
	slices.SortFunc(others, func(a, b other) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.id, b.id)) })
	var out []int
	for _, o := range others {
		out = append(out, o.id)
	}
	return out
}

// NUMAOf is the memory nodes of a machine, for Config.
func NUMAOf(m discover.Machine) []NUMANode {
	var out []NUMANode
	for _, n := range m.NUMA {
		out = append(out, NUMANode{ID: n.ID, CPUs: n.CPUs, Distance: n.Distance})
	}
	return out
}
