package sched

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// This file is about taking others' places where there are reservations in advance or
// starts are planned node by node (conservative_backfill.go). A job that does not fit where reservations let
// it run takes the place of others there, and nowhere else. The first job may do so; one
// behind it only if it outranks everybody before it for whom a start is planned. What is
// planned for those behind is planned anew then: something of higher order has come
// before it.

// preemptFirst has the first job take others' places, if it does not fit where it may run, or
// one start that outranks it and would take its own. It reports whether that changed
// anything.
func (p *schedulingCycle) preemptFirst(e *queuedJob) bool {
	switch {
	case p.preempt.rules == nil && p.elastic.lent == 0:
		return false
	case p.placeUnreserved(e.class) == nil:
		return p.preemptFor(e)
	}
	return p.yieldToOutranking(e)
}

// preemptLate has the first job take others' places if it could have done without when it was
// looked at, and cannot any longer, because others have started there until then: what is
// planned for others kept it from starting, or it waited for those who go anyway.
func (p *schedulingCycle) preemptLate() bool {
	if p.isConservative() {
		return p.preemptLatePlanned()
	}
	e := p.queue.jobs[p.plan.job]
	if e == nil || !p.reliedOnLeavers(e) && !p.defrag.tried.isOutdated(e.id, p.generation) {
		return false
	}
	return p.placeFree(e.class.kind) == nil && (p.reliedOnLeavers(e) && p.preemptFor(e) || p.defragFor(e))
}

// preemptLatePlanned is preemptLate where starts are planned node by node.
func (p *schedulingCycle) preemptLatePlanned() bool {
	if p.preempt.rules == nil {
		return false
	}
	e := p.queueFront().next()
	switch {
	case e == nil || !p.mayFindVictims(e.class, e):
		return false
	case !p.passesGates(e.class):
		p.planDirty = true
		return true
	}
	return p.placeUnreserved(e.class) == nil && p.preemptFor(e)
}

// withdrawBarredPlans withdraws what is planned for jobs whose limit or quota has been spent since, by
// what started behind them: it could not be kept. They lead the queue no longer, and it is
// looked at once more. It reports whether there was such a job.
func (p *schedulingCycle) withdrawBarredPlans() (found bool) {
	if p.plansChecked == p.generation {
		return false
	}
	p.plansChecked = p.generation
	if p.isConservative() {
		for _, s := range p.backfill.starts {
			found = s.e.planned == s && !s.e.blocked && !p.passesGates(s.e.class) || found
		}
		p.planDirty = p.planDirty || found // the sweep takes their planned starts away
		return found
	}
	e := p.queue.jobs[p.plan.job]
	if e == nil || e.blocked || p.passesGates(e.class) {
		return false
	}
	p.reclaimQuota(e.class)
	p.dropReservation()
	return true
}

// reliedOnLeavers reports whether a job took nobody's place because those were enough who go anyway,
// and others have started or ended since.
func (p *schedulingCycle) reliedOnLeavers(e *queuedJob) bool {
	return e.class.fitsWithLeavers && e.class.searcher == e && p.mayFindVictims(e.class, e)
}

// placeUnreserved places a class's first job on what is free, where reservations in advance do not
// keep it off. What is planned node by node for others is not looked at.
func (p *schedulingCycle) placeUnreserved(l *jobClass) []fleet.Claim {
	claims := p.placeFree(l.kind)
	if claims == nil || !p.claimsReserved(l, claims) {
		return claims
	}
	state := p.fleet.state.Clone()
	p.closeReserved(state, l, p.now, l.latestEnd(p.now))
	return place.Gang(p.fleet.table, state, l.kind.shape)
}

// claimsReserved reports whether reservations in advance keep a class's first job off some of the
// nodes of claims now.
func (p *schedulingCycle) claimsReserved(l *jobClass, claims []fleet.Claim) bool {
	if len(p.reservations) == 0 {
		return false
	}
	until := l.latestEnd(p.now)
	for i := range claims {
		if pos := p.fleet.table.Find(claims[i].Key()); pos >= 0 && p.isReservedOff(l, pos, p.now, until) {
			return true
		}
	}
	return false
}

// closeReservedNodes closes the nodes, for a search, that reservations in advance keep its job off
// until those have gone who go last.
func (s *victimSearch) closeReservedNodes() {
	if len(s.reservations) == 0 {
		return
	}
	grace := Instant(0)
	if s.preempt.rules != nil {
		for _, o := range s.preempt.rules.all {
			if o.runs > 0 {
				grace = max(grace, Instant(o.most))
			}
		}
	}
	l, gone := s.entry.class, addDuration(s.now, time.Duration(grace))
	for pos := range s.fleet.nodes {
		if !s.isReservedOff(l, pos, s.now, l.latestEnd(s.now)) && !s.isReservedOff(l, pos, gone, l.latestEnd(gone)) {
			continue
		}
		row := *s.fleet.state.Row(pos)
		s.Core.preempt.lifted = append(s.preempt.lifted, savedRow{int32(pos), row})
		row.Whole++
		s.fleet.state.Put(pos, &row)
		s.fleet.cells.Update(pos)
	}
}

// clearsOtherPlans reports whether a job is in nobody's way who is planned for, if it takes back
// what was lent there.
func (p *schedulingCycle) clearsOtherPlans(e *queuedJob, claims []fleet.Claim) bool {
	p.backfill.except = e.planned
	defer func() { p.backfill.except = nil }()
	return p.clearsPlan(e.class, claims, e.class.latestEnd(p.now))
}

// outranksPlanned reports whether a job outranks everybody before it for whom a start is planned
// by name. What waits inside a reservation is in nobody's way outside of it.
func (p *schedulingCycle) outranksPlanned(e *queuedJob) bool {
	for _, s := range p.backfill.starts {
		if o := s.e; o.planned == s && o.compareOrder(e) < 0 && !p.jobOutranks(e, o) {
			if a := o.class.ownReservation(); a == nil || a.Flex || a == e.class.ownReservation() {
				return false
			}
		}
	}
	return true
}
