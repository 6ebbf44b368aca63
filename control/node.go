package control

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// NodeView is a node with what is held on it.
type NodeView struct {
	Node    fleet.Node // State is the engine's and ours together
	Used    resource.Vector
	Held    map[int][]job.ID // device index → jobs that hold it or a share of it
	Jobs    []job.ID         // ascending
	Drained *state.Drain     // nil: nobody drained it
}

// Nodes returns the nodes of the pool by name.
func (rd *reader) Nodes(context.Context) ([]fleet.Node, error) {
	rd.of.state.RLock()
	defer rd.of.state.RUnlock()
	var nodes []fleet.Node
	for k := range rd.of.state.Nodes.All() {
		n, _ := rd.of.state.NodeWithDrain(k)
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b fleet.Node) int {
		return cmp.Or(hostlist.Compare(a.Name, b.Name), strings.Compare(a.Pool, b.Pool))
	})
	return nodes, nil
}

// NodeViews returns the nodes of the pool by name. No disk is waited for.
func (rd *reader) NodeViews(ctx context.Context) ([]NodeView, error) {
	nodes, err := rd.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	s := rd.of.state
	s.RLock()
	defer s.RUnlock()
	out := make([]NodeView, len(nodes))
	at := make(map[fleet.NodeKey]*NodeView, len(nodes))
	for i, n := range nodes {
		out[i].Node = n
		k := n.Key()
		out[i].Used, _ = s.Ledger.Used(k)
		if _, d, ok := rd.of.state.DrainOf(k); ok {
			out[i].Drained = &d
		}
		at[k] = &out[i]
	}
	for _, a := range s.Ledger.Live() {
		for _, cl := range a.Claims {
			k, _ := rd.of.state.Nodes.Find(fleet.NodeKey{Pool: a.Pool, Name: cl.Node})
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

// SetNodes drains nodes, so that running work goes on and nothing new starts, or
// takes that back. It is durable when it returns, for all of them or for none. A name that nodes
// of several pools have is fault.Invalid without its pool: pool/name.
func (c *Control) SetNodes(ctx context.Context, by job.Actor, names []string, drain bool, why string) error {
	if len(names) == 0 {
		return fault.New(fault.Invalid, "no node is named")
	}
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		var keys []fleet.NodeKey
		for _, name := range names {
			k, err := l.state.NodeNamed(name)
			if err != nil {
				l.refuseWhenLeading(answer, err)
				return
			}
			keys = append(keys, k)
			if was, _, drained := l.state.DrainOf(k); drained && !drain && was.Pool != "" && was != k {
				keys = append(keys, was)
			}
		}
		l.stageFor(&request{answer: answer}, state.KindNodes, 0, by, state.NodesRecord(keys, drain, why), func() {
			for _, k := range keys {
				l.tellNodes(k.Name)
			}
		})
	})
}
