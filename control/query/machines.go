package query

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// MachineView is a machine that has an owner, with its nodes and what is held on them.
type MachineView struct {
	Owner fleet.MachineOwner
	Nodes []MachineNode // of all pools that report the machine, by pool and name
	Work  []MachineWork // of all pools, by job
}

// MachineNode is a node that a pool reports on a machine: the real one, of a pool that is one node to the core.
type MachineNode struct {
	fleet.Node      // as the engine says; it is not to be written to
	Delegated  bool // the pool's own scheduler chooses nodes
}

// MachineWork is something that the ledger holds on a machine.
type MachineWork struct {
	Job     job.ID
	Name    string // as it is shown: "7_3"
	Node    fleet.NodeKey
	Until   time.Time // its time limit ends it then; zero: it has none
	Requeue bool      // it may be requeued
	Ending  bool      // a record asks for its end
	Part    *job.Part // of a controller's work; nil: it is none
}

// Machines lists the machines that have an owner, by name. No engine is asked, and no disk is waited for.
func (rd *Reader) Machines(context.Context) []MachineView {
	s := rd.of.State
	s.RLock()
	defer s.RUnlock()
	delegated := map[fleet.NodeKey]*fleet.Node{}
	for _, p := range rd.of.Pools.AllPools() {
		for i := range p.Real.Nodes {
			if n := &p.Real.Nodes[i]; p.Delegated {
				delegated[fleet.NodeKey{Pool: p.Name, Name: n.Name}] = n
			}
		}
	}
	names := s.Owners.Machines()
	out := make([]MachineView, len(names))
	on := map[fleet.NodeKey][]*MachineView{}
	for i, name := range names {
		v := &out[i]
		v.Owner = *s.Owners.Of(name)
		for _, k := range s.OnMachines.On(name) {
			n, ok := s.Nodes.Get(k)
			if real := delegated[k]; real != nil {
				n, ok = *real, true
			}
			if !ok {
				continue
			}
			n.Pool = k.Pool
			v.Nodes = append(v.Nodes, MachineNode{Node: n, Delegated: delegated[k] != nil})
			on[k] = append(on[k], v)
		}
		slices.SortFunc(v.Nodes, func(a, b MachineNode) int {
			return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Name, b.Name))
		})
	}
	for _, a := range s.Ledger.Live() {
		e := s.Jobs[a.Job]
		if e == nil {
			continue
		}
		claims := a.Claims
		if state.IsDelegated(claims) && e.Last != nil {
			claims = e.Last.NodeClaims()
		}
		for i := range claims {
			k := fleet.NodeKey{Pool: a.Pool, Name: claims[i].Node}
			for _, v := range on[k] {
				v.addWork(e, k, rd.of.Clock.Now())
			}
		}
	}
	for i := range out {
		slices.SortFunc(out[i].Work, func(a, b MachineWork) int { return cmp.Or(cmp.Compare(a.Job, b.Job), a.Node.Compare(b.Node)) })
	}
	return out
}

// addWork adds a job on a node, once.
func (v *MachineView) addWork(e *state.JobRecord, k fleet.NodeKey, now time.Time) {
	if slices.ContainsFunc(v.Work, func(w MachineWork) bool { return w.Job == e.ID && w.Node == k }) {
		return
	}
	w := MachineWork{Job: e.ID, Name: e.Name(), Node: k, Requeue: e.Shared.Spec.Requeue, Part: e.ExtraOrZero().Part}
	if limit, started := e.TimeLimit(), e.StartTime(); limit > 0 {
		if started.IsZero() { // it is about to start
			started = now
		}
		w.Until = started.Add(limit)
	}
	if x := e.Last; x != nil {
		w.Ending = x.Cancel != nil || x.Requeue != nil || x.Expired != nil || x.Preempted != nil
	}
	v.Work = append(v.Work, w)
}

// EngineOf is the engine of a pool, for what an engine can do beside running work (engine.NodeFencer). It is not
// to be closed. nil: there is no pool of that name.
func (rd *Reader) EngineOf(pool string) engine.Engine {
	if p := rd.of.Pools.ByName(pool); p != nil {
		return p.Engine
	}
	return nil
}
