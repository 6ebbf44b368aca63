package sched

import (
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// barred reports whether a line that rests so is none that could lead the queue: it
// waits for what no room can give it.
func (r rest) barred() bool {
	return r == forFleet || r == forQuota || r == forTurn || r == forLimit || r == forTime || r == forShare
}

// ready reports whether a line's first job could start if there were room for it. If
// not, the line rests for what is in its way and does not lead the queue.
func (p *pass) ready(l *line) bool {
	for_, why := p.gate(l)
	if for_ == active {
		return true
	}
	if for_.barred() {
		p.resign(l)
	}
	p.rest(l, for_, why)
	l.heeds = for_ == forPlan
	if for_ == forFleet && l.stake != nil {
		p.rally(l.stake.queue)
	}
	return false
}

// gate looks at what the fleet and the rules of the site have against a line's first
// job, whatever is free.
func (p *pass) gate(l *line) (rest, reason.Reason) {
	if for_, why := p.deserves(l); for_ != active {
		return for_, why
	}
	if for_, why := p.kept(l); for_ != active {
		return for_, why
	}
	if for_, why := p.limited(l); for_ != active {
		return for_, why
	}
	if l.stake != nil {
		if for_, why := p.quota(l); for_ != active {
			return for_, why
		}
	}
	if !p.possible(l.kind) {
		if why := p.insists(l.jobs.first()); why.Code != reason.None {
			return forFleet, why
		}
		return forFleet, place.Never(p.table, l.kind.shape, false)[0]
	}
	return active, reason.Reason{}
}

// lead puts a line where its first job stands among those that could lead the queue.
func (c *Core) lead(l *line) {
	c.heads.fix(l)
	if l.stake != nil {
		l.stake.queue.heads.fix(l)
	}
}

// resign takes a line out of those that could lead the queue.
func (c *Core) resign(l *line) {
	c.heads.remove(l)
	if l.stake != nil {
		l.stake.queue.heads.remove(l)
	}
}

// admit has a line that was barred looked at again.
func (c *Core) admit(l *line) {
	c.wake(l)
	if l.jobs.len() > 0 {
		c.lead(l)
	}
}
