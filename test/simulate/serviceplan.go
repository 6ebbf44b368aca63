package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/service"
)

// drawServices makes a day of services beside batch: one or two services that are updated, scaled, paused,
// undone and stopped, few batch jobs, rules with quotas, and what goes wrong.
func (w *World) drawServices() (acts []Act) {
	s := w.dice.streamFor("services", "")
	span := s.durationBetween(2*time.Minute, 6*time.Minute)
	if s.happensIn(70) {
		rules := w.drawPolicy(w.dice.streamFor("rules", "p1"))
		if s.happensIn(60) {
			w.drawQuotas(rules, w.dice.streamFor("quotas", "p1"))
		}
		acts = append(acts, Act{"p1 sets rules", time.Duration(s.intBelow(2)) * time.Second, func(w *World) { w.askPolicy("p1", rules) }})
	}
	names := []string{"web", "api"}[:1+s.intBelow(2)]
	for i, name := range names {
		acts = append(acts, w.serviceActs(name, pickOne(s, "", "x", "y"), time.Duration(1+i)*time.Second, span)...)
	}
	var subs []string
	for i := range 2 + s.intBelow(5) {
		name := fmt.Sprintf("r%d", i+1)
		d := w.dice.streamFor("request", name)
		subs = append(subs, name)
		acts = append(acts, w.drawSubmission(name, d.durationBetween(0, span), slices.Clone(subs), d))
	}
	for i := range s.intBelow(3) {
		name := fmt.Sprintf("n%d", i+1)
		d := w.dice.streamFor("drain", name)
		node := w.machine.nodes[d.intBelow(len(w.machine.nodes))].Name
		at := d.durationBetween(20*time.Second, span)
		acts = append(acts, Act{name + " drains " + node, at, func(w *World) { w.drainNode(name, node, true) }},
			Act{name + " resumes " + node, at + d.durationBetween(5*time.Second, 90*time.Second), func(w *World) { w.drainNode(name+" resumed", node, false) }})
	}
	outrages := w.drawOutrages(span)
	return append(acts, slices.DeleteFunc(outrages, func(a Act) bool { // the controller measures time by a clock that nobody sets
		return strings.HasSuffix(a.Name, ClockForward.String()) || strings.HasSuffix(a.Name, ClockBack.String())
	})...)
}

// serviceActs are what people ask of one service.
func (w *World) serviceActs(name, acct string, at, span time.Duration) (acts []Act) {
	full := service.FullName(acct, name)
	s := w.dice.streamFor("service", name)
	scaled := s.happensIn(35)
	if scaled {
		w.scaled = append(w.scaled, full)
	}
	act := func(text string, at time.Duration, do func(ctx context.Context, c *services) error) {
		what := fmt.Sprintf("%s %s at %s", full, text, at.Truncate(time.Millisecond))
		acts = append(acts, Act{what, at, func(w *World) { w.askServices(what, do) }})
	}
	submit := func(n int, at time.Duration) {
		spec := drawService(w.dice.streamFor("specification", fmt.Sprint(name, n)), name, acct, n, scaled)
		act(fmt.Sprintf("is submitted: %+v, %+v", spec.Replicas, spec.Update), at, func(ctx context.Context, c *services) error {
			_, err := c.Submit(ctx, user, spec, nil)
			return err
		})
	}
	submit(1, at)
	for i := range 3 + s.intBelow(6) {
		at := s.durationBetween(at+10*time.Second, span)
		n := s.intBelow(5)
		switch r := s.intBelow(20); {
		case r < 6:
			submit(2+i, at)
		case r < 10:
			act(fmt.Sprint("is scaled to ", n), at, func(ctx context.Context, c *services) error { return c.Scale(ctx, user, full, n) })
		case r < 11:
			act("is paused", at, func(ctx context.Context, c *services) error { return c.Pause(ctx, user, full) })
		case r < 13:
			act("is resumed", at, func(ctx context.Context, c *services) error { return c.Resume(ctx, user, full) })
		case r < 15:
			act("is undone", at, func(ctx context.Context, c *services) error { _, err := c.Undo(ctx, user, full, 0); return err })
		case r < 16:
			act("is stopped", at, func(ctx context.Context, c *services) error { return c.Stop(ctx, user, full) })
		default:
			load := s.intBelow(20)
			acts = append(acts, Act{fmt.Sprintf("%s has a load of %d at %s", full, load, at), at, func(w *World) { w.load = load }})
		}
	}
	return acts
}

// ServicePlan is a small fixed day of a service, in which a program of it ends, it is updated, scaled, undone
// and stopped.
func ServicePlan(w *World) (acts []Act) {
	spec := func(n int) service.Spec {
		s := smallJob(0)
		s.Groups[0].PerTask.CPU = resource.CPUs(1)
		s.Serve = &job.Serve{Ports: []job.Port{{Name: "http"}}, Drain: time.Second}
		return service.Spec{
			Name: "web", Owner: s.Owner, Job: *s, Script: fmt.Appendf(nil, "#!/bin/sh\n# %d\n", n),
			Replicas: service.Bounds{Min: 2, Max: 2}, Update: service.Update{Surge: 1},
		}
	}
	for at, do := range map[int]func(ctx context.Context, c *services) error{
		1:   func(ctx context.Context, c *services) error { _, err := c.Submit(ctx, user, spec(1), nil); return err },
		50:  func(ctx context.Context, c *services) error { _, err := c.Submit(ctx, user, spec(2), nil); return err },
		90:  func(ctx context.Context, c *services) error { return c.Scale(ctx, user, "web", 3) },
		110: func(ctx context.Context, c *services) error { return c.Scale(ctx, user, "web", 1) },
		130: func(ctx context.Context, c *services) error { _, err := c.Undo(ctx, user, "web", 0); return err },
	} {
		what := fmt.Sprintf("web is asked for something at %d", at)
		acts = append(acts, Act{what, time.Duration(at) * time.Second, func(w *World) { w.askServices(what, do) }})
	}
	return acts
}

// drawService is a revision of a service.
func drawService(d *stream, name, acct string, n int, scaled bool) service.Spec {
	spec := smallJob(0)
	spec.Groups[0].PerTask.CPU = resource.CPUs(1)
	spec.Account, spec.QOS = acct, pickOne(d, "", "hi", "lo")
	spec.Serve = &job.Serve{Ports: []job.Port{{Name: "http"}}, Drain: pickOne(d, 0, 5*time.Second)}
	if d.happensIn(20) {
		spec.TimeLimit = d.durationBetween(time.Minute, 3*time.Minute).Truncate(time.Second)
	}
	least := 1 + d.intBelow(3)
	out := service.Spec{
		Name: name, Account: acct, Owner: spec.Owner, Job: *spec, Script: fmt.Appendf(nil, "#!/bin/sh\n# %s %d\n", name, n),
		Replicas: service.Bounds{Min: least, Max: least},
	}
	switch d.intBelow(5) {
	case 0:
		out.Update = service.Update{InPlace: true, Unavailable: d.intBelow(4)}
	case 1, 2:
		out.Update = service.Update{Surge: d.intBelow(3), Unavailable: d.intBelow(3)}
	case 3:
		out.Update = service.Update{Surge: 1, Canary: []int{10, 50}, Step: 10 * time.Second}
	}
	out.Update.Timeout = d.durationBetween(30*time.Second, 2*time.Minute)
	out.Update.ManualUndo = d.happensIn(25)
	if scaled {
		out.Replicas = service.Bounds{Min: d.intBelow(2), Max: 2 + d.intBelow(4)}
		out.Scale = &service.Scale{Metric: service.MetricInFlight, Target: 4, Cooldown: 20 * time.Second}
		if d.happensIn(40) {
			out.Scale.ToZero = 40 * time.Second
		}
		if d.happensIn(40) {
			out.SpareQOS = "lo"
		}
	}
	return out
}

// Services come to rest within the longest pause before a new try and the longest time of an update, a
// few times over.
const servicesRest = time.Hour

// settleServices lets the services come to rest after the faults, and then stops them.
func (w *World) settleServices() {
	if !w.opt.Services || len(w.out.Broken) > 0 {
		return
	}
	w.load = 0
	why, opened := "", false
	for from := w.elapsedTime(); ; {
		w.runUntil(w.elapsedTime() + 20*time.Second)
		if len(w.out.Broken) > 0 {
			return
		}
		if !opened && w.newestLeader() != nil { // else there may be no room
			opened = true
			for _, n := range w.machine.nodes {
				w.drainNode("after the faults, "+n.Name, n.Name, false)
				w.restUntilStill()
				w.runUntil(w.elapsedTime() + time.Second)
			}
		}
		if why = w.unrest(); why == "" {
			break
		}
		if w.elapsedTime()-from > servicesRest {
			w.addBroken("%s after %s without faults: %s", "services do not come to rest", servicesRest, why)
			return
		}
		if s := w.newestLeader(); s != nil { // what was paused or has failed goes on
			for _, c := range s.control.Controllers(service.ControllerKind) {
				name := c.Name[len(service.ControllerKind)+1:]
				w.askServices("in the end, "+name+" is resumed", func(ctx context.Context, c *services) error { return c.Resume(ctx, user, name) })
				w.restUntilStill()
			}
		}
	}
	for try := 0; len(w.out.Broken) == 0 && try < 60; try++ {
		s := w.newestLeader()
		if s != nil && len(s.control.Controllers(service.ControllerKind)) == 0 {
			return
		}
		if s != nil {
			for _, c := range s.control.Controllers(service.ControllerKind) {
				name := c.Name[len(service.ControllerKind)+1:]
				w.askServices("in the end, "+name+" is stopped", func(ctx context.Context, c *services) error { return c.Stop(ctx, user, name) })
				w.restUntilStill()
			}
		}
		w.runUntil(w.elapsedTime() + 20*time.Second)
	}
	w.addBroken("services that were stopped are still there")
}

// unrest says why the services are not as their documents want them; "": they are.
func (w *World) unrest() string {
	s := w.newestLeader()
	if s == nil || s.services == nil {
		return "nobody leads"
	}
	for _, c := range s.control.Controllers(service.ControllerKind) {
		var d service.Document
		if err := json.Unmarshal(c.Document, &d); err != nil {
			return err.Error()
		}
		living, ready, stuck, waits := 0, 0, 0, ""
		for _, v := range s.control.Parts(c.Name) {
			if v.Job.State.Final() {
				continue
			}
			living++
			r, known := s.services.hub.Replica(v.Job.ID)
			switch {
			case known && r.Ready:
				ready++
			case v.Job.State == job.Pending && (v.Why.Code.Limit() != "" || isStuckCode(v.Why.Code) || v.Why.Code == reason.Reserved):
				stuck++ // by limits and quotas that may never have room for it, or behind a job that waits for the service to end
			case v.Job.State == job.Pending:
				waits += fmt.Sprintf(", job %d waits: %s", v.Job.ID, v.Why)
			}
		}
		if d.Stopping || stuck == 0 && (!d.Rollout.Over() || ready != d.Want || living != d.Want || len(d.Replicas) != d.Want) {
			return fmt.Sprintf("%s: want %d, %d slots, %d alive, %d ready, rollout %+v, stopping %v%s", c.Name, d.Want, len(d.Replicas), living, ready, d.Rollout, d.Stopping, waits)
		}
	}
	return ""
}
