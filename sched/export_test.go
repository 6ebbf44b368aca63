package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// Relook looks at everything again, as after a change of the fleet.
func (c *Core) Relook(now Instant) []Decision {
	for _, k := range c.queue.kinds {
		k.full, k.blockedPlan, k.feasibleFleet = false, 0, 0
		for _, l := range k.classes {
			if l.jobs.len() > 0 {
				l.waiting = toLookAt
				c.updateHeads(l)
				c.wakeClass(l)
			}
		}
	}
	c.planDirty, c.cycleDue = true, true
	return c.Step(now)
}

// Recheck forgets everything that the core remembers about jobs that could not
// start and makes a cycle. A core that missed nothing starts nothing. Moving the
// head's reservation for others is left out: it may succeed on a second look.
//
// Unless it does start something, the core is afterwards as it was before.
func (c *Core) Recheck(now Instant) []Decision {
	plan, shaken := c.plan, c.planDirty
	woken, touched, planned, heads := slices.Clone(c.queue.woken), slices.Clone(c.queue.touched), slices.Clone(c.queue.forPlan), slices.Clone(c.queue.heads)
	kinds, lines := map[*kind]kind{}, map[*jobClass]jobClass{}
	stakes, own := map[*jobClass]quotaDemand{}, map[*quotaQueue]ownHeads{}
	for _, k := range c.queue.kinds {
		old := *k
		old.classes = slices.Clone(k.classes)
		kinds[k] = old
		k.uses++ // so that none is forgotten
	}
	for _, l := range c.queue.classes {
		lines[l] = *l
		if l.quotaDemand != nil {
			was := *l.quotaDemand
			was.kinds = slices.Clone(was.kinds)
			own[was.queue] = slices.Clone(was.queue.heads)
			stakes[l] = was
		}
	}
	proposal, tried, searched, searching, exempted := c.defrag.proposal, c.defrag.tried, c.defrag.searchedAt, c.defrag.searchAt, c.preempt.exemptUntil
	defer func() {
		c.defrag.proposal, c.defrag.tried, c.defrag.searchedAt, c.defrag.searchAt, c.preempt.exemptUntil = proposal, tried, searched, searching, exempted
	}()
	c.defrag.tried.generation = 0
	limits := c.limits
	limits.byClaims, limits.byLicense, limits.waiting = slices.Clone(limits.byClaims), slices.Clone(limits.byLicense), slices.Clone(limits.waiting)
	for i, list := range limits.waiting {
		limits.waiting[i] = slices.Clone(list)
	}
	defer func() {
		c.limits = limits
		for _, k := range c.queue.kinds { // that came up only now
			if _, known := kinds[k]; !known {
				k.uses, k.classes = 0, nil
			}
		}
		for k, old := range kinds {
			*k = old
		}
		for l, old := range lines {
			*l = old
			if l.quotaDemand != nil {
				was := stakes[l]
				l.quotaDemand.got, l.quotaDemand.kinds, l.quotaDemand.queueIndex, l.quotaDemand.suited = was.got, was.kinds, was.queueIndex, was.suited
				c.quotas.over = c.quotas.over || l.exceededQuota
				if l.waiting == forQuota {
					l.listForQuota()
				}
			}
		}
		for q, list := range own {
			q.heads = list
		}
		c.plan, c.planDirty, c.queue.woken, c.queue.touched, c.queue.forPlan, c.queue.heads = plan, shaken, woken, touched, planned, heads
	}()
	for _, r := range c.elastic.growable {
		r.growth.triedAt = [2]uint64{}
	}
	for _, k := range c.queue.kinds {
		k.full, k.blockedPlan, k.feasibleFleet, k.failed = false, 0, 0, failedStarts{}
		for _, l := range k.classes {
			l.searched, l.searcher, l.rank.of = 0, nil, nil
			if l.quotaDemand != nil {
				l.quotaDemand.suited = [2]uint64{}
			}
			if l.jobs.len() > 0 {
				l.waiting = toLookAt
				c.updateHeads(l)
				c.wakeClass(l)
			}
		}
	}
	for i := range c.fleet.nodes {
		c.fleet.nodes[i].timeline = nil
	}
	for _, s := range c.backfill.starts {
		s.cache = nil
	}
	p := schedulingCycle{Core: c, now: now}
	if c.backfill.wasOn {
		c.planDirty = true
	}
	nominees := slices.Clone(c.preempt.nominees)
	p.runCycle()
	for _, n := range c.preempt.nominees { // for whom those go who are being ended already
		if !slices.Contains(nominees, n) {
			p.out = append(p.out, Wait{Job: n.entry.id, Why: n.waitReason()})
		}
	}
	if c.plan.job != plan.job || c.plan.at != plan.at {
		p.out = append(p.out, Promise{Job: c.plan.job, At: c.plan.at})
	}
	return p.out
}

// Named reports whether starts are planned node by node, and when the last cycle was made.
func (c *Core) Named() (bool, Instant) { return c.backfill.wasOn, c.clock.lastCycle }

// Planned lists what is planned node by node, in queue order.
func (c *Core) Planned() []Promise {
	var out []Promise
	for _, s := range c.backfill.starts {
		out = append(out, Promise{Job: s.e.id, At: s.at, Nodes: nodesOf(s.claims)})
	}
	return out
}

// Timetable plans each slot anew beside all others, looking at every instant and on
// clones of the whole fleet, and returns the first that could be earlier, or that
// cannot be kept: 0 for none. It shares no code with the plan but the placement of
// one gang on one state.
func (c *Core) Timetable() (id job.ID, planned, slowly Instant) {
	for _, s := range c.backfill.starts {
		if at := c.slowly(s.e, s); at != s.at {
			return s.e.id, s.at, at
		}
	}
	return 0, 0, 0
}

// Idle lists the waiting jobs without a planned start that could start now and be in nobody's
// way.
func (c *Core) Idle() (out []job.ID) {
	for _, l := range c.queue.classes {
		if l.jobs.len() == 0 || l.jobs.firstJob().planned != nil || l.waiting.isBarred() || !c.fitsFleet(l.kind) {
			continue
		}
		if p := (&schedulingCycle{Core: c, now: c.clock.lastCycle}); c.plan.job != 0 && endAfter(c.clock.lastCycle, l.limit) > c.plan.at && p.crowdsHead(l) {
			continue
		}
		if place.Gang(c.fleet.table, c.slowState(l, c.clock.lastCycle, l.latestEnd(c.clock.lastCycle), nil), l.kind.shape) != nil {
			out = append(out, l.jobs.firstJob().id)
		}
	}
	return out
}

// Shortened lists the waiting jobs that could start now with a shorter limit.
func (c *Core) Shortened() (out []job.ID) {
	for _, l := range c.queue.classes {
		if l.key.least == 0 || l.jobs.len() == 0 || l.waiting.isBarred() || !c.fitsFleet(l.kind) {
			continue
		}
		e := l.jobs.firstJob()
		for _, s := range c.backfill.starts {
			begin, _ := s.timeSpan(c.clock.lastCycle)
			if s.e == e || len(s.claims) == 0 || begin < endAfter(c.clock.lastCycle, l.key.least) || begin >= endAfter(c.clock.lastCycle, l.limit) {
				continue
			}
			if place.Gang(c.fleet.table, c.slowState(l, c.clock.lastCycle, begin, e.planned), l.kind.shape) != nil {
				out = append(out, e.id)
			}
		}
	}
	return out
}

// slowly is the earliest instant for a job beside all planned starts but its own.
func (c *Core) slowly(e *queuedJob, own *plannedStart) Instant {
	instants := []Instant{c.clock.lastCycle}
	for _, r := range c.runs.ends.allRuns() {
		instants = append(instants, max(r.until, c.clock.lastCycle+1))
	}
	for _, s := range c.backfill.starts {
		if _, until := s.timeSpan(c.clock.lastCycle); len(s.claims) > 0 {
			instants = append(instants, until)
		}
	}
	for _, from := range slices.Clone(instants) { // those that come again do so for ever
		for _, a := range c.reservations {
			for at, n := from, 0; n < 5 && at != never; n++ {
				begin, end := a.nextOccurrence(at)
				instants = append(instants, begin, end)
				for _, o := range c.reservations {
					if end == never {
						break
					}
					instants = append(instants, end-Instant(o.window.Ahead))
				}
				at = end
			}
		}
	}
	slices.Sort(instants)
	for _, at := range slices.Compact(instants) {
		if at == never {
			break
		}
		if at < c.clock.lastCycle {
			continue
		}
		until := e.class.latestEnd(at)
		if own.at <= c.clock.lastCycle && at == c.clock.lastCycle+1 {
			until = e.class.latestEnd(c.clock.lastCycle)
		}
		if place.Gang(c.fleet.table, c.slowState(e.class, at, until, own), e.class.kind.shape) == nil {
			continue
		}
		if own.at <= c.clock.lastCycle && at == c.clock.lastCycle+1 {
			return own.at // it was to begin by now, and will as soon as it can
		}
		return at
	}
	return never
}

// slowState is what is free on all nodes during all of a time.
func (c *Core) slowState(l *jobClass, from, until Instant, own *plannedStart) *index.State {
	instants := []Instant{from}
	for _, s := range c.backfill.starts {
		if begin, _ := s.timeSpan(c.clock.lastCycle); begin > from && (begin < until || until == never) {
			instants = append(instants, begin)
		}
	}
	var all *index.State
	for _, at := range instants {
		state := c.fleet.table.Empty(false)
		for _, r := range c.runs.ends.allRuns() {
			if r.until > at || r.until <= at && at == c.clock.lastCycle {
				if at != never {
					state.Take(c.fleet.table, r.claims)
				}
			}
		}
		for _, s := range c.backfill.starts {
			if begin, end := s.timeSpan(c.clock.lastCycle); s != own && begin <= at && (at < end || end == never) {
				state.Take(c.fleet.table, s.claims)
			}
		}
		if all == nil {
			all = state
		} else {
			all.Within(state)
		}
	}
	for pos := range c.fleet.nodes {
		if c.isReservedOff(l, pos, from, until) {
			row := *all.Row(pos)
			row.Whole = 1
			all.Put(pos, &row)
		}
	}
	return all
}

// Replan makes the plan anew and returns when the head would start by it.
func (c *Core) Replan(now Instant) (kept, anew Instant) {
	if c.plan.job == 0 {
		return 0, 0
	}
	p := schedulingCycle{Core: c, now: now}
	at, _ := p.firstFittingEnd(c.queue.jobs[c.plan.job])
	return c.plan.at, at
}

// Nominees is how many jobs wait for others to be gone.
func (c *Core) Nominees() int { return len(c.preempt.nominees) }

// Held calls f with what is held for each of them.
func (c *Core) Nominated(f func(job.ID, []fleet.Claim)) {
	for _, n := range c.preempt.nominees {
		f(n.entry.id, n.run.claims)
	}
}

// Lacks is what is missing for a job, as it is worked out and as place.Now says.
func (c *Core) Lacks(id job.ID) (is, slow []reason.Reason) {
	c.rebuildFleet()
	k := c.queue.jobs[id].class.kind
	return c.missingNow(k), place.Now(c.fleet.table, c.fleet.state, k.shape)
}

// Kept calls f with each suspended job and what it keeps.
func (c *Core) Kept(f func(id job.ID, claims []fleet.Claim)) {
	for _, r := range c.suspendedRuns() {
		f(r.id, r.claims)
	}
}

// Left is what is left of a suspended job's time, in seconds; of one that goes on by the last
// step too.
func (c *Core) Left(id job.ID) (rest int64, endless bool) {
	r := c.runs.byJob[id]
	left := r.until
	switch {
	case r.pause.suspended != nil:
		left = r.pause.suspended.left
	case left != never:
		left -= c.clock.now + r.pause.tail
	}
	return floorSeconds(addTime(left, 999_999_999)), left == never
}

// Homes calls f with the places that are kept for jobs that move.
func (c *Core) Homes(f func(job.ID, []fleet.Claim)) {
	for _, h := range c.defrag.targets {
		f(h.job, h.run.claims)
	}
}

// Reserved is for how many jobs something is held that they do not run on.
func (c *Core) Reserved() int { return len(c.preempt.nominees) + len(c.defrag.targets) }
