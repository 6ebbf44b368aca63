package sched

import "slices"

// Recheck forgets everything that the core remembers about jobs that could not
// start and makes a pass. A core that missed nothing starts nothing. Moving the
// head's reservation for others is left out: it may succeed on a second look.
//
// Unless it does start something, the core is afterwards as it was before.
func (c *Core) Recheck(now Instant) []Decision {
	plan, shaken := c.plan, c.shaken
	woken, touched, planned, heads := slices.Clone(c.woken), slices.Clone(c.touched), slices.Clone(c.planned), slices.Clone(c.heads)
	kinds, lines := map[*kind]kind{}, map[*line]line{}
	stakes := map[*line]stake{}
	for _, k := range c.kinds {
		old := *k
		old.lines = slices.Clone(k.lines)
		kinds[k] = old
	}
	for _, l := range c.lines {
		lines[l] = *l
		if l.stake != nil {
			stakes[l] = *l.stake
		}
	}
	limits := c.limits
	limits.loose, limits.waiting = slices.Clone(limits.loose), slices.Clone(limits.waiting)
	for i, list := range limits.waiting {
		limits.waiting[i] = slices.Clone(list)
	}
	defer func() {
		c.limits = limits
		for k, old := range kinds {
			*k = old
		}
		for l, old := range lines {
			*l = old
			if l.stake != nil {
				was := stakes[l]
				l.stake.got, l.stake.over = was.got, was.over
			}
		}
		c.plan, c.shaken, c.woken, c.touched, c.planned, c.heads = plan, shaken, woken, touched, planned, heads
	}()
	for _, k := range c.kinds {
		k.full, k.shadowed, k.judged = false, 0, 0
		for _, l := range k.lines {
			if l.jobs.len() > 0 {
				l.rest = active
				c.heads.fix(l)
				c.wake(l)
			}
		}
	}
	p := pass{Core: c, now: now}
	p.run()
	if c.plan.job != plan.job || c.plan.at != plan.at {
		p.out = append(p.out, Promise{Job: c.plan.job, At: c.plan.at})
	}
	return p.out
}

// Replan makes the plan anew and returns when the head would start by it.
func (c *Core) Replan(now Instant) (kept, anew Instant) {
	if c.plan.job == 0 {
		return 0, 0
	}
	p := pass{Core: c, now: now}
	at, _ := p.earliest(c.queued[c.plan.job])
	return c.plan.at, at
}
