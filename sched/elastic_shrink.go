package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/quota"
	"github.com/coxswain-sched/coxswain/sched/victim"
)

// This file gives back what was lent (elastic.go) to those who wait not for nodes but
// for a limit or a quota: what was added to others counts there as everything does, and
// had it not been added, the job would pass.
//
// As with nodes it is a job's turn that lets it take back, no right. So all that was
// added is taken off once, and it is asked whose turn it is then: a job stands before the
// first that waits for room, leads its queue where that is strict, and its tree of quotas
// gives it the turn (queue_order.go). Who does not pass with all of it taken off, by limits,
// quota or nodes, is not searched for. The one whose turn it is gets as much as it needs,
// of limits, quota and nodes, all at once or nothing; it is nominated, and starts when
// that is gone.
//
// Nothing is remembered of those who found nothing: a cycle costs what was added, and a
// comparison for each class that waits so.

// elasticShrink is a search for what is taken back: victim.Field, where an addition that is
// taken counts against no limit and no quota.
type elasticShrink struct {
	victimSearch
	line  *jobClass
	bid   quotaBid
	jobs  []*run                  // that something was added to
	added [][]*run                // what, by job
	stale []bool                  // what is counted of a job is not what is left of it, by job
	off   []bool                  // taken, by unit
	going int                     // units that go anyway
	fits  map[*kind][]fleet.Claim // where kinds are placed now; nil: it has to be tried

	open  []*jobClass // that pass and fit with all taken off, in order
	tries int         // classes that may still be placed on their own
}

// maxRecalls bounds how many classes a cycle places one by one, because reservations in
// advance keep each off other nodes, and how many searches it makes.
const maxRecalls = 64

// shrinkForWaiting has a job take back what was lent, the first one that can. It reports whether
// one did.
func (p *schedulingCycle) shrinkForWaiting() bool {
	if p.elastic.lent == 0 {
		return false
	}
	lines := p.waitingForLimits()
	if len(lines) == 0 {
		return false
	}
	s := &elasticShrink{victimSearch: victimSearch{schedulingCycle: p}, tries: maxRecalls}
	l, claims := s.findClass(lines)
	if l == nil {
		return false
	}
	if l.quotaDemand != nil {
		p.setKind(l, s.kind)
		l.quotaDemand.got = s.bid
	}
	p.preemptChosen(l.jobs.firstJob(), claims, s.chosen)
	p.wakeBarred(l) // the next one may do so too
	return true
}

// waitingForLimits lists the classes that rest for a limit or a quota, in no order that matters.
func (p *schedulingCycle) waitingForLimits() (lines []*jobClass) {
	note := func(l *jobClass) {
		if hasJobs(l) && !l.noted && (l.waiting == forLimit || l.waiting == forQuota) {
			l.noted = true
			lines = append(lines, l)
		}
	}
	for _, list := range p.limits.waiting {
		for _, l := range list {
			note(l)
		}
	}
	for _, l := range p.limits.byClaims {
		note(l)
	}
	for _, l := range p.limits.byLicense {
		note(l)
	}
	if p.quotas != nil {
		for _, q := range p.quotas.queues {
			if q != nil {
				for _, l := range q.classes {
					note(l)
				}
			}
		}
	}
	for _, l := range lines {
		l.noted = false
	}
	return lines
}

// findClass is the class whose turn it is, and where its first job starts once what is chosen
// is gone; nil: nobody's. Everything is as it was before.
func (s *elasticShrink) findClass(lines []*jobClass) (*jobClass, []fleet.Claim) {
	s.gatherAdditions()
	defer s.endSearch()
	defer s.saveMarks()()
	defer s.putBack()
	s.findOpenWithout(lines)
	for s.tries = maxRecalls; s.tries > 0; s.tries-- {
		l := s.firstInTurn()
		if l == nil {
			return nil, nil
		}
		s.putBack()
		if claims := s.findShrinks(l); claims != nil {
			return l, claims
		}
		s.takeAll()
		s.open = slices.DeleteFunc(s.open, func(o *jobClass) bool { return o == l })
	}
	return nil, nil
}

// gatherAdditions lists what may be taken back, and what goes anyway.
func (s *elasticShrink) gatherAdditions() {
	for _, r := range s.elastic.growable {
		if len(r.added) == 0 {
			continue
		}
		s.jobs, s.added = append(s.jobs, r), append(s.added, r.added)
		for _, a := range r.added {
			unit := victim.Unit{Tier: lentTier, Cost: s.lossOf(a), Size: a.search.weight}
			if a.stopping {
				unit.Tier = stoppingTier
				s.going++
			}
			a.search.unit = int32(len(s.unitRuns))
			s.unitRuns, s.units = append(s.unitRuns, a), append(s.units, unit)
		}
	}
	s.off, s.stale = make([]bool, len(s.units)), make([]bool, len(s.jobs))
}

// findOpenWithout finds who passes and fits with all taken off, and leaves it so. Who does
// with what goes anyway waits for that alone; where it has a quota its tree waits with it.
func (s *elasticShrink) findOpenWithout(lines []*jobClass) {
	for unit := range s.units {
		s.setTaken(unit, true)
	}
	s.recountJobs()
	s.open = slices.DeleteFunc(lines, func(l *jobClass) bool { return !s.passesRules(l) })
	if len(s.open) == 0 {
		for unit := range s.units {
			s.setTaken(unit, false)
		}
		return // and no node was touched
	}
	for unit := range s.units {
		s.victimSearch.Take(unit)
	}
	slices.SortFunc(s.open, func(a, b *jobClass) int { return a.jobs.firstJob().compareOrder(b.jobs.firstJob()) })
	s.open = slices.DeleteFunc(s.open, func(l *jobClass) bool { return !s.fitsAndMayHold(l) })
	if s.going == 0 || len(s.open) == 0 {
		return
	}
	s.takeOnlyTier(stoppingTier)
	var trees []*quotaTree
	anyway := map[*jobClass]bool{}
	for _, l := range s.open {
		if anyway[l] = s.passesRules(l) && s.fitsAndMayHold(l); anyway[l] && l.quotaDemand != nil {
			trees = append(trees, l.quotaDemand.queue.tree)
		}
	}
	s.open = slices.DeleteFunc(s.open, func(l *jobClass) bool {
		return anyway[l] || l.quotaDemand != nil && slices.Contains(trees, l.quotaDemand.queue.tree)
	})
	s.takeAll()
}

// passesRules reports whether the rules of the site, its limits and quotas would let a class's
// first job start now, as far as that does not depend on where.
func (s *elasticShrink) passesRules(l *jobClass) bool {
	if l.needs != nil {
		was := l.licenseOption
		i := s.firstBlockedCheck(l)
		l.licenseOption = was
		if i >= 0 {
			return false
		}
	}
	if l.quotaDemand != nil && (l.quotaDemand.queue.strict && s.leaderOf(l.quotaDemand.queue) != l || s.Core.assignByQuota(l).Mode != quota.Fit) {
		return false
	}
	if for_, _ := s.thresholdGate(l); for_ != toLookAt {
		return false
	}
	for_, _ := s.reservationGate(l)
	return for_ == toLookAt
}

// fitsAndMayHold reports whether a class that passes fits on what is free, and may have what it is
// placed on.
func (s *elasticShrink) fitsAndMayHold(l *jobClass) bool {
	was := l.licenseOption
	defer func() { l.licenseOption = was }()
	s.line, s.entry = l, l.jobs.firstJob()
	if len(s.reservations) > 0 {
		if s.tries--; s.tries < 0 {
			return false
		}
		s.fits = nil
		defer s.Core.undoLiftsTo(len(s.preempt.lifted))
		s.closeReservedNodes()
	}
	if s.fits == nil {
		s.fits = map[*kind][]fleet.Claim{}
	}
	claims := s.placeInFlavors()
	return claims != nil && s.mayHold(claims)
}

// placeInFlavors chooses the flavours that a class that passes is placed in, and places it; nil:
// it does not fit.
func (s *elasticShrink) placeInFlavors() []fleet.Claim {
	l := s.line
	s.kind = l.kind
	if l.quotaDemand == nil {
		return s.placeKind(l.kind)
	}
	if s.bid = s.Core.assignByQuota(l); s.bid.Mode != quota.Fit {
		return nil
	}
	s.kind = s.kindIn(l, s.bid.Flavors, s.bid.cut)
	claims := s.placeKind(s.kind)
	if claims != nil || !l.quotaDemand.queue.triesNextFlavor {
		return claims
	}
	next := s.chooseFlavors(l, func(f int32, cut int) bool { // the next flavour that has both
		return s.placeKind(s.kindIn(l, s.quotas.alone[f:f+1], cut)) != nil
	})
	if next.Mode != quota.Fit {
		return nil
	}
	s.bid, s.kind = next, s.kindIn(l, next.Flavors, next.cut)
	return s.placeKind(s.kind)
}

// placeKind is where a kind fits now; nil: nowhere.
func (s *elasticShrink) placeKind(k *kind) []fleet.Claim {
	if k == nil || !s.fitsFleet(k) {
		return nil
	}
	claims, known := s.fits[k]
	if !known {
		was := s.kind
		s.kind = k
		claims = s.placeJob()
		s.kind = was
		if s.fits != nil {
			s.fits[k] = claims
		}
	}
	return claims
}

// firstInTurn is the class whose turn it is, with all taken off; nil: nobody's who waits for
// what was lent.
func (s *elasticShrink) firstInTurn() *jobClass {
	var done []*quotaTree
	for _, l := range s.open {
		if l.quotaDemand == nil {
			if s.isForemost(l) {
				return l
			}
			continue
		}
		t := l.quotaDemand.queue.tree
		if slices.Contains(done, t) {
			continue
		}
		done = append(done, t) // it stands where its first job stands
		if !s.isForemost(l) {
			continue
		}
		if x := s.turnInTree(t); slices.Contains(s.open, x) {
			return x
		}
	}
	return nil
}

// turnInTree is the class that goes first in a tree, with all taken off: of each queue the
// first one that passes, or that waits for room already. nil: none.
func (s *elasticShrink) turnInTree(t *quotaTree) *jobClass {
	var lines []*jobClass
	var entries []quota.Entry
	for _, q := range t.queues {
		x := q.heads.firstClass()
		if i := slices.IndexFunc(s.open, func(l *jobClass) bool { return l.quotaDemand != nil && l.quotaDemand.queue == q }); i >= 0 && (x == nil || s.open[i].goesBefore(x)) {
			x = s.open[i]
		}
		if x == nil {
			continue
		}
		b := s.Core.assignByQuota(x)
		if b.Mode != quota.Fit {
			continue
		}
		lines = append(lines, x)
		entries = append(entries, quota.Entry{Queue: q.node, Charges: b.Charges, Level: b.Level})
	}
	i := s.quotas.afterReleases(s.Core).First(entries, func(i, j int) bool { return lines[i].goesBefore(lines[j]) })
	if i < 0 {
		return nil
	}
	return lines[i]
}

// isForemost reports whether a class's first job stands before all that wait for room and
// have something kept for them. What waits inside a reservation is in nobody's way
// outside of it.
func (s *elasticShrink) isForemost(l *jobClass) bool {
	e := l.jobs.firstJob()
	if s.isConservative() {
		return !slices.ContainsFunc(s.backfill.starts, func(x *plannedStart) bool {
			if x.e.planned != x || x.e.compareOrder(e) >= 0 {
				return false
			}
			a := x.e.class.ownReservation()
			return a == nil || a.Flex || a == l.ownReservation()
		})
	}
	head := s.queue.jobs[s.plan.job]
	switch {
	case head == nil:
		return true
	case s.plan.position.Job != 0:
		return positionOf(e).comparePosition(s.plan.position) < 0
	}
	return e.compareOrder(head) < 0
}

// findShrinks finds what a class's first job takes back, and where it starts then; nil: nothing
// helps.
func (s *elasticShrink) findShrinks(l *jobClass) []fleet.Claim {
	s.line, s.entry, s.fits, s.chosen = l, l.jobs.firstJob(), nil, nil
	was, mark := l.licenseOption, len(s.preempt.lifted)
	s.closeReservedNodes()
	defer s.Core.undoLiftsTo(mark)
	set := victim.Choose(s.units, nil, s, searchWork)
	asks := false
	for _, i := range set {
		s.Take(i)
		s.chosen = append(s.chosen, s.unitRuns[i])
		asks = asks || !s.unitRuns[i].stopping
	}
	var claims []fleet.Claim
	if asks { // else it would only wait for what goes anyway
		claims = s.admittedClaims()
	}
	if claims == nil {
		l.licenseOption = was
	}
	for _, i := range set {
		s.Back(i)
	}
	return claims
}

// Fits is victim.Field: whether the job passes, and fits on what is free.
func (s *elasticShrink) Fits() bool { return s.admittedClaims() != nil }

// admittedClaims places the job, if it passes and may have that.
func (s *elasticShrink) admittedClaims() []fleet.Claim {
	s.recountJobs()
	l := s.line
	if l.needs != nil && s.firstBlockedCheck(l) >= 0 {
		return nil
	}
	claims := s.placeInFlavors()
	if claims == nil || !s.mayHold(claims) {
		return nil
	}
	return claims
}

// mayHold reports whether limits and quota let the job hold claims, which may be more
// than it asked for.
func (s *elasticShrink) mayHold(claims []fleet.Claim) bool {
	l := s.line
	if l.quotaDemand != nil && l.quotaDemand.dependsOnPlacement {
		for _, x := range s.quotas.Charges(l.quotaDemand.queue.node, s.amountsTaken(claims), s.bid.Flavors) {
			if x.Amount > s.spareQuota(l.quotaDemand.queue.node, x.FR) {
				return false
			}
		}
	}
	return l.needs == nil || l.exact || s.blockingCheck(l, claims) < 0
}

// Take is victim.Field: an addition counts for nothing.
func (s *elasticShrink) Take(unit int) {
	s.setTaken(unit, true)
	s.victimSearch.Take(unit)
}

// Back has it count again.
func (s *elasticShrink) Back(unit int) {
	s.setTaken(unit, false)
	s.victimSearch.Back(unit)
}

func (s *elasticShrink) setTaken(unit int, off bool) {
	if s.off[unit] != off {
		s.off[unit] = off
		s.stale[slices.Index(s.jobs, s.unitRuns[unit].of)] = true
	}
}

// takeAll takes all off, putBack nothing, and only what is of a tier.
func (s *elasticShrink) takeAll() { s.takeIf(func(int) bool { return true }) }
func (s *elasticShrink) putBack() { s.takeIf(func(int) bool { return false }) }
func (s *elasticShrink) takeOnlyTier(tier int32) {
	s.takeIf(func(unit int) bool { return s.units[unit].Tier == tier })
}

func (s *elasticShrink) takeIf(want func(unit int) bool) {
	for unit := range s.units {
		switch off := want(unit); {
		case off && !s.off[unit]:
			s.Take(unit)
		case !off && s.off[unit]:
			s.Back(unit)
		}
	}
	s.fits = nil
	s.recountJobs()
}

// recountJobs counts what is left of the jobs of which something was taken or put back.
func (s *elasticShrink) recountJobs() {
	for i, r := range s.jobs {
		if !s.stale[i] {
			continue
		}
		s.stale[i] = false
		left := s.added[i]
		if slices.ContainsFunc(left, func(a *run) bool { return s.off[a.search.unit] }) {
			left = slices.DeleteFunc(slices.Clone(left), func(a *run) bool { return s.off[a.search.unit] })
		}
		s.countAs(r, left)
	}
}

// countAs counts a job as if so much had been added to it.
func (c *Core) countAs(r *run, added []*run) {
	c.creditQuota(r)
	c.uncountLimits(r)
	r.added = added
	c.chargeQuota(r)
	c.countLimits(r)
}

// saveMarks remembers what tells that something was held or released, and returns what
// sets it so again.
func (c *Core) saveMarks() func() {
	moves, marks := c.limits.moves, 0
	if c.limits.book != nil {
		marks = c.limits.book.Marks()
	}
	type flags struct{ freed, moved bool }
	var trees []flags
	stirred := false
	if c.quotas != nil {
		stirred = c.quotas.stirred
		for _, t := range c.quotas.trees {
			trees = append(trees, flags{t.freed, t.moved})
		}
	}
	return func() {
		c.limits.moves = moves
		if c.limits.book != nil {
			c.limits.book.Unmark(marks)
		}
		if c.quotas != nil {
			c.quotas.stirred = stirred
			for i, t := range c.quotas.trees {
				t.freed, t.moved = trees[i].freed, trees[i].moved
			}
		}
	}
}

// scheduleLent finds when time may let a class pass if all that was lent were taken off.
func (c *Core) scheduleLent() {
	s := &c.limits
	if c.elastic.lent == 0 || s.book == nil || len(s.book.Timed()) == 0 {
		return
	}
	lines := slices.DeleteFunc((&schedulingCycle{Core: c}).waitingForLimits(), func(l *jobClass) bool { return l.needs == nil || !c.hasFallingLimit(l) })
	if len(lines) == 0 {
		return
	}
	moves, marks := s.moves, s.book.Marks()
	added := make([][]*run, len(c.elastic.growable))
	recount := func(r *run, to []*run) {
		c.uncountLimits(r)
		r.added = to
		c.countLimits(r)
	}
	for i, r := range c.elastic.growable {
		if added[i] = r.added; len(r.added) > 0 {
			recount(r, nil)
		}
	}
	for _, l := range lines {
		c.scheduleWithoutLent(l)
	}
	for i, r := range c.elastic.growable {
		if len(added[i]) > 0 {
			recount(r, added[i])
		}
	}
	s.moves = moves
	s.book.Unmark(marks)
}

// hasFallingLimit reports whether one of a class's limits is on what becomes less by itself.
func (c *Core) hasFallingLimit(l *jobClass) bool {
	for k := range max(len(l.options), 1) {
		o := &l.licenseOption
		if l.options != nil {
			o = &l.options[k]
		}
		for i := range o.rules.Checks {
			if c.limits.book.Falls(&o.rules.Checks[i]) {
				return true
			}
		}
	}
	return false
}

// scheduleWithoutLent is scheduleLent for one class. What its claims need is not known before it is
// placed: then it is asked about each second, as in scheduleLicenseChoices.
func (c *Core) scheduleWithoutLent(l *jobClass) {
	s := &c.limits
	for k := range max(len(l.options), 1) {
		o := &l.licenseOption
		if l.options != nil {
			o = &l.options[k]
		}
		if i := c.surelyBlocked(o); i >= 0 {
			s.scheduleCheck(&o.rules.Checks[i], o.needs[i])
		} else if at := Instant(floorSeconds(c.clock.now)+1) * 1e9; !o.exact && (s.due == 0 || at < s.due) {
			s.due = at
		}
	}
}

// spareQuota is how much of a flavour a queue can give, now and once those are gone who
// make room.
func (c *Core) spareQuota(node, fr int32) resource.Amount {
	return min(c.quotas.Available(node, fr), c.quotas.afterReleases(c).Available(node, fr))
}
