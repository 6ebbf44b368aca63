package fake

import (
	"cmp"
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ engine.EndpointWatcher = (*Engine)(nil)

// firstPort is the number of the first port that is chosen for an attempt.
const firstPort = 20_000

// WatchEndpoints follows where attempts serve. One that runs, and is not being ended, is ready.
func (e *Engine) WatchEndpoints(ctx context.Context, f func(engine.Endpoints) error) error {
	if err := e.w.ends.Watch(ctx, e.closed, f); err != nil {
		return err
	}
	return fault.New(fault.Unavailable, "the fake engine is closed")
}

// publishEndpoints says where an attempt serves.
func (w *World) publishEndpoints(a *attempt) {
	serve := a.launch.Job.Spec.Serve
	switch {
	case serve == nil || a.launch.Adds != nil || a.report.Phase < engine.Running:
		return
	case a.report.Phase == engine.Ended:
		w.ends.Drop(a.launch.Ref)
		return
	}
	out := engine.Endpoints{Ref: a.launch.Ref, Job: a.launch.Job.ID, Ready: a.report.Phase == engine.Running && !a.drains && !a.report.Suspended && !a.report.Uncertain}
	for i, p := range serve.Ports {
		out.List = append(out.List, engine.Endpoint{Port: p.Name, Host: a.nodes[0], Number: cmp.Or(p.Number, firstPort+i)})
	}
	w.ends.Set(out)
}

// drainRequests lets requests end before an attempt that serves is ended, and reports whether there is
// time for that. A stop without it ends the wait, and one with less time shortens it.
func (w *World) drainRequests(a *attempt, s engine.Stop) bool {
	if s.Drain <= 0 || a.launch.Job.Spec.Serve == nil || a.report.Phase != engine.Running {
		return false
	}
	at := w.cfg.Now().Add(s.Drain)
	for _, h := range a.next {
		if h.tag == "drain" && !h.at.After(at) {
			return true
		}
	}
	a.cancelEvents("drain")
	a.drains = true
	w.publishEndpoints(a)
	a.planEvent("drain", at, func(at time.Time) {
		w.terminateTasks(a, at, engine.Stopped, s.Reason, cmp.Or(s.Signal, sigterm), s.Grace)
	})
	return true
}
