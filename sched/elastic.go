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
// right but that (preempt.go, and elastic_shrink.go where limits or quotas keep him off): had it
// not been added, he would find it free.

// elasticState is the running jobs that may grow, and what they were given.
type elasticState struct {
	growable     []*run
	limitedUntil Instant // a limit, or nodes that it is kept off, keep one from growing, until then at least; never: time alone does not lift it; 0: none does
	lent         int     // additions that nobody has asked back
}

// isElastic reports whether a run may grow.
func (r *run) isElastic() bool {
	return r.of == nil && r.nominee == nil && r.spec != nil && r.spec.Elastic()
}

// mayChangeSize reports whether a run may grow, or is an addition: such a one is never suspended.
func (r *run) mayChangeSize() bool { return r.of != nil || r.isElastic() }

// allClaims is what a job holds in all.
func (r *run) allClaims() []fleet.Claim {
	if len(r.added) == 0 {
		return r.claims
	}
	out := slices.Clone(r.claims)
	for _, a := range r.added {
		out = append(out, a.claims...)
	}
	return out
}

// groupIndex is which task group an addition belongs to.
func (r *run) groupIndex() int { return r.claims[0].Group }

// additionOn finds what was added on a node; nil: nothing.
func (r *run) additionOn(node string) *run {
	for _, a := range r.added {
		if slices.ContainsFunc(a.claims, func(c fleet.Claim) bool { return c.Node == node }) {
			return a
		}
	}
	return nil
}

// unitsLeft is how many more units of a group the job wants, and how many it was given.
func (r *run) unitsLeft(group int) (more, has int) {
	g := &r.spec.Groups[group]
	if !g.Elastic {
		return 0, 0
	}
	for _, a := range r.added {
		if a.groupIndex() == group {
			has++
		}
	}
	return (g.Nodes.Max-g.Nodes.Min)/g.Unit() - has, has
}

// wantsMore reports whether a job would take more of anything.
func (r *run) wantsMore() bool {
	if !r.growth.allowed || r.stopping || r.growth.settled {
		return false
	}
	for g := range r.spec.Groups {
		if more, _ := r.unitsLeft(g); more > 0 {
			return true
		}
	}
	return false
}

// nextGroup is the group of a job that is to grow first: the one that was given least.
func (r *run) nextGroup(full []bool) int {
	best, least := -1, 0
	for g := range r.spec.Groups {
		if more, has := r.unitsLeft(g); more > 0 && !full[g] && (best < 0 || has < least) {
			best, least = g, has
		}
	}
	return best
}

// compareGrowth is the order in which running jobs grow: that in which they waited.
func (r *run) compareGrowth(o *run) int {
	return cmp.Or(cmp.Compare(o.priority, r.priority), cmp.Compare(r.submitted, o.submitted), cmp.Compare(r.id, o.id))
}

// growElastic adds to running jobs what nobody else can use, and reports whether it did.
func (p *schedulingCycle) growElastic() (grown bool) {
	pinched := p.elastic.limitedUntil
	p.Core.elastic.limitedUntil = 0
	if len(p.elastic.growable) == 0 || p.plan.job != 0 && !p.backfills() {
		return false
	}
	if e := p.queue.jobs[p.plan.job]; e != nil {
		p.pledgeQuota(e.class)
		defer p.releasePledges()
	}
	slices.SortFunc(p.elastic.growable, (*run).compareGrowth)
	for _, r := range slices.Clone(p.elastic.growable) {
		if !r.wantsMore() || r.growth.triedAt == p.growthVersion() && !p.isConservative() && pinched == 0 {
			continue
		}
		grown = p.growJob(r) || grown
		r.growth.triedAt = p.growthVersion()
	}
	return grown
}

// growJob gives one job all that it can be given now.
func (p *schedulingCycle) growJob(r *run) (grown bool) {
	state := p.spareFor(r)
	if state == nil {
		return false
	}
	full := make([]bool, len(r.spec.Groups))
	for g := r.nextGroup(full); g >= 0; g = r.nextGroup(full) {
		claims := p.placeOneMore(r, g, state)
		if full[g] = claims == nil; full[g] {
			continue
		}
		p.addUnit(r, claims)
		if p.isConservative() { // it is a copy
			state.Take(p.fleet.table, claims)
		}
		grown = true
	}
	return grown
}

// growthVersion changes whenever a job that could not grow may be able to.
func (p *schedulingCycle) growthVersion() [2]uint64 { return [2]uint64{p.generation, p.plan.version} }

// placeOneMore places one more unit of a group on what is spare; nil: it cannot be had.
func (p *schedulingCycle) placeOneMore(r *run, group int, state *index.State) []fleet.Claim {
	if r.policy.key.reservation != "" && r.policy.reservation == nil {
		return nil // what it runs in is not there any more
	}
	shape := p.additionShape(r, group)
	if shape == nil {
		return nil
	}
	claims := place.Gang(p.fleet.table, state, shape)
	for i := range claims {
		claims[i].Group = group
	}
	if until := Instant(r.spec.Avoid.Until); claims == nil && until > p.now { // it may grow there then
		p.noteGrowthLimit(fullSeconds(time.Duration(until)))
	}
	if claims == nil || !p.mayGrow(r, claims) {
		return nil
	}
	return claims
}

// additionShape compiles what is added to a job: in the pool, the partition and the flavours
// that it is in, on other nodes than it has and is kept off still.
func (p *schedulingCycle) additionShape(r *run, group int) *class.Shape {
	held := r.allClaims()
	pool, known := p.poolOf(r.spec, held)
	if !known {
		return nil
	}
	var bounds []class.Bound
	if r.policy.queue != nil {
		for _, f := range p.flavorsNamed(r.flavors) {
			bounds = append(bounds, class.Bound{Features: p.quotas.Flavors[f].Features, Type: p.quotas.Flavors[f].GPUType})
		}
	}
	parts := slices.DeleteFunc(slices.Clone(r.spec.Partitions), func(part string) bool {
		return slices.ContainsFunc(held, func(c fleet.Claim) bool {
			n := p.fleet.table.Find(c.Key())
			return n >= 0 && !p.fleet.table.Node(n).In(part)
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
		if a := &r.spec.Avoid; Instant(a.Until) > p.now {
			g.Not = append(g.Not, a.Nodes...)
		}
		slices.SortFunc(g.Not, index.CompareNames)
		g.Not = slices.Compact(g.Not)
	}
	return shape
}

// poolOf is the pool that a running job is in. It is not known where its first node has left,
// or where a node of its has come back in another pool than the rest or than the job asks for.
func (p *schedulingCycle) poolOf(spec *job.Spec, held []fleet.Claim) (pool string, known bool) {
	first := p.fleet.table.Find(held[0].Key())
	if first < 0 {
		return "", false
	}
	pool = p.fleet.table.Node(first).Pool
	return pool, (spec.Pool == "" || spec.Pool == pool) && !slices.ContainsFunc(held, func(c fleet.Claim) bool {
		n := p.fleet.table.Find(c.Key())
		return n >= 0 && p.fleet.table.Node(n).Pool != pool
	})
}

// spareFor is what is free for a running job until it ends, beside all that is kept for
// those who wait.
func (p *schedulingCycle) spareFor(r *run) *index.State {
	switch {
	case r.outlastsReservation(p.now): // its reservation, as it was extended
		return nil
	case p.isConservative():
		return p.freeDuring(p.fleet.state, &jobClass{key: classKey{policy: r.policy}}, p.now, r.until)
	case p.plan.job == 0, r.until != never && r.until <= p.plan.at:
		return p.fleet.state
	}
	p.buildHeadState()
	return p.extra.both
}

// mayGrow reports whether limits and quota allow a job to hold more.
func (p *schedulingCycle) mayGrow(r *run, more []fleet.Claim) bool {
	if q := r.policy.queue; q != nil {
		now, then := p.quotas.Charges(q.node, p.amountsTaken(r.allClaims()), p.flavorsNamed(r.flavors)), p.quotas.Charges(q.node, p.amountsTaken(slices.Concat(r.allClaims(), more)), p.flavorsNamed(r.flavors))
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
	rules, s := r.policy.limits, &p.Core.limits
	if s.book == nil || len(rules.Checks) == 0 && !rules.Charges() {
		return true
	}
	if e := p.queue.jobs[p.plan.job]; e != nil && e.class.needs != nil {
		raises := rules.Raises(nil, p.usageOf(more))
		if p.limits.book.Crowds(rules, raises, e.class.rules, e.class.needs) {
			return false
		}
	}
	moves, marks := s.moves, s.book.Marks()
	p.uncountLimits(r)
	u := p.usageOf(slices.Concat(r.allClaims(), more))
	u.Seconds, u.Endless = max(fullSeconds(time.Duration(r.until))-floorSeconds(p.now), 0), r.until == never
	if u.AsUsed = r.spec.Endless(); u.Endless {
		u.Seconds = 0
	}
	blocked := s.book.Blocked(rules, rules.Needs(nil, u))
	if blocked >= 0 {
		p.noteGrowthLimit(s.book.PassesLater(&rules.Checks[blocked], u))
	}
	p.countLimits(r)
	s.moves = moves
	s.book.Unmark(marks)
	return blocked < 0
}

// noteGrowthLimit notes that a limit keeps a job from growing until a second at least; 0: time alone
// does not lift it.
func (p *schedulingCycle) noteGrowthLimit(until int64) {
	at := never
	if until > 0 {
		at = atSecond(until)
	}
	if p.elastic.limitedUntil == 0 || at < p.elastic.limitedUntil {
		p.Core.elastic.limitedUntil = at
	}
}

// addUnit gives a job a unit.
func (p *schedulingCycle) addUnit(r *run, claims []fleet.Claim) {
	a := p.newAddition(r, claims, p.now)
	p.holdRun(a)
	p.extra.takeStarted(p, claims, a.until)
	p.out = append(p.out, Grow{Job: r.id, Claims: claims})
}

// newAddition makes the run of an addition.
func (c *Core) newAddition(r *run, claims []fleet.Claim, began Instant) *run {
	r.growth.lastPart++
	return &run{
		id: r.id, of: r, part: r.growth.lastPart, spec: r.spec,
		policy: r.policy, flavors: r.flavors, claims: claims, began: began,
		submitted: r.submitted, until: r.until, priority: r.priority, move: runMove{savedAt: r.move.savedAt},
	}
}

// restoreAddition notes what was given to a job before a restart.
func (c *Core) restoreAddition(e Added) {
	r := c.runs.byJob[e.Job]
	if r == nil || r.nominee != nil || len(e.Claims) == 0 || r.additionOn(e.Claims[0].Node) != nil {
		return
	}
	a := c.newAddition(r, e.Claims, e.Began)
	a.stopping = e.Stopping || r.stopping
	c.holdRun(a)
	c.planDirty, c.cycleDue = true, true
}

// dropAddition frees what was added to a job on a node.
func (c *Core) dropAddition(e Dropped) {
	r := c.runs.byJob[e.Job]
	if r == nil {
		return
	}
	r.growth.settled = r.growth.settled || e.Settled
	if a := r.additionOn(e.Node); a != nil {
		c.billRun(a, wholeSecond(c.clock.now))
		c.unholdRun(a)
		c.planDirty, c.cycleDue = true, true
	}
}

// countLent counts the additions that may be taken back.
func (c *Core) countLent(r *run, n int) {
	if r.of != nil && !r.stopping {
		c.elastic.lent += n
	}
}

// addGrowable keeps the list of jobs that may grow.
func (c *Core) addGrowable(r *run) {
	if r.isElastic() {
		c.elastic.growable = append(c.elastic.growable, r)
	}
}

func (c *Core) removeGrowable(r *run) {
	if i := slices.Index(c.elastic.growable, r); i >= 0 {
		c.elastic.growable = slices.Delete(c.elastic.growable, i, i+1)
	}
}

// shrinkDecision says which addition a job gives back to another one.
func (c *Core) shrinkDecision(r *run, by job.ID) Shrink {
	d := Shrink{Job: r.id, Node: r.claims[0].Node, For: by}
	if s := r.policy.preemption; s != nil {
		d.Grace = s.grace
	}
	return d
}
