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

// This file decides, for trees of quotas, which of their lines is looked at next, and
// what their lines rest for.
//
// A tree stands in the queue where its first job stands. Which of its queues goes
// then is for the tree to say (quota.First): in a fair tree the one whose share would
// be the smallest, in others the one that has it from its own quota. Of each queue
// only the first job is looked at. A job that was promised a start keeps the turn.

// classInTurn returns the line that is looked at in the place of one: out of those behind the
// head if that is one of them, else out of those that could lead the queue.
func (p *pass) classInTurn(l *line) *line {
	behind := l.spot >= 0
	if holder := p.reservedClass(l); holder != nil && (holder.spot >= 0 || !behind && holder.place >= 0) {
		return holder
	}
	if l.stake == nil {
		return l
	}
	lines := p.turns[:0]
	for _, q := range l.stake.queue.tree.queues {
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
	p.turns = lines
	if len(lines) < 2 {
		return lines[0]
	}
	entries := p.wanted[:0]
	for _, x := range lines {
		entries = append(entries, quota.Entry{Queue: x.stake.queue.node, Charges: x.stake.got.Charges, Level: x.stake.got.Level})
	}
	p.wanted = entries
	return lines[p.quotas.afterReleases(p.Core).First(entries, func(i, j int) bool { return lines[i].goesBefore(lines[j]) })]
}

// quotaSuits reports whether a line's quota reaches for its first job, and settles on what that
// would take of it. It is not asked again before something is charged or given back.
func (p *pass) quotaSuits(l *line) bool {
	s, at := l.stake, [2]uint64{p.quotas.changes, p.fleet}
	if s.suited == at && !s.queue.falls {
		return true
	}
	s.got = p.assignFlavors(l)
	if s.got.Mode != quota.Fit {
		return false
	}
	s.suited = at
	return true
}

// station is a place in the queue. A job whose tree gave it the turn of another one
// stands where that one stood, and it stays there once it was promised a start: else
// the promise would be taken back when the other one starts.
type station struct {
	Job      job.ID // 0: none
	Tier     int32
	Priority int64
	At       Instant
}

func positionOf(e *entry) station {
	return station{e.id, e.line.key.terms.tier, e.currentPriority(), e.at}
}

func (s station) comparePosition(o station) int {
	return cmp.Or(cmp.Compare(o.Tier, s.Tier), cmp.Compare(o.Priority, s.Priority), cmp.Compare(s.At, o.At), cmp.Compare(s.Job, o.Job))
}

// reservedClass is the line whose first job has a reservation, if it still goes first in its
// queue and no job stands before its station; nil: there is none.
func (p *pass) reservedClass(top *line) *line {
	e := p.queued[p.plan.job]
	if e == nil || e.blocked || p.plan.station.Job == 0 || p.plan.station.comparePosition(positionOf(top.jobs.firstJob())) > 0 {
		return nil
	}
	if e.line.stake == nil || e.line.jobs.firstJob() != e || e.line.stake.queue.heads.firstClass() != e.line {
		return nil
	}
	return e.line
}

// notePosition notes where the head stands that has the reservation now; before is the
// reservation that there was.
func (p *pass) notePosition(head *entry, at station, before *reservation) {
	if head.line.stake == nil {
		return
	}
	if before.job == head.id && before.station.Job != 0 && before.station.comparePosition(at) < 0 {
		at = before.station
	}
	p.plan.station = at
}

func hasJobs(l *line) bool { return l.jobs.len() > 0 }

// firstOf returns the line of some whose first job goes first, out of those for
// which in holds.
func firstOf(lines []*line, in func(*line) bool) *line {
	var best *line
	for _, l := range lines {
		if in(l) && (best == nil || l.goesBefore(best)) {
			best = l
		}
	}
	return best
}

// leaderOf is the line of a queue before all its others, but for those that the fleet
// can never take.
func (c *Core) leaderOf(q *queue) *line {
	return firstOf(q.lines, func(l *line) bool { return hasJobs(l) && l.rest != forFleet })
}

// quotaGate says what a line's quota has against its first job, and settles on which
// nodes it is placed.
func (p *pass) quotaGate(l *line) (rest, reason.Reason) {
	s := l.stake
	if s.queue.strict {
		if before := p.leaderOf(s.queue); before != l {
			return forTurn, reason.Reason{Code: reason.Priority, Ahead: 1, Job: uint64(before.jobs.firstJob().id)}
		}
	}
	s.got, l.over = p.assignFlavors(l), false
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
	return active, reason.Reason{}
}

// pledge is a job's quota that is kept for it while others are looked at.
type pledge struct {
	line    *line
	charges []quota.Charge
}

// pledgeQuota keeps a job's quota until the end of the pass.
func (p *pass) pledgeQuota(l *line) {
	if l.stake != nil {
		p.pledges = append(p.pledges, pledge{l, l.stake.got.Charges})
		p.quotas.takeQuota(l.stake.queue.node, l.stake.got.Charges)
	}
}

// releasePledges keeps nothing any longer.
func (p *pass) releasePledges() {
	for _, x := range p.pledges {
		p.quotas.giveQuota(x.line.stake.queue.node, x.charges)
	}
	p.pledges = p.pledges[:0]
}

// fitsUnpledged reports whether a line's first job would fit if nothing were kept for
// others.
func (p *pass) fitsUnpledged(l *line) bool {
	for _, x := range p.pledges {
		p.quotas.giveQuota(x.line.stake.queue.node, x.charges)
	}
	fits := p.assignFlavors(l).Mode == quota.Fit
	for _, x := range p.pledges {
		p.quotas.takeQuota(x.line.stake.queue.node, x.charges)
	}
	return fits
}

// quotaCovers reports whether a queue can give what a line's first job was placed on,
// which may be more than it asked for. If not, the line rests.
func (p *pass) quotaCovers(l *line, claims []fleet.Claim) bool {
	x := p.beyondQuota(l, claims)
	if x.Amount == 0 {
		return true
	}
	l.over, p.quotas.over = true, true
	p.removeFromHeads(l)
	p.restClass(l, forQuota, p.shortReason(l.stake, x.FR, x.Amount))
	return false
}

// beyondQuota is a part of what claims take that a line's queue cannot give; nothing if it
// can give all.
func (p *pass) beyondQuota(l *line, claims []fleet.Claim) quota.Charge {
	s := l.stake
	if s == nil || !s.rough {
		return quota.Charge{}
	}
	for _, x := range p.quotas.Charges(s.queue.node, p.amountsTaken(claims), s.got.Flavors) {
		if x.Amount > p.spareQuota(s.queue.node, x.FR) {
			return x
		}
	}
	return quota.Charge{}
}

// wakeForQuota wakes the lines that rest for quota in trees of which something was
// given back.
func (p *pass) wakeForQuota() {
	if p.quotas == nil {
		return
	}
	if p.preemption != nil && p.preemption.byQuota {
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
	p.quotas.stirred = true // something has changed, or there were no pass
	p.reconsiderFlavors()
}

// wakeQueue lets lines of a queue go on that rest for a quota that reaches again: all of
// them, or one after the other, each once the one before it has been looked at. What
// is taken by a line is not there for those behind it, so that most of them need not be
// touched.
func (p *pass) wakeQueue(q *queue) {
	if p.looksInOrder() {
		if l := p.wakeCandidate(q, nil); l != nil {
			p.goFirst(l)
		}
		return
	}
	p.most = p.quotas.Most(q.node, p.most[:0])
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
func (p *pass) surelyShort(d *demand) bool {
	return len(p.pledges) == 0 && !d.cuts && quota.Short(d.needs, p.most)
}

// wakeCandidate is the line of a queue that goes first of those whose quota reaches again;
// nil if there is none, or none that goes before another line. One that has been looked
// at since anything changed is none.
func (p *pass) wakeCandidate(q *queue, than *line) *line {
	p.most = p.quotas.Most(q.node, p.most[:0])
	best := than
	for i := range q.asks {
		if n := &q.asks[i]; n.Amount > 0 && n.Amount > p.most[n.Resource] && len(p.pledges) == 0 {
			continue
		}
		d := q.demands[i]
		if len(d.waiting) == 0 || p.surelyShort(d) {
			continue
		}
		l := p.quotas.firstWaiting(d)
		if l == nil || l.stake.led == p.quotas.changes || best != nil && (!hasJobs(l) || hasJobs(best) && best.goesBefore(l)) {
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

// goFirst lets a line go on before all others of its queue.
func (p *pass) goFirst(l *line) {
	q := l.stake.queue
	if q.leader == nil {
		p.quotas.led = append(p.quotas.led, q)
	}
	q.leader, l.stake.led = l, p.quotas.changes
	p.wakeBarred(l)
}

// wakeFirstOfTree is loosen for all queues of a tree, as long as jobs are looked at in queue
// order alone: of the lines that these would let go on, only the one that goes first
// does, the others one after the other when it has been looked at. It reports whether
// there is one.
func (p *pass) wakeFirstOfTree(t *tree) bool {
	var best *line
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

// wakeOtherQueues lets a line of each queue go on, where only one of a whole tree did.
func (p *pass) wakeOtherQueues() {
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

// quotaWillFit reports whether a line's quota does, now or once nothing is kept for others, so
// that looking at it again would not have it rest for the quota at once (see quota).
func (p *pass) quotaWillFit(l *line) bool {
	b := p.assignFlavors(l)
	if b.Mode != quota.Fit {
		return len(p.pledges) > 0 && p.fitsUnpledged(l)
	}
	k := p.kindIn(l, b.Flavors, b.cut)
	return k != nil && p.fitsFleet(k)
}

// looksInOrder reports whether each line that may start is looked at in this pass, in order.
func (p *pass) looksInOrder() bool {
	return p.isConservative() && !p.policy.Backfill.Off && !p.cfg.NoBackfill && !p.preemption.reclaimsQuota()
}

// wakeNextInQueue lets the next line of a queue go on after its leader, and reports whether
// there is one.
func (p *pass) wakeNextInQueue(l *line) bool {
	if l.stake == nil || l.stake.queue.leader != l {
		return false
	}
	q := l.stake.queue
	q.leader = nil
	if q.tree.single {
		return p.wakeFirstOfTree(q.tree)
	}
	p.wakeQueue(q)
	return q.leader != nil
}

// wakeAllLed lets all lines go on whose leaders have not been looked at.
func (p *pass) wakeAllLed() {
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

// reconsiderFlavors wakes the lines whose jobs would be placed in other flavours than they
// were looked at in, and reports whether a line may go on that could not before.
func (p *pass) reconsiderFlavors() bool {
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
			for _, l := range q.lines {
				if l.rest != forRoom && l.rest != forPlan || l.jobs.len() == 0 {
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

// retryOverQuota wakes the lines whose jobs were placed where they took more than there was:
// they may be placed elsewhere now.
func (p *pass) retryOverQuota() (again bool) {
	if !p.quotas.over {
		return false
	}
	p.quotas.over = false
	for _, q := range p.quotas.queues {
		if q == nil {
			continue
		}
		for _, l := range q.lines {
			if l.rest == forQuota && l.over {
				p.wakeBarred(l)
				again = true
			}
		}
	}
	return again
}

// wakeStrictQueue lets the lines of a strict queue go on that another one stood before.
func (c *Core) wakeStrictQueue(q *queue) {
	if !q.strict || c.quotas == nil {
		return
	}
	for _, l := range q.lines {
		if l.rest == forTurn {
			c.wakeBarred(l)
			c.quotas.rallied = true
		}
	}
}

// quotaReason is why a line's quota does not reach.
func (c *Core) quotaReason(l *line) reason.Reason {
	s := l.stake
	r := reason.Reason{Code: reason.Quota, Holder: c.quotas.Names[s.queue.node]}
	lacks := s.got.Lacks
	if len(s.got.Over) > 0 {
		lacks = s.got.Over
	}
	if len(lacks) == 0 {
		return r
	}
	res := c.quotas.FRs[lacks[0]].Resource
	needs := c.needsOf(l, l.stake.spare) // with fewer tasks it does not start
	if s.got.cut == 0 && s.got.Mode > quota.NoCandidates {
		needs = s.needs
	}
	i := slices.IndexFunc(needs, func(n quota.Need) bool { return n.Resource == res })
	return c.shortReason(s, lacks[0], needs[i].Amount)
}

// shortReason is the reason that so much of a resource of a flavour is more than there is.
func (c *Core) shortReason(s *stake, fr int32, need resource.Amount) reason.Reason {
	x, n, then := c.quotas.FRs[fr], s.queue.node, c.quotas.afterReleases(c)
	return reason.Reason{
		Code: reason.Quota, Holder: c.quotas.Names[n], Resource: c.quotas.Resources[x.Resource], Want: c.quotas.Flavors[x.Flavor].Name,
		Need: int64(need), Used: int64(max(c.quotas.Used(n, fr), then.Used(n, fr))), Most: int64(c.quotas.Nominal(n, fr)), Free: int64(min(c.quotas.Available(n, fr), then.Available(n, fr))),
	}
}

// overQuota is what a line's quota has against its first job now, strictness aside.
func (c *Core) overQuota(l *line) reason.Reason {
	switch {
	case l.stake == nil:
		return reason.Reason{}
	case l.rest == forQuota:
		return l.why
	}
	kept := l.stake.got
	defer func() { l.stake.got = kept }()
	if l.stake.got = c.assignByQuota(l); l.stake.got.Mode != quota.Fit {
		return c.quotaReason(l)
	}
	return reason.Reason{}
}
