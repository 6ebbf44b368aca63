package controller

import (
	"context"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/handover/decide"
)

// controlPlane is the Plane of a control plane.
type controlPlane struct{ *control.Control }

// NewPlane makes the Plane of a control plane.
func NewPlane(c *control.Control) Plane { return controlPlane{c} }

func (p controlPlane) Pools() (names []string) {
	for _, v := range p.Control.Pools() {
		if !v.Gone {
			names = append(names, v.Name)
		}
	}
	return names
}

func (p controlPlane) Engine(pool string) engine.Engine { return p.EngineOf(pool) }

func (p controlPlane) Machines(ctx context.Context) ([]Machine, error) {
	views := p.Control.Machines(ctx)
	spread := map[fleet.NodeKey]int{} // node → machines that it is on
	for i := range views {
		for k := range views[i].Nodes {
			spread[views[i].Nodes[k].Key()]++
		}
	}
	configured, unheard := []string{}, []string{}
	for _, v := range p.Control.Pools() {
		if !v.Gone {
			configured = append(configured, v.Name)
		}
		if !v.Gone && !v.Answered {
			unheard = append(unheard, v.Name)
		}
	}
	out := make([]Machine, len(views))
	for i := range views {
		v := &views[i]
		out[i] = Machine{Owner: v.Owner, Pools: configured, Unheard: unheard}
		for k := range v.Nodes {
			n := &v.Nodes[k]
			out[i].Nodes = append(out[i].Nodes, MachineNode{
				NodeKey: n.Key(), Delegated: n.Delegated, State: n.State, Why: n.Why, Fence: n.Fence, Unfit: p.unfitText(n.Key()), Path: n.Path, Machines: spread[n.Key()],
			})
		}
		for k := range v.Work {
			out[i].Work = append(out[i].Work, workOf(&v.Work[k]))
		}
	}
	return out, nil
}

// unfitText is which check keeps new work off a node as a whole; empty: none does.
func (p controlPlane) unfitText(k fleet.NodeKey) string {
	h, _ := p.Health(k)
	if i := slices.IndexFunc(h.Fences, func(f fleet.HealthFence) bool { return f.Device == nil }); i >= 0 {
		return h.Fences[i].String()
	}
	return ""
}

// workOf is work as decisions see it. Replicas of services are replaced first: their controller sees the
// hand-over as a drain.
func workOf(w *query.MachineWork) decide.Work {
	out := decide.Work{Job: w.Job, Name: w.Name, Pool: w.Node.Pool, Node: w.Node.Name, Until: w.Until, Requeues: w.Requeue, Ending: w.Ending}
	if w.Part != nil {
		if name, ok := strings.CutPrefix(w.Part.Controller, service.ControllerKind+"/"); ok {
			out.Service, out.Requeues = name, false
		}
	}
	return out
}

func (p controlPlane) Requeue(ctx context.Context, by job.Actor, ids []job.ID) ([]error, error) {
	return p.Change(ctx, by, ids, control.Requeue{})
}

func (p controlPlane) Next(ctx context.Context, after uint64) (uint64, error) {
	_, last, _, err := p.Control.Next(ctx, after)
	return last, err
}
