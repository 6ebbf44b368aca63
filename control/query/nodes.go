package query

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// whatIfSpec is what the core is asked about for a specification of the caller's own, whose
// pool is filled in.
func (rd *Reader) whatIfSpec(spec *job.Spec) *job.Spec {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	spec.Pool = rd.of.Pools.NameOf(spec)
	return rd.of.State.AggregateSpec(spec, spec.Pool)
}

// Seen lists the real nodes of a pool that is one node to the core, by name, as its engine
// last said; false: it is not such a pool. They are not to be written to.
func (rd *Reader) Seen(pool string) ([]fleet.Node, bool) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	p := rd.of.Pools.ByName(pool)
	if p == nil || !p.Delegated {
		return nil, false
	}
	return p.Real.Nodes, true
}

// NodeView is a node with the jobs and devices that are held on it.
type NodeView struct {
	Node    fleet.Node // State is the engine's and ours together
	Used    resource.Vector
	Held    map[int][]job.ID // device index → jobs that hold it or a share of it
	Jobs    []job.ID         // ascending
	Drained *state.Drain     // nil: nobody drained it
	Health  state.NodeHealth // its fences since checks failed; not to be written to
	// Owner is the record of its machine: of several, one that keeps work off it, else the first. nil: it has none.
	Owner *fleet.MachineOwner
}

// Health is the record of a node's health; known is false if no pool has the node, or its own scheduler
// chooses the nodes. What is in it is not to be written to.
func (rd *Reader) Health(k fleet.NodeKey) (h state.NodeHealth, known bool) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	_, known = rd.of.State.Nodes.Get(k)
	return rd.of.State.Health[k], known
}

// Fenced lists the nodes of a pool on which checks have fenced something, by name; an empty pool is the
// first one. It is not to be written to.
func (rd *Reader) Fenced(pool string) (out []state.NodeHealth) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	if pool == "" {
		pool = rd.of.Pools.AllPools()[0].Name
	}
	for k, h := range rd.of.State.Health {
		if _, there := rd.of.State.Nodes.Get(k); there && k.Pool == pool && len(h.Fences) > 0 {
			out = append(out, h)
		}
	}
	slices.SortFunc(out, func(a, b state.NodeHealth) int { return hostlist.Compare(a.Node, b.Node) })
	return out
}

// NodesOf lists the nodes of a pool.
func (rd *Reader) NodesOf(pool string) (out []fleet.NodeKey) {
	s := rd.of.State
	s.RLock()
	defer s.RUnlock()
	for k := range s.Nodes.All() {
		if k.Pool == pool {
			out = append(out, k)
		}
	}
	return out
}

// Busy reports whether claims are held on a node.
func (rd *Reader) Busy(k fleet.NodeKey) bool {
	s := rd.of.State
	s.RLock()
	defer s.RUnlock()
	return s.Ledger.HeldOn(k) > 0
}

// Nodes returns the nodes of all pools by name.
func (rd *Reader) Nodes(context.Context) ([]fleet.Node, error) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	var nodes []fleet.Node
	for k := range rd.of.State.Nodes.All() {
		n, _ := rd.of.State.NodeWithDrain(k)
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b fleet.Node) int {
		return cmp.Or(hostlist.Compare(a.Name, b.Name), strings.Compare(a.Pool, b.Pool))
	})
	return nodes, nil
}

// NodeViews returns the nodes of all pools by name, with what is held on them. No disk is waited
// for.
func (rd *Reader) NodeViews(ctx context.Context) ([]NodeView, error) {
	nodes, err := rd.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	s := rd.of.State
	s.RLock()
	defer s.RUnlock()
	out := make([]NodeView, len(nodes))
	at := make(map[fleet.NodeKey]*NodeView, len(nodes))
	for i, n := range nodes {
		out[i].Node = n
		k := n.Key()
		out[i].Used, _ = s.Ledger.Used(k)
		if _, d, ok := rd.of.State.DrainOf(k); ok {
			out[i].Drained = &d
		}
		out[i].Health = rd.of.State.Health[k]
		out[i].Owner = s.OwnerOf(&n)
		at[k] = &out[i]
	}
	for _, a := range s.Ledger.Live() {
		for _, cl := range a.Claims {
			k, _ := rd.of.State.Nodes.Find(fleet.NodeKey{Pool: a.Pool, Name: cl.Node})
			v := at[k]
			if v == nil {
				continue
			}
			if !slices.Contains(v.Jobs, a.Job) {
				v.Jobs = append(v.Jobs, a.Job)
			}
			for _, d := range cl.Devices {
				if a.Parked { // it lends them
					break
				}
				if v.Held == nil {
					v.Held = map[int][]job.ID{}
				}
				v.Held[d.Index] = append(v.Held[d.Index], a.Job)
			}
		}
	}
	for i := range out {
		slices.Sort(out[i].Jobs)
	}
	return out, nil
}

// AddedEngine is the engine of a pool that was added while a server ran, for what an engine
// can do beside running work (engine.Logger, engine.Execer). It is not to be closed. nil:
// the pool is of the configuration, or there is none of that name.
func (rd *Reader) AddedEngine(pool string) engine.Engine {
	if p := rd.of.Pools.ByName(pool); p != nil && p.Own {
		return p.Engine
	}
	return nil
}

// Pools lists the pools that are configured and those that were added. No engine is asked.
func (rd *Reader) Pools() []pools.View {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	all := rd.of.Pools.AllPools()
	out := make([]pools.View, len(all))
	at := make(map[string]*pools.View, len(all))
	for i, p := range all {
		v := &out[i]
		*v = pools.View{Pool: p.Pool.Pool, Default: i == 0, Answered: p.Known, Gone: p.IsUnconfigured()}
		v.Broken = p.OpenFailure()
		if s, ok := rd.of.State.Pools[p.Name]; ok {
			v.Added = &s
		}
		v.Pulses = p.HasHeartbeat()
		p.Status.FillView(v)
		at[p.Name] = v
	}
	for _, n := range rd.of.State.Nodes.All() {
		if v := at[n.Pool]; v != nil {
			v.Nodes++
			v.Devices += len(n.Devices)
			for k := range n.Devices {
				if n.Devices[k].Declared {
					v.Declared++
				}
			}
		}
	}
	for i, p := range all {
		if v := &out[i]; p.Delegated {
			v.Delegated = true
			v.Nodes, v.Devices = len(p.Real.Nodes), 0
			for k := range p.Real.Nodes {
				v.Devices += len(p.Real.Nodes[k].Devices)
			}
		}
	}
	return out
}

// NotOwned lists the nodes of a pool on which its engine's own scheduler must start nothing, for other pools own
// their machines. fault.Unavailable: it is not known yet.
func (rd *Reader) NotOwned(pool string) ([]string, error) {
	rd.of.State.RLock()
	defer rd.of.State.RUnlock()
	p := rd.of.Pools.ByName(pool)
	if p == nil {
		return nil, nil
	}
	return p.NotOwned(rd.of.State)
}
