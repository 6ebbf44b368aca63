package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// schedulingCycle looks once at the queue: it starts what may start, in order, makes the
// reservation of the first job that cannot, and fills the holes behind it. Classes
// that rest are passed over.
type schedulingCycle struct {
	*Core
	now           Instant
	order         order // classes behind the head that are looked at and have no quota; those with one are in order of their queues
	out           []Decision
	extra         extraNodes    // built for jobs that are not placed on cells
	headMovesLeft int           // times that the head's nodes may still be changed for one of these
	depth         int           // kinds that may still be tried
	pledges       []quotaPledge // quota that is kept for jobs that wait for room
	first         bool          // what is looked at stands before the first job that cannot start
	triedFlavors  []int32       // flavours in which the job that is looked at cannot start
	plansChecked  uint64        // generation when what is planned was looked at last (withdrawBarredPlans)
}

// maxMoves bounds how often a cycle tries to move the head's reservation to other
// nodes for the sake of a job behind it.
const maxMoves = 16

func (p *schedulingCycle) runCycle() {
	p.depth = p.cfg.Depth
	if p.policy != nil && p.policy.Backfill.Depth > 0 {
		p.depth = p.policy.Backfill.Depth
	}
	if p.depth == 0 {
		p.depth = 500
	}
	if p.runAsSlurm() {
		p.Core.elastic.limitedUntil = 0 // nothing grows
		return
	}
	p.plansChecked = p.generation
	anew := true
	for again := true; again; again = p.resumeSuspended() || p.claimsMayChange() || p.withdrawBarredPlans() || p.preemptLate() || p.shrinkForWaiting() || p.growElastic() {
		p.startNominated()
		p.resumeSuspended()
		p.wakeForLimits(anew)
		anew = false
		p.wakeFreed()
		if p.isConservative() {
			p.runConservative()
			continue
		}
		p.leaveConservative()
		p.tryReserved()
		p.startInOrder()
		for p.reconsiderFlavors() {
			p.startInOrder()
		}
	}
	p.alternateTurns()
	p.explainEndless()
}

// backfills reports whether jobs behind the head are let past it.
func (c *Core) backfills() bool {
	return !c.cfg.NoBackfill && (c.policy == nil || !c.policy.Backfill.Off)
}

// startInOrder starts what may start.
func (p *schedulingCycle) startInOrder() {
	head, at := p.startUpToHead()
	for head != nil && p.startOutranking(head) {
		head, at = p.startUpToHead()
	}
	if head == nil {
		p.dropReservation()
		return
	}
	before := p.plan
	p.reserveHead(head)
	p.notePosition(head, at, &before)
	p.restClass(head.class, forNodes, p.missingReason(head.class))
	if p.backfills() {
		p.pledgeQuota(head.class)
		p.backfillBehindHead()
		p.releasePledges()
	}
}

// wakeFreed wakes the classes that rest for what has become free.
func (p *schedulingCycle) wakeFreed() {
	p.wakeForQuota()
	if len(p.fleet.freed) == 0 {
		return
	}
	cells := p.fleet.freedCells[:0]
	var room [4]string // pools in which something became free
	pools := room[:0]
	for _, pos := range p.fleet.freed {
		if pool := p.fleet.table.Node(int(pos)).Pool; !slices.Contains(pools, pool) {
			pools = append(pools, pool)
		}
		if id := p.fleet.cells.Of(int(pos)); id >= 0 && !slices.Contains(cells, id) {
			cells = append(cells, id)
		}
	}
	p.fleet.freedCells = cells
	p.Core.fleet.freed = p.fleet.freed[:0]
	var opened []*kind
	for _, k := range p.queue.kinds {
		if k.full && k.servedBy(pools) && p.anyCellServes(k, cells) {
			k.full = false
			opened = append(opened, k)
			for _, l := range k.classes {
				if l.waiting == forNodes {
					p.wakeBarred(l)
				}
			}
		}
	}
	p.wakeForFlavors(func(k *kind) bool { return slices.Contains(opened, k) })
	p.wakePlanned()
}

// servedBy reports whether one of the pools may hold a kind.
func (k *kind) servedBy(pools []string) bool {
	return len(k.shape.Pools) == 0 || slices.ContainsFunc(pools, k.shape.In)
}

// anyCellServes reports whether one of the cells could take part in a kind.
func (p *schedulingCycle) anyCellServes(k *kind, cells []int32) bool {
	q := p.quickPlacement(k)
	if q == nil {
		return len(cells) > 0
	}
	for _, id := range cells {
		if q.Candidate(id) {
			return true
		}
	}
	return false
}

// wakePlanned wakes the classes that rest for the plan.
func (p *schedulingCycle) wakePlanned() {
	for _, l := range p.queue.forPlan {
		if l.waiting == forPlan {
			p.wakeClass(l)
		}
	}
	p.Core.queue.forPlan = p.queue.forPlan[:0]
}

// tryReserved tries the job with the reservation before all others, by its identity: on
// the nodes promised to it if it finds no better ones.
func (p *schedulingCycle) tryReserved() {
	e := p.queue.jobs[p.plan.job]
	if e == nil || e.blocked || p.yieldToOutranking(e) {
		return
	}
	if e.class.jobs.firstJob() != e && e.class.quotaDemand != nil && e.class.quotaDemand.queue.strict || !p.passesGates(e.class) {
		return
	}
	claims := p.placeFree(e.class.kind)
	if claims == nil && p.plan.claims != nil && p.fleet.state.Fits(p.fleet.table, p.plan.claims) {
		claims = p.plan.claims
	}
	if claims != nil && p.beyondQuota(e.class, claims).Amount == 0 && p.limitsPermit(e.class, claims) {
		p.startJob(e, claims)
	}
}

// startUpToHead starts jobs in queue order up to the first that cannot start, which it
// returns, and where that stands. Jobs that the fleet can never take, that a limit
// stops, or for which nothing may be kept, are passed over.
func (p *schedulingCycle) startUpToHead() (*queuedJob, queuePosition) {
	for len(p.queue.heads) > 0 {
		at := positionOf(p.queue.heads[0].jobs.firstJob())
		l := p.classInTurn(p.queue.heads[0])
		p.first = true
		ready := p.passesGates(l)
		p.first = false
		if !ready {
			p.reclaimQuota(l)
			continue
		}
		e := l.jobs.firstJob()
		if p.yieldToOutranking(e) {
			continue
		}
		claims := p.placeFree(l.kind)
		if claims == nil && (p.preemptFor(e) || p.defragFor(e)) {
			continue
		}
		if claims == nil && e.mayReserve() {
			return e, at
		}
		if claims == nil {
			p.removeFromHeads(l)
			p.restClass(l, forNodes, p.missingReason(l))
			continue
		}
		if !p.quotaCovers(l, claims) || !p.limitsPermit(l, claims) {
			continue
		}
		p.startJob(e, claims)
		p.planDirty = true // it may outlast the promised instant: it is before the head
	}
	return nil, queuePosition{}
}

// restClass notes that a class's first job cannot start before something changes.
func (p *schedulingCycle) restClass(l *jobClass, for_ waitState, why reason.Reason) {
	l.waiting, l.why = for_, why
	p.touchClass(l)
	switch for_ {
	case forPlan:
		p.Core.queue.forPlan = append(p.queue.forPlan, l)
	case forQuota:
		l.listForQuota()
	}
}

// backfillBehindHead starts jobs behind the head that do not delay it.
func (p *schedulingCycle) backfillBehindHead() {
	head := p.queue.jobs[p.plan.job].class
	for _, l := range p.queue.woken {
		l.awake = false
		if l.jobs.len() > 0 && l.waiting == toLookAt && l != head {
			p.addBehindHead(l)
		}
	}
	p.Core.queue.woken = p.queue.woken[:0]
	p.tryBehindHead()
}

// addFollower adds a class that may go on after another one.
func (p *schedulingCycle) addFollower(l *jobClass) {
	if l.behindIndex < 0 && l.jobs.len() > 0 && l.waiting == toLookAt {
		p.addBehindHead(l)
	}
}

// addBehindHead adds a class to those that are looked at behind the head.
func (p *schedulingCycle) addBehindHead(l *jobClass) {
	if l.quotaDemand == nil {
		p.order.fixPosition(l)
		return
	}
	q := l.quotaDemand.queue
	if q.order.fixPosition(l); !q.behind {
		q.behind = true
		p.quotas.behind = append(p.quotas.behind, q)
	}
}

// orderBehindHead is the order that a class stands in behind the head.
func (p *schedulingCycle) orderBehindHead(l *jobClass) *order {
	if l.quotaDemand == nil {
		return &p.order
	}
	return &l.quotaDemand.queue.order
}

// nextBehindHead is the class that goes first of those behind the head; nil: none is left.
func (p *schedulingCycle) nextBehindHead() *jobClass {
	best := p.order.firstClass()
	if p.quotas == nil {
		return best
	}
	p.quotas.behind = slices.DeleteFunc(p.quotas.behind, func(q *quotaQueue) bool {
		l := q.order.firstClass()
		if l != nil && (best == nil || l.goesBefore(best)) {
			best = l
		}
		q.behind = l != nil
		return l == nil
	})
	return best
}

// tryBehindHead looks at the classes behind the head in order.
func (p *schedulingCycle) tryBehindHead() {
	for l := p.nextBehindHead(); l != nil; l = p.nextBehindHead() {
		l = p.classInTurn(l)
		if p.tryClass(l) {
			p.orderBehindHead(l).fixPosition(l) // its next job
		} else {
			p.orderBehindHead(l).remove(l)
		}
		if p.wakeNextInQueue(l) {
			p.addFollower(l.quotaDemand.queue.leader)
		}
	}
}

// tryClass tries the first job of a class and reports whether it started.
func (p *schedulingCycle) tryClass(l *jobClass) bool {
	switch {
	case !p.passesGates(l):
	case p.depth == 0:
		p.wakeClass(l) // next time
		p.touchClass(l)
	default:
		e := l.jobs.firstJob()
		started := p.tryJob(l, e)
		for !started && (l.waiting == forNodes || l.waiting == forPlan) && p.tryNextFlavor(l) {
			started = p.tryJob(l, e)
		}
		p.resetFlavor(l, started)
		return started
	}
	return false
}

// tryJob starts a job if it ends before the head is to start, or leaves the head its
// start at that instant.
func (p *schedulingCycle) tryJob(l *jobClass, e *queuedJob) bool {
	var claims []fleet.Claim
	if p.backfill.wasOn {
		return p.tryBesidePlan(l, e)
	}
	ends := l.limit > 0 && endAfter(p.now, l.limit) <= p.plan.at
	if !ends && p.crowdsHead(l) && p.plan.at-p.now < Instant(l.key.least) {
		p.restClass(l, forPlan, reason.Reason{Code: reason.Reserved, Job: uint64(p.plan.job)})
		return false
	}
	if ends {
		claims = p.placeFree(l.kind)
	} else {
		claims = p.placeBesideHead(l.kind)
	}
	until := endAfter(p.now, l.limit)
	if claims == nil {
		claims, until = p.placeShortened(l)
	}
	switch {
	case claims != nil && (!p.quotaCovers(l, claims) || !p.limitsPermit(l, claims)):
	case claims != nil:
		p.startUntil(e, claims, until)
		return true
	case l.kind.full:
		p.restClass(l, forNodes, p.missingReason(l))
	default:
		p.depth--
		p.restClass(l, forPlan, reason.Reason{Code: reason.Reserved, Job: uint64(p.plan.job)})
	}
	return false
}

// missingReason is why a shape does not fit now. It is worked out where it may have to
// be told.
func (p *schedulingCycle) missingReason(l *jobClass) reason.Reason {
	if l.why.Code == reason.Resources && l.leader == l.jobs.firstJob() && l.why.Job == 0 {
		return l.why
	}
	if q := p.quickPlacement(l.kind); q != nil {
		return p.nameHolder(q.Missing())
	}
	if all := place.Missing(p.fleet.table, p.fleet.state, l.kind.shape); len(all) > 0 {
		return p.nameHolder(all[0])
	}
	return reason.Reason{Code: reason.Resources, Resource: "nodes"}
}

// startJob takes a job out of the queue and holds its claims.
func (p *schedulingCycle) startJob(e *queuedJob, claims []fleet.Claim) {
	p.startUntil(e, claims, e.class.latestEnd(p.now))
}

func (p *schedulingCycle) startUntil(e *queuedJob, claims []fleet.Claim, until Instant) {
	p.startBefore(e, claims, until, 0)
}

// startBefore starts a job that is to end at an instant; tail is how long those may go on
// after it that are suspended for it.
func (p *schedulingCycle) startBefore(e *queuedJob, claims []fleet.Claim, until, tail Instant) {
	if e.id == p.plan.job {
		p.dropReservation()
	}
	if p.policy == nil || p.policy.Compat == "" {
		claims = p.fleet.table.InRankOrder(claims)
	}
	terms, license := p.policyAtStart(e)
	flavors := p.flavorsFor(e)
	rank := e.readPriority()
	p.dropQueued(e)
	r := &run{
		id: e.id, spec: e.spec, policy: terms, claims: claims,
		began: p.now, pause: runPause{turn: p.now, tail: tail}, until: addTime(until, tail), flavors: flavors,
		license: license, priority: e.priority, rank: rank, submitted: e.at,
		move: runMove{askedAt: e.moved},
	}
	r.waits = r.isAggregate()
	p.holdRun(r)
	p.extra.takeStarted(p, claims, r.until)
	if until == never {
		until = 0
	}
	p.out = append(p.out, Start{Job: e.id, Claims: claims, Until: until, Flavors: r.flavors, License: license})
}

// extraNodes is what is free for a job that outlasts the head's instant, where that has
// to be looked at node by node.
type extraNodes struct {
	after *index.State // free at that instant beside what is reserved; nil: not built
	both  *index.State // free both now and then
}

// takeStarted counts what starts.
func (r *extraNodes) takeStarted(p *schedulingCycle, claims []fleet.Claim, until Instant) {
	if r.after == nil {
		return
	}
	if until > p.plan.at || until == never {
		r.after.Take(p.fleet.table, claims)
	}
	for i := range claims {
		r.both.Copy(p.fleet.state, r.after, p.fleet.table.Find(claims[i].Key()))
	}
}
