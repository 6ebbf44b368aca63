package sched

import (
	"cmp"
	"maps"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/limit"
)

// effectivePolicy is what the site's policy says of jobs that are alike to it. Every class and
// every run has one; without a policy there is only one, which says nothing.
type effectivePolicy struct {
	key  policyKey
	uses int // classes and runs

	queue          *quotaQueue  // whose quota its jobs are charged to; nil: nobody's
	limits         *limit.Rules // limits; nil: no policy
	tier           int32        // larger is considered first, whatever the priority
	priority       priorityTerms
	reservation    *advanceReservation // that its jobs run in; nil: none
	preemption     *preemptionRank     // to preemption; nil: there is none
	neverMoved     bool                // its jobs are not moved
	choices        []*effectivePolicy  // with each of the alternatives among the licences that its jobs ask for; nil: there are none
	queuedToAccrue []*queuedJob        // that wait to grow older, in order of submission
}

// policyKey is all that the policy looks at in a job beside its shape and limit.
type policyKey struct {
	account, user, qos, partition string
	licenses, reservation         string
	pool                          string // empty where the policy says nothing of pools
}

// policyOf returns the policy of a job and counts one more use.
func (c *Core) policyOf(spec *job.Spec) *effectivePolicy {
	var key policyKey
	if c.policy != nil && spec != nil {
		key = policyKey{account: spec.Account, user: spec.Owner.User, qos: spec.QOS, licenses: spec.Licenses}
		if len(spec.Partitions) > 0 {
			key.partition = spec.Partitions[0]
		}
	}
	if c.policy != nil && spec != nil && c.policy.PoolOf(spec.Pool) != nil {
		key.pool = spec.Pool
	}
	if spec != nil {
		key.reservation = spec.Reservation
	}
	return c.policyFor(key)
}

// policyWithLicense are those of a job that has one of the licences that it asked for.
func (c *Core) policyWithLicense(spec *job.Spec, licenses string) *effectivePolicy {
	t := c.policyOf(spec)
	if t.choices == nil {
		return t
	}
	i := max(slices.IndexFunc(t.choices, func(x *effectivePolicy) bool { return x.key.licenses == licenses }), 0)
	held := t.choices[i]
	held.uses++
	c.releasePolicy(t)
	return held
}

func (c *Core) policyFor(key policyKey) *effectivePolicy {
	t := c.policies[key]
	if t == nil {
		t = &effectivePolicy{key: key}
		c.compileEffective(t)
		c.policies[key] = t
	}
	t.uses++
	return t
}

// releasePolicy counts one use less.
func (c *Core) releasePolicy(t *effectivePolicy) {
	if t.uses--; t.uses == 0 && c.policies[t.key] == t {
		delete(c.policies, t.key)
		for _, x := range t.choices {
			c.releasePolicy(x)
		}
	}
}

// compileEffective works out what the policy says for a key.
func (c *Core) compileEffective(t *effectivePolicy) {
	if a := c.reservationByName(t.key.reservation); a != nil && a.Admits(t.key.account, t.key.user) {
		t.reservation = a
	}
	c.compilePriority(t)
	if c.policy == nil {
		return
	}
	t.queue = c.quotas.queueOf(t.key.account)
	if all, err := account.LicenseChoices(t.key.licenses); err == nil && len(all) > 1 {
		for _, one := range all {
			key := t.key
			key.licenses = one
			t.choices = append(t.choices, c.policyFor(key))
		}
		t.limits = t.choices[0].limits
	} else {
		t.limits = c.limitRules(t.key)
	}
	for i := range c.policy.Partitions {
		if p := &c.policy.Partitions[i]; p.Name == t.key.partition {
			t.tier = p.Tier
		}
	}
	t.preemption = c.preempt.rules.standingOf(t.key)
	t.neverMoved = c.defrag.rules != nil && c.isNeverMoved(t)
}

// queuedByNumber lists what is queued by number.
func (c *Core) queuedByNumber() []*queuedJob {
	return slices.SortedFunc(maps.Values(c.queue.jobs), func(a, b *queuedJob) int { return cmp.Compare(a.id, b.id) })
}

// adoptPolicy takes rules over. What waits and runs still has policies of the old ones.
func (c *Core) adoptPolicy(p *account.Policy) {
	c.policy, c.policies = p, map[policyKey]*effectivePolicy{} // what others say of the same jobs is not true any more
	c.quotas, c.preempt.rules, c.defrag.rules = newQuotas(p), newPreemption(p), newDefragRules(p)
	c.compileLimits(p)
	c.compileReservations()
	c.shapes.SetLongest(longestWait(p))
}

// setPolicy changes the rules for everything that waits and runs.
func (c *Core) setPolicy(p *account.Policy) {
	for len(c.preempt.nominees) > 0 {
		c.dissolveNomination(c.preempt.nominees[0])
	}
	for _, r := range c.runs.ends.allRuns() {
		if r.of != nil {
			continue
		}
		c.creditQuota(r)
		r.counted = nil // by counters that nobody reads any more
	}
	c.setMultifactor(p, c.clock.now)
	c.adoptPolicy(p)
	c.restoreForecast(c.forecast.seen)
	if p != nil && p.Compat != "" {
		c.releaseTargets()
	}
	for _, e := range c.queuedByNumber() {
		line, planned := e.class, e.planned
		if !e.blocked {
			c.removeJob(e)
		}
		if line.leader == e {
			line.leader = nil
		}
		var next Instant
		e.stage, next = c.stageOf(e)
		c.scheduleStage(e, next)
		e.class = c.classOf(e)
		c.leaveClass(line)
		if line.leader == e {
			line.leader = nil // what it waits for is told in its new class
		}
		if !e.blocked {
			c.enqueueJob(e)
			c.carryPlannedStart(e, planned)
		}
	}
	for _, r := range c.runs.ends.allRuns() {
		if r.target != nil {
			continue // nobody's policy is of it
		}
		if r.of != nil { // its job stands before it
			r.policy = r.of.policy
			c.countStanding(r, 1)
			continue
		}
		old := r.policy
		r.policy = c.policyWithLicense(r.spec, r.license)
		c.joinShares(r.policy)
		c.releasePolicy(old)
		c.countLimits(r)
		c.chargeQuota(r)
		c.countStanding(r, 1)
	}
	c.reassignAccrual()
	c.reorderQueue()
	c.generation++
	c.planDirty, c.cycleDue = true, true
}
