package sched

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/limit"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// Check recomputes the invariants of the core and returns the first that does
// not hold. It is for tests and for a build that pays for it.
func (c *Core) Check() error {
	checks := []func() error{
		c.checkFree, c.checkNodes, c.checkEnds, c.checkLines, c.checkOrder, c.checkBest, c.checkRest, c.checkPlan, c.checkLimits, c.checkQuotas, c.checkSlots, c.checkNominees, c.checkWishes, c.checkAccrual,
	}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkBest looks for classes that wait for a quota and would not be found first, though they
// go before the one that is.
func (c *Core) checkBest() error {
	for _, l := range c.queue.classes {
		if l.quotaDemand == nil || !l.waitsForQuota() || !hasJobs(l) {
			continue
		}
		if d := l.quotaDemand.demand; d.best != nil && d.ranked == c.quotas.ranked && d.best != l && (!hasJobs(d.best) || l.jobs.firstJob().compareOrder(d.best.jobs.firstJob()) < 0) {
			return fmt.Errorf("job %d waits for a quota behind one that it goes before", l.jobs.firstJob().id)
		}
	}
	return nil
}

// checkOrder looks for classes that are not where their first jobs belong, and for
// priorities that would be reckoned otherwise now.
func (c *Core) checkOrder() error {
	for i, l := range c.queue.heads {
		if l.headsIndex != i || l.jobs.len() == 0 || i > 0 && l.jobs.firstJob().compareOrder(c.queue.heads[(i-1)/2].jobs.firstJob()) < 0 {
			return fmt.Errorf("line %d of the heads stands in the wrong place", i)
		}
	}
	for _, l := range c.queue.classes {
		if hasJobs(l) {
			old := *l.firstRank()
			if l.rank.of = nil; *l.firstRank() != old {
				return fmt.Errorf("job %d stands as %+v in the queue, it should be %+v", old.id, old, l.rank)
			}
		}
		if s := l.quotaDemand; s != nil && (s.queueIndex >= 0) != (l.headsIndex >= 0) {
			return fmt.Errorf("a line is one of the heads of the whole queue or of its own, not of both")
		}
		if s := l.quotaDemand; s != nil && s.queueIndex >= 0 && (s.queue.heads[s.queueIndex] != l || s.queueIndex > 0 && l.goesBefore(s.queue.heads[(s.queueIndex-1)/2])) {
			return fmt.Errorf("line %d of the heads of a queue stands in the wrong place", s.queueIndex)
		}
	}
	if c.priority.stale || c.fleet.dirty {
		return nil
	}
	for _, l := range c.queue.classes {
		r := l.key.policy.priority.multifactor
		if r == nil || l.key.own.fixed {
			continue
		}
		old := l.basePriority(r)
		if c.computeSize(l); l.basePriority(r) != old {
			return fmt.Errorf("a line has %v points, it should have %v", old, l.basePriority(r))
		}
	}
	return nil
}

func (c *Core) checkFree() error {
	want := c.fleet.table.Empty(false)
	for _, r := range c.runs.ends.allRuns() {
		want.Take(c.fleet.table, r.claims)
	}
	if c.fleet.dirty {
		return nil
	}
	for i := range c.fleet.table.Len() {
		a, b := c.fleet.state.Row(i), want.Row(i)
		if !a.Same(c.fleet.table.Node(i), b) {
			return fmt.Errorf("node %s: %+v is counted as free, claims leave %+v", c.fleet.table.Node(i).Name, *a, *b)
		}
	}
	return nil
}

func (c *Core) checkEnds() error {
	ends := c.runs.ends.allRuns()
	added := 0
	for _, r := range c.runs.byJob {
		added += len(r.added)
	}
	if len(ends) != c.runs.ends.n || len(ends) != len(c.runs.byJob)+added || !slices.IsSortedFunc(ends, (*run).compareEnds) {
		return fmt.Errorf("%d planned ends of %d running jobs, or out of order", len(ends), len(c.runs.byJob))
	}
	for _, r := range ends {
		if r.of != nil {
			if c.runs.byJob[r.id] != r.of || !slices.Contains(r.of.added, r) || r.until != r.of.until || r.policy != r.of.policy {
				return fmt.Errorf("something was added to job %d which it does not have", r.id)
			}
			continue
		}
		if c.runs.byJob[r.id] != r {
			return fmt.Errorf("job %d has a planned end and does not run", r.id)
		}
		if c.queue.jobs[r.id] != nil && r.nominee == nil {
			return fmt.Errorf("job %d is queued and runs", r.id)
		}
	}
	return nil
}

func (c *Core) checkLines() error {
	seen := map[job.ID]bool{}
	members := 0
	for key, l := range c.queue.classes {
		if key != l.key || !slices.IsSortedFunc(l.jobs.allJobs(), (*queuedJob).compareOrder) {
			return fmt.Errorf("a line is out of order")
		}
		members += l.members
		for _, e := range l.jobs.allJobs() {
			if c.queue.jobs[e.id] != e || e.blocked || e.class != l || seen[e.id] {
				return fmt.Errorf("job %d stands in a line where it does not belong", e.id)
			}
			seen[e.id] = true
		}
	}
	if members != len(c.queue.jobs) {
		return fmt.Errorf("lines count %d jobs, %d are queued", members, len(c.queue.jobs))
	}
	for id, e := range c.queue.jobs {
		if (e.blocked || e.nominee != nil) == seen[id] {
			return fmt.Errorf("job %d is queued and stands in a line if it is blocked or nominated, or in none if it is not", id)
		}
	}
	return nil
}

func (c *Core) checkPlan() error {
	if c.plan.job == 0 || c.cycleDue || c.backfill.wasOn {
		return nil
	}
	if e := c.queue.jobs[c.plan.job]; e == nil || e.blocked || e.nominee != nil {
		return fmt.Errorf("job %d has a reservation and does not wait", c.plan.job)
	}
	p := schedulingCycle{Core: c}
	if claims := p.reservedClaims(); !p.freeBy(c.plan.at, claims).Fits(c.fleet.table, claims) {
		return fmt.Errorf("what is reserved for job %d is not free at %d", c.plan.job, c.plan.at)
	}
	return nil
}

// checkNodes compares cells, what is foretold and availability profiles with what they follow from.
func (c *Core) checkNodes() error {
	if c.fleet.dirty {
		return nil
	}
	for pos := range c.fleet.nodes {
		name := c.fleet.table.Node(pos).Name
		if c.fleet.cells.Update(pos) {
			return fmt.Errorf("node %s is in a cell of others", name)
		}
		old := slices.Clone(c.futureCells(pos))
		if c.resetFuture(pos); !slices.Equal(old, c.futureCells(pos)) {
			return fmt.Errorf("node %s: foretold %v, it should be %v", name, old, c.futureCells(pos))
		}
	}
	for _, k := range c.queue.kinds {
		if k.profile == nil {
			continue
		}
		k.profile.catchUp()
		old := *k.profile
		old.when = slices.Clone(old.when)
		k.profile.rebuildTimes()
		if !slices.Equal(old.when, k.profile.when) || old.before != k.profile.before || old.due != k.profile.due {
			return fmt.Errorf("an outlook missed a change: %v, it should be %v", old.when, k.profile.when)
		}
	}
	return nil
}

// checkRest looks for classes that nobody would look at again.
func (c *Core) checkRest() error {
	if c.cycleDue {
		return nil
	}
	for _, l := range c.queue.classes {
		switch {
		case l.jobs.len() == 0:
		case l.waiting == forNodes && !l.kind.full:
			return fmt.Errorf("job %d rests for room and its kind may fit", l.jobs.firstJob().id)
		case l.waiting == forPlan && !slices.Contains(c.queue.forPlan, l):
			return fmt.Errorf("job %d rests for the plan and would not be looked at again", l.jobs.firstJob().id)
		case l.waiting == toLookAt && !l.awake:
			return fmt.Errorf("job %d is not looked at", l.jobs.firstJob().id)
		case l.waiting == forFairShare && !c.isBelowThreshold(l.key.policy):
			return fmt.Errorf("job %d rests for its share, which is large enough", l.jobs.firstJob().id)
		case l.waiting == forLimit:
			if err := c.checkLimited(l); err != nil {
				return err
			}
		case l.waiting == forQuota && !l.exceededQuota && c.quotaFits(l):
			return fmt.Errorf("job %d rests for a quota that reaches", l.jobs.firstJob().id)
		case l.waiting == forQuota && l.exceededQuota && !c.quotas.over, l.waiting == forQuota && !l.exceededQuota && !slices.Contains(l.quotaDemand.demand.waiting, l):
			return fmt.Errorf("job %d rests for a quota and would not be looked at again", l.jobs.firstJob().id)
		case l.waiting == forQueueOrder && c.leaderOf(l.quotaDemand.queue) == l:
			return fmt.Errorf("job %d rests for its turn, and it is its turn", l.jobs.firstJob().id)
		case l.waiting.isBarred() && l.headsIndex >= 0:
			return fmt.Errorf("job %d could become the head and must not", l.jobs.firstJob().id)
		case !l.waiting.isBarred() && l.headsIndex < 0 && l.jobs.firstJob().mayReserve():
			return fmt.Errorf("job %d cannot become the head", l.jobs.firstJob().id)
		}
	}
	return nil
}

// quotaFits reports whether a class's quota would do for its first job.
func (c *Core) quotaFits(l *jobClass) bool {
	b := c.assignByQuota(l)
	return b.Mode == quota.Fit && c.fitsFleet(c.kindIn(l, b.Flavors, b.cut))
}

// checkLimited looks for a class that rests for a limit which it passes.
func (c *Core) checkLimited(l *jobClass) error {
	id := l.jobs.firstJob().id
	if l.options != nil {
		return c.checkLicenseChoice(l)
	}
	check := &l.rules.Checks[l.check]
	switch {
	case l.headsIndex >= 0:
		return fmt.Errorf("job %d rests for a limit and may become the head", id)
	case l.moves != 0 && !slices.Contains(c.limits.byClaims, l):
		return fmt.Errorf("job %d was stopped by its claims and would not be looked at again", id)
	case l.moves != 0:
		return nil
	case check.Counter >= 0 && (l.listed != check.Counter || !slices.Contains(c.limits.waiting[check.Counter], l)):
		return fmt.Errorf("job %d rests for a limit and would not be looked at again", id)
	case !c.limits.book.Exceeds(check, l.needs[l.check]) && (c.limits.due == 0 || c.limits.due > c.clock.now):
		return fmt.Errorf("job %d rests for a limit that it passes: %v", id, l.why)
	}
	return nil
}

// checkQuotas counts anew what is held of quotas.
func (c *Core) checkQuotas() error {
	if c.quotas == nil {
		return nil
	}
	want := c.quotas.NewState()
	for _, r := range c.runs.ends.allRuns() {
		if q := r.policy.queue; q != nil && r.nominee == nil {
			want.Add(q.node, r.charges)
		}
	}
	for n := range int32(want.Len()) {
		for fr := range int32(len(want.FRs)) {
			if got := c.quotas.Used(n, fr); got != want.Used(n, fr) {
				return fmt.Errorf("account %s uses %d of %s, it should be %d", want.Names[n], got, want.Text(fr), want.Used(n, fr))
			}
		}
	}
	return nil
}

// checkLimits counts what runs anew.
func (c *Core) checkLimits() error {
	if c.limits.book == nil {
		return nil
	}
	var want []*limit.Hold
	for _, r := range c.runs.ends.allRuns() {
		if r.of != nil {
			continue
		}
		if (r.counted != nil) != r.policy.limits.Charges() {
			return fmt.Errorf("job %d counts against limits: %v", r.id, r.counted != nil)
		}
		if r.counted != nil {
			want = append(want, r.counted)
		}
	}
	return c.limits.book.Check(want)
}

// checkSlots looks at what is planned node by node: for whom, and that all of it can be
// kept.
func (c *Core) checkSlots() error {
	if c.cycleDue {
		return nil
	}
	if !c.isConservative() {
		if len(c.backfill.starts) > 0 {
			return fmt.Errorf("%d jobs have slots and nothing is planned by name", len(c.backfill.starts))
		}
		return nil
	}
	p := schedulingCycle{Core: c, now: c.clock.lastCycle}
	it := p.queueFront()
	for i := 0; ; i++ {
		e := it.next()
		if e == nil {
			if i != len(c.backfill.starts) {
				return fmt.Errorf("%d jobs have slots, %d should", len(c.backfill.starts), i)
			}
			return nil
		}
		if i >= len(c.backfill.starts) || c.backfill.starts[i].e != e || e.planned != c.backfill.starts[i] {
			return fmt.Errorf("job %d is number %d of the queue and has no slot", e.id, i)
		}
		s := e.planned
		if s.at == never {
			continue
		}
		c.removeFromNodes(s)
		if !p.planHolds(s) {
			return fmt.Errorf("what is planned for job %d at %d is not free", e.id, s.at)
		}
		c.addToNodes(s)
	}
}

// checkNominees compares nominations and counters with what they follow from.
func (c *Core) checkNominees() error {
	stopping := 0
	for _, n := range c.preempt.nominees {
		if c.queue.jobs[n.entry.id] != n.entry || n.entry.nominee != n || c.runs.byJob[n.entry.id] != n.run || n.run.nominee != n {
			return fmt.Errorf("what is held for job %d and what it knows of it disagree", n.entry.id)
		}
		if !c.cycleDue && !slices.ContainsFunc(n.additions, c.isShedding) && !slices.ContainsFunc(n.await, func(id job.ID) bool { r := c.runs.byJob[id]; return r != nil && r.stopping }) {
			return fmt.Errorf("job %d is nominated and waits for nobody", n.entry.id)
		}
	}
	held := map[*preemptionRank]preemptionRank{}
	nominated, homes, savers, lent, movers := 0, 0, 0, 0, 0
	for _, r := range c.runs.ends.allRuns() {
		if r.stopping {
			stopping++
		} else if r.of != nil {
			lent++
		}
		if r.resumesFromSave() {
			savers++
		}
		if r.move.startsJob != 0 {
			movers++
		}
		if r.target != nil {
			homes++
		}
		if r.nominee != nil {
			nominated++
		} else if s := r.policy.preemption; s != nil {
			x := held[s]
			x.runs, x.held = x.runs+1, x.held+r.search.devices
			held[s] = x
		}
	}
	if lent != c.elastic.lent {
		return fmt.Errorf("%d additions are counted, there are %d", c.elastic.lent, lent)
	}
	if stopping != c.runs.stopping || nominated != len(c.preempt.nominees) || len(c.preempt.lifted) > 0 {
		return fmt.Errorf("%d runs are being stopped, %d counted; %d nominated, %d listed; %d rows lifted", stopping, c.runs.stopping, nominated, len(c.preempt.nominees), len(c.preempt.lifted))
	}
	if movers != c.defrag.movers {
		return fmt.Errorf("%d runs are counted that go for others, there are %d", c.defrag.movers, movers)
	}
	if savers != c.defrag.savers || homes != len(c.defrag.targets) {
		return fmt.Errorf("%d runs save what they do, %d counted; %d homes, %d listed", savers, c.defrag.savers, homes, len(c.defrag.targets))
	}
	for i, h := range c.defrag.targets {
		if r := c.runs.byJob[h.job]; !c.cycleDue && (r == nil || r.nominee != nil) || i > 0 && c.defrag.targets[i-1].job >= h.job || c.runs.byJob[h.run.id] != h.run {
			return fmt.Errorf("a place is kept for job %d, which does not run", h.job)
		}
	}
	if c.preempt.rules == nil {
		return nil
	}
	for _, s := range c.preempt.rules.all {
		if x := held[s]; x.runs != s.runs || x.held != s.held {
			return fmt.Errorf("a standing counts %d runs and %d devices, it has %d and %d", s.runs, s.held, x.runs, x.held)
		}
	}
	return nil
}
