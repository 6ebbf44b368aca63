package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

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

// decideService decides what comes next of a service, and has it carried out. Nothing else is decided
// of the service before that is done.
func (c *Controller) decideService(ctx context.Context, m *managed) {
	defer c.noteChange()
	m.dirty, m.due = false, c.cfg.Now().Add(longestPause)
	in, err := c.observe(ctx, m)
	if err != nil {
		c.setRoute(m)
		c.retryLater(m, "its jobs cannot be read: "+err.Error())
		return
	}
	out := decide.Decide(in)
	if out.Doc != nil {
		if err := c.writeDocument(ctx, m, c.actorOf(m), out.Doc); err != nil {
			if !m.decided {
				m.last.Weights = out.Weights // gateways need a route all the same
			}
			c.setRoute(m)
			c.retryLater(m, "its document cannot be written: "+err.Error())
			return
		}
		m.rounds++
	} else {
		m.rounds = 0
	}
	m.trouble, m.last, m.memory, m.decided = "", out, out.Memory, true
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
	c.forgetRefusals(m)
	if len(out.Cancel)+len(out.Submit) > 0 {
		c.startWork(ctx, m, &out)
	}
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
		c.doubted[m.name] = true
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
