package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/plan"
)

// Conservative backfill: the first jobs of the queue, so many as the policy says
// (account.Backfill.Reservations behind the head), each have a start and nodes. From
// EASY, which reserves for the head alone, to conservative backfill, which reserves
// for all (Mu'alem and Feitelson, "Utilization, Predictability, Workloads, and User
// Runtime Estimates in Scheduling the IBM SP2 with Backfilling", 2001).
//
// What a job was promised is never made worse by a job behind it, nor by one that
// ends early: its planned start is moved to an earlier instant where it finds one beside all
// other planned starts, and stays otherwise. Only what comes before it (a job of higher
// priority, or one that could not keep its own planned start because a node is lost) has it
// planned anew.

// isConservative reports whether starts are planned node by node.
func (c *Core) isConservative() bool {
	return c.policy != nil && (c.policy.Backfill.Reservations > 0 && c.backfills() || len(c.reservations) > 0)
}

// backfillState is what is planned node by node, and memory for planning.
//
// Invariant: starts are in queue order, and each can be kept beside all others.
type backfillState struct {
	starts    []*plannedStart
	wasOn     bool      // the last cycle planned node by node
	retracted []Promise // to jobs whose planned starts were taken away
	sweeps    uint64    // of the plan
	displaced bool      // something has come before what is planned
	watch     planWatch

	replanned      []int32 // nodes on which something else is planned, for plan caches
	replannedEpoch uint64  // raised when replanned was begun anew
	idleCaches     []*planCache

	// Scratch.
	except      *plannedStart // all that is planned but this is looked at
	spareStarts []*plannedStart
	front       queueFront
	sketch      nodeTimeline
	from        []Instant
	begins      []Instant
	plain       []Instant
	spans       []plan.Span[Instant]
	avoid       []uint64
}

// maxSweeps bounds how often in one cycle the plan is gone through: one start that
// moves may make room for another. What is left is done in the next cycle.
const maxSweeps = 16

// runConservative is a cycle with reservations node by node.
func (p *schedulingCycle) runConservative() {
	if !p.backfill.wasOn {
		p.backfill.wasOn, p.planDirty = true, true
		p.inheritReservation()
		p.setReservation(headReservation{})
	}
	for _, s := range p.backfill.starts { // it is late, and goes on into what is planned after it
		if s.at <= p.now {
			p.planDirty = true
			for _, pos := range s.pos {
				if s.onNodes && pos >= 0 {
					p.planChangedOn(pos)
				}
			}
		}
	}
	rouse := p.planDirty
	for range maxSweeps {
		if p.planDirty = p.sweepPlan(); !p.planDirty {
			break
		}
		rouse = true
	}
	for sweeps := maxSweeps; ; {
		p.orderPlannedStarts()
		if rouse {
			p.wakeBesidePlan()
			rouse = false
		}
		p.backfillBesidePlan()
		if again := p.reconsiderFlavors(); !again && (sweeps <= 0 || !p.lacksPlannedStart()) {
			return
		}
		sweeps--
		p.planDirty = true
		p.planDirty = p.sweepPlan()
	}
}

// lacksPlannedStart reports whether one of the first jobs has come to the front by what started
// behind it, and nothing is planned for it.
func (p *schedulingCycle) lacksPlannedStart() bool {
	if p.quotas == nil {
		return false
	}
	for it := p.queueFront(); ; {
		switch e := it.next(); {
		case e == nil:
			return false
		case e.planned == nil:
			return true
		}
	}
}

// inheritReservation makes what was reserved for the head alone its planned start, so that its promise is
// kept when others begin to be planned for.
func (p *schedulingCycle) inheritReservation() {
	e := p.queue.jobs[p.plan.job]
	if e == nil || e.blocked || e.planned != nil || p.plan.at == never || p.promised.Job != e.id {
		return
	}
	s := &plannedStart{e: e, at: p.plan.at, claims: p.reservedClaims()}
	e.planned = s
	p.backfill.starts = append(p.backfill.starts, s)
	p.addToNodes(s)
}

// nextPlannedStart is the next instant for which a start is planned; 0: none. Jobs that
// outstay their limits may keep it from coming true, so that it has to be looked at.
// What is planned for the instant right after the cycle waits for just such jobs: it is
// looked at when they end, not by time, which would be for ever at once.
func (c *Core) nextPlannedStart() Instant {
	next := Instant(0)
	for _, s := range c.backfill.starts {
		if s.at > c.clock.lastCycle+1 && s.at != never && (next == 0 || s.at < next) {
			next = s.at
		}
	}
	return next
}

// leaveConservative goes back to a reservation of the head alone.
func (c *Core) leaveConservative() {
	if !c.backfill.wasOn {
		return
	}
	for _, s := range c.backfill.starts {
		c.dropPlannedStart(s.e)
	}
	c.backfill.starts, c.backfill.wasOn, c.planDirty = nil, false, true
	c.plan = headReservation{version: c.plan.version + 1}
}

// sweepPlan goes once through the first jobs of the queue, starts those whose time has
// come, and plans the others. It reports whether that may have made room for one
// that was planned before.
func (p *schedulingCycle) sweepPlan() (moved bool) {
	p.backfill.sweeps++
	p.backfill.displaced = false
	old := p.backfill.starts
	for it := p.queueFront(); ; {
		e := it.next()
		if e == nil {
			break
		}
		switch {
		case e.planned != nil && e.planned.seen == p.backfill.sweeps:
		case !p.passesGates(e.class):
			if p.wakeNextInQueue(e.class) || e.class.headsIndex < 0 { // it does not lead the queue any longer
				it = p.queueFront()
			}
		default:
			l := e.class
			first := it.rank == 1
			started, changed := first && p.preemptFirst(e), false
			if !started {
				started, changed = p.planStart(e, first)
			}
			moved = moved || started || changed
			if p.wakeNextInQueue(l) || started || l.headsIndex < 0 || first && p.preempt.rules != nil { // others may have come to rest
				it = p.queueFront()
			}
		}
	}
	for _, s := range old {
		if s.e.planned == s && s.seen != p.backfill.sweeps { // no longer among the first
			p.dropPlannedStart(s.e)
			moved = true
		}
	}
	head := p.queueFront().next()
	return head != nil && p.startOutranking(head) || moved
}

// planStart plans one job. The first one keeps nodes even where it is not known
// when it can start.
func (p *schedulingCycle) planStart(e *queuedJob, first bool) (started, changed bool) {
	s := e.planned
	known := s != nil
	switch {
	case !known:
		s = &plannedStart{e: e, at: never}
		e.planned = s
		p.backfill.starts = append(p.backfill.starts, s)
		p.displaceBehind()
	case !p.backfill.displaced && !p.planDirty:
		s.seen = p.backfill.sweeps
		return false, false
	}
	s.seen = p.backfill.sweeps
	p.backfill.except = s
	defer func() { p.backfill.except = nil }()
	fits := !s.stale || s.at == never || p.refreshPlan(s)
	keeps := s.at != never && fits && p.keepsPlan(s)
	if s.at != never && !keeps && !p.backfill.displaced {
		p.displaceBehind()
		keeps = fits && p.keepsPlan(s)
	}
	before := never
	if keeps {
		before = s.at
	}
	at, claims := p.earliestStart(e, before)
	until := e.class.latestEnd(p.now)
	if at > p.now {
		if short, end := p.placeShortened(e.class); short != nil {
			at, claims, until = p.now, short, end
		}
	}
	switch {
	case at <= p.now && p.quotaCovers(e.class, claims) && p.limitsPermit(e.class, claims):
		p.backfill.except = nil
		p.startUntil(e, claims, until)
		return true, true
	case at <= p.now: // it rests for a quota or a limit
		p.dropPlannedStart(e)
		return false, true
	case at == never && first && !keeps:
		claims = p.claimsWithoutStart(s)
	case keeps && s.at <= at:
		if !s.onNodes {
			p.addToNodes(s)
			s.cache.setHolds(true)
		}
		return false, false
	}
	changed = known && at != s.at
	p.removeFromNodes(s)
	s.at, s.claims, s.fresh, s.stale = at, claims, true, false
	p.addToNodes(s)
	s.cache.setHolds(at != never)
	if v := s.cache; v != nil && v.replanned == p.backfill.replannedEpoch {
		v.followed = len(p.backfill.replanned) // it says nothing of the planned start itself
	}
	return false, changed
}

// claimsWithoutStart is what is kept for a job that has to wait for jobs without a limit: what
// was kept before, if that will do.
func (p *schedulingCycle) claimsWithoutStart(s *plannedStart) []fleet.Claim {
	free := p.freeDuring(p.fleet.empty, s.e.class, never, never)
	changed := s.stale
	s.stale = false
	if s.at == never && len(s.claims) > 0 && !changed && free.Fits(p.fleet.table, s.claims) {
		return s.claims
	}
	return place.Gang(p.fleet.table, free, s.e.class.kind.shape)
}

// displaceBehind takes the plan away for all that come behind: something has come before
// them that was not there when they were promised their starts.
func (p *schedulingCycle) displaceBehind() {
	p.backfill.displaced = true
	for _, s := range p.backfill.starts {
		if s.seen != p.backfill.sweeps {
			p.removeFromNodes(s)
		}
	}
}

// orderPlannedStarts lists the planned starts in queue order and takes the head's as the reservation.
func (p *schedulingCycle) orderPlannedStarts() {
	old, slots := p.backfill.starts, p.Core.backfill.spareStarts[:0]
	p.backfill.sweeps++
	for it := p.queueFront(); ; {
		e := it.next()
		if e == nil {
			break
		}
		if e.planned != nil {
			e.planned.seen = p.backfill.sweeps
			slots = append(slots, e.planned)
		}
	}
	for _, s := range old {
		if s.e.planned == s && s.seen != p.backfill.sweeps {
			p.dropPlannedStart(s.e)
		}
	}
	p.backfill.starts, p.Core.backfill.spareStarts = slots, old
	next := headReservation{version: p.plan.version}
	if len(slots) > 0 {
		next.job, next.at, next.claims = slots[0].e.id, slots[0].at, slots[0].claims
	}
	p.plan = next
}

// backfillBesidePlan starts jobs behind the first ones where they are in the way of nothing that
// is planned.
func (p *schedulingCycle) backfillBesidePlan() {
	p.wakeOtherQueues()
	backfills, rest := p.backfills(), p.queue.woken[:0]
	for _, l := range p.queue.woken {
		l.awake = false
		switch {
		case l.jobs.len() == 0 || l.waiting != toLookAt:
		case l.jobs.firstJob().planned != nil: // those behind it cannot do better
			p.restForPlan(l)
		case backfills:
			p.addBehindHead(l)
		default:
			l.awake, rest = true, append(rest, l)
		}
	}
	p.Core.queue.woken = rest
	if len(p.backfill.starts) > 0 {
		p.pledgeQuota(p.backfill.starts[0].e.class)
	}
	p.tryBehindHead()
	p.releasePledges()
	p.wakeAllLed()
}

// tryBesidePlan starts a job that is in the way of nothing planned.
func (p *schedulingCycle) tryBesidePlan(l *jobClass, e *queuedJob) bool {
	until := l.latestEnd(p.now)
	if p.plan.job != 0 && until > p.plan.at && p.crowdsHead(l) {
		p.restClass(l, forPlan, reason.Reason{Code: reason.Reserved, Job: uint64(p.plan.job)})
		l.waitsForHead = true
		return false
	}
	claims := p.placeNowOnce(l, until)
	if claims == nil {
		claims, until = p.placeShortened(l)
	}
	if claims != nil {
		if !p.quotaCovers(l, claims) || !p.limitsPermit(l, claims) {
			return false
		}
		p.startUntil(e, claims, until)
		return true
	}
	if !l.kind.full {
		p.depth--
	}
	p.restForPlan(l)
	return false
}

// restForPlan has a class rest whose first job could not start.
func (p *schedulingCycle) restForPlan(l *jobClass) {
	if l.kind.full {
		p.restClass(l, forNodes, p.missingReason(l))
		return
	}
	why, kept := p.excludingReservation(l)
	if !kept {
		why = p.planConflict(l.jobs.firstJob())
	}
	p.restClass(l, forPlan, why)
	l.waitsForHead = false
}

// planConflict is why a job that would fit now is not started.
func (p *schedulingCycle) planConflict(e *queuedJob) reason.Reason {
	for _, s := range p.backfill.starts {
		if s.e != e && s.onNodes {
			return reason.Reason{Code: reason.Reserved, Job: uint64(s.e.id)}
		}
	}
	return reason.Reason{Code: reason.Resources, Resource: "nodes"}
}

// promisePlannedStarts tells each job for which something is planned what that is, if it has
// changed, and those for which nothing is planned any more that they have lost it.
func (c *Core) promisePlannedStarts(out []Decision) []Decision {
	if old := c.promised.Job; old != 0 { // as long as the head alone had a reservation
		c.backfill.retracted = append(c.backfill.retracted, c.promised)
		c.promised = Promise{}
	}
	for i, old := range c.backfill.retracted {
		switch e := c.queue.jobs[old.Job]; {
		case e == nil:
		case e.planned == nil:
			if !slices.ContainsFunc(c.backfill.retracted[:i], func(o Promise) bool { return o.Job == old.Job }) { // once, however often it was planned in between
				out = append(out, Promise{Job: old.Job})
			}
		case e.planned.told.Job == 0: // planned anew
			e.planned.told = old
		}
	}
	c.backfill.retracted = c.backfill.retracted[:0]
	for _, s := range c.backfill.starts {
		if !s.fresh && s.told.Job != 0 {
			continue
		}
		s.fresh = false
		next := Promise{Job: s.e.id, Nodes: s.nodeNames()}
		if s.at != never {
			next.At = s.at
		}
		if old := s.told; old.At == next.At && slices.Equal(old.Nodes, next.Nodes) {
			continue
		}
		s.told = next
		out = append(out, next)
	}
	if !c.backfill.wasOn {
		return c.tellPromise(out)
	}
	return out
}

// queueFront goes through the first jobs of the queue in order.
type queueFront struct {
	heads heads
	left  int
	inner int // of jobs inside reservations that are still to come
	rank  int // of the job that next returned last, from 1 on
	queue []frontItem
}

// frontItem is a job by where it stands: in its class, and the class among the heads.
type frontItem struct {
	job *queuedJob
	at  int32
}

// queueFront begins with the first job. There is one at a time.
func (p *schedulingCycle) queueFront() *queueFront {
	f := &p.Core.backfill.front
	*f = queueFront{heads: p.queue.heads, left: 1 + p.policy.Backfill.Reservations, queue: f.queue[:0]}
	f.inner = f.left
	if len(f.heads) > 0 {
		f.push(frontItem{f.heads[0].jobs.firstJob(), 0})
	}
	return f
}

func (f *queueFront) push(x frontItem) {
	q := append(f.queue, x)
	i := len(q) - 1
	for i > 0 && x.job.compareOrder(q[(i-1)/2].job) < 0 {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i], f.queue = x, q
}

func (f *queueFront) pop() frontItem {
	q := f.queue
	first, last := q[0], len(q)-1
	x := q[last]
	q = q[:last]
	for i := 0; last > 0; {
		child := 2*i + 1
		if child+1 < last && q[child+1].job.compareOrder(q[child].job) < 0 {
			child++
		}
		if child >= last || x.job.compareOrder(q[child].job) < 0 {
			q[i] = x
			break
		}
		q[i] = q[child]
		i = child
	}
	f.queue = q
	return first
}

// maxFront bounds how many jobs are looked at that get no planned start.
const maxFront = 10_000

// next is the next job for which something is kept, or nil.
func (f *queueFront) next() *queuedJob {
	for looked := 0; f.left > 0 && len(f.queue) > 0 && looked < maxFront; looked++ {
		e := f.nextInOrder()
		left := &f.left
		if e.class.ownReservation() != nil { // what waits in a reservation keeps nobody outside from a start of his own
			left = &f.inner
		}
		if *left > 0 && e.mayReserve() {
			*left--
			f.rank++
			return e
		}
	}
	return nil
}

func (f *queueFront) nextInOrder() *queuedJob {
	x := f.pop()
	l := x.job.class
	if x.at == 0 {
		for child := 2*l.headsIndex + 1; child <= 2*l.headsIndex+2 && child < len(f.heads); child++ {
			f.push(frontItem{f.heads[child].jobs.firstJob(), 0})
		}
	}
	if next := int(x.at) + 1; next < l.jobs.len() {
		f.push(frontItem{l.jobs.allJobs()[next], int32(next)})
	}
	return x.job
}
