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

// extended is a record that gives a running job more.
func (m *Model) extended(r *store.Record, p *payload) {
	if p.Allocation == nil {
		return
	}
	w := m.find(r, p.Allocation.Job)
	if w == nil {
		return
	}
	ref := engine.Ref{Allocation: p.Allocation.ID, Attempt: p.Allocation.Attempt}
	a := m.of(ref)
	switch {
	case a.journaled:
		m.broken(Ledger, "twice", "the number of attempt %s is given to job %d a second time", ref, w.id)
		return
	case w.held == nil || w.held.ref.Allocation != p.Allocation.Adds || w.held.ref.Attempt != ref.Attempt:
		m.broken(Ledger, "stale", "job %d is given more as %s (record %d), which it does not hold", w.id, ref, r.Seq)
		return
	case !w.held.started:
		m.broken(Whole, "gang", "job %d is given more (record %d) before it has started", w.id, r.Seq)
	case w.settled:
		m.broken(Account, "final", "job %d is given more (record %d) after something that it was given ended by itself", w.id, r.Seq)
	case w.state == job.Suspended:
		m.broken(Account, "final", "job %d is given more (record %d) while it is suspended", w.id, r.Seq)
	}
	a.job, a.claims, a.epoch, a.journaled, a.adds = w, p.Allocation.Claims, p.Allocation.Epoch, true, w.held
	w.added = append(w.added, a)
	w.held.waited = w.held.waited || w.held.provedTo+w.held.unknownTo > 0 // it was on its way when the job ended
	m.keep(a)
	m.see("given more")
	m.suits(a)
	m.fits(a)
	m.obeys(a, r, w.remains(r.At))
}

// remains is how long a running job may run on; 0: nobody ends it.
func (w *work) remains(at time.Time) time.Duration {
	if w.spec.TimeLimit <= 0 {
		return 0
	}
	return max(w.held.opened.Add(w.spec.TimeLimit).Sub(at), 1)
}

// suits checks that what is added is a whole unit, on nodes of its own, and no more than
// the job asked for.
func (m *Model) suits(a *attempt) {
	w := a.job
	g := &w.spec.Groups[a.claims[0].Group]
	nodes := w.held.nodes()
	for _, o := range w.added {
		for _, n := range o.nodes() {
			if slices.Contains(nodes, n) {
				m.broken(Whole, "gang", "%s is on %s, where the job is already", a.title(), n)
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
		m.broken(Whole, "gang", "%s is given to a group that does not grow", a.title())
	case len(a.nodes()) != g.Unit() || tasks != g.Unit()*max(g.TasksPerNode, 1):
		m.broken(Whole, "gang", "%s is %d tasks on %s, and a unit of the job has %d nodes with %d tasks each", a.title(), tasks, places(a.claims), g.Unit(), max(g.TasksPerNode, 1))
	case len(nodes) > g.Nodes.Max:
		m.broken(Whole, "gang", "with %s the job has %d nodes of at most %d", a.title(), len(nodes), g.Nodes.Max)
	}
}

// addition returns what a record about an addition names.
func (m *Model) addition(r *store.Record, ref engine.Ref) *attempt {
	w := m.find(r, job.ID(r.Job))
	if w == nil {
		return nil
	}
	i := slices.IndexFunc(w.added, func(a *attempt) bool { return a.ref == ref })
	if i < 0 {
		m.broken(Ledger, "stale", "record %d (%s) is about attempt %s, which is not added to job %d", r.Seq, r.Kind, ref, w.id)
		return nil
	}
	return w.added[i]
}

func (m *Model) joined(r *store.Record, p *payload) {
	a := m.addition(r, p.Ref)
	if a == nil {
		return
	}
	if !a.begun {
		m.broken(Ledger, "stale", "the journal says that %s has started, and it has not", a.title())
	}
	a.started, a.ran = true, r.At
}

func (m *Model) askedBack(r *store.Record, p *payload) {
	a := m.addition(r, p.Ref)
	if a == nil {
		return
	}
	if by := m.jobs[p.For]; by == nil || by.state != job.Pending && !(by.held != nil && by.held.parked) {
		m.broken(Account, "preempt", "%s is asked back for job %d (record %d), which does not wait", a.title(), p.For, r.Seq)
	}
	m.see("asked for what it was given")
	a.back = true
	if by := m.jobs[p.For]; by != nil {
		by.awaits = true
	}
}

// givenBack is the proved end of an addition.
func (m *Model) givenBack(r *store.Record, p *payload) {
	a := m.addition(r, p.Ref)
	if a == nil {
		return
	}
	m.mayFree(r, a, nil)
	if a.freed = true; p.Settled {
		m.see("given no more, since something ended by itself or was not launched")
	}
	w := a.job
	w.settled = w.settled || p.Settled
	w.added = slices.DeleteFunc(slices.Clone(w.added), func(o *attempt) bool { return o == a })
	m.doubts(w)
	m.drop(a)
}
