package controller

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/decide"
	"github.com/coxswain-sched/coxswain/service/endpoints"
)

// unheardFor is how long after its start, or the server's, a replica of which its engine says nothing
// is not taken to be unready.
const unheardFor = time.Minute

// observe is what a decision about a service depends on.
func (c *Controller) observe(ctx context.Context, m *managed) (*decide.Input, error) {
	parts, err := c.cfg.Plane.Parts(ctx, controllerName(m.name))
	if err != nil {
		return nil, err
	}
	in := &decide.Input{Now: c.cfg.Now(), Doc: m.doc, Memory: m.memory}
	for i := range parts {
		in.Jobs = append(in.Jobs, c.jobOf(&parts[i], in))
	}
	for _, part := range slices.SortedFunc(maps.Keys(m.refused), compareParts) {
		in.Refused = append(in.Refused, m.refused[part].Refusal)
	}
	load := c.cfg.Hub.Load(m.name)
	in.Load = decide.Load{Known: load.Known, InFlight: load.InFlight, Held: load.Held, Rate: load.Rate, Last: load.LastRequest, Since: c.started}
	in.Load.Pages, in.Load.Trouble = c.scraped.valuesOf(m.name, in.Now), c.scraped.troubleOf(m.name)
	return in, nil
}

func compareParts(a, b job.Part) int {
	if a.Index != b.Index {
		return int(a.Index) - int(b.Index)
	}
	return int(a.Revision) - int(b.Revision)
}

// jobOf is a part as decisions see it.
func (c *Controller) jobOf(p *Part, in *decide.Input) decide.Job {
	v := &p.View
	j := decide.Job{
		ID: v.Job.ID, Part: p.Part, State: v.Job.State, Flags: v.Job.Flags, Attempt: v.Job.Attempt, Exit: v.Job.Exit,
		Submitted: v.Job.Submitted, Started: v.Job.Started, Ended: v.Job.Ended,
		Ending: p.Ending, EndsAt: p.EndsAt, EndsWhy: p.EndsWhy, Message: v.Message,
	}
	if j.Message == "" {
		j.Message = v.Report.Message
	}
	if v.Job.State == job.Pending && v.Why.Code != reason.None {
		j.Waits = v.Why.String()
	}
	if v.Job.State != job.Running {
		return j
	}
	heard, known := c.cfg.Hub.Replica(v.Job.ID)
	j.Probe = heard.Failed
	switch {
	case known && heard.Ref == v.Ref && heard.Ready:
		j.Health = decide.Ready
	case known && heard.Ref == v.Ref && (len(heard.List) > 0 || heard.Failed != ""):
		j.Health = decide.Unready
	default:
		since := c.started
		if v.Job.Started.After(since) {
			since = v.Job.Started
		}
		if in.Now.Sub(since) >= unheardFor {
			j.Health, j.Probe = decide.Unready, "its engine says nothing of its address"
		}
	}
	return j
}

// replicaOf is a part as the hub sees it.
func replicaOf(p *Part) endpoints.Replica {
	return endpoints.Replica{
		Service: strings.TrimPrefix(p.Part.Controller, service.ControllerKind+"/"), Job: p.Job.ID, Ref: p.Ref, Pool: p.Pool,
		Index: p.Part.Index, Revision: p.Part.Revision, Try: p.Part.Try,
		Running: p.Job.State == job.Running && p.Job.Flags&(job.Uncertain|job.Configuring) == 0 && p.Ref != engine.Ref{},
		Ending:  p.Ending,
	}
}

// tellHub tells the hub of a part, before anything else follows from it: a replica that is being ended
// gets no more requests.
func (c *Controller) tellHub(p *Part) {
	if p.Job.State.Final() {
		c.cfg.Hub.RemoveReplica(p.Job.ID)
		return
	}
	c.cfg.Hub.SetReplica(replicaOf(p))
}

// followJobs follows the changes of replicas until ctx ends.
func (c *Controller) followJobs(ctx context.Context) {
	after := uint64(0)
	for ctx.Err() == nil {
		parts, last, gap, err := c.cfg.Plane.Next(ctx, after)
		if err != nil {
			return // the control plane ends
		}
		after = last
		names := []string{}
		for i := range parts {
			c.tellHub(&parts[i])
			names = append(names, strings.TrimPrefix(parts[i].Part.Controller, service.ControllerKind+"/"))
		}
		if gap {
			c.tellAll(ctx)
			names = append(names, all)
		}
		if len(names) > 0 {
			c.touch(names...)
		}
	}
}

// tellAll tells the hub of every part of every service, from another goroutine than that of Run.
func (c *Controller) tellAll(ctx context.Context) {
	_ = c.ask(ctx, func(ctx context.Context) error { c.tellParts(ctx); return nil }) // a controller that ends tells nobody
}

// tellParts tells the hub of every part of every service.
func (c *Controller) tellParts(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(c.services)) {
		parts, err := c.cfg.Plane.Parts(ctx, controllerName(name))
		if err != nil {
			continue
		}
		for i := range parts {
			c.tellHub(&parts[i])
		}
	}
	c.cfg.Hub.Complete()
}

// followHub follows the changes of endpoints until ctx ends.
func (c *Controller) followHub(ctx context.Context) {
	after := uint64(0)
	for {
		names, last, err := c.cfg.Hub.Next(ctx, after)
		if err != nil {
			return
		}
		after = last
		c.touch(names...)
	}
}
