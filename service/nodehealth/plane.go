package nodehealth

import (
	"context"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// controlPlane is the Plane of a control plane.
type controlPlane struct {
	*control.Control
	own map[string]engine.Engine // of pools that the server has itself
}

// NewPlane makes the Plane of a control plane. own are the engines of the pools that were not added.
func NewPlane(c *control.Control, own map[string]engine.Engine) Plane { return controlPlane{c, own} }

func (p controlPlane) Engine(pool string) engine.Engine {
	if e := p.own[pool]; e != nil {
		return e
	}
	return p.AddedEngine(pool)
}

func (p controlPlane) Listed(context.Context) (out []fleet.NodeKey, err error) {
	for _, pool := range p.Pools() {
		if _, ok := p.Engine(pool.Name).(engine.NodeChecker); !ok {
			continue
		}
		if seen, delegated := p.Seen(pool.Name); delegated {
			for i := range seen {
				out = append(out, seen[i].Key())
			}
			continue
		}
		out = append(out, p.NodesOf(pool.Name)...)
	}
	return out, nil
}

func (p controlPlane) Places(ctx context.Context, id job.ID, attempt uint32) (out []fleet.NodeKey) {
	v, err := p.Job(ctx, id)
	if err != nil || v.Job.Attempt != attempt {
		return nil // it has left memory, or runs elsewhere
	}
	seen := map[fleet.NodeKey]bool{}
	for i := range v.Claims {
		if k := (fleet.NodeKey{Pool: v.Pool, Name: v.Claims[i].Node}); !seen[k] {
			seen[k] = true
			out = append(out, k)
		}
	}
	return out
}
