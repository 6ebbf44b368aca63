package server

import (
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
)

// holdersShown bounds the running jobs that are named beside a waiting one.
const holdersShown = 8

// addExpectations adds to the reasons of a wait when it may end and what would end it.
func (c *call) addExpectations(out *api.Why, w *control.Why) {
	if e := &w.Expected; !e.Start.IsZero() {
		out.Expected = &api.Expected{Start: e.Start, From: e.From, To: e.To, Late: e.Late.Seconds(), Known: e.Known}
	}
	for _, h := range w.Holders[:min(len(w.Holders), holdersShown)] {
		shown := api.Holder{Nodes: h.Nodes, Until: timeOf(int64(h.Until))}
		if v, err := c.s.cfg.Plane.Job(c.Ctx(), h.Job); err == nil && c.MaySee(&v) {
			shown.Job, shown.User = v.Job.Name(), v.Job.Spec.Owner.User
		}
		out.Holders = append(out.Holders, shown)
	}
	for _, s := range w.Changes {
		out.Changes = append(out.Changes, api.Smaller{Option: s.Option, Value: s.Value, Of: s.Of})
	}
}
