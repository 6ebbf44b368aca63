package controller

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
)

// controlPlane is the Plane of a control plane.
type controlPlane struct {
	*control.Control

	mu     sync.Mutex
	drains map[fleet.NodeKey]string // why nodes are drained
	read   time.Time                // when
}

// NewPlane makes the Plane of a control plane.
func NewPlane(c *control.Control) Plane { return &controlPlane{Control: c} }

func (p *controlPlane) Documents(context.Context) (out []Stored, err error) {
	for _, v := range p.Controllers(service.ControllerKind) {
		out = append(out, Stored{Controller: v.Name, Owner: v.Owner, Version: v.Version, Payload: v.Document})
	}
	return out, nil
}

func (p *controlPlane) SetDocument(ctx context.Context, by job.Actor, s Stored) error {
	return p.SetController(ctx, by, state.Controller{Name: s.Controller, Owner: s.Owner, Version: s.Version, Document: s.Payload})
}

func (p *controlPlane) RemoveDocument(ctx context.Context, by job.Actor, controller string) error {
	return p.RemoveController(ctx, by, controller)
}

func (p *controlPlane) Submit(ctx context.Context, part job.Part, s control.Submission) (control.Accepted, error) {
	spec := *s.Spec
	spec.Part, s.Spec = &part, &spec
	return p.Control.Submit(ctx, s)
}

func (p *controlPlane) Parts(ctx context.Context, controller string) ([]Part, error) {
	views := p.Control.Parts(controller)
	out := make([]Part, 0, len(views))
	for i := range views {
		if part, ok := p.partOf(ctx, views[i]); ok {
			out = append(out, part)
		}
	}
	return out, nil
}

func (p *controlPlane) Next(ctx context.Context, after uint64) (out []Part, last uint64, gap bool, err error) {
	views, last, gap, err := p.Control.Next(ctx, after)
	for i := range views {
		if part, ok := p.partOf(ctx, views[i]); ok {
			out = append(out, part)
		}
	}
	return out, last, gap, err
}

// partOf is a job as a part; false: it is none of a service.
func (p *controlPlane) partOf(ctx context.Context, v state.View) (Part, bool) {
	part := v.Job.Spec.Part
	if part == nil || !strings.HasPrefix(part.Controller, service.ControllerKind+"/") {
		return Part{}, false
	}
	out := Part{View: v, Part: *part}
	if v.Job.State != job.Running || v.Job.Started.IsZero() {
		return out, true
	}
	if limit := v.Job.Spec.TimeLimit; limit > 0 {
		out.EndsAt, out.EndsWhy = v.Job.Started.Add(limit), "its time limit"
	}
	for _, c := range v.Claims {
		if why, drained := p.drainOf(ctx, fleet.NodeKey{Pool: v.Pool, Name: c.Node}); drained {
			// Running work stays on a drained node; whoever drained it waits for its end.
			out.EndsAt, out.EndsWhy = time.Now(), fmt.Sprintf("the drain of node %s%s", c.Node, why)
		}
	}
	return out, true
}

// drainsHold is how long what was read of drained nodes holds.
const drainsHold = 2 * time.Second

// drainOf says why a node is drained; false: it is not.
func (p *controlPlane) drainOf(ctx context.Context, key fleet.NodeKey) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.read) > drainsHold {
		if views, err := p.NodeViews(ctx); err == nil {
			p.drains, p.read = map[fleet.NodeKey]string{}, time.Now()
			for i := range views {
				if d := views[i].Drained; d != nil {
					why := ""
					if d.Reason != "" {
						why = " (" + d.Reason + ")"
					}
					p.drains[views[i].Node.Key()] = why
				}
			}
			p.addHandovers(ctx)
		}
	}
	why, ok := p.drains[key]
	return why, ok
}

// addHandovers adds the nodes of machines that are on their way to another pool. The caller holds the lock.
func (p *controlPlane) addHandovers(ctx context.Context) {
	owners := p.MachineOwners(ctx)
	for i := range owners {
		o := &owners[i]
		if !o.Moving() || o.Back || o.Step.Reached(fleet.StepAdmit) {
			continue
		}
		for _, k := range p.MachineNodes(o.Machine) {
			if k.Pool == o.Pool {
				p.drains[k] = fmt.Sprintf(" (machine %s goes to pool %s)", o.Machine, o.Next)
			}
		}
	}
}
