package sched

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// Estimate says when and where a job would start if it were submitted now and every
// running job used its whole limit; 0 if a job without a limit stands in the way or
// nobody can tell. Of the jobs before it only the head, which has a reservation, is
// reckoned with: behind a long queue it starts later. why lists what keeps it from
// starting now. Nothing is changed.
func (c *Core) Estimate(now Instant, spec *job.Spec, priority int64) (at Instant, claims []fleet.Claim, why []reason.Reason) {
	c.rebuildFleet()
	after := func(waited Instant) *class.Shape {
		return class.CompileAfter(spec, longestWait(c.policy), time.Duration(waited))
	}
	shape := after(0)
	terms := c.policyOf(spec)
	defer c.releasePolicy(terms)
	e := &queuedJob{spec: spec, priority: priority, fixed: spec.Priority != 0, at: now, eligible: wholeSecond(now), id: 1<<63 - 1}
	key := classKey{shape: shape, policy: terms, own: ownOf(e, terms)}
	key.setTimes(spec)
	e.class = &jobClass{key: key, kind: &kind{shape: shape}, limit: key.limit}
	c.computeSize(e.class)
	ahead := c.aheadReason(e)
	if ahead.Code != reason.None {
		why = append(why, ahead)
	}
	missing := place.Now(c.fleet.table, c.fleet.state, shape)
	if len(missing) == 0 {
		if claims = place.Gang(c.fleet.table, c.fleet.state, shape); claims != nil && (ahead.Code == reason.None || c.plan.job == 0) {
			return now, claims, nil
		}
	}
	why = append(why, missing...)
	p := schedulingCycle{Core: c, now: now}
	ends := c.runs.ends.allRuns()
	for _, n := range endSteps(ends) {
		free, end := p.freeAfter(ends[:n]), ends[n-1].until
		if c.plan.job != 0 && end >= c.plan.at {
			free.Take(c.fleet.table, p.reservedClaims())
		}
		if claims = place.Gang(c.fleet.table, free, after(max(end-now, 0))); claims != nil && end != never {
			return max(end, now), claims, why
		}
	}
	return 0, nil, why
}
