package sched

import (
	"slices"
	"sort"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// This file settles in which flavours a class's jobs are, and how many of their tasks.
//
//	by quota      the first flavour that the account's rules allow to stop at, else the
//	              best (quota.Assign), among those of which the fleet has nodes for them
//	by room       where that one has quota but not the nodes now, the next one that has
//	              both; if none has, the first one is waited for (when_full: stop waits
//	              at once)
//	in part       where no flavour has quota for all tasks that are wanted, as many as
//	              there is quota for, no fewer than the job allows: what is cut off is
//	              spread over its groups in the proportion in which they allow it, and
//	              the least cut that fits is found by bisection (Kueue's minCount)

// quotaBid is what a class's first job would take of its quota.
type quotaBid struct {
	quota.Assignment
	cut int // tasks of those wanted that are left out, over all groups
}

// assignByQuota chooses by quota alone.
func (c *Core) assignByQuota(l *jobClass) quotaBid {
	d := l.quotaDemand.demand
	if d.changes != c.quotas.changes || d.fleet != c.fleet.version {
		d.changes, d.fleet = c.quotas.changes, c.fleet.version
		d.got = c.chooseFlavors(l, nil)
	}
	return d.got
}

// assignFlavors chooses by quota and room.
func (p *schedulingCycle) assignFlavors(l *jobClass) quotaBid {
	b := p.Core.assignByQuota(l)
	if b.Mode != quota.Fit || !l.quotaDemand.queue.triesNextFlavor || len(p.triedFlavors) == 0 && p.fitsFlavors(l, b.Flavors, b.cut) {
		return b
	}
	next := p.chooseFlavors(l, func(f int32, cut int) bool {
		return !slices.Contains(p.triedFlavors, f) && p.fitsFlavors(l, p.quotas.alone[f:f+1], cut)
	})
	if next.Mode == quota.Fit && p.fitsFlavors(l, next.Flavors, next.cut) {
		return next
	}
	return b
}

// chooseFlavors chooses among the flavours for which may holds; nil: all.
func (c *Core) chooseFlavors(l *jobClass, may func(f int32, cut int) bool) quotaBid {
	b := quotaBid{c.assignWithCut(l, 0, may, nil), 0}
	spare := l.quotaDemand.cuttable
	if b.Mode == quota.Fit || spare == 0 {
		return b
	}
	cut := 1 + sort.Search(spare, func(i int) bool { return c.assignWithCut(l, i+1, may, nil).Mode == quota.Fit })
	if cut > spare {
		return b
	}
	return quotaBid{c.assignWithCut(l, cut, may, nil), cut}
}

// assignWithCut chooses for so many tasks fewer than are wanted. It has to fit what is held
// now as well as what will be held once those who make room for others have gone.
func (c *Core) assignWithCut(l *jobClass, cut int, may func(int32, int) bool, try quota.Try) quota.Assignment {
	s := l.quotaDemand
	then := c.quotas.afterReleases(c)
	a := then.Reassign(&s.demand.got.Assignment, s.queue.node, c.needsOf(l, cut), func(f int32) bool {
		k := c.kindIn(l, c.quotas.alone[f:f+1], cut)
		return k != nil && c.fitsFleet(k) && (may == nil || may(f, cut))
	}, try)
	if now := c.quotas.State; a.Mode == quota.Fit && then != now {
		for _, x := range a.Charges {
			if x.Amount > now.Available(s.queue.node, x.FR) {
				a.Mode, a.Lacks = quota.NoCandidates, append(a.Lacks, x.FR)
			}
		}
	}
	return a
}

// fitsFlavors reports whether a class's first job would fit what is free, in flavours.
func (p *schedulingCycle) fitsFlavors(l *jobClass, flavors []int32, cut int) bool {
	k := p.kindIn(l, flavors, cut)
	return k != nil && p.fitsFleet(k) && p.placeFree(k) != nil
}

// tryNextFlavor turns a class whose first job is in the way of what is planned to the next
// flavour that has room, and reports whether there is one. The caller tries it there.
func (p *schedulingCycle) tryNextFlavor(l *jobClass) bool {
	if l.quotaDemand == nil || !l.quotaDemand.queue.triesNextFlavor {
		return false
	}
	for i := range l.quotaDemand.kinds {
		if x := &l.quotaDemand.kinds[i]; x.kind == l.kind {
			p.triedFlavors = append(p.triedFlavors, x.flavors...)
		}
	}
	b := p.assignFlavors(l)
	k := p.kindIn(l, b.Flavors, b.cut)
	if b.Mode != quota.Fit || k == nil || k == l.kind || slices.ContainsFunc(b.Flavors, func(f int32) bool { return slices.Contains(p.triedFlavors, f) }) {
		return false
	}
	if !p.fitsFlavors(l, b.Flavors, b.cut) { // there it would rest for room, and is placed in another flavour when it is looked at again
		return false
	}
	l.quotaDemand.got = b
	p.setKind(l, k)
	return true
}

// resetFlavor forgets which flavours were tried, and turns a class back to the one that it
// waits for if it could start in none.
func (p *schedulingCycle) resetFlavor(l *jobClass, started bool) {
	if len(p.triedFlavors) == 0 {
		return
	}
	p.triedFlavors = p.triedFlavors[:0]
	if started || l.quotaDemand == nil || l.jobs.len() == 0 {
		return
	}
	if b := p.assignFlavors(l); b.Mode == quota.Fit {
		if k := p.kindIn(l, b.Flavors, b.cut); k != nil {
			why := l.why
			l.quotaDemand.got = b
			p.setKind(l, k)
			l.why = why
		}
	}
}

// wakeForFlavors wakes the classes that wait for room in a flavour, or to be in nobody's
// way, and could go on in another one on which something has become free.
func (p *schedulingCycle) wakeForFlavors(freed func(*kind) bool) {
	if p.quotas == nil {
		return
	}
	for _, q := range p.quotas.queues {
		if q == nil || !q.triesNextFlavor {
			continue
		}
		for _, l := range q.classes {
			if l.waiting != forNodes && l.waiting != forPlan {
				continue
			}
			if slices.ContainsFunc(l.quotaDemand.kinds, func(x flavorKind) bool { return x.kind != nil && x.kind != l.kind && freed(x.kind) }) {
				p.wakeBarred(l)
			}
		}
	}
}

// prefersPreemption reports whether a class's first job rather stops others than take what it
// would get without: more of its tasks (as Kueue), or by the account's rules an
// earlier flavour, or its own quota. It is asked once before the first job
// that cannot start.
func (p *schedulingCycle) prefersPreemption(l *jobClass) bool {
	s := l.quotaDemand
	if !p.first || s.got.Mode != quota.Fit || s.got.cut == 0 && !s.queue.preemptsFirst || !p.mayReclaim(l) {
		return false
	}
	held, _ := p.preemptibleRuns(s.queue.tree)
	try := p.quotas.afterReleases(p.Core).Try(p.quotaWish(l), held)
	cut := sort.Search(s.got.cut, func(i int) bool { return p.assignWithCut(l, i, nil, try).Mode > quota.NoCandidates })
	a := p.assignWithCut(l, cut, nil, try)
	if a.Mode != quota.Preempts && a.Mode != quota.Reclaims {
		return false
	}
	s.got, s.suited = quotaBid{a, cut}, [2]uint64{}
	return true
}

// triesNextFlavor reports whether a queue goes on to the next flavour where one has no room.
func triesNextFlavor(r *account.Quota, choice bool) bool { return choice && r.Full != account.StopHere }

// preemptsFirst reports whether a queue may rather stop others than go on to a flavour that is
// free.
func preemptsFirst(r *account.Quota, choice bool) bool {
	return choice && (r.Preempt == account.StopHere || r.Prefer == account.PreemptFirst)
}
