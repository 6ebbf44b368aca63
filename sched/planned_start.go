package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/plan"
)

// plannedStart is what is planned for one waiting job by name: claims, from an instant on,
// for as long as its limit goes.
type plannedStart struct {
	e       *queuedJob
	at      Instant       // never: jobs without a limit stand in its way
	claims  []fleet.Claim // none: nothing is kept for it
	pos     []int32       // of each claim's node; -1: gone
	onNodes bool          // it stands on the nodes
	seen    uint64        // backfillState.sweeps in which it was settled
	told    Promise
	fresh   bool // what is planned is not what was told
	stale   bool // one of its nodes has changed

	cache *planCache // nil: not looked at
}

// plannedClaim is one claim of a planned start, on the node where it stands.
type plannedClaim struct {
	slot  *plannedStart
	claim int32
}

// timeSpan is when a planned start begins and ends as seen now. One whose instant has passed, as
// jobs before it outstay their limits, is to begin at once.
func (s *plannedStart) timeSpan(now Instant) (from, until Instant) {
	if s.at == never {
		return never, never
	}
	from = max(s.at, now)
	return from, s.e.class.latestEnd(from)
}

// nodeNames names the nodes of a planned start, each once.
func (s *plannedStart) nodeNames() []string {
	for i := range s.pos {
		if s.pos[i] < 0 || i > 0 && s.pos[i] <= s.pos[i-1] {
			return nodesOf(s.claims)
		}
	}
	if len(s.claims) == 0 || !s.onNodes || len(s.pos) != len(s.claims) {
		return nodesOf(s.claims)
	}
	names := make([]string, len(s.claims))
	for i := range s.claims {
		names[i] = s.claims[i].Node
	}
	return names
}

// addToNodes puts a planned start on its nodes.
func (c *Core) addToNodes(s *plannedStart) {
	s.onNodes = true
	s.pos = slices.Grow(s.pos[:0], len(s.claims))[:len(s.claims)]
	for i := range s.claims {
		pos := c.fleet.table.Find(s.claims[i].Key())
		s.pos[i] = int32(pos)
		if pos >= 0 {
			c.fleet.nodes[pos].planned = append(c.fleet.nodes[pos].planned, plannedClaim{s, int32(i)})
			c.planChangedOn(int32(pos))
		}
	}
}

// removeFromNodes takes it away from them.
func (c *Core) removeFromNodes(s *plannedStart) {
	if !s.onNodes {
		return
	}
	s.onNodes = false
	for _, pos := range s.pos {
		if pos >= 0 && int(pos) < len(c.fleet.nodes) {
			n := &c.fleet.nodes[pos]
			n.planned = slices.DeleteFunc(n.planned, func(h plannedClaim) bool { return h.slot == s })
			c.planChangedOn(pos)
		}
	}
}

// dropPlannedStart forgets what is planned for a job.
func (c *Core) dropPlannedStart(e *queuedJob) {
	if s := e.planned; s != nil {
		c.removeFromNodes(s)
		e.planned = nil
		if e.class.waiting == forPlan {
			c.wakeClass(e.class)
		}
		if s.cache != nil {
			c.backfill.idleCaches = append(c.backfill.idleCaches, s.cache)
			s.cache = nil
		}
		if len(s.told.Nodes) > 0 {
			c.backfill.retracted = append(c.backfill.retracted, s.told)
		}
		c.planDirty = true
	}
}

// carryPlannedStart plans for a job, under other rules, what was planned for it before: a promise
// that these do not touch is kept. The next cycle looks whether it can stay.
func (c *Core) carryPlannedStart(e *queuedJob, before *plannedStart) {
	if before == nil || !c.isConservative() {
		return
	}
	s := &plannedStart{e: e, at: before.at, claims: before.claims, told: before.told}
	e.planned = s
	c.backfill.retracted = slices.DeleteFunc(c.backfill.retracted, func(p Promise) bool { return p.Job == e.id }) // it has not lost it
	c.backfill.starts = append(slices.DeleteFunc(c.backfill.starts, func(o *plannedStart) bool { return o == before }), s)
	if s.onNodes = c.fleet.dirty; !s.onNodes { // else rebuildFleet does it
		c.addToNodes(s)
	}
}

// plannedRow is what is free on a node at an instant beside what is planned there.
func (p *schedulingCycle) plannedRow(pos int, at Instant) index.Row {
	var row index.Row
	switch {
	case at <= p.now:
		row = *p.fleet.state.Row(pos)
	case at == never:
		row = *p.fleet.empty.Row(pos)
	default:
		row = p.rowAt(pos, at)
	}
	p.takePlanned(pos, at, &row)
	return row
}

// leastFree is what is free on a node during all of a time.
func (p *schedulingCycle) leastFree(pos int, from, until Instant) index.Row {
	row := p.plannedRow(pos, from)
	for _, h := range p.fleet.nodes[pos].planned {
		if begin, _ := h.slot.timeSpan(p.now); h.slot != p.backfill.except && begin > from && (begin < until || until == never) {
			other := p.plannedRow(pos, begin)
			row.Within(&other)
		}
	}
	return row
}

// planHolds reports whether what was planned for a job can stay as it is. It is backfill.except, or
// does not stand on the nodes.
func (p *schedulingCycle) planHolds(s *plannedStart) bool {
	from, until := s.timeSpan(p.now)
	from = max(from, p.now+1) // if what is in its way has ended
	rows := map[int]index.Row{}
	for i := range s.claims {
		pos := p.fleet.table.Find(s.claims[i].Key())
		if pos < 0 || p.fleet.table.Node(pos).State != fleet.Up {
			return false
		}
		if p.isReservedOff(s.e.class, pos, from, until) {
			return false
		}
		row, seen := rows[pos]
		if !seen {
			row = p.leastFree(pos, from, until)
		}
		if !row.Admits(p.fleet.table.Node(pos), &s.claims[i]) {
			return false
		}
		row.Change(p.fleet.table.Node(pos), &s.claims[i], 1)
		rows[pos] = row
	}
	return len(s.claims) > 0
}

// refreshPlan plans a job for the same instant on the same nodes after one of these has
// changed; it reports false if they do not take it any longer. It is backfill.except.
func (p *schedulingCycle) refreshPlan(s *plannedStart) bool {
	s.stale = false
	l, at := s.e.class, max(s.at, p.now+1)
	state := p.fleet.state.Clone()
	for _, r := range p.runs.ends.allRuns() {
		if r.until <= at {
			state.Release(p.fleet.table, r.claims)
		}
	}
	state = p.freeDuring(state, l, at, l.latestEnd(at))
	on := make([]bool, len(p.fleet.nodes))
	for i := range s.claims {
		if pos := p.fleet.table.Find(s.claims[i].Key()); pos >= 0 {
			on[pos] = true
		}
	}
	for pos := range p.fleet.nodes {
		if !on[pos] {
			row := *state.Row(pos)
			row.Whole++
			state.Put(pos, &row)
		}
	}
	claims := place.Gang(p.fleet.table, state, l.kind.shape)
	if claims == nil {
		return false
	}
	rooted := s.onNodes
	p.removeFromNodes(s)
	s.claims, s.fresh = claims, true
	if rooted {
		p.addToNodes(s)
	}
	s.cache.setHolds(false)
	return true
}

// startSpans appends when a node could begin to take its part of a gang beside what is
// planned there.
func (p *schedulingCycle) startSpans(pos int, l *jobClass, q *place.Quick, out []plan.Span[Instant]) []plan.Span[Instant] {
	n, limit := &p.fleet.nodes[pos], Instant(l.limit)
	from := append(p.backfill.from[:0], p.now)
	for _, a := range p.futureCells(pos) {
		from = append(from, max(a.from, p.now+1))
	}
	for _, h := range n.planned {
		if _, until := h.slot.timeSpan(p.now); h.slot != p.backfill.except && until != never {
			from = append(from, until)
		}
	}
	from = p.addOpenings(l, pos, from)
	slices.Sort(from)
	from = slices.Compact(from)
	p.backfill.from = from
	first := len(out)
	for i, at := range from {
		end := min(p.failsAfter(pos, l, q, at), p.reservedFrom(l, pos, at, limit))
		if i+1 < len(from) {
			end = min(end, from[i+1])
		}
		switch last := len(out) - 1; {
		case end <= at:
		case last >= first && out[last].End == at:
			out[last].End = end
		default:
			out = append(out, plan.Span[Instant]{From: at, End: end})
		}
	}
	return out
}

// failsAfter is the first instant from at on at which a node could not begin to take its
// part, if nothing becomes free on it after at.
func (p *schedulingCycle) failsAfter(pos int, l *jobClass, q *place.Quick, at Instant) Instant {
	limit, last := Instant(l.limit), never // at which it ends in any case
	if a := l.ownReservation(); a != nil && !a.Flex {
		if begin, end := a.nextOccurrence(at); begin <= at {
			last = end
		}
	}
	row := p.plannedRow(pos, at)
	if !q.Serves(p.fleet.cells.Intern(pos, &row)) {
		return at
	}
	begins := p.backfill.begins[:0]
	for _, h := range p.fleet.nodes[pos].planned {
		if begin, _ := h.slot.timeSpan(p.now); h.slot != p.backfill.except && begin > at && (begin < last || begin == last && last == never && limit == 0) {
			begins = append(begins, begin)
		}
	}
	slices.Sort(begins)
	p.backfill.begins = begins
	for _, begin := range begins {
		other := p.plannedRow(pos, begin)
		row.Within(&other)
		if q.Serves(p.fleet.cells.Intern(pos, &row)) {
			continue
		}
		if limit == 0 {
			return at
		}
		return max(at, begin-limit+1)
	}
	return never
}

// copyTimetable copies what is planned node by node; nil where nothing is.
func (c *Core) copyTimetable() *Timetable {
	if !c.backfill.wasOn && len(c.backfill.retracted) == 0 {
		return nil
	}
	t := &Timetable{On: c.backfill.wasOn, At: c.clock.lastCycle, Lost: slices.Clone(c.backfill.retracted)}
	for _, s := range c.backfill.starts {
		if s.e.planned == s {
			t.Slots = append(t.Slots, Slot{Job: s.e.id, At: s.at, Claims: s.claims, Told: s.told})
		}
	}
	return t
}

// restoreTimetable plans what was planned when a snapshot was taken.
func (c *Core) restoreTimetable(t *Timetable) {
	if t == nil {
		return
	}
	c.clock.lastCycle, c.backfill.retracted, c.backfill.wasOn = t.At, t.Lost, t.On
	for _, m := range t.Slots {
		s := &plannedStart{e: c.queue.jobs[m.Job], at: m.At, claims: m.Claims, told: m.Told, fresh: true}
		s.e.planned = s
		c.backfill.starts = append(c.backfill.starts, s)
		c.addToNodes(s)
	}
}

// addOpenings adds the instants at which reservations open a node again.
func (p *schedulingCycle) addOpenings(l *jobClass, pos int, from []Instant) []Instant {
	for i, tries := 0, 0; i < len(from) && tries < maxOpenings && len(p.reservations) > 0; i++ {
		closed := max(p.reservedFrom(l, pos, from[i], Instant(l.limit)), from[i])
		if closed == never {
			continue
		}
		if at := p.nextOpening(l, pos, closed); at != never && at > from[i] && !slices.Contains(from, at) {
			from = append(from, at)
			tries++
		}
	}
	return from
}

// maxOpenings bounds how many occurrences of reservations are looked at for one node.
const maxOpenings = 16
