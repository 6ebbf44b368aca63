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
	"github.com/coxswain-sched/coxswain/service/handover/decide"
)

// Move begins hand-overs. Each machine has its own, which begins or is refused by itself: Moved.Err. That they
// are asked for is durable when Move returns. The error is of a request that names no machines.
func (c *Controller) Move(ctx context.Context, by job.Actor, r Request) ([]Moved, error) {
	if err := r.check(c.cfg.Plane.Pools()); err != nil {
		return nil, err
	}
	list, err := c.cfg.Plane.Machines(ctx)
	if err != nil {
		return nil, err
	}
	now := c.cfg.Now()
	out, err := chooseMachines(&r, list, now)
	if err != nil {
		return nil, err
	}
	owners := map[string]fleet.MachineOwner{}
	for i := range list {
		owners[list[i].Owner.Machine] = list[i].Owner
	}
	var writing sync.WaitGroup
	for i := range out {
		v := &out[i]
		if _, fences := c.cfg.Plane.Engine(v.From).(engine.NodeFencer); v.Err == nil && !fences && !r.Force {
			v.Err = fault.New(fault.Unsupported, "the engine of pool %s cannot fence nodes, so nothing keeps its work off machine %s", v.From, v.Machine)
		}
		if v.Err != nil || r.DryRun {
			continue
		}
		next := ask(owners[v.Machine], by, &r)
		if r.Deadline > 0 && !r.Force {
			next.Deadline = now.Add(r.Deadline)
		}
		writing.Go(func() { // the control plane writes them together
			if v.Err = c.cfg.Plane.MoveMachine(ctx, by, next); v.Err == nil {
				v.Epoch = next.Epoch
			}
		})
	}
	writing.Wait()
	c.Wake()
	return out, nil
}

// ask is the first record of a hand-over.
func ask(o fleet.MachineOwner, by job.Actor, r *Request) fleet.MachineOwner {
	if r.Force {
		return o.TakenBy(r.To, by.Name, r.Reason)
	}
	return fleet.MachineOwner{
		Machine: o.Machine, Pool: o.Pool, Next: r.To, Step: fleet.StepAsked, Epoch: o.Epoch + 1, Requeue: r.Requeue, Fenced: o.Fenced, Open: o.Open,
		By: by.Name, Reason: r.Reason,
	}
}

// Abort has hand-overs walked back. It is durable when Abort returns that they are; the old pool's fence is
// removed after that. A machine that the new pool owns by then is refused.
func (c *Controller) Abort(ctx context.Context, by job.Actor, names []string) ([]Moved, error) {
	names, err := hostlist.Expand(strings.Join(names, ","))
	switch {
	case err != nil:
		return nil, fault.New(fault.Invalid, "machines: %w", err).Advise("names or host lists: v[1-4]")
	case len(names) == 0:
		return nil, fault.New(fault.Invalid, "no machine is named")
	}
	out, err := c.abortOnce(ctx, by, names)
	for range abortTries {
		if err != nil || !slices.ContainsFunc(out, func(v Moved) bool { return v.stepped }) {
			break
		}
		out, err = c.abortOnce(ctx, by, names)
	}
	c.Wake()
	return out, err
}

// abortTries is how often an abortion is tried again because a step was done at the same time.
const abortTries = 5

func (c *Controller) abortOnce(ctx context.Context, by job.Actor, names []string) ([]Moved, error) {
	list, err := c.cfg.Plane.Machines(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Moved, 0, len(names))
	for _, name := range names {
		m, err := machineNamed(name, list)
		if err != nil {
			return nil, err
		}
		o := m.Owner
		v := Moved{Machine: o.Machine, From: o.Pool, To: o.Next, Epoch: o.Epoch, Err: checkAbort(&o)}
		if v.Err == nil && !o.Back {
			o.Back, o.Waits, o.Evidence = true, "", "aborted by "+by.Name
			v.Err = c.cfg.Plane.MoveMachine(ctx, by, o)
			v.stepped = fault.KindOf(v.Err) == fault.Conflict
		}
		out = append(out, v)
	}
	return out, nil
}

// checkAbort says why a hand-over cannot be walked back.
func checkAbort(o *fleet.MachineOwner) error {
	switch {
	case !o.Moving():
		return fault.New(fault.Conflict, "machine %s is pool %s's, and no hand-over of it is under way", o.Machine, o.Pool)
	case !decide.CanWalkBack(o):
		return fault.New(fault.Conflict, "machine %s is pool %s's by now, which is too late to walk back", o.Machine, o.Pool).Advise("move it back: cox node move %s --to %s", o.Machine, o.Last)
	}
	return nil
}
