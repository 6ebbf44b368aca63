package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/plan"
)

// What is remembered where starts are planned node by node, so that a step costs the nodes
// that have changed and not those that are planned:
//
//   - of each node on which something is planned, a timeline: how it is beside what
//     is planned, now and each time something becomes free on it;
//   - of each planned start, a plan cache: how many nodes could take their part of its job beside
//     all other planned starts, at each instant.
//
// Neither depends on the present: what is planned for an instant that has passed goes
// on into the future with the time, and its nodes count as changed in each cycle.

// nodeTimeline is how a node is beside what is planned on it. It holds phases
// in which nothing becomes free, in order. The first is the present, which lasts
// until what is to end has ended.
type nodeTimeline struct {
	known       bool
	phases      []phase
	futureCells []futureCell
}

type phase struct {
	from        Instant
	cell        int32 // beside what has begun by then
	first, last int32 // of steps: what is left of that each time something planned begins later
}

// cellFor is what is left on the node during all of a time.
func (o *nodeTimeline) cellFor(now, from, until Instant) int32 {
	i := 0
	if from > now {
		for i+1 < len(o.phases) && o.phases[i+1].from <= from {
			i++
		}
	}
	s := &o.phases[i]
	cell := s.cell
	for _, x := range o.futureCells[s.first:s.last] {
		if x.from >= until && until != never {
			break
		}
		cell = x.cell
	}
	return cell
}

// hasPlanned reports whether a planned start stands on a node, and whether another one does.
func (n *node) hasPlanned(s *plannedStart) (it, others bool) {
	for i := range n.planned {
		if n.planned[i].slot == s {
			it = true
		} else {
			others = true
		}
	}
	return it, others
}

// timelineOf is how a node is beside what is planned on it for others than backfill.except.
func (p *schedulingCycle) timelineOf(pos int) *nodeTimeline {
	n := &p.fleet.nodes[pos]
	if it, _ := n.hasPlanned(p.backfill.except); it {
		p.drawTimeline(pos, &p.Core.backfill.sketch)
		return &p.Core.backfill.sketch
	}
	if n.timeline == nil {
		n.timeline = &nodeTimeline{}
	}
	if !n.timeline.known {
		p.drawTimeline(pos, n.timeline)
	}
	return n.timeline
}

// drawTimeline works a timeline out.
func (p *schedulingCycle) drawTimeline(pos int, o *nodeTimeline) {
	o.known = true
	o.phases, o.futureCells = o.phases[:0], o.futureCells[:0]
	n, desc := &p.fleet.nodes[pos], p.fleet.table.Node(pos)
	from, begins := append(p.backfill.from[:0], p.now), p.backfill.begins[:0]
	for _, a := range p.futureCells(pos) {
		from = append(from, max(a.from, p.now+1))
	}
	for _, h := range n.planned {
		if h.slot != p.backfill.except {
			begin, until := h.slot.timeSpan(p.now)
			begins = append(begins, begin)
			if until != never {
				from = append(from, until)
			}
		}
	}
	slices.Sort(from)
	from = slices.Compact(from)
	slices.Sort(begins)
	begins = slices.Compact(begins)
	p.backfill.from, p.backfill.begins = from, begins
	free, ended := *p.fleet.state.Row(pos), 0
	for _, at := range from {
		for at > p.now && ended < len(n.held) && n.held[ended].run.until <= at {
			free.Change(desc, &n.held[ended].run.claims[n.held[ended].claim], -1)
			ended++
		}
		row := free
		p.takePlanned(pos, at, &row)
		s := phase{from: at, cell: p.fleet.cells.Intern(pos, &row), first: int32(len(o.futureCells))}
		for _, begin := range begins {
			if begin > at {
				other := p.plannedRow(pos, begin)
				row.Within(&other)
				o.futureCells = append(o.futureCells, futureCell{begin, p.fleet.cells.Intern(pos, &row)})
			}
		}
		s.last = int32(len(o.futureCells))
		o.phases = append(o.phases, s)
	}
}

// takePlanned takes off a row what is planned on its node at an instant.
func (p *schedulingCycle) takePlanned(pos int, at Instant, row *index.Row) {
	for _, h := range p.fleet.nodes[pos].planned {
		if h.slot == p.backfill.except {
			continue
		}
		if from, until := h.slot.timeSpan(p.now); from <= at && (at < until || until == never) {
			row.Change(p.fleet.table.Node(pos), &h.slot.claims[h.claim], 1)
		}
	}
}

// spansOf appends when a node could begin to take its part of a gang with a limit
// beside what is planned there.
func (o *nodeTimeline) spansOf(q *place.Quick, limit Instant, out []plan.Span[Instant]) []plan.Span[Instant] {
	first := len(out)
	for i := range o.phases {
		s := &o.phases[i]
		end := o.failsFrom(s, q, limit)
		if i+1 < len(o.phases) {
			end = min(end, o.phases[i+1].from)
		}
		switch last := len(out) - 1; {
		case end <= s.from:
		case last >= first && out[last].End == s.from:
			out[last].End = end
		default:
			out = append(out, plan.Span[Instant]{From: s.from, End: end})
		}
	}
	return out
}

// failsFrom is the first instant in a phase, or after it, at which a gang could not
// begin on the node, if nothing became free after it.
func (o *nodeTimeline) failsFrom(s *phase, q *place.Quick, limit Instant) Instant {
	if !q.Serves(s.cell) {
		return s.from
	}
	for _, x := range o.futureCells[s.first:s.last] {
		switch {
		case x.from == never && limit != 0, q.Serves(x.cell):
		case limit == 0:
			return s.from
		default:
			return max(s.from, x.from-limit+1)
		}
	}
	return never
}

// planCache is when how many nodes could take their part of the job of a planned start, beside
// all other planned starts.
type planCache struct {
	profile *availabilityProfile
	limit   Instant
	counts  plan.Profile[Instant]
	when    []Instant                      // by position; inSpans: see there
	spans   map[int32][]plan.Span[Instant] // of nodes on which something is planned
	shifted []int32                        // of the planned start's own nodes, since its claims were looked at
	held    bool                           // they have been looked at

	logged, replanned uint64 // fleetState.changedEpoch and backfillState.replannedEpoch then
	seen, followed    int    // entries of fleetState.changed and backfillState.replanned that are reckoned with
}

const inSpans Instant = -1

// cacheOf returns the plan cache of a planned start, up to date. The planned start is backfill.except.
func (p *schedulingCycle) cacheOf(s *plannedStart, look *availabilityProfile) *planCache {
	v := s.cache
	if v == nil {
		if n := len(p.backfill.idleCaches); n > 0 {
			v, p.Core.backfill.idleCaches = p.backfill.idleCaches[n-1], p.backfill.idleCaches[:n-1]
		} else {
			v = &planCache{spans: map[int32][]plan.Span[Instant]{}}
		}
		v.profile = nil
		s.cache = v
	}
	c := p.Core
	limit := Instant(s.e.class.limit)
	news := len(c.fleet.changed) - v.seen + len(c.backfill.replanned) - v.followed
	switch {
	case v.profile != look || v.limit != limit || v.logged != c.fleet.changedEpoch || v.replanned != c.backfill.replannedEpoch || news > len(c.fleet.nodes)/2:
		v.profile, v.limit = look, limit
		p.rebuildCache(v)
	default:
		for _, pos := range c.fleet.changed[v.seen:] {
			p.updateCache(v, pos)
		}
		for _, pos := range c.backfill.replanned[v.followed:] {
			p.updateCache(v, pos)
		}
	}
	v.logged, v.replanned, v.seen, v.followed = c.fleet.changedEpoch, c.backfill.replannedEpoch, len(c.fleet.changed), len(c.backfill.replanned)
	return v
}

// setHolds notes that all claims of the planned start hold, or that it is not known.
func (v *planCache) setHolds(holds bool) {
	if v != nil {
		v.held, v.shifted = holds, v.shifted[:0]
	}
}

// rebuildCache begins anew.
func (p *schedulingCycle) rebuildCache(v *planCache) {
	v.held, v.shifted = false, v.shifted[:0]
	n := len(p.fleet.nodes)
	v.when = slices.Grow(v.when[:0], n)[:n]
	p.backfill.plain = append(p.backfill.plain[:0], v.profile.when...)
	copy(v.when, v.profile.when)
	p.eachPlannedNode(func(pos int) {
		p.backfill.plain[pos] = never
	})
	v.counts.Fill(p.backfill.plain)
	p.eachPlannedNode(func(pos int) {
		if v.when[pos] == inSpans {
			return
		}
		v.when[pos] = never
		p.updateCache(v, int32(pos))
	})
}

// updateCache reckons with a change of one node.
func (p *schedulingCycle) updateCache(v *planCache, pos int32) {
	it, others := p.fleet.nodes[pos].hasPlanned(p.backfill.except)
	if it {
		v.shifted = append(v.shifted, pos)
	}
	was, is := v.when[pos], v.profile.when[pos]
	if p.fleet.cells.Of(int(pos)) < 0 {
		is = never
	} else if others {
		is = inSpans
	}
	var old []plan.Span[Instant]
	if was == inSpans || is == inSpans {
		old = v.spans[pos]
	}
	if is == inSpans {
		p.backfill.spans = p.timelineOf(int(pos)).spansOf(v.profile.quick, v.limit, p.backfill.spans[:0])
		if was == inSpans && slices.Equal(old, p.backfill.spans) {
			return
		}
	} else if is == was {
		return
	}
	switch was {
	case inSpans:
		for _, s := range old {
			v.counts.AddSpan(s, -1)
		}
	default:
		v.counts.Add(was, -1)
	}
	v.when[pos] = is
	if is != inSpans {
		v.counts.Add(is, 1)
		return
	}
	for _, s := range p.backfill.spans {
		v.counts.AddSpan(s, 1)
	}
	v.spans[pos] = append(old[:0], p.backfill.spans...)
}

// keepsPlan reports whether what was planned for a job can stay as it is, beside all that
// is planned for others. The planned start is backfill.except.
func (p *schedulingCycle) keepsPlan(s *plannedStart) bool {
	look := p.countingProfile(s.e)
	if look == nil || !s.onNodes || s.at <= p.now {
		return p.planHolds(s)
	}
	v := p.cacheOf(s, look)
	if !v.held {
		v.held, v.shifted = p.planHolds(s), v.shifted[:0]
		return v.held
	}
	for _, pos := range v.shifted {
		if !p.planHoldsOn(s, int(pos)) {
			v.held = false
			break
		}
	}
	v.shifted = v.shifted[:0]
	return v.held
}

// planHoldsOn is planHolds for what stands on one node.
func (p *schedulingCycle) planHoldsOn(s *plannedStart, pos int) bool {
	if p.fleet.table.Node(pos).State != fleet.Up {
		return false
	}
	from, until := s.timeSpan(p.now)
	row := p.leastFree(pos, from, until)
	for i := range s.claims {
		if s.pos[i] != int32(pos) {
			continue
		}
		if !row.Admits(p.fleet.table.Node(pos), &s.claims[i]) {
			return false
		}
		row.Change(p.fleet.table.Node(pos), &s.claims[i], 1)
	}
	return true
}

// countingProfile is the availability profile of a job's kind; nil where its start is not a matter of
// counting nodes, or reservations in advance keep some of them for others.
func (p *schedulingCycle) countingProfile(e *queuedJob) *availabilityProfile {
	if len(p.reservations) > 0 {
		return nil
	}
	return p.profileOf(e.class.kind)
}

// planChangedOn notes that what is planned on a node is another thing, or for another time.
func (c *Core) planChangedOn(pos int32) {
	if o := c.fleet.nodes[pos].timeline; o != nil {
		o.known = false
	}
	c.backfill.replanned = append(c.backfill.replanned, pos)
	if len(c.backfill.replanned) > maxLog {
		c.backfill.replanned = c.backfill.replanned[:0]
		c.backfill.replannedEpoch++
	}
}
