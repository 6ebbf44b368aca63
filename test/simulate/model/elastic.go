package model

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// What is added to a running job is an attempt of its own, of which the same holds as of
// any other; it belongs to an attempt of the job, and is freed before that.

// recordExtended is a record that gives a running job more.
func (m *Model) recordExtended(r *store.Record, p *payload) {
	if p.Allocation == nil {
		return
	}
	w := m.workOf(r, p.Allocation.Job)
	if w == nil {
		return
	}
	ref := engine.Ref{Allocation: p.Allocation.ID, Attempt: p.Allocation.Attempt}
	a := m.attemptOf(ref)
	switch {
	case a.journaled:
		m.addBroken(Ledger, "twice", "the number of attempt %s is given to job %d a second time", ref, w.id)
		return
	case w.held == nil || w.held.ref.Allocation != p.Allocation.Adds || w.held.ref.Attempt != ref.Attempt:
		m.addBroken(Ledger, "stale", "job %d is given more as %s (record %d), which it does not hold", w.id, ref, r.Seq)
		return
	case !w.held.started:
		m.addBroken(Whole, "gang", "job %d is given more (record %d) before it has started", w.id, r.Seq)
	case w.settled:
		m.addBroken(Account, "final", "job %d is given more (record %d) after something that it was given ended by itself", w.id, r.Seq)
	case w.state == job.Suspended:
		m.addBroken(Account, "final", "job %d is given more (record %d) while it is suspended", w.id, r.Seq)
	}
	a.job, a.claims, a.epoch, a.journaled, a.adds = w, p.Allocation.Claims, p.Allocation.Epoch, true, w.held
	w.added = append(w.added, a)
	w.held.waited = w.held.waited || w.held.provedTo+w.held.unknownTo > 0 // it was on its way when the job ended
	m.keepAttempt(a)
	m.countSeen("given more")
	m.checkAddition(a)
	m.checkNodes(a)
	m.checkRules(a, r, w.timeLeft(r.At))
}

// timeLeft is how long a running job may run on; 0: nobody ends it.
func (w *work) timeLeft(at time.Time) time.Duration {
	if w.spec.TimeLimit <= 0 {
		return 0
	}
	return max(w.held.opened.Add(w.spec.TimeLimit).Sub(at), 1)
}

// checkAddition checks that what is added is a whole unit, on nodes of its own, and no more than
// the job asked for.
func (m *Model) checkAddition(a *attempt) {
	w := a.job
	g := &w.spec.Groups[a.claims[0].Group]
	nodes := w.held.nodeNames()
	for _, o := range w.added {
		for _, n := range o.nodeNames() {
			if slices.Contains(nodes, n) {
				m.addBroken(Whole, "gang", "%s is on %s, where the job is already", a.fullName(), n)
			}
			nodes = append(nodes, n)
		}
	}
	tasks := 0
	for _, c := range a.claims {
		tasks += c.Tasks
	}
	switch {
	case !g.Elastic:
		m.addBroken(Whole, "gang", "%s is given to a group that does not grow", a.fullName())
	case len(a.nodeNames()) != g.Unit() || tasks != g.Unit()*max(g.TasksPerNode, 1):
		m.addBroken(Whole, "gang", "%s is %d tasks on %s, and a unit of the job has %d nodes with %d tasks each", a.fullName(), tasks, formatClaims(a.claims), g.Unit(), max(g.TasksPerNode, 1))
	case len(nodes) > g.Nodes.Max:
		m.addBroken(Whole, "gang", "with %s the job has %d nodes of at most %d", a.fullName(), len(nodes), g.Nodes.Max)
	}
}

// additionOf returns what a record about an addition names.
func (m *Model) additionOf(r *store.Record, ref engine.Ref) *attempt {
	w := m.workOf(r, job.ID(r.Job))
	if w == nil {
		return nil
	}
	i := slices.IndexFunc(w.added, func(a *attempt) bool { return a.ref == ref })
	if i < 0 {
		m.addBroken(Ledger, "stale", "record %d (%s) is about attempt %s, which is not added to job %d", r.Seq, r.Kind, ref, w.id)
		return nil
	}
	return w.added[i]
}

func (m *Model) recordJoined(r *store.Record, p *payload) {
	a := m.additionOf(r, p.Ref)
	if a == nil {
		return
	}
	if !a.begun {
		m.addBroken(Ledger, "stale", "the journal says that %s has started, and it has not", a.fullName())
	}
	a.started, a.ran = true, r.At
}

func (m *Model) askedBack(r *store.Record, p *payload) {
	a := m.additionOf(r, p.Ref)
	if a == nil {
		return
	}
	if by := m.jobs[p.For]; by == nil || by.state != job.Pending && !(by.held != nil && by.held.parked) {
		m.addBroken(Account, "preempt", "%s is asked back for job %d (record %d), which does not wait", a.fullName(), p.For, r.Seq)
	}
	m.countSeen("asked for what it was given")
	a.back = true
	if by := m.jobs[p.For]; by != nil {
		by.awaits = true
	}
}

// givenBack is the proved end of an addition.
func (m *Model) givenBack(r *store.Record, p *payload) {
	a := m.additionOf(r, p.Ref)
	if a == nil {
		return
	}
	m.mayFree(r, a, nil)
	if a.freed = true; p.Settled {
		m.countSeen("given no more, since something ended by itself or was not launched")
	}
	w := a.job
	w.settled = w.settled || p.Settled
	w.added = slices.DeleteFunc(slices.Clone(w.added), func(o *attempt) bool { return o == a })
	m.updateUncertain(w)
	m.dropFinished(a)
}
