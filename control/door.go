package control

import (
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/limit"
)

// submitCounts counts the jobs that wait or run by what limits on submissions look at, and
// judges whether more may come. It follows from the jobs, so a restart counts the same.
//
// Invariant: n is what live jobs add up to, and door, where there is one, has counted
// these and what is staged.
type submitCounts struct {
	n        map[limit.Key]int
	door     *limit.Door // nil: not made yet, or there is no policy
	revision uint64      // of the policy that door knows
}

// submitKey is a job's key without what limits on submissions do not look at.
func submitKey(s *job.Spec) limit.Key {
	k := limit.KeyOf(s)
	k.Licenses = ""
	return k
}

// add counts n jobs more of a specification; negative: less.
func (c *submitCounts) add(s *job.Spec, n int) {
	k := submitKey(s)
	if c.n[k] += n; c.n[k] == 0 {
		delete(c.n, k)
	}
	if c.door != nil {
		c.door.Add(k, n)
	}
}

// limitDoor returns the door under the policy that is in force; nil: everybody may come.
func (c *submitCounts) limitDoor(p *Policy, staged map[limit.Key]int) *limit.Door {
	switch {
	case p == nil:
		c.door = nil
	case c.door == nil || c.revision != p.Revision:
		c.door, c.revision = limit.NewDoor(p.Rules), p.Revision
		for k, n := range c.n {
			c.door.Add(k, n)
		}
		for k, n := range staged {
			c.door.Add(k, n)
		}
	}
	return c.door
}

// countSubmission counts n jobs that are about to be accepted, or refuses them. done has to be
// called when it is known whether they were: then they are counted as jobs.
func (l *loop) countSubmission(s *job.Spec, n int) (done func(), err error) {
	door := l.state.submits.limitDoor(l.state.policies.currentPolicy(), l.coming)
	if door == nil {
		return func() {}, nil
	}
	k := submitKey(s)
	if why := door.Refuses(k, n); why.Code != reason.None {
		return nil, tooMany(why)
	}
	door.Add(k, n)
	l.coming[k] += n
	return func() {
		if l.coming[k] -= n; l.coming[k] == 0 {
			delete(l.coming, k)
		}
		if d := l.state.submits.door; d != nil {
			d.Add(k, -n)
		}
	}, nil
}

func tooMany(why reason.Reason) error {
	return fault.New(fault.Conflict, "%s: %s may have %d waiting and running, has %d, and %d more were submitted", why.Code.Limit(), why.Holder, why.Most, why.Used, why.Need).
		Advise("wait until some have ended, cancel some (cox cancel), or submit fewer at once")
}
