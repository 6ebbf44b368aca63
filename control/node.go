package control

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/resource"
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

// NodeViews returns the nodes of the pool by name. No disk is waited for.
func (c *Control) NodeViews(ctx context.Context) ([]NodeView, error) {
	nodes, err := c.Nodes(ctx)
	var out []NodeView
	for _, n := range nodes {
		out = append(out, NodeView{Node: n})
	}
	return out, err
}

// SetNodes drains nodes, so that running work goes on and nothing new starts, or
// takes that back. It is durable when it returns, for all of them or for none.
func (c *Control) SetNodes(context.Context, job.Actor, []string, bool, string) error {
	return fault.New(fault.Unsupported, "draining nodes is not built yet")
}
