package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/limit"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// limitState binds sched/limit to the core: limits of accounts, QOS and partitions, and
// licences (Slurm's resource_limits.html, docs/reference/limits.md).
//
// A class is checked before anything is placed, with what its jobs take at least
// (pre-select), and once more with the claims themselves where these decide how much
// it is: whole nodes, types of device that it did not name (post-select). A class that
// does not pass rests for the limit. It is in nobody's way then: it is no head, and
// nothing is kept for it. It is looked at again when the counter at which it stopped
// has fallen far enough, by an end or, where minutes are counted, by time. Where the
// claims decided, every change of what is held may place it otherwise, so it is looked
// at then; where starts are planned node by node also what is planned for others, and how
// much of its own time is left until then, so it is looked at in each cycle.
type limitState struct {
	book      *limit.Book // nil: there is no policy
	use       limit.Use   // scratch
	amounts   []resource.Amount
	waiting   [][]*jobClass // by counter
	byClaims  []*jobClass   // stopped by their claims
	byLicense []*jobClass   // stopped with each of the alternatives that they have (licenses.go)
	moves     uint64        // raised when something is held or released
	due       Instant       // when time may let a class pass; 0: it does not
}

// classLimits is what limits say of a class.
type classLimits struct {
	licenseOption
	options []licenseOption // with each of the licences that would do; nil: there is no choice

	check  int32           // at which it stopped; meaningful while it rests for the limit
	listed int32           // counter in whose list it waits; -1: none
	moves  uint64          // limitState.moves + 1 when its claims did not pass; 0: these were not the reason
	took   resource.Amount // what the claims needed of the check, then
}

// licenseOption is what a class's jobs take of limits, under the rules that hold for them.
type licenseOption struct {
	rules  *limit.Rules      // nil: there is no policy
	needs  []resource.Amount // by check: what a job takes at least
	raises []resource.Amount // by counter that it raises: the same
	exact  bool              // that is what it takes, wherever it runs
}

// compileLimits begins to count by a policy.
func (c *Core) compileLimits(p *account.Policy) {
	c.limits = limitState{}
	if p != nil {
		c.limits.book = limit.New(p, floorSeconds(c.clock.now))
		c.scaleLimits()
	}
}

// scaleLimits brings limits that are parts of the fleet up to date with it (QOS flag
// relative). Classes that rest for one are looked at anew by whoever calls.
func (c *Core) scaleLimits() {
	s := &c.limits
	if s.book == nil {
		return
	}
	changed := false
	for _, base := range s.book.Bases() {
		names := s.book.Table.Names()
		all := make(limit.Whole, len(names))
		for i := range c.fleet.table.Len() {
			if base != "" && !c.fleet.table.Node(i).In(base) {
				continue
			}
			for k, name := range names {
				all[k] += resource.Amount(c.nodeHas(i, name))
			}
		}
		for _, l := range c.policy.Licenses {
			all[slices.Index(names, "license/"+l.Name)] = resource.Amount(l.Count)
		}
		changed = s.book.Measure(base, all) || changed
	}
	if changed {
		for _, t := range c.policies {
			s.book.Scale(t.limits)
		}
	}
}

// limitRules resolves the limits of a policy.
func (c *Core) limitRules(key policyKey) *limit.Rules {
	if c.limits.book == nil {
		return nil
	}
	return c.limits.book.Rules(limit.Key{Account: key.account, User: key.user, QOS: key.qos, Partition: key.partition, Licenses: key.licenses})
}

// computeNeeds works out what a class's jobs need at least.
func (c *Core) computeNeeds(l *jobClass) {
	l.listed = -1
	l.licenseOption = c.limitOption(l, l.key.policy.limits)
	for _, t := range l.key.policy.choices {
		l.options = append(l.options, c.limitOption(l, t.limits))
	}
}

func (c *Core) limitOption(l *jobClass, r *limit.Rules) licenseOption {
	o := licenseOption{rules: r}
	if r == nil || len(r.Checks) == 0 && !r.Charges() {
		return o
	}
	u := &c.limits.use
	c.limits.book.Table.Clear(u)
	u.Seconds, u.Endless, u.AsUsed = fullSeconds(l.limit), l.limit <= 0, l.key.open
	c.limits.book.Table.Shape(u, l.key.shape.Common())
	o.needs = r.Needs(nil, u)
	o.raises = r.Raises(nil, u)
	o.exact = needsAreExact(r, l.key.shape)
	return o
}

// needsAreExact reports whether that is what it takes, for all that the rules ask about.
func needsAreExact(r *limit.Rules, shape *class.Shape) bool {
	if !place.Regular(shape) {
		return false
	}
	g := &shape.Groups[0]
	one := g.MinNodes == 1 && (g.MaxNodes == 1 || g.Want == 1)
	perNode, perType := r.Asks()
	untyped := func(d class.Need) bool { return d.Type == "" }
	switch {
	case g.Whole, g.AllMemory, perNode && !one:
		return false
	case g.MaxNodes != g.MinNodes && !one: // it may take more nodes
		return false
	case perType && (slices.ContainsFunc(g.BaseDevices, untyped) || slices.ContainsFunc(g.StepDevices, untyped)):
		return false
	}
	return true
}

// usageOf is what claims take.
func (c *Core) usageOf(claims []fleet.Claim) *limit.Use {
	u := &c.limits.use
	c.limits.book.Table.Clear(u)
	c.limits.book.Table.Claims(u, claims, func(k fleet.NodeKey) *fleet.Node {
		if pos := c.fleet.table.Find(k); pos >= 0 {
			return &c.fleet.table.Node(pos).Node
		}
		return nil
	})
	return u
}

// limitGate says which limit a class's jobs do not pass whatever is free.
func (p *schedulingCycle) limitGate(l *jobClass) (waitState, reason.Reason) {
	if l.needs == nil {
		return toLookAt, reason.Reason{}
	}
	i := p.firstBlockedCheck(l)
	if i < 0 {
		return toLookAt, reason.Reason{}
	}
	l.check, l.moves = int32(i), 0
	p.Core.waitForLimit(l)
	return forLimit, p.limitReason(l.rules, i, l.needs[i])
}

// limitsPermit reports whether a class's first job may hold claims, and lets the class rest
// if not.
func (p *schedulingCycle) limitsPermit(l *jobClass, claims []fleet.Claim) bool {
	if l.needs == nil || l.exact {
		return true
	}
	i := p.blockingCheck(l, claims)
	if i < 0 {
		return true
	}
	l.moves, l.took = p.limits.moves+1, p.limits.amounts[i]
	l.check = int32(i)
	p.Core.waitForLimit(l)
	p.removeFromHeads(l)
	p.restClass(l, forLimit, p.limitReason(l.rules, i, l.took))
	return false
}

// blockingCheck is the first check that a class's first job does not pass with claims; -1: it
// passes all of them. What the claims need is in limitState.amounts.
func (c *Core) blockingCheck(l *jobClass, claims []fleet.Claim) int {
	i := -1
	for k := range max(len(l.options), 1) {
		if l.options != nil {
			l.licenseOption = l.options[k]
		}
		u := c.usageOf(claims)
		u.Seconds, u.Endless, u.AsUsed = fullSeconds(l.limit), l.limit <= 0, l.key.open
		c.limits.amounts = l.rules.Needs(c.limits.amounts, u)
		if i = c.limits.book.Blocked(l.rules, c.limits.amounts); i < 0 {
			break
		}
	}
	return i
}

func (c *Core) limitReason(r *limit.Rules, i int, need resource.Amount) reason.Reason {
	check := &r.Checks[i]
	why := check.Why
	why.Need, why.Used = int64(need), int64(c.limits.book.Used(check))
	return why
}

// waitForLimit lists a class where it is found when it may pass.
func (c *Core) waitForLimit(l *jobClass) {
	s := &c.limits
	if l.options != nil {
		s.byLicense = append(s.byLicense, l)
		return
	}
	if l.moves != 0 {
		s.byClaims = append(s.byClaims, l)
		return
	}
	counter := l.rules.Checks[l.check].Counter
	if counter < 0 || l.listed == counter {
		return // alone it does not pass, ever; or it stands there already
	}
	for len(s.waiting) <= int(counter) {
		s.waiting = append(s.waiting, nil)
	}
	s.waiting[counter] = append(s.waiting[counter], l)
	l.listed = counter
}

// wakeForLimits wakes the classes that may pass now; anew says that the cycle begins.
func (p *schedulingCycle) wakeForLimits(anew bool) {
	s := &p.Core.limits
	if s.book == nil {
		return
	}
	fell := s.book.Fell()
	for _, counter := range fell {
		if int(counter) >= len(s.waiting) {
			continue
		}
		s.waiting[counter] = slices.DeleteFunc(s.waiting[counter], func(l *jobClass) bool {
			switch {
			case l.listed != counter:
				return true // it went on to another list
			case l.waiting != forLimit || l.moves != 0 || l.members == 0:
			case s.book.Exceeds(&l.rules.Checks[l.check], l.needs[l.check]):
				return false
			default:
				p.wakeBarred(l)
			}
			l.listed = -1
			return true
		})
	}
	loose := s.byClaims
	s.byClaims = s.byClaims[:0]
	for _, l := range loose {
		switch {
		case l.waiting != forLimit || l.moves == 0 || l.members == 0:
		case l.moves == s.moves+1 && !(anew && (p.isConservative() || p.plan.job != 0)) && s.book.Exceeds(&l.rules.Checks[l.check], l.took):
			s.byClaims = append(s.byClaims, l)
		default:
			p.wakeBarred(l)
		}
	}
	p.wakeLicenseChoices(anew)
}

// claimsMayChange reports whether the cycle itself has changed what is held after the claims
// of a class did not pass: these may be others now.
func (p *schedulingCycle) claimsMayChange() bool {
	moved := func(l *jobClass) bool {
		return l.waiting == forLimit && l.moves != 0 && l.moves != p.limits.moves+1 && l.jobs.len() > 0
	}
	return slices.ContainsFunc(p.limits.byClaims, moved) || slices.ContainsFunc(p.limits.byLicense, moved)
}

// crowdsHead reports whether a job that outlasts the head's instant would take what the
// head may have by its limits. Minutes become less by themselves and are left out.
func (p *schedulingCycle) crowdsHead(l *jobClass) bool {
	if l.needs == nil {
		return false
	}
	head := p.queue.jobs[p.plan.job].class
	return head.needs != nil && p.limits.book.Crowds(l.rules, l.raises, head.rules, head.needs)
}

// advanceLimits goes on in time: minutes that running jobs may still use become less.
func (c *Core) advanceLimits(now Instant) {
	s := &c.limits
	if s.book != nil {
		s.book.Advance(floorSeconds(now))
	}
	c.cycleDue = c.cycleDue || s.due != 0 && s.due <= now
}

// chargeBudgets tells the book what was used up before (sched/usage.go), where a limit asks for
// it. What runs is charged up to now for that.
func (c *Core) chargeBudgets(now Instant) {
	s := &c.limits
	if s.book == nil || c.priority.multifactor == nil || len(s.book.Budgets()) == 0 {
		return
	}
	if wholeSecond(now) > c.priority.multifactor.book.At() {
		c.chargeUsage(wholeSecond(now))
	}
	budgets := s.book.Budgets()
	for i := range budgets {
		b := &budgets[i]
		var u *fair.Usage
		if b.QOS {
			if n := c.priority.multifactor.book.QOS(b.Name); n >= 0 {
				u = c.priority.multifactor.book.UsedQOS(n)
			}
		} else if n := c.priority.multifactor.book.Find(b.Name, b.User); n >= 0 {
			u = c.priority.multifactor.book.Used(n)
		}
		switch k := slices.Index(c.priority.multifactor.book.Names, b.TRES); {
		case u == nil:
		case b.TRES == "":
			s.book.Spend(b, u.Wall)
		case k >= 0:
			s.book.Spend(b, u.TRES[k])
		}
	}
	c.cycleDue = c.cycleDue || s.book.HasFallen()
}

// scheduleLimits finds when time may let a class pass.
func (c *Core) scheduleLimits() {
	s := &c.limits
	s.due = 0
	if c.elastic.limitedUntil != never {
		s.due = c.elastic.limitedUntil
	}
	if s.book == nil {
		return
	}
	for _, counter := range s.book.Timed() {
		if int(counter) >= len(s.waiting) {
			continue
		}
		for _, l := range s.waiting[counter] {
			if l.waiting != forLimit || l.listed != counter || l.members == 0 || l.moves != 0 {
				continue
			}
			s.scheduleCheck(&l.rules.Checks[l.check], l.needs[l.check])
		}
	}
	for _, l := range s.byClaims {
		s.scheduleCheck(&l.rules.Checks[l.check], l.took)
		c.schedulePlanned(l)
	}
	c.scheduleLicenseChoices()
	c.scheduleLent()
}

// schedulePlanned finds when a class that its claims stopped would outlast the start that is
// planned for another job, so that it is placed beside that, and may be let pass there.
func (c *Core) schedulePlanned(l *jobClass) {
	begins := func(planned Instant) {
		if at := planned - Instant(l.limit) + 1; planned != never && l.limit > 0 && at > c.clock.now {
			c.limits.dueBy(at)
		}
	}
	if c.plan.job != 0 {
		begins(c.plan.at)
	}
	for _, s := range c.backfill.starts {
		begins(s.at)
	}
}

func (s *limitState) scheduleCheck(check *limit.Check, need resource.Amount) {
	if second := s.book.Passes(check, need); second > 0 {
		s.dueBy(atSecond(second))
	}
}

// dueBy notes that time may let a class pass at an instant.
func (s *limitState) dueBy(at Instant) {
	if s.due == 0 || at < s.due {
		s.due = at
	}
}

// countLimits counts what a run holds.
func (c *Core) countLimits(r *run) {
	s := &c.limits
	if s.book == nil {
		return
	}
	s.moves++
	if r.policy.limits.Charges() {
		u := c.usageOf(r.entitledClaims())
		u.Seconds, u.Endless, u.AsUsed = 0, r.until == never, r.spec.Endless()
		if p := r.pause.suspended; p != nil {
			u.Seconds, u.Endless, u.Rests = floorSeconds(addTime(p.left, 999_999_999)), p.left == never, true
		}
		r.counted = s.book.Hold(r.policy.limits, u, floorSeconds(r.until))
	}
}

// uncountLimits takes it out again.
func (c *Core) uncountLimits(r *run) {
	if c.limits.book != nil {
		c.limits.moves++
	}
	if r.counted != nil {
		c.limits.book.Release(r.counted)
		r.counted = nil
	}
}

// recountLimits counts all runs anew: nodes are known, or others than before.
func (c *Core) recountLimits() {
	if c.limits.book == nil {
		return
	}
	for _, r := range c.runs.ends.allRuns() {
		if r.of != nil {
			continue
		}
		c.uncountLimits(r)
		if !planted.Uncounted {
			c.countLimits(r)
		}
	}
}

// limitReasons lists every limit that a class's jobs do not pass now.
func (c *Core) limitReasons(l *jobClass) (out []reason.Reason) {
	if l.needs == nil {
		return nil
	}
	if l.waiting == forLimit {
		out = append(out, c.currentReason(l))
	}
	if l.options != nil {
		return append(out, c.licenseReasons(l)...)
	}
	for i := range l.rules.Checks {
		if l.waiting == forLimit && i == int(l.check) {
			continue
		}
		if check := &l.rules.Checks[i]; (l.exact || check.Sure()) && c.limits.book.Exceeds(check, l.needs[i]) {
			out = append(out, c.limitReason(l.rules, i, l.needs[i]))
		}
	}
	return out
}

// currentReason is why a class rests, with what is used now.
func (c *Core) currentReason(l *jobClass) reason.Reason {
	why := l.why
	why.Used = int64(c.limits.book.Used(&l.rules.Checks[l.check]))
	return why
}

// mayReserve reports whether something is kept for a job that has to wait (QOS flag
// no_reserve, MinPrioThreshold).
func (e *queuedJob) mayReserve() bool {
	r := e.class.key.policy.limits
	return r == nil || !r.NoReserve && (r.LeastPrio <= 0 || e.currentPriority() >= r.LeastPrio)
}

// restoreLimitWait finds the check at which a class stopped by what its job was told.
func (c *Core) restoreLimitWait(l *jobClass) {
	if l.options != nil {
		c.restoreLicenseWait(l)
		return
	}
	checks := l.rules.Checks
	i := checkOfReason(l.rules, &l.why)
	l.check = int32(i)
	if !l.exact && !checks[i].Sure() || !c.limits.book.Exceeds(&checks[i], l.needs[i]) {
		l.moves, l.took = c.limits.moves+1, resource.Amount(l.why.Need)
	}
	c.waitForLimit(l)
}

// checkOfReason is the check that a reason speaks of; -1: none.
func checkOfReason(r *limit.Rules, why *reason.Reason) int {
	return slices.IndexFunc(r.Checks, func(x limit.Check) bool {
		return x.Why.Code == why.Code && x.Why.Holder == why.Holder && x.Why.Resource == why.Resource
	})
}

// hasUsageBudget reports whether a QOS has a limit on what is used up.
func hasUsageBudget(p *account.Policy) bool {
	return slices.ContainsFunc(p.QOS, func(q account.QOS) bool { return q.Limits.GroupWall != nil || len(q.Limits.GroupMinutes) > 0 })
}
