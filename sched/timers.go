package sched

// Next is the next instant at which something changes by time alone (a tick of
// priorities, the start of a reservation), so that the core wants to be stepped
// then even if nothing happens; 0: none. It changes with each step. An instant that
// has passed means at once.
func (c *Core) Next() Instant {
	next := never
	for _, due := range c.dueTimes() {
		if due != 0 {
			next = min(next, due)
		}
	}
	if next == never {
		return 0
	}
	return next
}

// dueTimes lists the instants at which the policies want to be asked again; 0: not.
func (c *Core) dueTimes() []Instant {
	return []Instant{c.tickDue(), c.limits.due, c.nextPlannedStart(), c.nextReservationChange(), c.preempt.exemptUntil, c.suspended.turnEnds, c.defrag.searchAt, c.constraints.nextDue()}
}

// fireTimers does what is due by time, before a step's cycle.
func (c *Core) fireTimers(now Instant) {
	c.tickPriorities(now)
	c.chargeBudgets(now)
	c.giveUpWishes(now)
	if due := c.nextReservationChange(); due != 0 && due <= now {
		c.wakeForReservations()
	}
	if due := c.nextPlannedStart(); due != 0 && due <= now {
		c.planDirty, c.cycleDue = true, true
	}
	if c.suspended.turnEnds != 0 && c.suspended.turnEnds <= now {
		c.cycleDue = true
	}
	if c.preempt.exemptUntil != 0 && c.preempt.exemptUntil <= now {
		c.preempt.exemptUntil = 0
		c.generation++
		c.cycleDue = true
	}
	if c.defrag.searchAt != 0 && c.defrag.searchAt <= now {
		c.defrag.searchAt, c.cycleDue = 0, true
	}
}
