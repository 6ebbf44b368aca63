package sched

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/sched/limit"
)

// accrueLimits lets only so many waiting jobs grow older at once: GrpJobsAccrue,
// MaxJobsAccrue and those of QOS (Slurm's resource_limits.html).
//
// A job that may be considered has one of so many places among those that grow older,
// or stands in line for one, in order of submission, and has no age until then. It has
// its place until it starts, leaves the queue, or may not be considered any more. Who
// gets one that has become free grows older from that second on; in the order of the
// queue that shows with the next tick, as all priorities are those of the last one.
//
// A place that nobody has needs nobody to stand in line for it: of jobs alike to the
// rules only the first can be next, and it is listed at the counter that stops it.
type accrueLimits struct {
	stopped [][]*effectivePolicy // by counter: whose first job it stops
	fell    []int32              // counters that fell since grantAccrual looked
	granted []*queuedJob         // since the last tick
}

// accrueState is how a queued job stands to the limits on growing older.
type accrueState uint8

const (
	accrueUnlimited accrueState = iota // there are none for it, or it does not grow older for another reason
	accrueCounted                      // it has a place
	accrueGranted                      // the same, since the last tick
	accrueQueued                       // it stands in line
)

// hasAccrueLimit reports whether the rules bound how many jobs of one policy grow older.
func (c *Core) hasAccrueLimit(t *effectivePolicy) bool {
	r := t.priority.multifactor
	return r != nil && r.rules.Ages() && !r.rules.Always && t.limits.BoundsAge()
}

// startAccruing gives a job that may be considered a place, or has it wait for one. was says how
// it stood before it was put into its class anew.
func (c *Core) startAccruing(e *queuedJob, was accrueState) {
	t := e.class.key.policy
	if e.aging = accrueUnlimited; e.eligible != 0 && c.hasAccrueLimit(t) {
		counter, _ := c.limits.book.Ageless(t.limits)
		if had := was == accrueCounted || was == accrueGranted; counter >= 0 || len(t.queuedToAccrue) > 0 && !had {
			c.queueForAccrual(e)
			if counter >= 0 {
				c.listAtCounter(t, counter)
			}
			return
		}
		e.aging = accrueCounted
		c.limits.book.Age(t.limits, 1, nil)
	}
	if was == accrueQueued && e.eligible != 0 {
		e.grows = wholeSecond(c.clock.now)
	}
}

// queueForAccrual has a job stand in line.
func (c *Core) queueForAccrual(e *queuedJob) {
	t := e.class.key.policy
	e.aging = accrueQueued
	i, _ := slices.BinarySearchFunc(t.queuedToAccrue, e, bySubmission)
	t.queuedToAccrue = slices.Insert(t.queuedToAccrue, i, e)
}

func bySubmission(a, b *queuedJob) int {
	return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
}

// listAtCounter lists a policy at the counter that stops their first job.
func (c *Core) listAtCounter(t *effectivePolicy, counter int32) {
	s := &c.accrue
	for len(s.stopped) <= int(counter) {
		s.stopped = append(s.stopped, nil)
	}
	if !slices.Contains(s.stopped[counter], t) {
		s.stopped[counter] = append(s.stopped[counter], t)
	}
}

// stopAccruing takes away a job's place, or its place in line for one.
func (c *Core) stopAccruing(e *queuedJob) {
	t := e.class.key.policy
	switch e.aging {
	case accrueQueued:
		if i, ok := slices.BinarySearchFunc(t.queuedToAccrue, e, bySubmission); ok {
			t.queuedToAccrue = slices.Delete(t.queuedToAccrue, i, i+1)
		}
	case accrueCounted, accrueGranted:
		c.limits.book.Age(t.limits, -1, func(counter int32) { c.accrue.fell = append(c.accrue.fell, counter) })
		c.accrue.granted = slices.DeleteFunc(c.accrue.granted, func(o *queuedJob) bool { return o == e })
	}
	e.aging, e.grows = accrueUnlimited, 0
}

// grantAccrual gives the places that have become free to those who wait longest for them.
func (c *Core) grantAccrual() {
	s := &c.accrue
	if len(s.fell) == 0 {
		return
	}
	var next []*effectivePolicy
	for _, counter := range s.fell {
		if int(counter) < len(s.stopped) {
			next = append(next, s.stopped[counter]...)
			s.stopped[counter] = s.stopped[counter][:0]
		}
	}
	s.fell = s.fell[:0]
	for {
		next = slices.DeleteFunc(next, func(t *effectivePolicy) bool {
			if len(t.queuedToAccrue) == 0 {
				return true
			}
			counter, _ := c.limits.book.Ageless(t.limits)
			if counter >= 0 {
				c.listAtCounter(t, counter)
			}
			return counter >= 0
		})
		if len(next) == 0 {
			return
		}
		t := slices.MinFunc(next, func(a, b *effectivePolicy) int { return bySubmission(a.queuedToAccrue[0], b.queuedToAccrue[0]) })
		e := t.queuedToAccrue[0]
		t.queuedToAccrue = slices.Delete(t.queuedToAccrue, 0, 1)
		e.aging, e.grows = accrueGranted, wholeSecond(c.clock.now)
		c.limits.book.Age(t.limits, 1, nil)
		s.granted = append(s.granted, e)
	}
}

// countGrantedAges lets the age of those count in the order of the queue who have a place since
// the last tick.
func (c *Core) countGrantedAges() {
	list := c.accrue.granted
	c.accrue.granted = nil
	slices.SortFunc(list, bySubmission)
	for _, e := range list {
		c.changeAge(e, func() { e.aging = accrueCounted })
	}
}

// changeAge changes how old a job counts, and keeps it where it belongs in its class.
func (c *Core) changeAge(e *queuedJob, change func()) {
	if e.blocked || e.nominee != nil {
		change()
		return
	}
	planned := e.planned
	c.removeJob(e)
	change()
	c.insertJob(e)
	c.carryPlannedStart(e, planned)
}

// reassignAccrual gives out all places anew, under other rules: first to those who grew older,
// then to the others, each in order of submission.
func (c *Core) reassignAccrual() {
	c.accrue = accrueLimits{}
	all := c.queuedByNumber()
	slices.SortFunc(all, func(a, b *queuedJob) int {
		if n := cmp.Compare(a.aging/accrueQueued, b.aging/accrueQueued); n != 0 {
			return n
		}
		return bySubmission(a, b)
	})
	for _, e := range all {
		if old := e.aging; old != accrueUnlimited || c.hasAccrueLimit(e.class.key.policy) {
			c.changeAge(e, func() { c.startAccruing(e, old) })
		}
	}
}

// accrueLimitReason says which limit keeps a job from growing older; empty: none.
func (c *Core) accrueLimitReason(e *queuedJob) string {
	if e.aging != accrueQueued {
		return ""
	}
	_, why := c.limits.book.Ageless(e.class.key.policy.limits)
	return fmt.Sprintf("%s: %d of %d waiting jobs grow older", why.Holder, why.Used, why.Most)
}

// restoreAccrual counts those who have places, and lists those who wait for one.
func (c *Core) restoreAccrual() {
	for _, e := range c.queuedByNumber() {
		switch t := e.class.key.policy; e.aging {
		case accrueCounted, accrueGranted:
			c.limits.book.Age(t.limits, 1, nil)
			if e.aging == accrueGranted {
				c.accrue.granted = append(c.accrue.granted, e)
			}
		case accrueQueued:
			c.queueForAccrual(e)
		}
	}
	for _, e := range c.queuedByNumber() {
		if t := e.class.key.policy; e.aging == accrueQueued && t.queuedToAccrue[0] == e {
			counter, _ := c.limits.book.Ageless(t.limits)
			c.listAtCounter(t, counter)
		}
	}
}

// checkAccrual counts anew who grows older, and looks for jobs that could.
func (c *Core) checkAccrual() error {
	if c.limits.book == nil {
		return nil
	}
	var counted []*limit.Rules
	for _, e := range c.queue.jobs {
		t := e.class.key.policy
		switch bounded := e.eligible != 0 && c.hasAccrueLimit(t); {
		case bounded != (e.aging != accrueUnlimited):
			return fmt.Errorf("job %d stands to growing older as %d, bounded: %v", e.id, e.aging, bounded)
		case e.aging == accrueGranted && !slices.Contains(c.accrue.granted, e):
			return fmt.Errorf("job %d has a place of which no tick will know", e.id)
		case e.aging == accrueCounted, e.aging == accrueGranted:
			counted = append(counted, t.limits)
		case e.aging == accrueQueued && !slices.Contains(t.queuedToAccrue, e):
			return fmt.Errorf("job %d does not grow older and does not stand in line for it", e.id)
		}
	}
	if err := c.limits.book.CheckAge(counted); err != nil {
		return err
	}
	for _, t := range c.policies {
		if len(t.queuedToAccrue) == 0 {
			continue
		}
		counter, _ := c.limits.book.Ageless(t.limits)
		switch {
		case !slices.IsSortedFunc(t.queuedToAccrue, bySubmission) || t.queuedToAccrue[0].aging != accrueQueued || c.queue.jobs[t.queuedToAccrue[0].id] != t.queuedToAccrue[0]:
			return fmt.Errorf("those of job %d who wait to grow older are out of order", t.queuedToAccrue[0].id)
		case counter < 0:
			return fmt.Errorf("job %d could grow older", t.queuedToAccrue[0].id)
		case !slices.ContainsFunc(c.accrue.stopped, func(list []*effectivePolicy) bool { return slices.Contains(list, t) }):
			return fmt.Errorf("job %d waits to grow older and nobody would let it", t.queuedToAccrue[0].id)
		}
	}
	return nil
}
