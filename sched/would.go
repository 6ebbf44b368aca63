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
	if e == nil || e.blocked || e.nominee != nil || c.dirty || c.refitted || c.slurmish() {
		return false
	}
	p := &pass{Core: c, now: max(now, c.now)}
	x := p.instead(e, spec)
	defer x.forget()
	return x.starts()
}

// slurmish reports whether the site's rules ask for Slurm's own decisions.
func (c *Core) slurmish() bool { return c.policy != nil && c.policy.Compat != "" }

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

func (p *pass) instead(of *entry, spec *job.Spec) *instead {
	x := &instead{pass: p, of: of, touched: len(p.touched), loose: len(p.limits.loose), either: len(p.limits.either)}
	e := *of
	e.spec, e.slot, e.told = spec, nil, nil
	terms := p.termsOf(spec)
	shape := class.CompileAfter(spec, longestWait(p.policy), waited(&e, p.now))
	key := lineKey{shape: shape, limit: max(spec.TimeLimit, 0), terms: terms, own: ownOf(&e, terms)}
	if spec.TimeMin > 0 && spec.TimeMin < key.limit {
		key.least = spec.TimeMin
	}
	l := &line{key: key, kind: &kind{shape: shape, uses: 1}, limit: key.limit, place: -1, spot: -1, stake: p.stakeOf(terms, shape)}
	l.kind.lines = []*line{l}
	p.weigh(l)
	p.allot(l)
	x.l, x.e = l, &e
	x.e.line = l
	l.jobs.insert(x.e)
	return x
}

// forget leaves no trace of it.
func (x *instead) forget() {
	c := x.Core
	for _, l := range c.touched[x.touched:] {
		l.touched = false
	}
	c.touched = c.touched[:x.touched]
	c.limits.loose, c.limits.either = c.limits.loose[:x.loose], c.limits.either[:x.either]
	if s := x.l.stake; s != nil {
		s.queue.forgo(s.demand)
		for _, f := range s.kinds {
			if k := f.kind; k != nil {
				k.lines = slices.DeleteFunc(k.lines, func(l *line) bool { return l == x.l })
				c.disuse(k)
			}
		}
	}
	c.unuse(x.l.key.terms)
}

// starts asks each gate in the order of a pass.
func (x *instead) starts() bool {
	l := x.l
	if for_, _ := x.kept(l); for_ != active || !x.passes() {
		return false
	}
	if (x.of.slot != nil || x.plan.job == x.of.id) && x.e.before(x.of) > 0 {
		return false // others come before it for whom nothing was planned, since it was there
	}
	head := x.head()
	if head != nil && head.line.stake != nil {
		head.line.stake.got = x.assign(head.line)
		x.pledge(head.line)
		defer x.unpledge()
	}
	if l.stake != nil && !x.funded() || !x.possible(l.kind) {
		return false
	}
	claims := x.claims(head)
	return claims != nil && x.beyond(l, claims).Amount == 0 && x.permitted(l, claims)
}

// passes reports whether no limit stands against it.
func (x *instead) passes() bool {
	l := x.l
	return l.needs == nil || x.barred(l) < 0
}

// head is the job whose reservation it has to leave alone; nil: it comes before that,
// or there is none.
func (x *instead) head() *entry {
	head := x.queued[x.plan.job]
	if head == nil || head == x.of || x.e.before(head) < 0 {
		return nil
	}
	return head
}

// funded reports whether its quota reaches, and settles on which nodes it is placed.
func (x *instead) funded() bool {
	l, s := x.l, x.l.stake
	if s.queue.strict {
		if before := x.leader(s.queue); before != nil && before.jobs.first() != x.of && before.jobs.first().before(x.e) < 0 {
			return false
		}
	}
	if s.got = x.assign(l); s.got.Mode != quota.Fit {
		return false
	}
	k := x.kindIn(l, s.got.Flavors, s.got.cut)
	if k == nil || !x.possible(k) {
		return false
	}
	x.turnTo(l, k)
	return true
}

// claims places it where it delays nobody who is before it.
func (x *instead) claims(head *entry) []fleet.Claim {
	l := x.l
	if x.wasNamed {
		if x.plan.job != 0 && head != nil && l.finish(x.now) > x.plan.at && x.crowds(l) {
			return nil
		}
		if s := x.of.slot; s != nil && s.rooted { // it keeps nothing from itself
			x.uproot(s)
			defer x.root(s)
		}
		if claims := x.beginNow(l, l.finish(x.now)); claims != nil {
			return claims
		}
		claims, _ := x.shorter(l)
		return claims
	}
	if head == nil {
		return x.fit(l.kind)
	}
	ends := l.limit > 0 && ending(x.now, l.limit) <= x.plan.at
	switch {
	case ends:
		return x.fit(l.kind)
	case x.crowds(l):
		return nil
	case x.plan.look == nil:
		return x.around(l.kind)
	}
	claims, _ := x.sparing(l.kind)
	if claims == nil {
		claims, _ = x.shorter(l)
	}
	return claims
}
