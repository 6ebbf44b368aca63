package sched

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// This file decides, for trees of quotas, which of their classes is looked at next, and
// what their classes rest for.
//
// A tree stands in the queue where its first job stands. Which of its queues goes
// then is for the tree to say (quota.First): in a fair tree the one whose share would
// be the smallest, in others the one that has it from its own quota. Of each queue
// only the first job is looked at. A job that was promised a start keeps the turn.

// classInTurn returns the class that is looked at in the place of one: out of those behind the
// head if that is one of them, else out of those that could lead the queue.
func (p *schedulingCycle) classInTurn(l *jobClass) *jobClass {
	behind := l.behindIndex >= 0
	if holder := p.reservedClass(l); holder != nil && (holder.behindIndex >= 0 || !behind && holder.headsIndex >= 0) {
		return holder
	}
	if l.quotaDemand == nil {
		return l
	}
	lines := p.quotas.turns[:0]
	for _, q := range l.quotaDemand.queue.tree.queues {
		x := q.heads.firstClass()
		if behind {
			x = q.order.firstClass()
		}
		if x == nil {
			continue
		}
		if q.strict && p.leaderOf(q) != x {
			return x // it rests
		}
		if !p.quotaSuits(x) {
			return x // so does this
		}
		lines = append(lines, x)
	}
	p.quotas.turns = lines
	if len(lines) < 2 {
		return lines[0]
	}
	entries := p.quotas.wanted[:0]
	for _, x := range lines {
		entries = append(entries, quota.Entry{Queue: x.quotaDemand.queue.node, Charges: x.quotaDemand.got.Charges, Level: x.quotaDemand.got.Level})
	}
	p.quotas.wanted = entries
	return lines[p.quotas.afterReleases(p.Core).First(entries, func(i, j int) bool { return lines[i].goesBefore(lines[j]) })]
}

// quotaSuits reports whether a class's quota reaches for its first job, and settles on what that
// would take of it. It is not asked again before something is charged or given back.
func (p *schedulingCycle) quotaSuits(l *jobClass) bool {
	s, at := l.quotaDemand, [2]uint64{p.quotas.changes, p.fleet.version}
	if s.suited == at && !s.queue.triesNextFlavor {
		return true
	}
	s.got = p.assignFlavors(l)
	if s.got.Mode != quota.Fit {
		return false
	}
	s.suited = at
	return true
}

// queuePosition is a place in the queue. A job whose tree gave it the turn of another one
// stands where that one stood, and it stays there once it was promised a start: else
// the promise would be taken back when the other one starts.
type queuePosition struct {
	Job      job.ID // 0: none
	Tier     int32
	Priority int64
	At       Instant
}

func positionOf(e *queuedJob) queuePosition {
	return queuePosition{e.id, e.class.key.policy.tier, e.currentPriority(), e.at}
}

func (s queuePosition) comparePosition(o queuePosition) int {
	return cmp.Or(cmp.Compare(o.Tier, s.Tier), cmp.Compare(o.Priority, s.Priority), cmp.Compare(s.At, o.At), cmp.Compare(s.Job, o.Job))
}

// reservedClass is the class whose first job has a reservation, if it still goes first in its
// queue and no job stands before its station; nil: there is none.
func (p *schedulingCycle) reservedClass(top *jobClass) *jobClass {
	e := p.queue.jobs[p.plan.job]
	if e == nil || e.blocked || p.plan.position.Job == 0 || p.plan.position.comparePosition(positionOf(top.jobs.firstJob())) > 0 {
		return nil
	}
	if e.class.quotaDemand == nil || e.class.jobs.firstJob() != e || e.class.quotaDemand.queue.heads.firstClass() != e.class {
		return nil
	}
	return e.class
}

// notePosition notes where the head stands that has the reservation now; before is the
// reservation that there was.
func (p *schedulingCycle) notePosition(head *queuedJob, at queuePosition, before *headReservation) {
	if head.class.quotaDemand == nil {
		return
	}
	if before.job == head.id && before.position.Job != 0 && before.position.comparePosition(at) < 0 {
		at = before.position
	}
	p.plan.position = at
}

func hasJobs(l *jobClass) bool { return l.jobs.len() > 0 }

// firstOf returns the class of some whose first job goes first, out of those for
// which in holds.
func firstOf(lines []*jobClass, in func(*jobClass) bool) *jobClass {
	var best *jobClass
	for _, l := range lines {
		if in(l) && (best == nil || l.goesBefore(best)) {
			best = l
		}
	}
	return best
}

// leaderOf is the class of a queue before all its others, but for those that the fleet
// can never take.
func (c *Core) leaderOf(q *quotaQueue) *jobClass {
	return firstOf(q.classes, func(l *jobClass) bool { return hasJobs(l) && l.waiting != forFleet })
}

// quotaGate says what a class's quota has against its first job, and settles on which
// nodes it is placed.
func (p *schedulingCycle) quotaGate(l *jobClass) (waitState, reason.Reason) {
	s := l.quotaDemand
	if s.queue.strict {
		if before := p.leaderOf(s.queue); before != l {
			return forQueueOrder, reason.Reason{Code: reason.Priority, Ahead: 1, Job: uint64(before.jobs.firstJob().id)}
		}
	}
	s.got, l.exceededQuota = p.assignFlavors(l), false
	if p.prefersPreemption(l) {
		return forQuota, p.quotaReason(l)
	}
	if s.got.Mode != quota.Fit {
		if len(p.pledges) > 0 && p.fitsUnpledged(l) {
			return forPlan, reason.Reason{Code: reason.Reserved, Job: uint64(p.plan.job)}
		}
		return forQuota, p.quotaReason(l)
	}
	k := p.kindIn(l, s.got.Flavors, s.got.cut)
	if k == nil || !p.fitsFleet(k) { // each of the flavours alone would do
		return forQuota, p.quotaReason(l)
	}
	p.setKind(l, k)
	return toLookAt, reason.Reason{}
}

// quotaPledge is a job's quota that is kept for it while others are looked at.
type quotaPledge struct {
	line    *jobClass
	charges []quota.Charge
}

// pledgeQuota keeps a job's quota until the end of the cycle.
func (p *schedulingCycle) pledgeQuota(l *jobClass) {
	if l.quotaDemand != nil {
		p.pledges = append(p.pledges, quotaPledge{l, l.quotaDemand.got.Charges})
		p.quotas.takeQuota(l.quotaDemand.queue.node, l.quotaDemand.got.Charges)
	}
}

// releasePledges keeps nothing any longer.
func (p *schedulingCycle) releasePledges() {
	for _, x := range p.pledges {
		p.quotas.giveQuota(x.line.quotaDemand.queue.node, x.charges)
	}
	p.pledges = p.pledges[:0]
}

// fitsUnpledged reports whether a class's first job would fit if nothing were kept for
// others.
func (p *schedulingCycle) fitsUnpledged(l *jobClass) bool {
	for _, x := range p.pledges {
		p.quotas.giveQuota(x.line.quotaDemand.queue.node, x.charges)
	}
	fits := p.assignFlavors(l).Mode == quota.Fit
	for _, x := range p.pledges {
		p.quotas.takeQuota(x.line.quotaDemand.queue.node, x.charges)
	}
	return fits
}

// quotaCovers reports whether a queue can give what a class's first job was placed on,
// which may be more than it asked for. If not, the class rests.
func (p *schedulingCycle) quotaCovers(l *jobClass, claims []fleet.Claim) bool {
	x := p.beyondQuota(l, claims)
	if x.Amount == 0 {
		return true
	}
	l.exceededQuota, p.quotas.over = true, true
	p.removeFromHeads(l)
	p.restClass(l, forQuota, p.shortReason(l.quotaDemand, x.FR, x.Amount))
	return false
}

// beyondQuota is a part of what claims take that a class's queue cannot give; nothing if it
// can give all.
func (p *schedulingCycle) beyondQuota(l *jobClass, claims []fleet.Claim) quota.Charge {
	s := l.quotaDemand
	if s == nil || !s.dependsOnPlacement {
		return quota.Charge{}
	}
	for _, x := range p.quotas.Charges(s.queue.node, p.amountsTaken(claims), s.got.Flavors) {
		if x.Amount > p.spareQuota(s.queue.node, x.FR) {
			return x
		}
	}
	return quota.Charge{}
}

// wakeForQuota wakes the classes that rest for quota in trees of which something was
// given back.
func (p *schedulingCycle) wakeForQuota() {
	if p.quotas == nil {
		return
	}
	if p.preempt.rules != nil && p.preempt.rules.byQuota {
		p.wakeForReclaim()
	}
	for _, t := range p.quotas.trees {
		if !t.freed {
			continue
		}
		t.freed = false
		if p.looksInOrder() {
			p.wakeFirstOfTree(t)
			continue
		}
		for _, q := range t.queues {
			p.wakeQueue(q)
		}
	}
	p.quotas.stirred = true // something has changed, or there were no cycle
	p.reconsiderFlavors()
}

// wakeQueue lets classes of a queue go on that rest for a quota that reaches again: all of
// them, or one after the other, each once the one before it has been looked at. What
// is taken by a class is not there for those behind it, so that most of them need not be
// touched.
func (p *schedulingCycle) wakeQueue(q *quotaQueue) {
	if p.looksInOrder() {
		if l := p.wakeCandidate(q, nil); l != nil {
			p.goFirst(l)
		}
		return
	}
	p.quotas.most = p.quotas.Most(q.node, p.quotas.most[:0])
	for _, d := range q.demands {
		if len(d.waiting) == 0 || p.surelyShort(d) {
			continue
		}
		if l := p.quotas.firstWaiting(d); l != nil && p.quotaWillFit(l) {
			for _, l := range d.stillWaiting() {
				p.wakeBarred(l)
			}
		}
	}
}

// surelyShort reports whether a queue has surely less than a demand asks for; p.most is what it
// could be given.
func (p *schedulingCycle) surelyShort(d *shapeDemand) bool {
	return len(p.pledges) == 0 && !d.cuts && quota.Short(d.needs, p.quotas.most)
}

// wakeCandidate is the class of a queue that goes first of those whose quota reaches again;
// nil if there is none, or none that goes before another class. One that has been looked
// at since anything changed is none.
func (p *schedulingCycle) wakeCandidate(q *quotaQueue, than *jobClass) *jobClass {
	p.quotas.most = p.quotas.Most(q.node, p.quotas.most[:0])
	best := than
	for i := range q.asks {
		if n := &q.asks[i]; n.Amount > 0 && n.Amount > p.quotas.most[n.Resource] && len(p.pledges) == 0 {
			continue
		}
		d := q.demands[i]
		if len(d.waiting) == 0 || p.surelyShort(d) {
			continue
		}
		l := p.quotas.firstWaiting(d)
		if l == nil || l.quotaDemand.ledAt == p.quotas.changes || best != nil && (!hasJobs(l) || hasJobs(best) && best.goesBefore(l)) {
			continue
		}
		if p.quotaWillFit(l) {
			best = l
		}
	}
	if best == than {
		return nil
	}
	return best
}

// goFirst lets a class go on before all others of its queue.
func (p *schedulingCycle) goFirst(l *jobClass) {
	q := l.quotaDemand.queue
	if q.leader == nil {
		p.quotas.led = append(p.quotas.led, q)
	}
	q.leader, l.quotaDemand.ledAt = l, p.quotas.changes
	p.wakeBarred(l)
}

// wakeFirstOfTree is wakeQueue for all queues of a tree, as long as jobs are looked at in queue
// order alone: of the classes that these would let go on, only the one that goes first
// does, the others one after the other when it has been looked at. It reports whether
// there is one.
func (p *schedulingCycle) wakeFirstOfTree(t *quotaTree) bool {
	var best *jobClass
	calm := true
	for _, q := range t.queues {
		l := p.wakeCandidate(q, best)
		if calm = calm && l == nil; l != nil && hasJobs(l) && l.jobs.firstJob().mayReserve() {
			best = l
		}
	}
	if t.single = true; calm {
		t.calm = p.quotas.changes
	}
	if best != nil {
		p.goFirst(best)
	}
	return best != nil
}

// wakeOtherQueues lets a class of each queue go on, where only one of a whole tree did.
func (p *schedulingCycle) wakeOtherQueues() {
	if p.quotas == nil {
		return
	}
	for _, t := range p.quotas.trees {
		if !t.single {
			continue
		}
		t.single = false
		for _, q := range t.queues {
			if q.leader == nil && t.calm != p.quotas.changes {
				p.wakeQueue(q)
			}
		}
	}
}

// quotaWillFit reports whether a class's quota does, now or once nothing is kept for others, so
// that looking at it again would not have it rest for the quota at once (see quotaGate).
func (p *schedulingCycle) quotaWillFit(l *jobClass) bool {
	b := p.assignFlavors(l)
	if b.Mode != quota.Fit {
		return len(p.pledges) > 0 && p.fitsUnpledged(l)
	}
	k := p.kindIn(l, b.Flavors, b.cut)
	return k != nil && p.fitsFleet(k)
}

// looksInOrder reports whether each class that may start is looked at in this cycle, in order.
func (p *schedulingCycle) looksInOrder() bool {
	return p.isConservative() && p.backfills() && !p.preempt.rules.reclaimsQuota()
}

// wakeNextInQueue lets the next class of a queue go on after its leader, and reports whether
// there is one.
func (p *schedulingCycle) wakeNextInQueue(l *jobClass) bool {
	if l.quotaDemand == nil || l.quotaDemand.queue.leader != l {
		return false
	}
	q := l.quotaDemand.queue
	q.leader = nil
	if q.tree.single {
		return p.wakeFirstOfTree(q.tree)
	}
	p.wakeQueue(q)
	return q.leader != nil
}

// wakeAllLed lets all classes go on whose leaders have not been looked at.
func (p *schedulingCycle) wakeAllLed() {
	if p.quotas == nil {
		return
	}
	for _, q := range p.quotas.led {
		if q.leader == nil {
			continue
		}
		q.leader = nil
		for _, d := range q.demands {
			for _, l := range d.stillWaiting() {
				if p.assignFlavors(l).Mode == quota.Fit {
					p.wakeBarred(l)
				}
			}
		}
	}
	clear(p.quotas.led)
	p.quotas.led = p.quotas.led[:0]
}

// reconsiderFlavors wakes the classes whose jobs would be placed in other flavours than they
// were looked at in, and reports whether a class may go on that could not before.
func (p *schedulingCycle) reconsiderFlavors() bool {
	if p.quotas == nil {
		return false
	}
	again := p.quotas.rallied
	p.quotas.rallied = false
	if p.quotas.stirred {
		p.quotas.stirred = false
		again = p.retryOverQuota() || again
	}
	for _, t := range p.quotas.trees {
		if !t.moved {
			continue
		}
		t.moved = false
		for _, q := range t.queues {
			if !q.choice && q.cuts == 0 {
				continue
			}
			for _, l := range q.classes {
				if l.waiting != forNodes && l.waiting != forPlan || l.jobs.len() == 0 {
					continue
				}
				if a := p.assignFlavors(l); a.Mode != quota.Fit || p.kindIn(l, a.Flavors, a.cut) != l.kind {
					p.wakeClass(l)
					again = true
				}
			}
		}
	}
	return again
}

// retryOverQuota wakes the classes whose jobs were placed where they took more than there was:
// they may be placed elsewhere now.
func (p *schedulingCycle) retryOverQuota() (again bool) {
	if !p.quotas.over {
		return false
	}
	p.quotas.over = false
	for _, q := range p.quotas.queues {
		if q == nil {
			continue
		}
		for _, l := range q.classes {
			if l.waiting == forQuota && l.exceededQuota {
				p.wakeBarred(l)
				again = true
			}
		}
	}
	return again
}

// wakeStrictQueue lets the classes of a strict queue go on that another one stood before.
func (c *Core) wakeStrictQueue(q *quotaQueue) {
	if !q.strict || c.quotas == nil {
		return
	}
	for _, l := range q.classes {
		if l.waiting == forQueueOrder {
			c.wakeBarred(l)
			c.quotas.rallied = true
		}
	}
}

// quotaReason is why a class's quota does not reach.
func (c *Core) quotaReason(l *jobClass) reason.Reason {
	s := l.quotaDemand
	r := reason.Reason{Code: reason.Quota, Holder: c.quotas.Names[s.queue.node]}
	lacks := s.got.Lacks
	if len(s.got.Over) > 0 {
		lacks = s.got.Over
	}
	if len(lacks) == 0 {
		return r
	}
	res := c.quotas.FRs[lacks[0]].Resource
	needs := c.needsOf(l, l.quotaDemand.cuttable) // with fewer tasks it does not start
	if s.got.cut == 0 && s.got.Mode > quota.NoCandidates {
		needs = s.needs
	}
	i := slices.IndexFunc(needs, func(n quota.Need) bool { return n.Resource == res })
	return c.shortReason(s, lacks[0], needs[i].Amount)
}

// shortReason is the reason that so much of a resource of a flavour is more than there is.
func (c *Core) shortReason(s *quotaDemand, fr int32, need resource.Amount) reason.Reason {
	x, n, then := c.quotas.FRs[fr], s.queue.node, c.quotas.afterReleases(c)
	return reason.Reason{
		Code: reason.Quota, Holder: c.quotas.Names[n], Resource: c.quotas.Resources[x.Resource], Want: c.quotas.Flavors[x.Flavor].Name,
		Need: int64(need), Used: int64(max(c.quotas.Used(n, fr), then.Used(n, fr))), Most: int64(c.quotas.Nominal(n, fr)), Free: int64(min(c.quotas.Available(n, fr), then.Available(n, fr))),
	}
}

// overQuota is what a class's quota has against its first job now, strictness aside.
func (c *Core) overQuota(l *jobClass) reason.Reason {
	switch {
	case l.quotaDemand == nil:
		return reason.Reason{}
	case l.waiting == forQuota:
		return l.why
	}
	kept := l.quotaDemand.got
	defer func() { l.quotaDemand.got = kept }()
	if l.quotaDemand.got = c.assignByQuota(l); l.quotaDemand.got.Mode != quota.Fit {
		return c.quotaReason(l)
	}
	return reason.Reason{}
}
