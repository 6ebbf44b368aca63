package sched

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// This file is about taking others' places where there are reservations in advance or
// starts are planned by name (named.go). A job that does not fit where reservations let
// it run takes the place of others there, and nowhere else. The first job may do so; one
// behind it only if it outranks everybody before it for whom a start is planned. What is
// planned for those behind is planned anew then: something of higher order has come
// before it.

// seize has the first job take others' places, if it does not fit where it may run, or
// one start that outranks it and would take its own. It reports whether that changed
// anything.
func (p *pass) seize(e *entry) bool {
	switch {
	case p.preemption == nil && p.lent == 0:
		return false
	case p.open(e.line) == nil:
		return p.preempt(e)
	}
	return p.yield(e)
}

// seizeLate has the first job take others' places if it could have done without when it was
// looked at, and cannot any longer, because others have started there until then: what is
// planned for others kept it from starting, or it waited for those who go anyway.
func (p *pass) seizeLate() bool {
	if p.byName() {
		return p.seizeNamed()
	}
	e := p.queued[p.plan.job]
	if e == nil || !p.late(e) && !p.moveTried.late(e.id, p.stirs) {
		return false
	}
	return p.fit(e.line.kind) == nil && (p.late(e) && p.preempt(e) || p.consolidate(e))
}

// seizeNamed is seizeLate where starts are planned by name.
func (p *pass) seizeNamed() bool {
	if p.preemption == nil {
		return false
	}
	e := p.front().next()
	switch {
	case e == nil || !p.hopeful(e.line, e):
		return false
	case !p.ready(e.line):
		p.shaken = true
		return true
	}
	return p.open(e.line) == nil && p.preempt(e)
}

// outrun withdraws what is planned for jobs whose limit or quota has been spent since, by
// what started behind them: it could not be kept. They lead the queue no longer, and it is
// looked at once more. It reports whether there was such a job.
func (p *pass) outrun() (found bool) {
	if p.stood == p.stirs {
		return false
	}
	p.stood = p.stirs
	if p.byName() {
		for _, s := range p.slots {
			found = s.e.slot == s && !s.e.blocked && !p.ready(s.e.line) || found
		}
		p.shaken = p.shaken || found // the sweep takes their slots away
		return found
	}
	e := p.queued[p.plan.job]
	if e == nil || e.blocked || p.ready(e.line) {
		return false
	}
	p.reclaim(e.line)
	p.unplan()
	return true
}

// late reports whether a job took nobody's place because those were enough who go anyway,
// and others have started or ended since.
func (p *pass) late(e *entry) bool {
	return e.line.anyway && e.line.searcher == e && p.hopeful(e.line, e)
}

// open places a line's first job on what is free, where reservations in advance do not
// keep it off. What is planned by name for others is not looked at.
func (p *pass) open(l *line) []fleet.Claim {
	claims := p.fit(l.kind)
	if claims == nil || !p.closed(l, claims) {
		return claims
	}
	state := p.state.Clone()
	p.close(state, l, p.now, l.finish(p.now))
	return place.Gang(p.table, state, l.kind.shape)
}

// closed reports whether reservations in advance keep a line's first job off some of the
// nodes of claims now.
func (p *pass) closed(l *line, claims []fleet.Claim) bool {
	if len(p.advances) == 0 {
		return false
	}
	until := l.finish(p.now)
	for i := range claims {
		if pos := p.table.Find(claims[i].Key()); pos >= 0 && p.shut(l, pos, p.now, until) {
			return true
		}
	}
	return false
}

// keepOff closes the nodes, for a search, that reservations in advance keep its job off
// until those have gone who go last.
func (s *search) keepOff() {
	if len(s.advances) == 0 {
		return
	}
	grace := Instant(0)
	if s.preemption != nil {
		for _, o := range s.preemption.all {
			if o.runs > 0 {
				grace = max(grace, Instant(o.most))
			}
		}
	}
	l, gone := s.entry.line, plus(s.now, time.Duration(grace))
	for pos := range s.nodes {
		if !s.shut(l, pos, s.now, l.finish(s.now)) && !s.shut(l, pos, gone, l.finish(gone)) {
			continue
		}
		row := *s.state.Row(pos)
		s.Core.lifted = append(s.lifted, was{int32(pos), row})
		row.Whole++
		s.state.Put(pos, &row)
		s.cells.Update(pos)
	}
}

// spares reports whether a job is in nobody's way who is planned for, if it takes back
// what was lent there.
func (p *pass) spares(e *entry, claims []fleet.Claim) bool {
	p.but = e.slot
	defer func() { p.but = nil }()
	return p.clear(e.line, claims, e.line.finish(p.now))
}

// overAll reports whether a job outranks everybody before it for whom a start is planned
// by name. What waits inside a reservation is in nobody's way outside of it.
func (p *pass) overAll(e *entry) bool {
	for _, s := range p.slots {
		if o := s.e; o.slot == s && o.before(e) < 0 && !p.over(e, o) {
			if a := o.line.inside(); a == nil || a.Flex || a == e.line.inside() {
				return false
			}
		}
	}
	return true
}
