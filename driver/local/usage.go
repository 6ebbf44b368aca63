package local

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/supervise"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/rusage"
)

var _ engine.UsageSampler = (*Engine)(nil)

// usedRecord is what the attempt used, of what its supervisors said at their ends; nil: nothing is
// known. It runs on the gang's goroutine.
func (g *gang) usedRecord() *rusage.Record {
	if !g.measured {
		g.gpus, g.measured = g.e.gpus.end(g.launch.Ref), true
	}
	parts, names := make([]*attempt.Usage, len(g.parts)), make([]string, len(g.parts))
	for i, p := range g.parts {
		parts[i], names[i] = p.state.Used, p.node.Name
	}
	return attempt.JoinUsage(withGPUs(parts, names, g.gpus))
}

// withGPUs adds to the parts of nodes what is known of their GPUs.
func withGPUs(parts []*attempt.Usage, names []string, gpus map[string][]rusage.GPU) []*attempt.Usage {
	for i, name := range names {
		if len(gpus[name]) == 0 {
			continue
		}
		part := attempt.Usage{Node: rusage.Node{Name: name}}
		if parts[i] != nil {
			part = *parts[i]
		}
		part.Node.GPUs = gpus[name]
		parts[i] = &part
	}
	return parts
}

// askedAtOnce is how many supervisors are asked for the use of one attempt at a time.
const askedAtOnce = 16

// usageWithin is how long a supervisor may take to answer.
const usageWithin = 2 * time.Second

// Usage asks the supervisors of an attempt that runs; see engine.UsageSampler. A node whose
// supervisor does not answer in time is not counted.
func (e *Engine) Usage(ctx context.Context, ref engine.Ref) (*rusage.Record, error) {
	var sockets, names []string
	err := e.askGang(ctx, ref, func(g *gang) error {
		if g.decided != attempt.EntryGo || g.phase != engine.Running {
			return fault.New(fault.Conflict, "attempt %s does not run", ref)
		}
		for _, p := range g.parts {
			sockets, names = append(sockets, p.at.ControlSocket()), append(names, p.node.Name)
		}
		return nil
	})
	if err == nil && sockets == nil {
		err = fault.New(fault.Conflict, "attempt %s has ended", ref)
	}
	if err != nil {
		return nil, err
	}
	parts := make([]*attempt.Usage, len(sockets))
	var asking sync.WaitGroup
	room := make(chan struct{}, askedAtOnce)
	for i, name := range sockets {
		room <- struct{}{}
		asking.Go(func() {
			defer func() { <-room }()
			part, err := supervise.AskUsage(name, ref, usageWithin)
			if err != nil {
				e.cfg.Log.Warn("ask a supervisor what its attempt uses", "attempt", ref, "err", err)
			}
			parts[i] = part
		})
	}
	asking.Wait()
	return attempt.JoinUsage(withGPUs(parts, names, e.gpus.read(ref))), nil
}
