package sched

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/sched/quota"
)

// What is held of quotas once those who were asked to make room have gone and the
// jobs for which they go have started. Until then both hold nodes, but their account's
// quota is taken twice by neither: what starts has to fit what is held now, where the
// first are counted and the second are not, and what will be held then.

// afterReleases is that state; the one of now if nobody is making room.
func (q *quotas) afterReleases(c *Core) *quota.State {
	if len(c.preempt.nominees) == 0 {
		return q.State
	}
	if q.later == nil {
		q.later = q.Clone()
		for _, n := range c.preempt.nominees {
			if t := n.run.policy.queue; t != nil {
				q.later.Add(t.node, n.run.charges)
			}
		}
		for _, r := range c.leavingRuns() {
			if t := r.policy.queue; t != nil {
				q.later.Remove(t.node, c.chargesOf(r))
			}
		}
	}
	return q.later
}

// leavingRuns lists the running jobs for whose end somebody waits, each with all that was
// added to it, and the additions to others, by number.
func (c *Core) leavingRuns() (out []*run) {
	note := func(r *run) {
		if r != nil && r.stopping && !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	for _, n := range c.preempt.nominees {
		for _, id := range n.await {
			r := c.runs.byJob[id]
			if note(r); r != nil {
				for _, a := range r.added {
					note(a)
				}
			}
		}
		for _, m := range n.additions {
			if r := c.runs.byJob[m.Job]; r != nil {
				note(r.additionOn(m.Node))
			}
		}
	}
	slices.SortFunc(out, func(a, b *run) int { return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.part, b.part)) })
	return out
}

// takeQuota counts what a queue holds more, giveQuota what it holds less.
func (q *quotas) takeQuota(n int32, charges []quota.Charge) {
	q.Add(n, charges)
	q.noteChange()
}

func (q *quotas) giveQuota(n int32, charges []quota.Charge) {
	q.Remove(n, charges)
	q.noteChange()
}

// noteChange forgets what followed from what was held.
func (q *quotas) noteChange() {
	q.later = nil
	q.changes++
}
