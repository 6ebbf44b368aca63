package sched

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/job"
)

// Check recomputes the invariants of the core and returns the first that does
// not hold. It is for tests and for a build that pays for it.
func (c *Core) Check() error {
	for _, check := range []func() error{c.checkFree, c.checkEnds, c.checkLines, c.checkPlan} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (c *Core) checkFree() error {
	want := c.table.Empty(false)
	for _, r := range c.running {
		want.Take(c.table, r.claims)
	}
	for i := range c.table.Len() {
		a, b := c.state.Row(i), want.Row(i)
		if !a.Same(b) {
			return fmt.Errorf("node %s: %+v is counted as free, claims leave %+v", c.table.Node(i).Name, *a, *b)
		}
	}
	return nil
}

func (c *Core) checkEnds() error {
	if len(c.ends) != len(c.running) || !slices.IsSortedFunc(c.ends, (*run).compare) {
		return fmt.Errorf("%d planned ends of %d running jobs, or out of order", len(c.ends), len(c.running))
	}
	for _, r := range c.ends {
		if c.running[r.id] != r {
			return fmt.Errorf("job %d has a planned end and does not run", r.id)
		}
		if c.queued[r.id] != nil {
			return fmt.Errorf("job %d is queued and runs", r.id)
		}
	}
	return nil
}

func (c *Core) checkLines() error {
	seen := map[job.ID]bool{}
	members := 0
	for key, l := range c.lines {
		if key != l.key || !slices.IsSortedFunc(l.entries, (*entry).before) {
			return fmt.Errorf("a line is out of order")
		}
		members += l.members
		for _, e := range l.entries {
			if c.queued[e.id] != e || e.blocked || e.line != l || seen[e.id] {
				return fmt.Errorf("job %d stands in a line where it does not belong", e.id)
			}
			seen[e.id] = true
		}
	}
	if members != len(c.queued) {
		return fmt.Errorf("lines count %d jobs, %d are queued", members, len(c.queued))
	}
	for id, e := range c.queued {
		if !e.blocked && !seen[id] {
			return fmt.Errorf("job %d is queued and stands in no line", id)
		}
	}
	return nil
}

func (c *Core) checkPlan() error {
	if c.plan.job == 0 || c.dirty {
		return nil
	}
	if e := c.queued[c.plan.job]; e == nil || e.blocked {
		return fmt.Errorf("job %d has a reservation and does not wait", c.plan.job)
	}
	p := pass{Core: c}
	if !p.freeBy(c.plan.at, c.plan.claims).Fits(c.table, c.plan.claims) {
		return fmt.Errorf("what is reserved for job %d is not free at %d", c.plan.job, c.plan.at)
	}
	return nil
}
