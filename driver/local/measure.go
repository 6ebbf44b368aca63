package local

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.Meter = (*Engine)(nil)

// Measure looks at the processes in the control groups of an attempt or, without
// groups, at the descendants of its supervisors; see engine.Meter.
func (e *Engine) Measure(ctx context.Context, ref engine.Ref) ([]engine.NodeUse, error) {
	var seats []attempt.Slot
	var nodes []string
	var launch *attempt.Launch
	err := e.askGang(ctx, ref, func(g *gang) error {
		if g.phase != engine.Running {
			return fault.New(fault.Conflict, "attempt %s does not run", ref)
		}
		launch = g.launch
		for _, p := range g.parts {
			seats, nodes = append(seats, p.at), append(nodes, p.node.Name)
		}
		return nil
	})
	if err == nil && launch == nil {
		err = fault.New(fault.Conflict, "attempt %s has ended", ref)
	}
	if err != nil {
		return nil, err
	}
	out := make([]engine.NodeUse, len(seats))
	for i, s := range seats {
		if out[i], err = measureUse(launch, s); err != nil {
			return nil, err
		}
		out[i].Node = nodes[i]
	}
	return out, nil
}

func measureUse(l *attempt.Launch, s attempt.Slot) (u engine.NodeUse, err error) {
	var all []proc.Stat
	if l.Groups.Kills() {
		pids, err := l.Groups.Group(s.Group).Procs()
		if err != nil {
			return u, err
		}
		for _, pid := range pids {
			if p, err := proc.Read(pid); err == nil && !p.Dead() && pid != s.Identity.PID {
				all = append(all, p)
			}
		}
	} else if all, err = proc.Descendants(s.Identity.PID); err != nil {
		return u, err
	}
	for _, p := range all {
		u.Processes++
		u.CPU += time.Duration(p.Ticks) * proc.Tick
	}
	return u, nil
}
