package sched

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/limit"
)

// This file keeps places for running jobs that move (defrag.go). From the instant on at
// which a job is asked to stop, its new place is held under a number that no job has,
// beside what it holds itself and beside those who are still there. When the job waits
// again it is nominated for it, before anybody else is looked at, and starts as soon as
// the others are gone. A migration target is given up if one of its nodes changes, if the job ends
// instead of waiting again, or if it may not run for now.

// migrationTarget is a place that is kept for a job.
type migrationTarget struct {
	job     job.ID
	shape   string   // of the job (class.Key): another one does not belong there
	flavors []string // of quotas, in which it is counted
	run     *run
	stale   bool // one of its nodes has changed
}

// targetBit makes the number under which a migration target is held of a job's.
const targetBit = job.ID(1) << 62

// targetPolicy is the policy of migration targets: nobody is charged for them.
var targetPolicy = &effectivePolicy{limits: &limit.Rules{}, priority: priorityTerms{assoc: -1, qos: -1, partQOS: -1}}

// holdTarget holds a place for a job.
func (c *Core) holdTarget(id job.ID, spec *job.Spec, flavors []string, claims []fleet.Claim, began, until Instant) {
	h := &migrationTarget{job: id, shape: class.Key(spec), flavors: flavors}
	h.run = &run{id: id | targetBit, policy: targetPolicy, claims: claims, began: began, until: until, target: h}
	at, _ := slices.BinarySearchFunc(c.defrag.targets, id, func(h *migrationTarget, id job.ID) int { return int(h.job) - int(id) })
	c.defrag.targets = slices.Insert(c.defrag.targets, at, h)
	c.holdRun(h.run)
	c.planDirty = true
}

// releaseTarget gives it back.
func (c *Core) releaseTarget(h *migrationTarget) {
	c.unholdRun(h.run)
	c.defrag.targets = slices.DeleteFunc(c.defrag.targets, func(o *migrationTarget) bool { return o == h })
	c.planDirty = true
}

// nominateMoved nominates jobs that wait again for the places that were kept for them.
func (p *schedulingCycle) nominateMoved() {
	for _, h := range slices.Clone(p.defrag.targets) {
		e, r := p.queue.jobs[h.job], p.runs.byJob[h.job]
		switch {
		case h.stale:
			p.releaseTarget(h)
		case r != nil && r.nominee == nil: // it stops still
		case e == nil || e.blocked || e.nominee != nil || !p.mayUseTarget(e, h):
			p.releaseTarget(h)
		default:
			p.releaseTarget(h)
			n := &nomination{entry: e, target: h}
			n.await, n.additions = p.leavingFrom(h.run.claims)
			p.nominateJob(n, h.run.claims, 0)
		}
	}
}

// leavingFrom are the jobs that are being stopped and have something still on the nodes of
// claims, and the additions to others.
func (p *schedulingCycle) leavingFrom(claims []fleet.Claim) (ids []job.ID, shed []Member) {
	for _, r := range p.runs.ends.allRuns() {
		switch {
		case !r.stopping || !slices.ContainsFunc(r.claims, func(x fleet.Claim) bool {
			return slices.ContainsFunc(claims, func(y fleet.Claim) bool { return p.fleet.table.Meet(&x, &y) })
		}):
		case r.of != nil:
			shed = append(shed, r.asMember())
		default:
			ids = append(ids, r.id)
		}
	}
	return ids, shed
}

// mayUseTarget reports whether a job that waits again may run in its migration target: it asks for what
// it asked for then, and reservations, limits and quotas let it.
func (p *schedulingCycle) mayUseTarget(e *queuedJob, h *migrationTarget) bool {
	if class.Key(e.spec) != h.shape {
		return false
	}
	claims := h.run.claims
	if p.claimsReserved(e.class, claims) {
		return false
	}
	if s := e.class.quotaDemand; s != nil {
		charges := p.quotas.Charges(s.queue.node, p.amountsTaken(claims), p.flavorsNamed(h.flavors))
		if !p.quotas.Fits(s.queue.node, charges) {
			return false
		}
	}
	if p.limits.book == nil {
		return true
	}
	return p.blockingCheck(e.class, claims) < 0
}

// releaseTargets forgets all migration targets.
func (c *Core) releaseTargets() {
	for len(c.defrag.targets) > 0 {
		c.releaseTarget(c.defrag.targets[0])
	}
}

// defragMemory is what is remembered of moves; nil: nothing.
func (c *Core) defragMemory() *DefragMemory {
	m := &DefragMemory{Proposal: c.defrag.proposal, Searched: c.defrag.searchedAt, Searching: c.defrag.searchAt}
	if t := c.defrag.tried; t.generation == c.generation || t.fitsWithLeavers {
		m.Tried, m.Anyway, m.Stirred = t.job, t.fitsWithLeavers, t.generation != c.generation
	}
	for _, h := range c.defrag.targets {
		m.Homes = append(m.Homes, Home{h.job, h.run.claims, h.flavors, h.run.began, h.run.until})
	}
	if m.Proposal == nil && m.Searched == 0 && m.Searching == 0 && m.Tried == 0 && m.Homes == nil {
		return nil
	}
	return m
}

// restoreTargets keeps the places that were kept.
func (c *Core) restoreTargets(m *DefragMemory) {
	if m == nil {
		return
	}
	for i := range m.Homes {
		x := &m.Homes[i]
		c.holdTarget(x.Job, c.runs.byJob[x.Job].spec, x.Flavors, x.Claims, x.Began, x.Until)
	}
}

// restoreDefrag sets the rest of what was remembered, once nothing changes any more.
func (c *Core) restoreDefrag(m *DefragMemory) {
	if m == nil {
		return
	}
	c.defrag.proposal, c.defrag.searchedAt, c.defrag.searchAt = m.Proposal, m.Searched, m.Searching
	if m.Tried != 0 {
		c.defrag.tried = moveAttempt{m.Tried, c.generation, m.Anyway}
		if m.Stirred {
			c.defrag.tried.generation--
		}
	}
}

// validateTargets reports migration targets of jobs that do not run.
func (m *DefragMemory) validateTargets(running []Restored) error {
	for i := range m.Homes {
		id := m.Homes[i].Job
		if !slices.ContainsFunc(running, func(r Restored) bool { return r.Job == id && r.Spec != nil }) {
			return fmt.Errorf("a place is kept for job %d, which does not run", id)
		}
	}
	return nil
}
