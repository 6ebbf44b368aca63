package state

import (
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/limit"
)

// SubmitCounts counts the waiting and running jobs by what limits on submissions look at, and
// decides whether more may be submitted. The counts follow from the jobs, so they are the same
// after a restart.
//
// Invariant: n is the sum over live jobs, and door, if there is one, has counted these and the
// staged ones.
type SubmitCounts struct {
	n        map[limit.Key]int
	Door     *limit.Door // nil: not made yet, or there is no policy
	revision uint64      // of the policy that door knows
}

// SubmitKey is a job's key, without the fields that limits on submissions ignore.
func SubmitKey(s *job.Spec) limit.Key {
	k := limit.KeyOf(s)
	k.Licenses = ""
	return k
}

// add counts n jobs more of a specification; negative: less.
func (c *SubmitCounts) add(s *job.Spec, n int) {
	k := SubmitKey(s)
	if c.n[k] += n; c.n[k] == 0 {
		delete(c.n, k)
	}
	if c.Door != nil {
		c.Door.Add(k, n)
	}
}

// LimitDoor returns the limits on submissions of a policy, with all jobs counted; nil: there is
// no policy, so there are no limits. staged are jobs that are not accepted yet.
func (c *SubmitCounts) LimitDoor(p *Policy, staged map[limit.Key]int) *limit.Door {
	switch {
	case p == nil:
		c.Door = nil
	case c.Door == nil || c.revision != p.Revision:
		c.Door, c.revision = limit.NewDoor(p.Rules), p.Revision
		for k, n := range c.n {
			c.Door.Add(k, n)
		}
		for k, n := range staged {
			c.Door.Add(k, n)
		}
	}
	return c.Door
}
