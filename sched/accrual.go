package sched

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/sched/limit"
)

// accrual lets only so many waiting jobs grow older at once: GrpJobsAccrue,
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
type accrual struct {
	stopped [][]*terms // by counter: whose first job it stops
	fell    []int32    // counters that fell since promote looked
	granted []*entry   // since the last tick
}

// aging is how a queued job stands to the limits on growing older.
type aging uint8

const (
	agesFreely aging = iota // there are none for it, or it does not grow older for another reason
	agesOne                 // it has a place
	agesSoon                // the same, since the last tick
	ageless                 // it stands in line
)

// hasAccrueLimit reports whether the rules bound how many jobs of some terms grow older.
func (c *Core) hasAccrueLimit(t *terms) bool {
	r := t.merit.ranks
	return r != nil && r.rules.Ages() && !r.rules.Always && t.rules.BoundsAge()
}

// startAccruing gives a job that may be considered a place, or has it wait for one. was says how
// it stood before it was put into its line anew.
func (c *Core) startAccruing(e *entry, was aging) {
	t := e.line.key.terms
	if e.aging = agesFreely; e.eligible != 0 && c.hasAccrueLimit(t) {
		counter, _ := c.limits.book.Ageless(t.rules)
		if had := was == agesOne || was == agesSoon; counter >= 0 || len(t.young) > 0 && !had {
			c.queueForAccrual(e)
			if counter >= 0 {
				c.listAtCounter(t, counter)
			}
			return
		}
		e.aging = agesOne
		c.limits.book.Age(t.rules, 1, nil)
	}
	if was == ageless && e.eligible != 0 {
		e.grows = wholeSecond(c.now)
	}
}

// queueForAccrual has a job stand in line.
func (c *Core) queueForAccrual(e *entry) {
	t := e.line.key.terms
	e.aging = ageless
	i, _ := slices.BinarySearchFunc(t.young, e, bySubmission)
	t.young = slices.Insert(t.young, i, e)
}

func bySubmission(a, b *entry) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id)) }

// listAtCounter lists terms at the counter that stops their first job.
func (c *Core) listAtCounter(t *terms, counter int32) {
	s := &c.accrual
	for len(s.stopped) <= int(counter) {
		s.stopped = append(s.stopped, nil)
	}
	if !slices.Contains(s.stopped[counter], t) {
		s.stopped[counter] = append(s.stopped[counter], t)
	}
}

// stopAccruing takes away a job's place, or its place in line for one.
func (c *Core) stopAccruing(e *entry) {
	t := e.line.key.terms
	switch e.aging {
	case ageless:
		if i, ok := slices.BinarySearchFunc(t.young, e, bySubmission); ok {
			t.young = slices.Delete(t.young, i, i+1)
		}
	case agesOne, agesSoon:
		c.limits.book.Age(t.rules, -1, func(counter int32) { c.accrual.fell = append(c.accrual.fell, counter) })
		c.accrual.granted = slices.DeleteFunc(c.accrual.granted, func(o *entry) bool { return o == e })
	}
	e.aging, e.grows = agesFreely, 0
}

// grantAccrual gives the places that have become free to those who wait longest for them.
func (c *Core) grantAccrual() {
	s := &c.accrual
	if len(s.fell) == 0 {
		return
	}
	var next []*terms
	for _, counter := range s.fell {
		if int(counter) < len(s.stopped) {
			next = append(next, s.stopped[counter]...)
			s.stopped[counter] = s.stopped[counter][:0]
		}
	}
	s.fell = s.fell[:0]
	for {
		next = slices.DeleteFunc(next, func(t *terms) bool {
			if len(t.young) == 0 {
				return true
			}
			counter, _ := c.limits.book.Ageless(t.rules)
			if counter >= 0 {
				c.listAtCounter(t, counter)
			}
			return counter >= 0
		})
		if len(next) == 0 {
			return
		}
		t := slices.MinFunc(next, func(a, b *terms) int { return bySubmission(a.young[0], b.young[0]) })
		e := t.young[0]
		t.young = slices.Delete(t.young, 0, 1)
		e.aging, e.grows = agesSoon, wholeSecond(c.now)
		c.limits.book.Age(t.rules, 1, nil)
		s.granted = append(s.granted, e)
	}
}

// countGrantedAges lets the age of those count in the order of the queue who have a place since
// the last tick.
func (c *Core) countGrantedAges() {
	list := c.accrual.granted
	c.accrual.granted = nil
	slices.SortFunc(list, bySubmission)
	for _, e := range list {
		c.changeAge(e, func() { e.aging = agesOne })
	}
}

// changeAge changes how old a job counts, and keeps it where it belongs in its line.
func (c *Core) changeAge(e *entry, change func()) {
	if e.blocked || e.nominee != nil {
		change()
		return
	}
	planned := e.slot
	c.removeJob(e)
	change()
	c.insertJob(e)
	c.carryPlannedStart(e, planned)
}

// reassignAccrual gives out all places anew, under other rules: first to those who grew older,
// then to the others, each in order of submission.
func (c *Core) reassignAccrual() {
	c.accrual = accrual{}
	all := c.queuedByNumber()
	slices.SortFunc(all, func(a, b *entry) int {
		if n := cmp.Compare(a.aging/ageless, b.aging/ageless); n != 0 {
			return n
		}
		return bySubmission(a, b)
	})
	for _, e := range all {
		if old := e.aging; old != agesFreely || c.hasAccrueLimit(e.line.key.terms) {
			c.changeAge(e, func() { c.startAccruing(e, old) })
		}
	}
}

// accrueLimitReason says which limit keeps a job from growing older; empty: none.
func (c *Core) accrueLimitReason(e *entry) string {
	if e.aging != ageless {
		return ""
	}
	_, why := c.limits.book.Ageless(e.line.key.terms.rules)
	return fmt.Sprintf("%s: %d of %d waiting jobs grow older", why.Holder, why.Used, why.Most)
}

// restoreAccrual counts those who have places, and lists those who wait for one.
func (c *Core) restoreAccrual() {
	for _, e := range c.queuedByNumber() {
		switch t := e.line.key.terms; e.aging {
		case agesOne, agesSoon:
			c.limits.book.Age(t.rules, 1, nil)
			if e.aging == agesSoon {
				c.accrual.granted = append(c.accrual.granted, e)
			}
		case ageless:
			c.queueForAccrual(e)
		}
	}
	for _, e := range c.queuedByNumber() {
		if t := e.line.key.terms; e.aging == ageless && t.young[0] == e {
			counter, _ := c.limits.book.Ageless(t.rules)
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
	for _, e := range c.queued {
		t := e.line.key.terms
		switch bounded := e.eligible != 0 && c.hasAccrueLimit(t); {
		case bounded != (e.aging != agesFreely):
			return fmt.Errorf("job %d stands to growing older as %d, bounded: %v", e.id, e.aging, bounded)
		case e.aging == agesSoon && !slices.Contains(c.accrual.granted, e):
			return fmt.Errorf("job %d has a place of which no tick will know", e.id)
		case e.aging == agesOne, e.aging == agesSoon:
			counted = append(counted, t.rules)
		case e.aging == ageless && !slices.Contains(t.young, e):
			return fmt.Errorf("job %d does not grow older and does not stand in line for it", e.id)
		}
	}
	if err := c.limits.book.CheckAge(counted); err != nil {
		return err
	}
	for _, t := range c.terms {
		if len(t.young) == 0 {
			continue
		}
		counter, _ := c.limits.book.Ageless(t.rules)
		switch {
		case !slices.IsSortedFunc(t.young, bySubmission) || t.young[0].aging != ageless || c.queued[t.young[0].id] != t.young[0]:
			return fmt.Errorf("those of job %d who wait to grow older are out of order", t.young[0].id)
		case counter < 0:
			return fmt.Errorf("job %d could grow older", t.young[0].id)
		case !slices.ContainsFunc(c.accrual.stopped, func(list []*terms) bool { return slices.Contains(list, t) }):
			return fmt.Errorf("job %d waits to grow older and nobody would let it", t.young[0].id)
		}
	}
	return nil
}
