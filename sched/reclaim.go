package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/account"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// This file takes back what was lent. Where the site preempts by quota, a job whose
// account's quota does not reach may stop others of its tree: which ones is for
// quota.Victims to say, by the rules of the account (within, reclaim, borrowing) and
// of the tree (fair sharing). Nobody is stopped unless quota and nodes suffice for
// the whole job then. It is nominated, as with other preemption, and starts when the
// last of them is gone.

// reclaim has a line's first job take what it may of the quotas of others, and
// reports whether it did.
func (p *pass) reclaim(l *line) bool {
	e := l.jobs.first()
	if l.rest != forQuota || e == nil || p.preemption == nil || !p.preemption.byQuota || l.stake.rough || l.searched == p.stirs && l.searcher == e {
		return false
	}
	if p.claimBack(l, e) {
		p.admit(l) // the next one may do so too
		return true
	}
	l.searched, l.searcher = p.stirs, e
	return false
}

func (p *pass) claimBack(l *line, e *entry) bool {
	s := l.stake
	held, runs := p.holders(s.queue.tree)
	wish := quota.Wish{Queue: s.queue.node, Priority: e.priority, At: int64(e.at)}
	a := p.quotas.Assign(s.queue.node, s.needs, func(f int32) bool {
		k := p.kindIn(l, []int32{f})
		return k != nil && p.possible(k)
	}, p.quotas.Try(wish, held))
	if a.Mode != quota.Preempts && a.Mode != quota.Reclaims {
		return false
	}
	k := p.kindIn(l, a.Flavors)
	if k == nil || !p.possible(k) {
		return false
	}
	wish.Charges, wish.Lacks = a.Charges, a.Lacks
	victims := p.quotas.Victims(wish, held, func(gone []int) bool { return p.without(k, runs, gone) != nil })
	if len(victims) == 0 {
		return false
	}
	var gone []int
	var chosen []*run
	for _, v := range victims {
		gone, chosen = append(gone, v.Holder), append(chosen, runs[v.Holder])
	}
	claims := p.without(k, runs, gone)
	if claims == nil {
		return false
	}
	p.turnTo(l, k)
	s.got = a
	p.take(e, claims, chosen)
	return true
}

// holders lists the running jobs of a tree that may be stopped at all, by number.
func (p *pass) holders(t *tree) (held []quota.Holder, runs []*run) {
	for _, r := range p.ends.all() {
		o := r.terms.standing
		switch {
		case r.terms.queue == nil || r.terms.queue.tree != t || r.nominee != nil,
			o.mode == account.PreemptOff || o.mode == account.PreemptSuspend:
			continue
		}
		if since := r.began + o.exempt; since > p.now && !r.stopping {
			if p.exempted == 0 || since < p.exempted {
				p.Core.exempted = since
			}
			continue
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b *run) int { return int(a.id) - int(b.id) })
	for _, r := range runs {
		held = append(held, quota.Holder{
			Queue: r.terms.queue.node, Charges: r.charges, Priority: r.priority,
			At: int64(r.submitted), Since: int64(r.began), Leaving: r.stopping,
		})
	}
	return held, runs
}

// without places a kind on what is free once some runs are gone.
func (p *pass) without(k *kind, runs []*run, gone []int) []fleet.Claim {
	for _, i := range gone {
		p.lift(runs[i], -1)
	}
	defer p.settleLifts()
	if q := p.quickly(k); q != nil {
		if claims, sure := q.Place(nil); sure {
			return claims
		}
	}
	return place.Gang(p.table, p.state, k.shape)
}

// rouseClaims wakes the lines that rest for quota and may find victims that they did
// not find before.
func (p *pass) rouseClaims() {
	for _, q := range p.quotas.queues {
		if q == nil {
			continue
		}
		for _, l := range q.lines {
			if l.rest == forQuota && hasJobs(l) && !l.stake.rough && (l.searched != p.stirs || l.searcher != l.jobs.first()) {
				p.admit(l)
			}
		}
	}
}
