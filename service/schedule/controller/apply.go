package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/service/schedule/decide"
)

// Pauses between two tries.
const (
	writeAgain     = time.Second     // of a document, or of a cancellation
	firstRefusal   = 5 * time.Second // of a submission that was refused; doubled with each
	longestRefusal = 5 * time.Minute
)

// settleTime is how long after the start of a server its engines may not have said which jobs have ended.
const settleTime = 10 * time.Second

// mostRounds is how many decisions follow each other at once: a schedule whose document never comes to
// rest takes no more than that in a second.
const mostRounds = 20

// decideSchedule decides what comes next of a schedule, and carries it out.
func (c *Controller) decideSchedule(ctx context.Context, m *managed) {
	m.dirty, m.due = false, c.cfg.Now().Add(longestPause)
	jobs, err := c.jobsOf(ctx, m)
	if err != nil {
		c.retryLater(m, "what became of its jobs cannot be read: "+err.Error())
		return
	}
	in := &decide.Input{Now: c.cfg.Now(), Name: m.name, Doc: m.doc, Jobs: jobs, Settled: c.started.Add(settleTime)}
	for _, r := range m.refused {
		in.Refused = append(in.Refused, r.Refusal)
	}
	out, err := decide.Decide(in)
	if err != nil {
		c.retryLater(m, "its times cannot be read: "+err.Error())
		return
	}
	if out.Doc != nil {
		if err := c.writeDocument(ctx, m, c.actorOf(m), out.Doc); err != nil {
			c.retryLater(m, "its document cannot be written: "+err.Error())
			return
		}
	}
	m.trouble = ""
	c.forgetRefusals(m)
	if !out.Next.IsZero() && out.Next.Before(m.due) {
		m.due = out.Next
	}
	for _, x := range out.Cancel {
		c.cancelJob(ctx, m, x)
	}
	for _, s := range out.Submit {
		c.submitRun(ctx, m, s)
	}
	switch {
	case out.Doc == nil && len(out.Submit) == 0:
		m.rounds = 0
	case m.rounds >= mostRounds:
		m.rounds, m.due = 0, in.Now.Add(writeAgain)
	default:
		m.rounds++
		m.dirty = true // the next decision follows from the document or the job, at once
	}
}

// actorOf is in whose name runs are submitted and ended.
func (c *Controller) actorOf(m *managed) job.Actor {
	o := m.doc.Spec.Owner
	return job.Actor{Name: o.User, UID: o.UID, From: "schedule " + m.name}
}

func (c *Controller) retryLater(m *managed, why string) {
	if m.trouble != why {
		c.cfg.Log.Warn("a schedule has to wait", "schedule", m.name, "why", why)
	}
	m.trouble, m.due = why, c.cfg.Now().Add(writeAgain)
}

// inMemory lists the jobs of a schedule that are in memory: all that have not ended, among others.
func (c *Controller) inMemory(m *managed) (out []decide.Job) {
	views := c.cfg.Plane.Parts(controllerName(m.name))
	for i := range views {
		out = append(out, jobOf(&views[i]))
	}
	return out
}

// jobsOf lists the jobs of a schedule, and those of its runs that have left memory.
func (c *Controller) jobsOf(ctx context.Context, m *managed) ([]decide.Job, error) {
	there := map[job.Part]bool{}
	out := c.inMemory(m)
	for i := range out {
		there[out[i].Part] = true
	}
	for i := range m.doc.Runs {
		r := &m.doc.Runs[i]
		if r.State != schedule.Live || r.Job == 0 || there[r.Part("")] {
			continue
		}
		past, err := c.cfg.Plane.Past(ctx, r.Job)
		if err != nil {
			return nil, err
		}
		for i := range past {
			j := jobOf(&past[i])
			j.Part = r.Part("")
			out = append(out, j)
		}
	}
	return out, nil
}

// jobOf is a part as decisions see it.
func jobOf(v *state.View) decide.Job {
	j := decide.Job{ID: v.Job.ID, State: v.Job.State, Exit: v.Job.Exit, Ended: v.Job.Ended, Why: v.Message, Ending: v.Ending}
	if p := v.Job.Spec.Part; p != nil {
		j.Part = *p
		j.Part.Controller = ""
	}
	if j.Why == "" && j.State != job.Completed {
		j.Why = v.Report.Message
	}
	return j
}

// cancelJob asks for the end of a job. If that fails, the next decision asks again.
func (c *Controller) cancelJob(ctx context.Context, m *managed, x decide.Cancel) {
	errs, err := c.cfg.Plane.Change(ctx, c.actorOf(m), []job.ID{x.Job}, control.Cancel{Grace: -1, Message: fmt.Sprintf("schedule %s: %s", m.name, x.Why)})
	for _, e := range append(errs, err) {
		if e != nil && fault.KindOf(e) != fault.NotFound {
			c.cfg.Log.Warn("a run could not be cancelled; trying again", "schedule", m.name, "job", x.Job, "error", e)
			m.due = c.cfg.Now().Add(writeAgain)
		}
	}
}

// submitRun submits the job of a run.
func (c *Controller) submitRun(ctx context.Context, m *managed, s decide.Submission) {
	spec := &m.doc.Spec
	accepted, err := c.cfg.Plane.Submit(ctx, control.Submission{Spec: runSpec(m.name, spec, s), Script: spec.Script, Env: spec.Env, By: c.actorOf(m)})
	if err == nil {
		delete(m.refused, s.Part)
		c.cfg.Log.Info("run submitted", "schedule", m.name, "time", s.At, "try", s.Part.Try, "job", accepted.ID)
		return
	}
	r := m.refused[s.Part]
	if r == nil {
		r = &refusal{}
		m.refused[s.Part] = r
	}
	kind := fault.KindOf(err)
	never := kind == fault.Invalid || kind == fault.Unsupported || kind == fault.Permission || kind == fault.NotFound
	pause := min(firstRefusal<<min(r.count, 10), longestRefusal)
	r.count++
	r.Refusal = decide.Refusal{Part: s.Part, Why: refusalText(err), Never: never, Until: c.cfg.Now().Add(pause)}
	c.cfg.Log.Warn("a run was refused", "schedule", m.name, "time", s.At, "error", err)
}

// refusalText is an error with what to do about it.
func refusalText(err error) string {
	if remedy := fault.Remedy(err); remedy != "" {
		return err.Error() + " (" + remedy + ")"
	}
	return err.Error()
}

// runSpec is the job of a run.
func runSpec(name string, s *schedule.Spec, sub decide.Submission) *job.Spec {
	spec := s.Job
	part := sub.Part
	part.Controller = controllerName(name)
	spec.Part = &part
	spec.Env.Set = append(slices.Clip(spec.Env.Set), schedule.VariableName+"="+name, schedule.VariableTime+"="+sub.At.Format(time.RFC3339))
	return &spec
}

// forgetRefusals forgets refusals of runs that are over.
func (c *Controller) forgetRefusals(m *managed) {
	for part := range m.refused {
		if !slices.ContainsFunc(m.doc.Runs, func(r schedule.Run) bool { return r.State == schedule.Due && r.Part("") == part }) {
			delete(m.refused, part)
		}
	}
}
