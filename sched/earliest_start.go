package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/plan"
)

// earliestStart is the first instant at which a waiting job fits beside all that is
// planned, and what it takes then, if that is before an instant; never if it depends
// on jobs without a limit. Its own planned start is backfill.except. An instant that is not later than
// now means that it can start.
func (p *schedulingCycle) earliestStart(e *queuedJob, before Instant) (Instant, []fleet.Claim) {
	l := e.class
	if claims := p.placeNow(l, l.latestEnd(p.now)); claims != nil {
		return p.now, claims
	}
	look := p.profileOf(l.kind)
	if look == nil {
		return p.scanForStart(l)
	}
	at := Instant(0)
	if len(p.reservations) > 0 {
		at = max(p.earliestByCount(l, look), p.now+1) // what could begin now has been asked for
	} else {
		at = p.cacheOf(e.planned, look).counts.First(p.now+1, look.need)
	}
	if at >= before {
		return at, nil
	}
	until := l.latestEnd(at)
	nodes := look.chooseNodes(func(pos int32) bool { return p.nodeServesFrom(l, look, int(pos), at, until) })
	if nodes == nil {
		return p.scanForStart(l)
	}
	claims := make([]fleet.Claim, len(nodes))
	for i, pos := range nodes {
		row := p.leastFree(int(pos), at, until)
		claims[i] = look.quick.ClaimOn(int(pos), &row)
	}
	return at, claims
}

// earliestByCount is the first instant at which enough nodes can begin.
func (p *schedulingCycle) earliestByCount(l *jobClass, look *availabilityProfile) Instant {
	plain, spans := p.backfill.plain[:0], p.backfill.spans[:0]
	for pos, when := range look.when {
		switch {
		case p.fleet.cells.Of(pos) < 0:
		case len(p.fleet.nodes[pos].planned) > 0 || p.hasReservation(l, pos):
			spans = p.startSpans(pos, l, look.quick, spans)
		case when == 0:
			plain = append(plain, p.now)
		case when != never:
			plain = append(plain, max(when, p.now+1))
		}
	}
	p.backfill.plain, p.backfill.spans = plain, spans
	if at := plan.Earliest(plain, spans, look.need); at != never {
		return at
	}
	return p.earliestBeyondOpenings(l, look)
}

// earliestBeyondOpenings is counted for what lies beyond the occurrences of reservations that are
// looked at for each node: when so many nodes are free, or soon after it.
func (p *schedulingCycle) earliestBeyondOpenings(l *jobClass, look *availabilityProfile) Instant {
	repeats := func(a *advanceReservation) bool {
		_, end := a.nextOccurrence(p.now)
		if end == never {
			return false
		}
		begin, _ := a.nextOccurrence(end)
		return begin != never
	}
	if !slices.ContainsFunc(p.reservations, repeats) {
		return never
	}
	all := p.backfill.plain[:0]
	for pos, when := range look.when {
		if when != never && p.fleet.cells.Of(pos) >= 0 {
			all = append(all, max(when, p.now+1))
		}
	}
	slices.Sort(all)
	p.backfill.plain = all
	for i, tries := look.need-1, 0; i < len(all) && tries < maxOpenings; i, tries = i+1, tries+1 {
		at, n := all[i], 0
		for pos := range look.when {
			if p.nodeServesFrom(l, look, pos, at, l.latestEnd(at)) {
				n++
			}
		}
		if n >= look.need {
			return at
		}
	}
	return never
}

// nodeServesFrom reports whether a node can take its part for a time that begins later.
func (p *schedulingCycle) nodeServesFrom(l *jobClass, look *availabilityProfile, pos int, at, until Instant) bool {
	if p.isReservedOff(l, pos, at, until) {
		return false
	}
	if len(p.fleet.nodes[pos].planned) == 0 {
		return look.when[pos] <= at
	}
	if p.fleet.cells.Of(pos) < 0 {
		return false
	}
	if _, others := p.fleet.nodes[pos].hasPlanned(p.backfill.except); !others {
		return look.when[pos] <= at
	}
	return look.quick.Serves(p.timelineOf(pos).cellFor(p.now, at, until))
}

// failedStarts is for how long jobs of a kind were tried in vain to begin now, since anything
// was held, released or planned: another one of them is placed no better.
type failedStarts struct {
	sweeps, generation uint64 // Core's, then
	until              []Instant
}

// placeNowOnce is placeNow for classes behind the head, of which many are alike.
func (p *schedulingCycle) placeNowOnce(l *jobClass, until Instant) []fleet.Claim {
	a := &l.kind.failed
	if a.sweeps != p.backfill.sweeps || a.generation != p.generation {
		*a = failedStarts{p.backfill.sweeps, p.generation, a.until[:0]}
	}
	alike := l.ownReservation() == nil
	if alike && slices.Contains(a.until, until) {
		return nil
	}
	claims := p.placeNow(l, until)
	if claims == nil && alike {
		a.until = append(a.until, until)
	}
	return claims
}

// placeNow places a class's first job now, for a time, beside all that is planned
// for others.
func (p *schedulingCycle) placeNow(l *jobClass, until Instant) []fleet.Claim {
	claims := p.placeFree(l.kind)
	if claims == nil || p.clearsPlan(l, claims, until) {
		return claims
	}
	q := p.quickPlacement(l.kind)
	if q == nil || !q.Even() {
		return place.Gang(p.fleet.table, p.freeDuring(p.fleet.state, l, p.now, until), l.kind.shape)
	}
	claims, _ = q.Place(p.avoidPlannedNodes(l, q, until))
	for i := range claims {
		if pos := p.fleet.table.Find(claims[i].Key()); len(p.fleet.nodes[pos].planned) > 0 {
			row := p.leastFree(pos, p.now, until)
			claims[i] = q.ClaimOn(pos, &row)
		}
	}
	return claims
}

// clearsPlan reports whether claims that begin now are in the way of nothing planned.
func (p *schedulingCycle) clearsPlan(l *jobClass, claims []fleet.Claim, until Instant) bool {
	for i := range claims {
		pos := p.fleet.table.Find(claims[i].Key())
		if p.isReservedOff(l, pos, p.now, until) {
			return false
		}
		if len(p.fleet.nodes[pos].planned) == 0 {
			continue
		}
		row := p.leastFree(pos, p.now, until)
		for k := range claims {
			if claims[k].Node != claims[i].Node {
				continue
			}
			if !row.Admits(p.fleet.table.Node(pos), &claims[k]) {
				return false
			}
			row.Change(p.fleet.table.Node(pos), &claims[k], 1)
		}
	}
	return true
}

// avoidPlannedNodes marks, by page, the nodes that a part of a gang would hold when they
// are planned for others.
func (p *schedulingCycle) avoidPlannedNodes(l *jobClass, q *place.Quick, until Instant) []uint64 {
	pages := p.fleet.table.Pages()
	p.backfill.avoid = slices.Grow(p.backfill.avoid[:0], len(pages))[:len(pages)]
	clear(p.backfill.avoid)
	p.eachPlannedNode(func(pos int) {
		if p.fleet.cells.Of(pos) >= 0 && !q.Serves(p.timelineOf(pos).cellFor(p.now, p.now, until)) {
			no, slot := p.fleet.table.PageOf(pos)
			p.backfill.avoid[no] |= 1 << slot
		}
	})
	if len(p.reservations) > 0 {
		for pos := range p.fleet.nodes {
			if p.isReservedOff(l, pos, p.now, until) {
				no, slot := p.fleet.table.PageOf(pos)
				p.backfill.avoid[no] |= 1 << slot
			}
		}
	}
	return p.backfill.avoid
}

// eachPlannedNode calls f with each node on which something is planned, some more than once.
func (p *schedulingCycle) eachPlannedNode(f func(pos int)) {
	for _, s := range p.backfill.starts {
		if !s.onNodes || s == p.backfill.except {
			continue
		}
		last := int32(-1)
		for _, pos := range s.pos {
			if pos >= 0 && pos != last {
				f(int(pos))
			}
			last = pos
		}
	}
}

// freeDuring is what is free for a class during all of a time that begins with a state.
func (p *schedulingCycle) freeDuring(s *index.State, l *jobClass, from, until Instant) *index.State {
	s = s.Clone()
	p.eachPlannedNode(func(pos int) {
		row := p.leastFree(pos, from, until)
		s.Put(pos, &row)
	})
	p.closeReserved(s, l, from, until)
	return s
}

// maxScan bounds how many instants are looked at for one gang that has to be
// searched for node by node. If it fits at none of them it is planned after the
// last of all.
const maxScan = 64

// scanForStart looks for the earliest instant one by one.
func (p *schedulingCycle) scanForStart(l *jobClass) (Instant, []fleet.Claim) {
	instants := []Instant{p.now}
	ends := p.runs.ends.allRuns()
	for _, r := range ends {
		if r.until != never {
			instants = append(instants, max(r.until, p.now+1))
		}
	}
	for _, s := range p.backfill.starts {
		if _, until := s.timeSpan(p.now); s.onNodes && s != p.backfill.except && until != never {
			instants = append(instants, until)
		}
	}
	for pos := range p.fleet.nodes {
		if len(p.reservations) > 0 && p.hasReservation(l, pos) {
			instants = p.addOpenings(l, pos, instants)
		}
	}
	slices.Sort(instants)
	instants = slices.Compact(instants)
	if n := len(instants); n > maxScan {
		instants[maxScan-1] = instants[n-1]
		instants = instants[:maxScan]
	}
	state, ended := p.fleet.state.Clone(), 0
	for _, at := range instants {
		if at <= p.now {
			continue
		}
		for ended < len(ends) && ends[ended].until <= at {
			state.Release(p.fleet.table, ends[ended].claims)
			ended++
		}
		if claims := place.Gang(p.fleet.table, p.freeDuring(state, l, at, l.latestEnd(at)), l.kind.shape); claims != nil {
			return at, claims
		}
	}
	return never, nil
}
