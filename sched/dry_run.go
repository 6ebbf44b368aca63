package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// DryRun reports whether a waiting job would start at once if it asked for what spec
// says instead. True is certain: a cycle over the queue with that job in it starts it.
// False may mean that only a whole cycle could tell, where others would have to give
// way first: it takes nothing from anybody. It looks at that job alone, not at the
// queue, and changes nothing that a decision depends on.
//
// A core that decides as Slurm does (compat) is asked with a cycle instead: Would is
// always false there.
func (c *Core) DryRun(now Instant, id job.ID, spec *job.Spec) bool {
	e := c.queue.jobs[id]
	if e == nil || e.blocked || e.nominee != nil || c.cycleDue || c.fleet.dirty || c.decidesAsSlurm() {
		return false
	}
	p := &schedulingCycle{Core: c, now: max(now, c.clock.now)}
	x := p.newDryRun(e, spec)
	defer x.undoDryRun()
	return x.startsNow()
}

// decidesAsSlurm reports whether the site's rules ask for Slurm's own decisions.
func (c *Core) decidesAsSlurm() bool { return c.policy != nil && c.policy.Compat != "" }

// dryRun is a waiting job as it would be with another specification: an entry and a
// class that the core does not know of.
type dryRun struct {
	*schedulingCycle
	of, e     *queuedJob
	class     *jobClass
	touched   int // length of jobQueue.touched before
	byClaims  int // of limitState.byClaims
	byLicense int // of limitState.byLicense
}

func (p *schedulingCycle) newDryRun(of *queuedJob, spec *job.Spec) *dryRun {
	x := &dryRun{schedulingCycle: p, of: of, touched: len(p.queue.touched), byClaims: len(p.limits.byClaims), byLicense: len(p.limits.byLicense)}
	e := *of
	e.spec, e.planned, e.told = spec, nil, nil
	terms := p.policyOf(spec)
	shape := class.CompileAfter(spec, longestWait(p.policy), waitedFor(&e, p.now))
	key := classKey{shape: shape, policy: terms, own: ownOf(&e, terms)}
	key.setTimes(spec)
	l := &jobClass{key: key, kind: &kind{shape: shape, uses: 1}, limit: key.limit, headsIndex: -1, behindIndex: -1, quotaDemand: p.quotaDemandOf(terms, shape)}
	l.kind.classes = []*jobClass{l}
	p.computeSize(l)
	p.computeNeeds(l)
	x.class, x.e = l, &e
	x.e.class = l
	l.jobs.insertSorted(x.e)
	return x
}

// undoDryRun leaves no trace of it.
func (x *dryRun) undoDryRun() {
	c := x.Core
	for _, l := range c.queue.touched[x.touched:] {
		l.touched = false
	}
	c.queue.touched = c.queue.touched[:x.touched]
	c.limits.byClaims, c.limits.byLicense = c.limits.byClaims[:x.byClaims], c.limits.byLicense[:x.byLicense]
	if s := x.class.quotaDemand; s != nil {
		s.queue.releaseDemand(s.demand)
		for _, f := range s.kinds {
			if k := f.kind; k != nil {
				k.classes = slices.DeleteFunc(k.classes, func(l *jobClass) bool { return l == x.class })
				c.releaseKind(k)
			}
		}
	}
	c.releasePolicy(x.class.key.policy)
}

// startsNow asks each gate in the order of a cycle.
func (x *dryRun) startsNow() bool {
	l := x.class
	if for_, _ := x.reservationGate(l); for_ != toLookAt || !x.passesLimits() {
		return false
	}
	if (x.of.planned != nil || x.plan.job == x.of.id) && x.e.compareOrder(x.of) > 0 {
		return false // others come before it for whom nothing was planned, since it was there
	}
	head := x.headBefore()
	if head != nil && head.class.quotaDemand != nil {
		head.class.quotaDemand.got = x.assignFlavors(head.class)
		x.pledgeQuota(head.class)
		defer x.releasePledges()
	}
	if l.quotaDemand != nil && !x.quotaReaches() || !x.fitsFleet(l.kind) {
		return false
	}
	claims := x.placeDryRun(head)
	return claims != nil && x.beyondQuota(l, claims).Amount == 0 && x.limitsPermit(l, claims)
}

// passesLimits reports whether no limit stands against it.
func (x *dryRun) passesLimits() bool {
	l := x.class
	return l.needs == nil || x.firstBlockedCheck(l) < 0
}

// headBefore is the job whose reservation it has to leave alone; nil: it comes before that,
// or there is none.
func (x *dryRun) headBefore() *queuedJob {
	head := x.queue.jobs[x.plan.job]
	if head == nil || head == x.of || x.e.compareOrder(head) < 0 {
		return nil
	}
	return head
}

// quotaReaches reports whether its quota reaches, and settles on which nodes it is placed.
func (x *dryRun) quotaReaches() bool {
	l, s := x.class, x.class.quotaDemand
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
func (x *dryRun) placeDryRun(head *queuedJob) []fleet.Claim {
	l := x.class
	if x.backfill.wasOn {
		if x.plan.job != 0 && head != nil && l.latestEnd(x.now) > x.plan.at && x.crowdsHead(l) {
			return nil
		}
		if s := x.of.planned; s != nil && s.onNodes { // it keeps nothing from itself
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
	case x.plan.profile == nil:
		return x.placeAround(l.kind)
	}
	claims, _ := x.placeSparing(l.kind)
	if claims == nil {
		claims, _ = x.placeShortened(l)
	}
	return claims
}
