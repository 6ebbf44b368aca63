package query

import (
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// MarkedMachine is a machine, who owns it, and what pools call it.
type MarkedMachine struct {
	Owner fleet.MachineOwner // without a record (Epoch 0): the pool that reports it, if that is one alone
	Nodes []NodeMarks        // in the order of the pools
}

// NodeMarks is a node and the marks that keep work off it, apart: that of its engine, ours there
// (Node.Fence), and an administrator's.
type NodeMarks struct {
	Node    fleet.Node   // State and Why are the engine's
	Engine  string       // its kind
	Drained *state.Drain // by an administrator, here; nil: nobody drained it
}

// CanStart reports whether the engine, asked by anybody, could start work on the node now. Pools of the
// server's own machine start what they are told only.
func (n *NodeMarks) CanStart() bool {
	return n.Node.State == fleet.Up && n.Node.Fence == 0 && n.Engine != "local"
}

// MarkedMachines lists all machines that have an owner or that a pool reports, by name.
func (rd *Reader) MarkedMachines() []MarkedMachine {
	s := rd.of.State
	s.RLock()
	defer s.RUnlock()
	names := append(s.Owners.Machines(), s.OnMachines.Machines()...)
	slices.Sort(names)
	names = slices.Compact(names)
	out := make([]MarkedMachine, len(names))
	for i, m := range names {
		v := &out[i]
		v.Owner.Machine = m
		on := s.OnMachines.On(m)
		if o := s.Owners.Of(m); o != nil {
			v.Owner = *o
		} else if len(on) == 1 {
			v.Owner.Pool = on[0].Pool
		}
		for _, k := range on {
			n, engine := rd.reportedNode(k)
			if n.Name == "" {
				continue // it is reported no more
			}
			marks := NodeMarks{Node: n, Engine: engine}
			if _, d, ok := s.DrainOf(k); ok {
				marks.Drained = &d
			}
			v.Nodes = append(v.Nodes, marks)
		}
	}
	return out
}

// reportedNode is a node as its engine reports it, and the kind of the engine.
func (rd *Reader) reportedNode(k fleet.NodeKey) (n fleet.Node, engine string) {
	p := rd.of.Pools.ByName(k.Pool)
	if p != nil {
		engine = p.Pool.Pool.Engine
		if real := p.RealNode(k.Name); real != nil {
			return *real, engine
		}
	}
	n, _ = rd.of.State.Nodes.Get(k)
	return n, engine
}

// whyOtherPool says which machines a pool has nodes on and does not own now, for a job that waits for nodes there;
// false: there are none, or it waits for something else. The caller holds the lock of the state.
func (rd *Reader) whyOtherPool(pool string, why []reason.Reason) (reason.Reason, bool) {
	s := rd.of.State
	forNodes := slices.ContainsFunc(why, func(r reason.Reason) bool {
		switch r.Code {
		case reason.Resources, reason.NodeCount, reason.NodeDown, reason.NodeList, reason.TooLarge, reason.Constraint, reason.Endless:
			return true
		}
		return false
	})
	if !forNodes || s.Owners.Len() == 0 {
		return reason.Reason{}, false
	}
	whose := map[string][]string{} // clause about machines → their names
	for _, m := range s.OnMachines.Machines() {
		o := s.Owners.Of(m)
		if o != nil && !o.MayPlace(pool) && slices.ContainsFunc(s.OnMachines.On(m), func(k fleet.NodeKey) bool { return k.Pool == pool }) {
			clause := " is on its way " + o.String()
			if !o.Moving() {
				clause = " belongs to " + o.String()
			}
			whose[clause] = append(whose[clause], m)
		}
	}
	var clauses []string
	for _, clause := range slices.Sorted(maps.Keys(whose)) {
		clauses = append(clauses, hostlist.Compress(whose[clause])+clause)
	}
	return reason.Reason{Code: reason.OtherPool, Holder: pool, Want: strings.Join(clauses, "; ")}, len(clauses) > 0
}
