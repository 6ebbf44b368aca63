package local

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
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

// workOnNode is what of this engine is on a node of the room: attempts that are not gone, and processes with a
// mark of the root that belong to none of them. Processes of the machine that no attempt of this root has are
// not looked at.
func (e *Engine) workOnNode(node string) (work []engine.NodeWork, unknown []string) {
	there := map[string]bool{} // marks of attempts that are known to be there
	e.mu.Lock()
	for ref, g := range e.gangs {
		r, ok := e.feed.Last(ref)
		if g.launch.NodeIndex(node) < 0 || ok && r.Gone {
			continue
		}
		there[g.launch.Mark(node)] = true
		w := engine.NodeWork{Kind: "allocation", Name: ref.String(), Ours: true}
		if g.launch.Job != nil {
			w.Owner = g.launch.Job.Spec.Owner.User
		}
		work = append(work, w)
		if r.Uncertain {
			unknown = append(unknown, fmt.Sprintf("attempt %s: %s", ref, r.Message))
		}
	}
	e.mu.Unlock()
	slices.SortFunc(work, func(a, b engine.NodeWork) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(unknown)
	first, last := attempt.MarkVariable+"="+filepath.Join(e.cfg.Root, e.identity)+"/", "/"+node
	left, err := proc.MarkedBy(func(v []byte) bool {
		s := string(v)
		return strings.HasPrefix(s, first) && strings.HasSuffix(s, last) && !there[s]
	})
	if err != nil {
		unknown = append(unknown, "the processes of the machine: "+err.Error())
	}
	for _, p := range left {
		if name := proc.Names([]int{p.PID}); name != "" { // it has not ended meanwhile
			work = append(work, engine.NodeWork{Kind: "process", Name: name, Ours: true})
		}
	}
	return work, unknown
}
