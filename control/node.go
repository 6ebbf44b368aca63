package control

import (
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/internal/planted"
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
	Drained *Drain           // nil: nobody drained it
}

// Drain says who keeps new work off a node, and why.
type Drain struct {
	By     job.Actor `json:"by,omitzero"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// node is a node as engine and administrators want it.
func (c *Control) node(name string) (fleet.Node, bool) {
	n, ok := c.nodes[name]
	if d, drained := c.state.drains[name]; ok && drained && n.State == fleet.Up && !planted.DrainIgnored {
		n.State = fleet.Draining
		n.Why = d.Reason
	}
	return n, ok
}

// Nodes returns the nodes of the pool by name.
func (c *Control) Nodes(context.Context) ([]fleet.Node, error) {
	c.state.mu.RLock()
	defer c.state.mu.RUnlock()
	var nodes []fleet.Node
	for name := range c.nodes {
		n, _ := c.node(name)
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b fleet.Node) int { return hostlist.Compare(a.Name, b.Name) })
	return nodes, nil
}

// NodeViews returns the nodes of the pool by name. No disk is waited for.
func (c *Control) NodeViews(ctx context.Context) ([]NodeView, error) {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	s := c.state
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]NodeView, len(nodes))
	at := make(map[string]*NodeView, len(nodes))
	for i, n := range nodes {
		out[i].Node = n
		out[i].Used, _ = s.led.Used(n.Name)
		if d, ok := s.drains[n.Name]; ok {
			out[i].Drained = &d
		}
		at[n.Name] = &out[i]
	}
	for _, a := range s.led.Live() {
		for _, cl := range a.Claims {
			v := at[cl.Node]
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
// takes that back. It is durable when it returns, for all of them or for none.
func (c *Control) SetNodes(ctx context.Context, by job.Actor, names []string, drain bool, why string) error {
	if len(names) == 0 {
		return fault.New(fault.Invalid, "no node is named")
	}
	v := nodesSet{Nodes: slices.Clone(names), Drain: drain, Reason: why}
	return c.ask(ctx, message{}, func(l *loop, answer func(error)) {
		for _, name := range names {
			_, known := l.nodes[name]
			if _, drained := l.state.drains[name]; !known && !drained {
				l.settled(answer, fault.New(fault.NotFound, "there is no node %s", name).Advise("cox nodes lists them"))
				return
			}
		}
		l.stageFor(&request{answer: answer}, kindNodes, 0, by, v, func() {
			for _, name := range names {
				l.tellNode(name)
			}
		})
	})
}

// equalNodes reports whether nothing about a node has changed that anybody sees.
func equalNodes(a, b *fleet.Node) bool {
	return a.State == b.State && a.Why == b.Why && a.Address == b.Address && a.Sockets == b.Sockets && slices.Equal(a.Hosts, b.Hosts) &&
		slices.Equal(a.Features, b.Features) && slices.Equal(a.Parts, b.Parts) && slices.Equal(a.Path, b.Path) &&
		a.Capacity.Sub(b.Capacity).IsZero() && slices.EqualFunc(a.Devices, b.Devices, equalDevices)
}

func equalDevices(a, b fleet.Device) bool {
	if !slices.Equal(a.Links, b.Links) {
		return false
	}
	return a.Index == b.Index && a.Minor == b.Minor && a.Kind == b.Kind && a.Type == b.Type && a.UUID == b.UUID &&
		a.Memory == b.Memory && a.NUMA == b.NUMA && a.Bus == b.Bus && a.Declared == b.Declared &&
		a.Profile == b.Profile && a.Parent == b.Parent && a.Foreign == b.Foreign
}
