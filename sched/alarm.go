package sched

// Next is the next instant at which something changes by time alone (a tick of
// priorities, the start of a reservation), so that the core wants to be stepped
// then even if nothing happens; 0: none. It changes with each step. An instant that
// has passed means at once.
func (c *Core) Next() Instant {
	next := never
	for _, due := range c.alarms() {
		if due != 0 {
			next = min(next, due)
		}
	}
	if next == never {
		return 0
	}
	return next
}

// alarms lists the instants at which the policies want to be asked again; 0: not.
func (c *Core) alarms() []Instant {
	return []Instant{c.tickDue(), c.limits.due, c.nextSlot(), c.nextTurn(), c.exempted, c.turnEnds, c.searching, c.patience.nextDue()}
}

// ring does what is due by time, before a step's pass.
func (c *Core) ring(now Instant) {
	c.tick(now)
	c.spend(now)
	c.giveUp(now)
	if due := c.nextTurn(); due != 0 && due <= now {
		c.turnOver()
	}
	if due := c.nextSlot(); due != 0 && due <= now {
		c.shaken, c.dirty = true, true
	}
	if c.turnEnds != 0 && c.turnEnds <= now {
		c.dirty = true
	}
	if c.exempted != 0 && c.exempted <= now {
		c.exempted = 0
		c.stirs++
		c.dirty = true
	}
	if c.searching != 0 && c.searching <= now {
		c.searching, c.dirty = 0, true
	}
}
