package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/decide"
)

// Pauses between two tries.
const (
	writeAgain    = time.Second      // of a document, or of a change of a job
	firstRefusal  = time.Second      // of a submission that was refused; doubled with each
	firstNever    = 15 * time.Second // of one that could not run if everything were free
	longestRefuse = 5 * time.Minute
)

// mostRounds is how many decisions follow each other at once: a service whose document never comes to
// rest takes no more than that in a second.
const mostRounds = 20

// How often a service with a scale is decided upon, for its load.
const (
	loadEach  = time.Second
	asleepFor = 200 * time.Millisecond // while it sleeps: a request waits for it
)

// decideService decides what comes next of a service, and carries it out.
func (c *Controller) decideService(ctx context.Context, m *managed) {
	defer c.noteChange()
	m.dirty, m.due = false, c.cfg.Now().Add(longestPause)
	in, err := c.observe(ctx, m)
	if err != nil {
		c.retryLater(m, "its jobs cannot be read: "+err.Error())
		return
	}
	out := decide.Decide(in)
	if out.Doc != nil {
		if err := c.writeDocument(ctx, m, c.actorOf(m), out.Doc); err != nil {
			c.retryLater(m, "its document cannot be written: "+err.Error())
			return
		}
		m.rounds++
	} else {
		m.rounds = 0
	}
	m.trouble, m.last, m.memory = "", out, out.Memory
	if !out.Next.IsZero() {
		c.wakeAt(m, out.Next)
	}
	switch {
	case m.rounds > mostRounds:
		m.rounds = 0
		c.wakeAt(m, in.Now.Add(writeAgain))
	case m.rounds > 0:
		m.dirty = true // the next decision follows from the document, at once
	}
	for _, x := range out.Cancel {
		c.cancel(ctx, m, x)
	}
	for _, s := range out.Submit {
		c.submit(ctx, m, s)
	}
	c.forgetRefusals(m)
	if out.Gone {
		c.remove(ctx, m)
		return
	}
	if spec := c.wanted(m); spec.Scale != nil && !m.doc.Stopping {
		each := loadEach
		if m.doc.Want == 0 {
			each = asleepFor
		}
		c.wakeAt(m, in.Now.Add(each))
	}
	c.setRoute(m)
}

func (c *Controller) wanted(m *managed) *service.Spec { return &m.doc.Revision(m.doc.Target()).Spec }

// actorOf is in whose name replicas are submitted and ended.
func (c *Controller) actorOf(m *managed) job.Actor {
	o := c.wanted(m).Owner
	return job.Actor{Name: o.User, UID: o.UID, From: "service " + m.name}
}

func controllerName(name string) string { return service.ControllerKind + "/" + name }

func (c *Controller) retryLater(m *managed, why string) {
	if m.trouble != why {
		c.cfg.Log.Warn("a service has to wait", "service", m.name, "why", why)
	}
	m.trouble = why
	c.wakeAt(m, c.cfg.Now().Add(writeAgain))
}

func (c *Controller) wakeAt(m *managed, t time.Time) {
	if t.Before(m.due) {
		m.due = t
	}
}

// writeDocument makes a document durable and takes it over.
func (c *Controller) writeDocument(ctx context.Context, m *managed, by job.Actor, d *service.Document) error {
	payload, err := json.Marshal(d)
	if err != nil {
		return err
	}
	owner := d.Revision(d.Target()).Spec.Owner
	if err := c.cfg.Plane.SetDocument(ctx, by, Stored{Controller: controllerName(m.name), Owner: owner, Version: m.version + 1, Payload: payload}); err != nil {
		return err
	}
	m.doc, m.version = d, m.version+1
	return nil
}

// remove forgets a service whose replicas have ended.
func (c *Controller) remove(ctx context.Context, m *managed) {
	if err := c.cfg.Plane.RemoveDocument(ctx, c.actorOf(m), controllerName(m.name)); err != nil && fault.KindOf(err) != fault.NotFound {
		c.retryLater(m, "its document cannot be removed: "+err.Error())
		return
	}
	delete(c.services, m.name)
	c.cfg.Hub.RemoveService(m.name)
	c.scraped.forgetService(m.name)
	c.cfg.Log.Info("service ended", "service", m.name)
}

// cancel asks for the end of a job. If that fails, the next decision asks again.
func (c *Controller) cancel(ctx context.Context, m *managed, x decide.Cancel) {
	errs, err := c.cfg.Plane.Change(ctx, c.actorOf(m), []job.ID{x.Job}, control.Cancel{Grace: -1, Message: fmt.Sprintf("service %s: %s", m.name, x.Why)})
	for _, e := range append(errs, err) {
		if e != nil && fault.KindOf(e) != fault.NotFound {
			c.cfg.Log.Warn("a replica could not be cancelled; trying again", "service", m.name, "job", x.Job, "error", e)
			c.wakeAt(m, c.cfg.Now().Add(writeAgain))
		}
	}
}

// submit submits a replica.
func (c *Controller) submit(ctx context.Context, m *managed, s decide.Submission) {
	revision := m.doc.Revision(s.Part.Revision)
	part, spec := s.Part, replicaSpec(&revision.Spec, s)
	part.Controller = controllerName(m.name)
	accepted, err := c.cfg.Plane.Submit(ctx, part, control.Submission{Spec: spec, Script: revision.Spec.Script, Env: revision.Spec.Env, By: c.actorOf(m)})
	if err == nil {
		delete(m.refused, s.Part)
		c.cfg.Log.Info("replica submitted", "service", m.name, "revision", s.Part.Revision, "index", s.Part.Index, "try", s.Part.Try, "job", accepted.ID)
		return
	}
	r := m.refused[s.Part]
	if r == nil {
		r = &refusal{}
		m.refused[s.Part] = r
	}
	never := fault.KindOf(err) == fault.Invalid || fault.KindOf(err) == fault.Unsupported || fault.KindOf(err) == fault.Permission
	pause := firstRefusal
	if never {
		pause = firstNever
	}
	pause = min(pause<<min(r.count, 10), longestRefuse)
	r.count++
	r.Refusal = decide.Refusal{Part: s.Part, Why: err.Error(), Never: never, Until: c.cfg.Now().Add(pause)}
	m.dirty = true // the decision follows it: a rollout may have failed by it
	c.cfg.Log.Warn("a replica was refused", "service", m.name, "revision", s.Part.Revision, "index", s.Part.Index, "error", err)
}

// forgetRefusals forgets refusals of parts that are not wanted any more.
func (c *Controller) forgetRefusals(m *managed) {
	for part := range m.refused {
		wanted := false
		for _, s := range m.doc.Replicas {
			wanted = wanted || s.Index == part.Index && s.Revision == part.Revision && s.Try == part.Try
		}
		if !wanted {
			delete(m.refused, part)
		}
	}
}

// replicaSpec is the job of a replica. It is requeued after a preemption or the loss of its node; what
// happens after the end of its program is decided here.
func replicaSpec(s *service.Spec, sub decide.Submission) *job.Spec {
	spec := s.Job
	spec.Name = fmt.Sprintf("%s.%d", s.Name, sub.Part.Index)
	spec.Requeue, spec.Retries = true, nil
	if sub.Spare && s.SpareQOS != "" {
		spec.QOS = s.SpareQOS
	}
	return &spec
}
