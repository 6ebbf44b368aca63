package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/resource"
	"github.com/coxswain-sched/coxswain/sched/quota"
	"github.com/coxswain-sched/coxswain/sched/victim"
)

// This file gives back what was lent (elastic.go) to those who wait not for nodes but
// for a limit or a quota: what was added to others counts there as everything does, and
// had it not been added, the job would pass. As with nodes it is a job's turn that lets
// it take back, no right: it stands before the first that waits for room. As much is
// asked back as it needs, of the limits, of the quota and of nodes, all at once or
// nothing; it is nominated, and starts when that is gone.

// recall is a search for what one job takes back: victim.Field, where an addition that is
// taken counts against no limit and no quota.
type recall struct {
	search
	line *line
	bid  bid
}

// recalls has jobs take back what was lent, the first one that can. It reports whether one
// did.
func (p *pass) recalls() bool {
	if p.lent == 0 {
		return false
	}
	head := p.queued[p.plan.job]
	var lines []*line
	note := func(l *line) {
		e := l.jobs.first()
		if e != nil && (l.rest == forLimit || l.rest == forQuota) && (l.recalled != p.stirs+p.fallen || l.recaller != e) &&
			(head == nil || e.before(head) < 0) && !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	for _, list := range p.limits.waiting {
		for _, l := range list {
			note(l)
		}
	}
	for _, l := range slices.Concat(p.limits.loose, p.limits.either) {
		note(l)
	}
	if p.quotas != nil {
		for _, q := range p.quotas.queues {
			if q != nil {
				for _, l := range q.lines {
					note(l)
				}
			}
		}
	}
	slices.SortFunc(lines, func(a, b *line) int { return a.jobs.first().before(b.jobs.first()) })
	for _, l := range lines {
		e := l.jobs.first()
		if p.recall(l, e) {
			return true
		}
		l.recalled, l.recaller = p.stirs+p.fallen, e
	}
	return false
}

// recall has a line's first job take back what it needs.
func (p *pass) recall(l *line, e *entry) bool {
	s := recall{search: search{pass: p, entry: e}, line: l}
	claims := s.claims()
	if claims == nil {
		return false
	}
	if l.stake != nil {
		p.turnTo(l, s.kind)
		l.stake.got = s.bid
	}
	p.take(e, claims, s.chosen)
	p.admit(l) // the next one may do so too
	return true
}

// claims finds what is to be given back, and where the job starts then; nil: nothing
// helps. Everything is as it was before.
func (s *recall) claims() []fleet.Claim {
	for _, r := range s.elastic {
		for _, a := range r.added {
			unit := victim.Unit{Tier: lentTier, Cost: s.loss(a), Size: a.weight}
			if a.stopping {
				unit.Tier = stoppingTier
			}
			a.unit = int32(len(s.runs))
			s.runs, s.units = append(s.runs, a), append(s.units, unit)
		}
	}
	defer s.end()
	defer s.untouched()()
	s.keepOff()
	set := victim.Choose(s.units, nil, s, searchWork)
	asks := false
	for _, i := range set {
		s.chosen = append(s.chosen, s.runs[i])
		asks = asks || !s.runs[i].stopping
	}
	if !asks { // it would only wait for what goes anyway
		return nil
	}
	for _, i := range set {
		s.Take(i)
	}
	defer func() {
		for _, i := range set {
			s.Back(i)
		}
	}()
	if !s.admitted() {
		return nil
	}
	if claims := s.place(); claims != nil && s.allowed(claims) {
		return claims
	}
	return nil
}

// untouched remembers what tells that something was held or released, and returns what
// sets it so again.
func (s *recall) untouched() func() {
	moves, marks := s.limits.moves, 0
	if s.limits.book != nil {
		marks = s.limits.book.Marks()
	}
	type flags struct{ freed, moved bool }
	var trees []flags
	stirred := false
	if s.quotas != nil {
		stirred = s.quotas.stirred
		for _, t := range s.quotas.trees {
			trees = append(trees, flags{t.freed, t.moved})
		}
	}
	return func() {
		s.Core.limits.moves = moves
		if s.limits.book != nil {
			s.limits.book.Unmark(marks)
		}
		if s.quotas != nil {
			s.quotas.stirred = stirred
			for i, t := range s.quotas.trees {
				t.freed, t.moved = trees[i].freed, trees[i].moved
			}
		}
	}
}

// Take is victim.Field: an addition counts for nothing.
func (s *recall) Take(unit int) {
	s.strike(s.runs[unit])
	s.search.Take(unit)
}

// Back has it count again.
func (s *recall) Back(unit int) {
	s.enroll(s.runs[unit])
	s.search.Back(unit)
}

// Fits reports whether the job passes, and fits on what is free.
func (s *recall) Fits() bool { return s.admitted() && s.search.Fits() }

// admitted reports whether limits and quota let the job start, as far as that does not
// depend on where, and settles as what it is placed.
func (s *recall) admitted() bool {
	l := s.line
	if l.needs != nil && s.barred(l) >= 0 {
		return false
	}
	s.kind = l.kind
	if l.stake != nil {
		if s.bid = s.Core.assign(l); s.bid.Mode != quota.Fit {
			return false
		}
		s.kind = s.kindIn(l, s.bid.Flavors, s.bid.cut)
	}
	return s.kind != nil && s.possible(s.kind)
}

// allowed reports whether they let it start on claims, which may be more than it asked
// for.
func (s *recall) allowed(claims []fleet.Claim) bool {
	l := s.line
	if l.stake != nil {
		for _, x := range s.quotas.Charges(l.stake.queue.node, s.taken(claims), s.bid.Flavors) {
			if x.Amount > s.spareQuota(l.stake.queue.node, x.FR) {
				return false
			}
		}
	}
	return l.needs == nil || s.stopped(l, claims) < 0
}

// spareQuota is how much of a flavour a queue can give, now and once those are gone who
// make room.
func (c *Core) spareQuota(node, fr int32) resource.Amount {
	return min(c.quotas.Available(node, fr), c.quotas.then(c).Available(node, fr))
}
