package controller

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// FenceRequest asks that our fence be kept on the nodes that other pools than the owner have on machines, before the
// first hand-over.
type FenceRequest struct {
	Nodes  []string // names or host lists of machines, or of nodes on them; POOL/NODE where several pools have the name
	Remove bool     // take it back
	Reason string   // for people; needed unless Remove
}

// Closed is what becomes of a machine's other nodes.
type Closed struct {
	Machine, Owner string
	Nodes          []fleet.NodeKey // of other pools
	Epoch          uint64          // of the fence
	Already        bool            // it was so before, and nothing changed
	Err            error           // nil: it is so as soon as the engines answer
}

// Fence has the nodes of other pools on machines closed, or opened again. That they are asked for is durable when
// Fence returns; the engines are called after that, again and again until they have done it. Each machine is refused by
// itself: Closed.Err. The error is of a request that names none.
func (c *Controller) Fence(ctx context.Context, by job.Actor, r FenceRequest) ([]Closed, error) {
	names, err := hostlist.Expand(strings.Join(r.Nodes, ","))
	switch {
	case err != nil:
		return nil, fault.New(fault.Invalid, "nodes: %w", err).Advise("names or host lists: v[1-4]")
	case len(names) == 0:
		return nil, fault.New(fault.Invalid, "no node is named")
	case !r.Remove && strings.TrimSpace(r.Reason) == "":
		return nil, fault.New(fault.Invalid, "a reason is required: --reason \"pool k8s has the machine\"").Advise("the other engine shows it, until the node is opened")
	}
	list, err := c.cfg.Plane.Machines(ctx)
	if err != nil {
		return nil, err
	}
	var out []Closed
	var next []fleet.MachineOwner
	for _, name := range names {
		m, err := machineNamed(name, list)
		if err != nil {
			return nil, err
		}
		o := m.Owner
		if slices.ContainsFunc(out, func(v Closed) bool { return v.Machine == o.Machine }) {
			continue
		}
		v := Closed{Machine: o.Machine, Owner: o.Pool, Epoch: o.Epoch, Nodes: m.otherNodes(), Err: c.checkFence(m, name, r.Remove)}
		v.Already = v.Err == nil && m.isMarked(!r.Remove)
		out, next = append(out, v), append(next, o.WithMarks(!r.Remove, by.Name, r.Reason))
	}
	var writing sync.WaitGroup
	for i := range out {
		v := &out[i]
		if v.Err != nil || v.Already {
			continue
		}
		writing.Go(func() { // the control plane writes them together
			if v.Err = c.cfg.Plane.MoveMachine(ctx, by, next[i]); v.Err == nil {
				v.Epoch = next[i].Epoch
			}
		})
	}
	writing.Wait()
	c.Wake()
	return out, nil
}

// otherNodes lists the nodes on the machine of pools that do not own it.
func (m *Machine) otherNodes() (out []fleet.NodeKey) {
	for i := range m.Nodes {
		if m.Nodes[i].Pool != m.Owner.Pool {
			out = append(out, m.Nodes[i].NodeKey)
		}
	}
	return out
}

// isMarked reports whether the record asks for it that the other nodes are closed, or open and without a fence.
func (m *Machine) isMarked(fenced bool) bool {
	if fenced || m.Owner.Fenced {
		return fenced == m.Owner.Fenced
	}
	return m.Owner.Open || !slices.ContainsFunc(m.Nodes, func(n MachineNode) bool { return n.Pool != m.Owner.Pool && n.Fence != 0 })
}

// checkFence says why the other nodes of a machine cannot be closed or opened.
func (c *Controller) checkFence(m *Machine, name string, remove bool) error {
	o := &m.Owner
	_, node, qualified := strings.Cut(name, "/")
	if !qualified {
		node = name
	}
	named := func(n MachineNode) bool { return n.Name == node && (!qualified || n.Pool+"/"+n.Name == name) }
	owners := slices.ContainsFunc(m.Nodes, func(n MachineNode) bool { return n.Pool == o.Pool && named(n) })
	others := slices.ContainsFunc(m.Nodes, func(n MachineNode) bool { return n.Pool != o.Pool && named(n) })
	switch {
	case o.Moving():
		return fault.New(fault.Conflict, "machine %s is handed over %s, and its fences are those of the hand-over", o.Machine, o).Advise("cox machines shows how far it is; cox node move --abort %s walks it back", o.Machine)
	case owners && !others && name != o.Machine:
		return fault.New(fault.Invalid, "node %s is of pool %s, which owns machine %s: its engine is the one that starts work there", name, o.Pool, o.Machine).
			Advise("to start no new jobs there: cox node drain %s; to close the nodes of other pools: cox node fence %s", name, o.Machine)
	case len(m.otherNodes()) == 0:
		return fault.New(fault.Conflict, "no other pool than %s has a node on machine %s", o.Pool, o.Machine).Advise("to start no new jobs there: cox node drain")
	case remove && o.Fenced && o.Last != "" && c.cfg.Plane.Engine(o.Last) != nil: // else nobody can move it back
		return fault.New(fault.Conflict, "machine %s came from pool %s to pool %s, and the nodes of other pools stay closed as long as pool %s has it", o.Machine, o.Last, o.Pool, o.Pool).
			Advise("move it back: cox node move %s --to %s", o.Machine, o.Last)
	}
	for _, k := range m.otherNodes() {
		if _, fences := c.cfg.Plane.Engine(k.Pool).(engine.NodeFencer); !fences {
			return fault.New(fault.Unsupported, "the engine of pool %s cannot fence nodes, so node %s stays open", k.Pool, k.Name).Advise("close it there yourself")
		}
	}
	return nil
}
