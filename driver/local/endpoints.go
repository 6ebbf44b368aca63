package local

import (
	"context"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.EndpointWatcher = (*Engine)(nil)

// WatchEndpoints is engine.EndpointWatcher's. The supervisor of an attempt's first node probes, and
// goes on with it while no engine runs.
func (e *Engine) WatchEndpoints(ctx context.Context, f func(engine.Endpoints) error) error {
	if err := e.ends.Watch(ctx, e.ctx.Done(), f); err != nil {
		return err
	}
	return fault.New(fault.Unavailable, "the local engine is closed")
}

// publishEndpoints says where the attempt serves, once its program was started.
func (g *gang) publishEndpoints() {
	serve := g.launch.Job.Spec.Serve
	head := g.parts[0]
	if serve == nil || g.launch.Adds != nil || head.state.Serves == nil {
		return
	}
	g.fencePorts()
	s := head.state.Serves
	out := engine.Endpoints{Ref: g.launch.Ref, Job: g.launch.Job.ID, Ready: s.Ready, Failed: s.Why}
	for i, n := range head.state.Ports {
		if i < len(serve.Ports) {
			out.List = append(out.List, engine.Endpoint{Port: serve.Ports[i].Name, Host: s.Host, Number: n})
		}
	}
	for _, p := range g.parts {
		if p.lost || p.deaf || p.dead || p.open {
			out.Ready, out.Failed = false, p.failureText()
		}
	}
	if g.asked != nil {
		out.Ready = false
	}
	g.e.ends.Set(out)
}
