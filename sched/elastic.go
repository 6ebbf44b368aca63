package sched

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// This file lets gangs grow and shrink while they run. A job with an elastic group is
// queued, promised and started as one of its minimum: nothing that concerns its start
// knows that it could use more. What it gets beyond that is added in units (a node, or
// a subgroup of nodes), each a run of its own beside the first, which ends with it.
//
// A job that has begun is given more when everybody who waits has been looked at: on
// what is free, where it is in the way of nothing that is reserved, planned or kept for
// others, and within the limits and the quota of its job, which count all that it holds.
// The job that goes first in the queue grows first.
//
// What is added is lent. Whoever's turn it is and cannot start takes it back, by no
// right but that (preempt.go, and recall.go where limits or quotas keep him off): had it
// not been added, he would find it free.

// elastic reports whether a run may grow.
func (r *run) elastic() bool {
	return r.of == nil && r.nominee == nil && r.spec != nil && r.spec.Elastic()
}

// changes reports whether a run may grow, or is an addition: such a one is never suspended.
func (r *run) changes() bool { return r.of != nil || r.elastic() }

// all is what a job holds in all.
func (r *run) all() []fleet.Claim {
	if len(r.added) == 0 {
		return r.claims
	}
	out := slices.Clone(r.claims)
	for _, a := range r.added {
		out = append(out, a.claims...)
	}
	return out
}

// group is which task group an addition belongs to.
func (r *run) group() int { return r.claims[0].Group }

// addition finds what was added on a node; nil: nothing.
func (r *run) addition(node string) *run {
	for _, a := range r.added {
		if slices.ContainsFunc(a.claims, func(c fleet.Claim) bool { return c.Node == node }) {
			return a
		}
	}
	return nil
}

// room is how many more units of a group the job wants, and how many it was given.
func (r *run) room(group int) (more, has int) {
	g := &r.spec.Groups[group]
	if !g.Elastic {
		return 0, 0
	}
	for _, a := range r.added {
		if a.group() == group {
			has++
		}
	}
	return (g.Nodes.Max-g.Nodes.Min)/g.Unit() - has, has
}

// wants reports whether a job would take more of anything.
func (r *run) wants() bool {
	if !r.begun || r.stopping || r.settled {
		return false
	}
	for g := range r.spec.Groups {
		if more, _ := r.room(g); more > 0 {
			return true
		}
	}
	return false
}

// next is the group of a job that is to grow first: the one that was given least.
func (r *run) next(full []bool) int {
	best, least := -1, 0
	for g := range r.spec.Groups {
		if more, has := r.room(g); more > 0 && !full[g] && (best < 0 || has < least) {
			best, least = g, has
		}
	}
	return best
}

// before is the order in which running jobs grow: that in which they waited.
func (r *run) before(o *run) int {
	return cmp.Or(cmp.Compare(o.priority, r.priority), cmp.Compare(r.submitted, o.submitted), cmp.Compare(r.id, o.id))
}

// grow adds to running jobs what nobody else can use, and reports whether it did.
func (p *pass) grow() (grown bool) {
	pinched := p.pinched
	p.Core.pinched = 0
	if len(p.elastic) == 0 || p.plan.job != 0 && (p.cfg.NoBackfill || p.policy != nil && p.policy.Backfill.Off) {
		return false
	}
	if e := p.queued[p.plan.job]; e != nil {
		p.pledge(e.line)
		defer p.unpledge()
	}
	slices.SortFunc(p.elastic, (*run).before)
	for _, r := range slices.Clone(p.elastic) {
		if !r.wants() || r.grew == p.growth() && !p.byName() && pinched == 0 {
			continue
		}
		grown = p.growAll(r) || grown
		r.grew = p.growth()
	}
	return grown
}

// growAll gives one job all that it can be given now.
func (p *pass) growAll(r *run) (grown bool) {
	state := p.spare(r)
	if state == nil {
		return false
	}
	full := make([]bool, len(r.spec.Groups))
	for g := r.next(full); g >= 0; g = r.next(full) {
		claims := p.oneMore(r, g, state)
		if full[g] = claims == nil; full[g] {
			continue
		}
		p.add(r, claims)
		if p.byName() { // it is a copy
			state.Take(p.table, claims)
		}
		grown = true
	}
	return grown
}

// growth changes whenever a job that could not grow may be able to.
func (p *pass) growth() [2]uint64 { return [2]uint64{p.stirs, p.plan.version} }

// oneMore places one more unit of a group on what is spare; nil: it cannot be had.
func (p *pass) oneMore(r *run, group int, state *index.State) []fleet.Claim {
	if r.terms.key.reservation != "" && r.terms.inside == nil {
		return nil // what it runs in is not there any more
	}
	shape := p.addition(r, group)
	if shape == nil {
		return nil
	}
	claims := place.Gang(p.table, state, shape)
	for i := range claims {
		claims[i].Group = group
	}
	if claims == nil || !p.affords(r, claims) {
		return nil
	}
	return claims
}

// addition compiles what is added to a job: in the pool, the partition and the flavours
// that it is in, on other nodes than it has.
func (p *pass) addition(r *run, group int) *class.Shape {
	held := r.all()
	pool, known := p.poolOf(r.spec, held)
	if !known {
		return nil
	}
	var bounds []class.Bound
	if r.terms.queue != nil {
		for _, f := range p.flavorsNamed(r.flavors) {
			bounds = append(bounds, class.Bound{Features: p.quotas.Flavors[f].Features, Type: p.quotas.Flavors[f].GPUType})
		}
	}
	parts := slices.DeleteFunc(slices.Clone(r.spec.Partitions), func(part string) bool {
		return slices.ContainsFunc(held, func(c fleet.Claim) bool {
			n := p.table.Find(c.Key())
			return n >= 0 && !p.table.Node(n).In(part)
		})
	})
	if len(parts) == 0 && len(r.spec.Partitions) > 0 {
		return nil
	}
	shape := class.Addition(r.spec, group, parts[:min(len(parts), 1)], []string{pool}, bounds)
	if shape != nil {
		g := &shape.Groups[0]
		g.Not = slices.Clone(g.Not)
		for i := range held {
			g.Not = append(g.Not, held[i].Node)
		}
		slices.SortFunc(g.Not, index.CompareNames)
		g.Not = slices.Compact(g.Not)
	}
	return shape
}

// poolOf is the pool that a running job is in. It is not known where its first node has left,
// or where a node of its has come back in another pool than the rest or than the job asks for.
func (p *pass) poolOf(spec *job.Spec, held []fleet.Claim) (pool string, known bool) {
	first := p.table.Find(held[0].Key())
	if first < 0 {
		return "", false
	}
	pool = p.table.Node(first).Pool
	return pool, (spec.Pool == "" || spec.Pool == pool) && !slices.ContainsFunc(held, func(c fleet.Claim) bool {
		n := p.table.Find(c.Key())
		return n >= 0 && p.table.Node(n).Pool != pool
	})
}

// spare is what is free for a running job until it ends, beside all that is kept for
// those who wait.
func (p *pass) spare(r *run) *index.State {
	switch {
	case r.outlasts(p.now): // its reservation, as it was extended
		return nil
	case p.byName():
		return p.during(p.state, &line{key: lineKey{terms: r.terms}}, p.now, r.until)
	case p.plan.job == 0, r.until != never && r.until <= p.plan.at:
		return p.state
	}
	p.foresee()
	return p.room.both
}

// affords reports whether limits and quota allow a job to hold more.
func (p *pass) affords(r *run, more []fleet.Claim) bool {
	if q := r.terms.queue; q != nil {
		now, then := p.quotas.Charges(q.node, p.taken(r.all()), p.flavorsNamed(r.flavors)), p.quotas.Charges(q.node, p.taken(slices.Concat(r.all(), more)), p.flavorsNamed(r.flavors))
		for _, x := range then {
			for _, y := range now {
				if x.FR == y.FR {
					x.Amount -= y.Amount
				}
			}
			if x.Amount > p.spareQuota(q.node, x.FR) {
				return false
			}
		}
	}
	rules, s := r.terms.rules, &p.Core.limits
	if s.book == nil || len(rules.Checks) == 0 && !rules.Charges() {
		return true
	}
	if e := p.queued[p.plan.job]; e != nil && e.line.needs != nil {
		raises := rules.Raises(nil, p.usage(more))
		if p.limits.book.Crowds(rules, raises, e.line.rules, e.line.needs) {
			return false
		}
	}
	moves, marks := s.moves, s.book.Marks()
	p.unmeter(r)
	u := p.usage(slices.Concat(r.all(), more))
	u.Seconds, u.Endless = max(fullSeconds(time.Duration(r.until))-seconds(p.now), 0), r.until == never
	if u.Endless {
		u.Seconds = 0
	}
	blocked := s.book.Blocked(rules, rules.Needs(nil, u))
	if blocked >= 0 {
		p.pinch(s.book.PassesLater(&rules.Checks[blocked], u))
	}
	p.meter(r)
	s.moves = moves
	s.book.Unmark(marks)
	return blocked < 0
}

// pinch notes that a limit keeps a job from growing until a second at least; 0: time alone
// does not lift it.
func (p *pass) pinch(until int64) {
	at := never
	if until > 0 {
		at = atSecond(until)
	}
	if p.pinched == 0 || at < p.pinched {
		p.Core.pinched = at
	}
}

// add gives a job a unit.
func (p *pass) add(r *run, claims []fleet.Claim) {
	a := p.extra(r, claims, p.now)
	p.hold(a)
	p.room.take(p, claims, a.until)
	p.out = append(p.out, Grow{Job: r.id, Claims: claims})
}

// extra makes the run of an addition.
func (c *Core) extra(r *run, claims []fleet.Claim, began Instant) *run {
	r.parts++
	return &run{
		id: r.id, of: r, part: r.parts, spec: r.spec, terms: r.terms, flavors: r.flavors, claims: claims,
		began: began, submitted: r.submitted, until: r.until, priority: r.priority, saved: r.saved,
	}
}

// rejoin notes what was given to a job before a restart.
func (c *Core) rejoin(e Added) {
	r := c.running[e.Job]
	if r == nil || r.nominee != nil || len(e.Claims) == 0 || r.addition(e.Claims[0].Node) != nil {
		return
	}
	a := c.extra(r, e.Claims, e.Began)
	a.stopping = e.Stopping || r.stopping
	c.hold(a)
	c.shaken, c.dirty = true, true
}

// dropped frees what was added to a job on a node.
func (c *Core) dropped(e Dropped) {
	r := c.running[e.Job]
	if r == nil {
		return
	}
	r.settled = r.settled || e.Settled
	if a := r.addition(e.Node); a != nil {
		c.bill(a, second(c.now))
		c.unhold(a)
		c.shaken, c.dirty = true, true
	}
}

// lend counts the additions that may be taken back.
func (c *Core) lend(r *run, n int) {
	if r.of != nil && !r.stopping {
		c.lent += n
	}
}

// enlist keeps the list of jobs that may grow.
func (c *Core) enlist(r *run) {
	if r.elastic() {
		c.elastic = append(c.elastic, r)
	}
}

func (c *Core) delist(r *run) {
	if i := slices.Index(c.elastic, r); i >= 0 {
		c.elastic = slices.Delete(c.elastic, i, i+1)
	}
}

// giveBack says which addition a job gives back to another one.
func (c *Core) giveBack(r *run, by job.ID) Shrink {
	d := Shrink{Job: r.id, Node: r.claims[0].Node, For: by}
	if s := r.terms.standing; s != nil {
		d.Grace = s.grace
	}
	return d
}
