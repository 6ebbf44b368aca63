package sched

import (
	"fmt"

	"github.com/coxswain-sched/coxswain/model/reason"
)

// The threshold of a QOS (UsageThreshold, with EnforceUsageThreshold; Slurm's qos.html):
// a job whose user has a smaller fair-share factor, as of the last tick, waits until the
// factor has risen, and is in nobody's way. Factors change with ticks, and with users who
// come, so that is when those are looked at again whose factor has passed a threshold.

// isBelowThreshold reports whether the factor of those whose jobs these are is below the threshold.
func (c *Core) isBelowThreshold(t *effectivePolicy) bool {
	m := &t.priority
	return m.threshold > 0 && m.assoc >= 0 && c.priority.multifactor.standing[m.assoc].Factor < m.threshold
}

// thresholdGate says what is in the way of a class whose factor is below the threshold.
func (c *Core) thresholdGate(l *jobClass) (waitState, reason.Reason) {
	t := l.key.policy
	if !c.isBelowThreshold(t) {
		return toLookAt, reason.Reason{}
	}
	ref := c.priority.multifactor.book.Ref(t.priority.assoc)
	return forFairShare, reason.Reason{
		Code: reason.Threshold, Holder: fmt.Sprintf("user %s in account %s", ref.User, ref.Account), Want: c.policy.QOS[t.priority.qos].Name,
		Most: toMillionths(t.priority.threshold), Used: toMillionths(c.priority.multifactor.standing[t.priority.assoc].Factor),
	}
}

func toMillionths(x float64) int64 { return int64(x*1e6 + 0.5) }

// wakeForThreshold has those looked at again for whom it has changed whether they are below.
func (c *Core) wakeForThreshold() {
	for _, l := range c.queue.classes {
		if t := l.key.policy; t.priority.threshold > 0 && (l.waiting == forFairShare) != c.isBelowThreshold(t) {
			c.wakeBarred(l)
			c.planDirty, c.cycleDue = true, true
		}
	}
}
