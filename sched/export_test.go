package sched

// Recheck forgets everything that the core remembers about jobs that could not
// start and makes a pass. A core that missed nothing starts nothing. Moving the
// head's reservation for others is left out: it may succeed on a second look.
//
// Unless it does start something, the core is afterwards as it was before.
func (c *Core) Recheck(now Instant) []Decision {
	kinds, lines, plan, shaken := map[*kind]kind{}, map[*line]line{}, c.plan, c.shaken
	for _, k := range c.kinds {
		kinds[k] = *k
	}
	for _, l := range c.lines {
		lines[l] = *l
	}
	defer func() {
		for k, old := range kinds {
			*k = old
		}
		for l, old := range lines {
			*l = old
		}
		c.plan, c.shaken = plan, shaken
	}()
	for _, k := range c.kinds {
		k.full, k.shadowed, k.judged = 0, 0, 0
	}
	for _, l := range c.lines {
		l.parked = 0
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
