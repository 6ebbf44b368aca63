package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// Would reports whether a waiting job would start at once if it asked for what spec
// says instead. True is certain: a pass over the queue with that job in it starts it.
// False may mean that only a whole pass could tell, where others would have to give
// way first: it takes nothing from anybody. It looks at that job alone, not at the
// queue, and changes nothing that a decision depends on.
//
// A core that decides as Slurm does (compat) is asked with a pass instead: Would is
// always false there.
func (c *Core) Would(now Instant, id job.ID, spec *job.Spec) bool {
	e := c.queued[id]
	if e == nil || e.blocked || e.nominee != nil || c.dirty || c.refitted || c.decidesAsSlurm() {
		return false
	}
	p := &pass{Core: c, now: max(now, c.now)}
	x := p.newDryRun(e, spec)
	defer x.undoDryRun()
	return x.startsNow()
}

// decidesAsSlurm reports whether the site's rules ask for Slurm's own decisions.
func (c *Core) decidesAsSlurm() bool { return c.policy != nil && c.policy.Compat != "" }

// instead is a waiting job as it would be with another specification: an entry and a
// line that the core does not know of.
type instead struct {
	*pass
	of, e   *entry
	l       *line
	touched int // length of Core.touched before
	loose   int // of limits.loose
	either  int // of limits.either
}

func (p *pass) newDryRun(of *entry, spec *job.Spec) *instead {
	x := &instead{pass: p, of: of, touched: len(p.touched), loose: len(p.limits.loose), either: len(p.limits.either)}
	e := *of
	e.spec, e.slot, e.told = spec, nil, nil
	terms := p.policyOf(spec)
	shape := class.CompileAfter(spec, longestWait(p.policy), waitedFor(&e, p.now))
	key := lineKey{shape: shape, limit: max(spec.TimeLimit, 0), terms: terms, own: ownOf(&e, terms)}
	if spec.TimeMin > 0 && spec.TimeMin < key.limit {
		key.least = spec.TimeMin
	}
	l := &line{key: key, kind: &kind{shape: shape, uses: 1}, limit: key.limit, place: -1, spot: -1, stake: p.quotaDemandOf(terms, shape)}
	l.kind.lines = []*line{l}
	p.computeSize(l)
	p.computeNeeds(l)
	x.l, x.e = l, &e
	x.e.line = l
	l.jobs.insertSorted(x.e)
	return x
}

// undoDryRun leaves no trace of it.
func (x *instead) undoDryRun() {
	c := x.Core
	for _, l := range c.touched[x.touched:] {
		l.touched = false
	}
	c.touched = c.touched[:x.touched]
	c.limits.loose, c.limits.either = c.limits.loose[:x.loose], c.limits.either[:x.either]
	if s := x.l.stake; s != nil {
		s.queue.releaseDemand(s.demand)
		for _, f := range s.kinds {
			if k := f.kind; k != nil {
				k.lines = slices.DeleteFunc(k.lines, func(l *line) bool { return l == x.l })
				c.releaseKind(k)
			}
		}
	}
	c.releasePolicy(x.l.key.terms)
}

// startsNow asks each gate in the order of a pass.
func (x *instead) startsNow() bool {
	l := x.l
	if for_, _ := x.reservationGate(l); for_ != active || !x.passesLimits() {
		return false
	}
	if (x.of.slot != nil || x.plan.job == x.of.id) && x.e.compareOrder(x.of) > 0 {
		return false // others come before it for whom nothing was planned, since it was there
	}
	head := x.headBefore()
	if head != nil && head.line.stake != nil {
		head.line.stake.got = x.assignFlavors(head.line)
		x.pledgeQuota(head.line)
		defer x.releasePledges()
	}
	if l.stake != nil && !x.quotaReaches() || !x.fitsFleet(l.kind) {
		return false
	}
	claims := x.placeDryRun(head)
	return claims != nil && x.beyondQuota(l, claims).Amount == 0 && x.limitsPermit(l, claims)
}

// passesLimits reports whether no limit stands against it.
func (x *instead) passesLimits() bool {
	l := x.l
	return l.needs == nil || x.firstBlockedCheck(l) < 0
}

// headBefore is the job whose reservation it has to leave alone; nil: it comes before that,
// or there is none.
func (x *instead) headBefore() *entry {
	head := x.queued[x.plan.job]
	if head == nil || head == x.of || x.e.compareOrder(head) < 0 {
		return nil
	}
	return head
}

// quotaReaches reports whether its quota reaches, and settles on which nodes it is placed.
func (x *instead) quotaReaches() bool {
	l, s := x.l, x.l.stake
	if s.queue.strict {
		if before := x.leaderOf(s.queue); before != nil && before.jobs.firstJob() != x.of && before.jobs.firstJob().compareOrder(x.e) < 0 {
			return false
		}
	}
	if s.got = x.assignFlavors(l); s.got.Mode != quota.Fit {
		return false
	}
	k := x.kindIn(l, s.got.Flavors, s.got.cut)
	if k == nil || !x.fitsFleet(k) {
		return false
	}
	x.setKind(l, k)
	return true
}

// placeDryRun places it where it delays nobody who is before it.
func (x *instead) placeDryRun(head *entry) []fleet.Claim {
	l := x.l
	if x.wasNamed {
		if x.plan.job != 0 && head != nil && l.latestEnd(x.now) > x.plan.at && x.crowdsHead(l) {
			return nil
		}
		if s := x.of.slot; s != nil && s.rooted { // it keeps nothing from itself
			x.removeFromNodes(s)
			defer x.addToNodes(s)
		}
		if claims := x.placeNow(l, l.latestEnd(x.now)); claims != nil {
			return claims
		}
		claims, _ := x.placeShortened(l)
		return claims
	}
	if head == nil {
		return x.placeFree(l.kind)
	}
	ends := l.limit > 0 && endAfter(x.now, l.limit) <= x.plan.at
	switch {
	case ends:
		return x.placeFree(l.kind)
	case x.crowdsHead(l):
		return nil
	case x.plan.look == nil:
		return x.placeAround(l.kind)
	}
	claims, _ := x.placeSparing(l.kind)
	if claims == nil {
		claims, _ = x.placeShortened(l)
	}
	return claims
}
