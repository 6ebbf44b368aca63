package sched

import (
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// isBarred reports whether a class that rests so is none that could lead the queue: it
// waits for what no room can give it.
func (r waitState) isBarred() bool {
	return r == forFleet || r == forQuota || r == forQueueOrder || r == forLimit || r == forReservation || r == forFairShare
}

// passesGates reports whether a class's first job could start if there were room for it. If
// not, the class rests for what is in its way and does not lead the queue.
func (p *schedulingCycle) passesGates(l *jobClass) bool {
	for_, why := p.blockingGate(l)
	if for_ == toLookAt {
		return true
	}
	if for_.isBarred() {
		p.removeFromHeads(l)
	}
	p.restClass(l, for_, why)
	l.waitsForHead = for_ == forPlan
	if for_ == forFleet && l.quotaDemand != nil {
		p.wakeStrictQueue(l.quotaDemand.queue)
	}
	return false
}

// blockingGate looks at what the fleet and the rules of the site have against a class's first
// job, whatever is free.
func (p *schedulingCycle) blockingGate(l *jobClass) (waitState, reason.Reason) {
	if for_, why := p.thresholdGate(l); for_ != toLookAt {
		return for_, why
	}
	if for_, why := p.reservationGate(l); for_ != toLookAt {
		return for_, why
	}
	if for_, why := p.limitGate(l); for_ != toLookAt {
		return for_, why
	}
	if l.quotaDemand != nil {
		if for_, why := p.quotaGate(l); for_ != toLookAt {
			return for_, why
		}
	}
	if !p.fitsFleet(l.kind) {
		if why := p.insistReason(l.jobs.firstJob()); why.Code != reason.None {
			return forFleet, why
		}
		return forFleet, place.Never(p.fleet.table, l.kind.shape, false)[0]
	}
	return toLookAt, reason.Reason{}
}

// updateHeads puts a class where its first job stands among those that could lead the queue.
func (c *Core) updateHeads(l *jobClass) {
	c.queue.heads.fixPosition(l)
	if l.quotaDemand != nil {
		l.quotaDemand.queue.heads.fixPosition(l)
	}
}

// removeFromHeads takes a class out of those that could lead the queue.
func (c *Core) removeFromHeads(l *jobClass) {
	c.queue.heads.remove(l)
	if l.quotaDemand != nil {
		l.quotaDemand.queue.heads.remove(l)
	}
}

// wakeBarred has a class that was barred looked at again.
func (c *Core) wakeBarred(l *jobClass) {
	c.wakeClass(l)
	if l.jobs.len() > 0 {
		c.updateHeads(l)
	}
}
