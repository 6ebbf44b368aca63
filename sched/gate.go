package sched

import (
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// isBarred reports whether a line that rests so is none that could lead the queue: it
// waits for what no room can give it.
func (r rest) isBarred() bool {
	return r == forFleet || r == forQuota || r == forTurn || r == forLimit || r == forTime || r == forShare
}

// passesGates reports whether a line's first job could start if there were room for it. If
// not, the line rests for what is in its way and does not lead the queue.
func (p *pass) passesGates(l *line) bool {
	for_, why := p.blockingGate(l)
	if for_ == active {
		return true
	}
	if for_.isBarred() {
		p.removeFromHeads(l)
	}
	p.restClass(l, for_, why)
	l.heeds = for_ == forPlan
	if for_ == forFleet && l.stake != nil {
		p.wakeStrictQueue(l.stake.queue)
	}
	return false
}

// blockingGate looks at what the fleet and the rules of the site have against a line's first
// job, whatever is free.
func (p *pass) blockingGate(l *line) (rest, reason.Reason) {
	if for_, why := p.thresholdGate(l); for_ != active {
		return for_, why
	}
	if for_, why := p.reservationGate(l); for_ != active {
		return for_, why
	}
	if for_, why := p.limitGate(l); for_ != active {
		return for_, why
	}
	if l.stake != nil {
		if for_, why := p.quotaGate(l); for_ != active {
			return for_, why
		}
	}
	if !p.fitsFleet(l.kind) {
		if why := p.insistReason(l.jobs.firstJob()); why.Code != reason.None {
			return forFleet, why
		}
		return forFleet, place.Never(p.table, l.kind.shape, false)[0]
	}
	return active, reason.Reason{}
}

// updateHeads puts a line where its first job stands among those that could lead the queue.
func (c *Core) updateHeads(l *line) {
	c.heads.fixPosition(l)
	if l.stake != nil {
		l.stake.queue.heads.fixPosition(l)
	}
}

// removeFromHeads takes a line out of those that could lead the queue.
func (c *Core) removeFromHeads(l *line) {
	c.heads.remove(l)
	if l.stake != nil {
		l.stake.queue.heads.remove(l)
	}
}

// wakeBarred has a line that was barred looked at again.
func (c *Core) wakeBarred(l *line) {
	c.wakeClass(l)
	if l.jobs.len() > 0 {
		c.updateHeads(l)
	}
}
