package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/decide"
)

// work is what follows from one decision about a service. It is carried out on a goroutine of its own:
// a submission that hangs, as the engine that is asked about it does not answer, holds its service
// alone. It has no time limit: a submission whose outcome nobody knows could make a replica of a service
// that is gone.
type work struct {
	service string
	doc     *service.Document
	by      job.Actor
	cancels []decide.Cancel
	submits []decide.Submission
}

// workDone is what came of it.
type workDone struct {
	refused  map[job.Part]error
	accepted []job.Part
	again    bool // something failed that the next decision asks for again
}

// slowWork is after what time people hear of work that is not done.
const slowWork = 5 * time.Second

// startWork has the changes of a decision carried out.
func (c *Controller) startWork(ctx context.Context, m *managed, out *decide.Output) {
	w := &work{service: m.name, doc: m.doc, by: c.actorOf(m), cancels: out.Cancel, submits: out.Submit}
	m.busySince = c.cfg.Now()
	c.workers.Go(func() {
		done := c.carryOut(ctx, w)
		select {
		case c.requests <- func(context.Context) { c.finishWork(m, done) }:
		case <-ctx.Done():
		}
	})
}

// carryOut ends and submits replicas, the ones to end first.
func (c *Controller) carryOut(ctx context.Context, w *work) *workDone {
	done := &workDone{refused: map[job.Part]error{}}
	for _, x := range w.cancels {
		done.again = !c.cancel(ctx, w, x) || done.again
	}
	for _, s := range w.submits {
		if ctx.Err() != nil {
			break
		}
		if err := c.submit(ctx, w, s); err != nil {
			done.refused[s.Part] = err
		} else {
			done.accepted = append(done.accepted, s.Part)
		}
	}
	return done
}

// finishWork takes over what came of work. It runs on the goroutine of Run.
func (c *Controller) finishWork(m *managed, done *workDone) {
	m.busySince = time.Time{}
	for _, part := range done.accepted {
		delete(m.refused, part)
	}
	for part, err := range done.refused {
		c.noteRefusal(m, part, err)
	}
	if done.again {
		c.wakeAt(m, c.cfg.Now().Add(writeAgain))
	}
	c.noteChange()
}

// cancel asks for the end of a job; false: it failed.
func (c *Controller) cancel(ctx context.Context, w *work, x decide.Cancel) bool {
	done := true
	errs, err := c.cfg.Plane.Change(ctx, w.by, []job.ID{x.Job}, control.Cancel{Grace: -1, Message: fmt.Sprintf("service %s: %s", w.service, x.Why)})
	for _, e := range append(errs, err) {
		if e != nil && fault.KindOf(e) != fault.NotFound {
			c.cfg.Log.Warn("a replica could not be cancelled; trying again", "service", w.service, "job", x.Job, "error", e)
			done = false
		}
	}
	return done
}

// submit submits a replica.
func (c *Controller) submit(ctx context.Context, w *work, s decide.Submission) error {
	revision := w.doc.Revision(s.Part.Revision)
	part, spec := s.Part, replicaSpec(&revision.Spec, s)
	part.Controller = controllerName(w.service)
	accepted, err := c.cfg.Plane.Submit(ctx, part, control.Submission{Spec: spec, Script: revision.Spec.Script, Env: revision.Spec.Env, By: w.by})
	if err != nil {
		c.cfg.Log.Warn("a replica was refused", "service", w.service, "revision", s.Part.Revision, "index", s.Part.Index, "error", err)
		return err
	}
	c.cfg.Log.Info("replica submitted", "service", w.service, "revision", s.Part.Revision, "index", s.Part.Index, "try", s.Part.Try, "job", accepted.ID)
	return nil
}

// noteRefusal notes that a submission was refused: the decision that follows tries it again, after a
// pause that grows.
func (c *Controller) noteRefusal(m *managed, part job.Part, err error) {
	r := m.refused[part]
	if r == nil {
		r = &refusal{}
		m.refused[part] = r
	}
	never := fault.KindOf(err) == fault.Invalid || fault.KindOf(err) == fault.Unsupported || fault.KindOf(err) == fault.Permission
	pause := firstRefusal
	if never {
		pause = firstNever
	}
	pause = min(pause<<min(r.count, 10), longestRefuse)
	r.count++
	r.Refusal = decide.Refusal{Part: part, Why: err.Error(), Never: never, Until: c.cfg.Now().Add(pause)}
	m.dirty = true // a rollout may have failed by it
}

// slowReason says that what was decided is not done yet; false: it is, or has begun just now.
func (c *Controller) slowReason(m *managed) (Reason, bool) {
	since := m.busySince
	if since.IsZero() || c.cfg.Now().Sub(since) < slowWork {
		return Reason{}, false
	}
	return Reason{Kind: decide.Waits, Text: fmt.Sprintf("the last changes of its replicas are still being made, since %s: nothing else is changed before they are done", since.Format(time.TimeOnly))}, true
}
