package sched

import (
	"cmp"
	"slices"
	"sort"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// This file takes back what was lent. Where the site preempts by quota, a job whose
// account's quota does not reach may stop others of its tree: which ones is for
// quota.Victims to say, by the rules of the account (within, reclaim, borrowing) and
// of the tree (fair sharing). Nobody is stopped unless quota and nodes suffice for
// the whole job then. It is nominated, as with other preemption, and starts when the
// last of them is gone.

// reclaimQuota has a class's first job take what it may of the quotas of others, and
// reports whether it did.
func (p *schedulingCycle) reclaimQuota(l *jobClass) bool {
	e := l.jobs.firstJob()
	if l.waiting != forQuota || !p.mayReclaim(l) {
		return false
	}
	if p.reclaimAny(l, e) {
		p.wakeBarred(l) // the next one may do so too
		return true
	}
	l.searched, l.searcher, l.fitsWithLeavers = p.generation, e, false
	if l.quotaDemand.queue.preemptsFirst || l.quotaDemand.cuttable > 0 {
		p.wakeBarred(l) // it may do without
	}
	return false
}

// mayReclaim reports whether a class's first job may claim back at all and was not searched
// for in vain already.
func (p *schedulingCycle) mayReclaim(l *jobClass) bool {
	e := l.jobs.firstJob()
	return e != nil && p.preempt.rules != nil && p.preempt.rules.byQuota && !l.quotaDemand.dependsOnPlacement && (l.searched != p.generation || l.searcher != e)
}

func (p *schedulingCycle) quotaWish(l *jobClass) quota.Wish {
	e := l.jobs.firstJob()
	return quota.Wish{Queue: l.quotaDemand.queue.node, Priority: e.priority, At: int64(e.at)}
}

// reclaimAny claims for all tasks of a job, or for as many as it can be had for.
func (p *schedulingCycle) reclaimAny(l *jobClass, e *queuedJob) bool {
	held, runs := p.preemptibleRuns(l.quotaDemand.queue.tree)
	spare := l.quotaDemand.cuttable
	if p.reclaimWithCut(l, e, 0, held, runs) {
		return true
	}
	try := p.quotas.afterReleases(p.Core).Try(p.quotaWish(l), held)
	cut := 1 + sort.Search(spare, func(i int) bool { return p.assignWithCut(l, i+1, nil, try).Mode > quota.NoCandidates })
	return cut <= spare && p.reclaimWithCut(l, e, cut, held, runs)
}

// reclaimWithCut stops who has to be stopped for so many tasks fewer than are wanted.
func (p *schedulingCycle) reclaimWithCut(l *jobClass, e *queuedJob, cut int, held []quota.Holder, runs []*run) bool {
	then, wish := p.quotas.afterReleases(p.Core), p.quotaWish(l)
	a := p.assignWithCut(l, cut, nil, then.Try(wish, held))
	if a.Mode != quota.Preempts && a.Mode != quota.Reclaims {
		return false
	}
	k := p.kindIn(l, a.Flavors, cut)
	if k == nil || !p.fitsFleet(k) {
		return false
	}
	wish.Charges, wish.Lacks = a.Charges, a.Lacks
	going := p.leavingRuns()
	victims := then.Victims(wish, held, func(gone []int) bool { return p.placeWithout(k, going, runs, gone) != nil })
	if len(victims) == 0 {
		return false
	}
	var gone []int
	var chosen []*run
	for _, v := range victims {
		gone, chosen = append(gone, v.Holder), append(chosen, runs[v.Holder])
	}
	claims := p.placeWithout(k, nil, runs, gone)
	alone := claims != nil
	if !alone {
		claims = p.placeWithout(k, going, runs, gone)
	}
	if claims == nil {
		return false
	}
	for _, r := range going { // who goes for others, from nodes that this one is to have
		if !alone && slices.ContainsFunc(r.claims, func(x fleet.Claim) bool {
			return slices.ContainsFunc(claims, func(y fleet.Claim) bool { return p.fleet.table.Meet(&x, &y) })
		}) {
			chosen = append(chosen, r)
		}
	}
	p.setKind(l, k)
	l.quotaDemand.got = quotaBid{a, cut}
	p.preemptChosen(e, claims, chosen)
	return true
}

// preemptibleRuns lists the running jobs of a tree that may be stopped at all, by number.
func (p *schedulingCycle) preemptibleRuns(t *quotaTree) (held []quota.Holder, runs []*run) {
	going := p.leavingRuns()
	for _, r := range p.runs.ends.allRuns() {
		o := r.policy.preemption
		switch {
		case r.policy.queue == nil || r.policy.queue.tree != t || r.nominee != nil || slices.Contains(going, r), // then they are gone
			o.mode == account.PreemptOff || o.mode == account.PreemptSuspend:
			continue
		}
		if since := r.began + o.exempt; since > p.now && !r.stopping && r.of == nil {
			if p.preempt.exemptUntil == 0 || since < p.preempt.exemptUntil {
				p.Core.preempt.exemptUntil = since
			}
			continue
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b *run) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.part, b.part)) })
	for _, r := range runs {
		held = append(held, quota.Holder{
			Queue: r.policy.queue.node, Charges: p.chargesOf(r), Priority: r.priority,
			At: int64(r.submitted), Since: int64(r.began), Leaving: r.stopping,
		})
	}
	return held, runs
}

// chargesOf is what a run holds of quotas, apart from what was added to it.
func (c *Core) chargesOf(r *run) []quota.Charge {
	if r.of == nil && len(r.added) == 0 {
		return r.charges
	}
	used := c.amountsTaken(r.claims)
	if r.of != nil { // it is no job
		used = slices.DeleteFunc(used, func(n quota.Need) bool { return c.quotas.Resources[n.Resource] == "job" })
	}
	return c.quotas.Charges(r.policy.queue.node, used, c.flavorsNamed(r.flavors))
}

// placeWithout places a kind on what is free once those who are going and some more are
// gone.
func (p *schedulingCycle) placeWithout(k *kind, going, runs []*run, gone []int) []fleet.Claim {
	for _, r := range going {
		p.liftRun(r, -1)
	}
	for _, i := range gone {
		p.liftRun(runs[i], -1)
		for _, a := range runs[i].added {
			if !slices.Contains(going, a) && !slices.ContainsFunc(gone, func(k int) bool { return runs[k] == a }) {
				p.liftRun(a, -1)
			}
		}
	}
	defer p.undoLifts()
	if q := p.quickPlacement(k); q != nil {
		if claims, sure := q.Place(nil); sure {
			return claims
		}
	}
	return place.Gang(p.fleet.table, p.fleet.state, k.shape)
}

// wakeForReclaim wakes the classes that rest for quota and may find victims that they did
// not find before.
func (p *schedulingCycle) wakeForReclaim() {
	for _, q := range p.quotas.queues {
		if q == nil {
			continue
		}
		for _, l := range q.classes {
			if l.waiting == forQuota && hasJobs(l) && !l.quotaDemand.dependsOnPlacement && (l.searched != p.generation || l.searcher != l.jobs.firstJob()) {
				p.wakeBarred(l)
			}
		}
	}
}
