package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/plan"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// Reservations by name: the first jobs of the queue, so many as the policy says
// (account.Backfill.Reservations behind the head), each have a start and nodes. From
// EASY, which reserves for the head alone, to conservative backfill, which reserves
// for all (Mu'alem and Feitelson, "Utilization, Predictability, Workloads, and User
// Runtime Estimates in Scheduling the IBM SP2 with Backfilling", 2001).
//
// What a job was promised is never made worse by a job behind it, nor by one that
// ends early: its slot is moved to an earlier instant where it finds one beside all
// other slots, and stays otherwise. Only what comes before it (a job of higher
// priority, or one that could not keep its own slot because a node is lost) has it
// planned anew.

// byName reports whether starts are planned by name.
func (c *Core) byName() bool {
	return c.policy != nil && (c.policy.Backfill.Reservations > 0 && !c.policy.Backfill.Off && !c.cfg.NoBackfill || len(c.advances) > 0)
}

// scratch is memory for planning by name.
type scratch struct {
	anew   bool  // something has come before what is planned
	but    *slot // what is planned but this is looked at
	from   []Instant
	begins []Instant
	plain  []Instant
	some   []plan.Span[Instant]
	avoid  []uint64

	cleared []int32           // cells of nodes on which something became free
	most    []resource.Amount // of each resource that a queue could be given
	turns   []*line           // that could have the turn, and what they would be charged
	wanted  []quota.Entry
}

// maxSweeps bounds how often in one pass the plan is gone through: one slot that
// moves may make room for another. What is left is done in the next pass.
const maxSweeps = 16

// named is a pass with reservations by name.
func (p *pass) named() {
	if !p.wasNamed {
		p.wasNamed, p.shaken = true, true
		p.inherit()
		p.replan(reservation{})
	}
	for _, s := range p.slots { // it is late, and goes on into what is planned after it
		if s.at <= p.now {
			p.shaken = true
			for _, pos := range s.pos {
				if s.rooted && pos >= 0 {
					p.stir(pos)
				}
			}
		}
	}
	rouse := p.shaken
	for range maxSweeps {
		if p.shaken = p.sweep(); !p.shaken {
			break
		}
		rouse = true
	}
	for sweeps := maxSweeps; ; {
		p.lead()
		if rouse {
			p.rouseBeside()
			rouse = false
		}
		p.pack()
		if again := p.reconsider(); !again && (sweeps <= 0 || !p.slotless()) {
			return
		}
		sweeps--
		p.shaken = true
		p.shaken = p.sweep()
	}
}

// slotless reports whether one of the first jobs has come to the front by what started
// behind it, and nothing is planned for it.
func (p *pass) slotless() bool {
	if p.quotas == nil {
		return false
	}
	for it := p.front(); ; {
		switch e := it.next(); {
		case e == nil:
			return false
		case e.slot == nil:
			return true
		}
	}
}

// inherit makes what was reserved for the head alone its slot, so that its promise is
// kept when others begin to be planned for.
func (p *pass) inherit() {
	e := p.queued[p.plan.job]
	if e == nil || e.blocked || e.slot != nil || p.plan.at == never || p.promised.Job != e.id {
		return
	}
	s := &slot{e: e, at: p.plan.at, claims: p.reserved()}
	e.slot = s
	p.slots = append(p.slots, s)
	p.root(s)
}

// nextSlot is the next instant for which a start is planned; 0: none. Jobs that
// outstay their limits may keep it from coming true, so that it has to be looked at.
// What is planned for the instant right after the pass waits for just such jobs: it is
// looked at when they end, not by time, which would be for ever at once.
func (c *Core) nextSlot() Instant {
	next := Instant(0)
	for _, s := range c.slots {
		if s.at > c.passed+1 && s.at != never && (next == 0 || s.at < next) {
			next = s.at
		}
	}
	return next
}

// unname goes back to a reservation of the head alone.
func (c *Core) unname() {
	if !c.wasNamed {
		return
	}
	for _, s := range c.slots {
		c.unslot(s.e)
	}
	c.slots, c.wasNamed, c.shaken = nil, false, true
	c.plan = reservation{version: c.plan.version + 1}
}

// sweep goes once through the first jobs of the queue, starts those whose time has
// come, and plans the others. It reports whether that may have made room for one
// that was planned before.
func (p *pass) sweep() (moved bool) {
	p.sweeps++
	p.anew = false
	old := p.slots
	for it := p.front(); ; {
		e := it.next()
		if e == nil {
			break
		}
		switch {
		case e.slot != nil && e.slot.seen == p.sweeps:
		case !p.ready(e.line):
			if p.lookedAt(e.line) || e.line.place < 0 { // it does not lead the queue any longer
				it = p.front()
			}
		default:
			l := e.line
			first := it.rank == 1
			started, changed := first && p.seize(e), false
			if !started {
				started, changed = p.settleSlot(e, first)
			}
			moved = moved || started || changed
			if p.lookedAt(l) || started || l.place < 0 || first && p.preemption != nil { // others may have come to rest
				it = p.front()
			}
		}
	}
	for _, s := range old {
		if s.e.slot == s && s.seen != p.sweeps { // no longer among the first
			p.unslot(s.e)
			moved = true
		}
	}
	head := p.front().next()
	return head != nil && p.overtake(head) || moved
}

// settleSlot plans one job. The first one keeps nodes even where it is not known
// when it can start.
func (p *pass) settleSlot(e *entry, first bool) (started, changed bool) {
	s := e.slot
	known := s != nil
	switch {
	case !known:
		s = &slot{e: e, at: never}
		e.slot = s
		p.slots = append(p.slots, s)
		p.displace()
	case !p.anew && !p.shaken:
		s.seen = p.sweeps
		return false, false
	}
	s.seen = p.sweeps
	p.but = s
	defer func() { p.but = nil }()
	fits := !s.stale || s.at == never || p.refresh(s)
	keeps := s.at != never && fits && p.keeps(s)
	if s.at != never && !keeps && !p.anew {
		p.displace()
		keeps = fits && p.keeps(s)
	}
	before := never
	if keeps {
		before = s.at
	}
	at, claims := p.earliestOf(e, before)
	until := e.line.finish(p.now)
	if at > p.now {
		if short, end := p.shorter(e.line); short != nil {
			at, claims, until = p.now, short, end
		}
	}
	switch {
	case at <= p.now && p.covered(e.line, claims) && p.permitted(e.line, claims):
		p.but = nil
		p.startUntil(e, claims, until)
		return true, true
	case at <= p.now: // it rests for a quota or a limit
		p.unslot(e)
		return false, true
	case at == never && first && !keeps:
		claims = p.atLast(s)
	case keeps && s.at <= at:
		if !s.rooted {
			p.root(s)
			s.prospect.regard(true)
		}
		return false, false
	}
	changed = known && at != s.at
	p.uproot(s)
	s.at, s.claims, s.fresh, s.stale = at, claims, true, false
	p.root(s)
	s.prospect.regard(at != never)
	if v := s.prospect; v != nil && v.replanned == p.replanned {
		v.followed = len(p.restood) // it says nothing of the slot itself
	}
	return false, changed
}

// atLast is what is kept for a job that has to wait for jobs without a limit: what
// was kept before, if that will do.
func (p *pass) atLast(s *slot) []fleet.Claim {
	free := p.during(p.empty, s.e.line, never, never)
	changed := s.stale
	s.stale = false
	if s.at == never && len(s.claims) > 0 && !changed && free.Fits(p.table, s.claims) {
		return s.claims
	}
	return place.Gang(p.table, free, s.e.line.kind.shape)
}

// displace takes the plan away for all that come behind: something has come before
// them that was not there when they were promised their starts.
func (p *pass) displace() {
	p.anew = true
	for _, s := range p.slots {
		if s.seen != p.sweeps {
			p.uproot(s)
		}
	}
}

// lead lists the slots in queue order and takes the head's as the reservation.
func (p *pass) lead() {
	old, slots := p.slots, p.Core.others[:0]
	p.sweeps++
	for it := p.front(); ; {
		e := it.next()
		if e == nil {
			break
		}
		if e.slot != nil {
			e.slot.seen = p.sweeps
			slots = append(slots, e.slot)
		}
	}
	for _, s := range old {
		if s.e.slot == s && s.seen != p.sweeps {
			p.unslot(s.e)
		}
	}
	p.slots, p.Core.others = slots, old
	next := reservation{version: p.plan.version}
	if len(slots) > 0 {
		next.job, next.at, next.claims = slots[0].e.id, slots[0].at, slots[0].claims
	}
	p.plan = next
}

// pack starts jobs behind the first ones where they are in the way of nothing that
// is planned.
func (p *pass) pack() {
	p.loosenRest()
	backfills, rest := !p.policy.Backfill.Off && !p.cfg.NoBackfill, p.woken[:0]
	for _, l := range p.woken {
		l.awake = false
		switch {
		case l.jobs.len() == 0 || l.rest != active:
		case l.jobs.first().slot != nil: // those behind it cannot do better
			p.restPlanned(l)
		case backfills:
			p.enter(l)
		default:
			l.awake, rest = true, append(rest, l)
		}
	}
	p.Core.woken = rest
	if len(p.slots) > 0 {
		p.pledge(p.slots[0].e.line)
	}
	p.drain()
	p.unpledge()
	p.loosenAll()
}

// tryNamed starts a job that is in the way of nothing planned.
func (p *pass) tryNamed(l *line, e *entry) bool {
	until := l.finish(p.now)
	if p.plan.job != 0 && until > p.plan.at && p.crowds(l) {
		p.rest(l, forPlan, reason.Reason{Code: reason.Reserved, Job: uint64(p.plan.job)})
		l.heeds = true
		return false
	}
	claims := p.beginOnce(l, until)
	if claims == nil {
		claims, until = p.shorter(l)
	}
	if claims != nil {
		if !p.covered(l, claims) || !p.permitted(l, claims) {
			return false
		}
		p.startUntil(e, claims, until)
		return true
	}
	if !l.kind.full {
		p.depth--
	}
	p.restPlanned(l)
	return false
}

// restPlanned has a line rest whose first job could not start.
func (p *pass) restPlanned(l *line) {
	if l.kind.full {
		p.rest(l, forRoom, p.missing(l))
		return
	}
	why, kept := p.keeper(l)
	if !kept {
		why = p.inTheWay(l.jobs.first())
	}
	p.rest(l, forPlan, why)
	l.heeds = false
}

// inTheWay is why a job that would fit now is not started.
func (p *pass) inTheWay(e *entry) reason.Reason {
	for _, s := range p.slots {
		if s.e != e && s.rooted {
			return reason.Reason{Code: reason.Reserved, Job: uint64(s.e.id)}
		}
	}
	return reason.Reason{Code: reason.Resources, Resource: "nodes"}
}

// promiseAll tells each job for which something is planned what that is, if it has
// changed, and those for which nothing is planned any more that they have lost it.
func (c *Core) promiseAll(out []Decision) []Decision {
	if old := c.promised.Job; old != 0 { // as long as the head alone had a reservation
		c.retracted = append(c.retracted, c.promised)
		c.promised = Promise{}
	}
	for i, old := range c.retracted {
		switch e := c.queued[old.Job]; {
		case e == nil:
		case e.slot == nil:
			if !slices.ContainsFunc(c.retracted[:i], func(o Promise) bool { return o.Job == old.Job }) { // once, however often it was planned in between
				out = append(out, Promise{Job: old.Job})
			}
		case e.slot.told.Job == 0: // planned anew
			e.slot.told = old
		}
	}
	c.retracted = c.retracted[:0]
	for _, s := range c.slots {
		if !s.fresh && s.told.Job != 0 {
			continue
		}
		s.fresh = false
		next := Promise{Job: s.e.id, Nodes: s.nodes()}
		if s.at != never {
			next.At = s.at
		}
		if old := s.told; old.At == next.At && slices.Equal(old.Nodes, next.Nodes) {
			continue
		}
		s.told = next
		out = append(out, next)
	}
	if !c.wasNamed {
		return c.promise(out)
	}
	return out
}

// front goes through the first jobs of the queue in order.
type front struct {
	heads heads
	left  int
	inner int // of jobs inside reservations that are still to come
	rank  int // of the job that next returned last, from 1 on
	queue []stand
}

// stand is a job by where it stands: in its line, and the line among the heads.
type stand struct {
	job *entry
	at  int32
}

// front begins with the first job. There is one at a time.
func (p *pass) front() *front {
	f := &p.Core.first
	*f = front{heads: p.heads, left: 1 + p.policy.Backfill.Reservations, queue: f.queue[:0]}
	f.inner = f.left
	if len(f.heads) > 0 {
		f.push(stand{f.heads[0].jobs.first(), 0})
	}
	return f
}

func (f *front) push(x stand) {
	q := append(f.queue, x)
	i := len(q) - 1
	for i > 0 && x.job.before(q[(i-1)/2].job) < 0 {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i], f.queue = x, q
}

func (f *front) pop() stand {
	q := f.queue
	first, last := q[0], len(q)-1
	x := q[last]
	q = q[:last]
	for i := 0; last > 0; {
		child := 2*i + 1
		if child+1 < last && q[child+1].job.before(q[child].job) < 0 {
			child++
		}
		if child >= last || x.job.before(q[child].job) < 0 {
			q[i] = x
			break
		}
		q[i] = q[child]
		i = child
	}
	f.queue = q
	return first
}

// maxFront bounds how many jobs are looked at that get no slot.
const maxFront = 10_000

// next is the next job for which something is kept, or nil.
func (f *front) next() *entry {
	for looked := 0; f.left > 0 && len(f.queue) > 0 && looked < maxFront; looked++ {
		e := f.step()
		left := &f.left
		if e.line.inside() != nil { // what waits in a reservation keeps nobody outside from a start of his own
			left = &f.inner
		}
		if *left > 0 && e.reserves() {
			*left--
			f.rank++
			return e
		}
	}
	return nil
}

func (f *front) step() *entry {
	x := f.pop()
	l := x.job.line
	if x.at == 0 {
		for child := 2*l.place + 1; child <= 2*l.place+2 && child < len(f.heads); child++ {
			f.push(stand{f.heads[child].jobs.first(), 0})
		}
	}
	if next := int(x.at) + 1; next < l.jobs.len() {
		f.push(stand{l.jobs.all()[next], int32(next)})
	}
	return x.job
}
