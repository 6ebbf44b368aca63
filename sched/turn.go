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

// turn returns the line that is looked at in the place of one: out of those behind the
// head if that is one of them, else out of those that could lead the queue.
func (p *pass) turn(l *line) *line {
	behind := l.spot >= 0
	if holder := p.holder(l); holder != nil && (holder.spot >= 0 || !behind && holder.place >= 0) {
		return holder
	}
	if l.stake == nil {
		return l
	}
	lines := p.turns[:0]
	for _, q := range l.stake.queue.tree.queues {
		x := q.heads.first()
		if behind {
			x = q.order.first()
		}
		if x == nil {
			continue
		}
		if q.strict && p.leader(q) != x {
			return x // it rests
		}
		if !p.suits(x) {
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
	return lines[p.quotas.then(p.Core).First(entries, func(i, j int) bool { return lines[i].before(lines[j]) })]
}

// suits reports whether a line's quota reaches for its first job, and settles on what that
// would take of it. It is not asked again before something is charged or given back.
func (p *pass) suits(l *line) bool {
	s, at := l.stake, [2]uint64{p.quotas.changes, p.fleet}
	if s.suited == at && !s.queue.falls {
		return true
	}
	s.got = p.assign(l)
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

func stationOf(e *entry) station {
	return station{e.id, e.line.key.terms.tier, e.points(), e.at}
}

func (s station) compare(o station) int {
	return cmp.Or(cmp.Compare(o.Tier, s.Tier), cmp.Compare(o.Priority, s.Priority), cmp.Compare(s.At, o.At), cmp.Compare(s.Job, o.Job))
}

// holder is the line whose first job has a reservation, if it still goes first in its
// queue and no job stands before its station; nil: there is none.
func (p *pass) holder(top *line) *line {
	e := p.queued[p.plan.job]
	if e == nil || e.blocked || p.plan.station.Job == 0 || p.plan.station.compare(stationOf(top.jobs.first())) > 0 {
		return nil
	}
	if e.line.stake == nil || e.line.jobs.first() != e || e.line.stake.queue.heads.first() != e.line {
		return nil
	}
	return e.line
}

// stand notes where the head stands that has the reservation now; before is the
// reservation that there was.
func (p *pass) stand(head *entry, at station, before *reservation) {
	if head.line.stake == nil {
		return
	}
	if before.job == head.id && before.station.Job != 0 && before.station.compare(at) < 0 {
		at = before.station
	}
	p.plan.station = at
}

func hasJobs(l *line) bool { return l.jobs.len() > 0 }

// first returns the line of some whose first job goes first, out of those for
// which in holds.
func first(lines []*line, in func(*line) bool) *line {
	var best *line
	for _, l := range lines {
		if in(l) && (best == nil || l.before(best)) {
			best = l
		}
	}
	return best
}

// leader is the line of a queue before all its others, but for those that the fleet
// can never take.
func (c *Core) leader(q *queue) *line {
	return first(q.lines, func(l *line) bool { return hasJobs(l) && l.rest != forFleet })
}

// quota says what a line's quota has against its first job, and settles on which
// nodes it is placed.
func (p *pass) quota(l *line) (rest, reason.Reason) {
	s := l.stake
	if s.queue.strict {
		if before := p.leader(s.queue); before != l {
			return forTurn, reason.Reason{Code: reason.Priority, Ahead: 1, Job: uint64(before.jobs.first().id)}
		}
	}
	s.got, l.over = p.assign(l), false
	if p.sooner(l) {
		return forQuota, p.lacking(l)
	}
	if s.got.Mode != quota.Fit {
		if len(p.pledges) > 0 && p.unpledged(l) {
			return forPlan, reason.Reason{Code: reason.Reserved, Job: uint64(p.plan.job)}
		}
		return forQuota, p.lacking(l)
	}
	k := p.kindIn(l, s.got.Flavors, s.got.cut)
	if k == nil || !p.possible(k) { // each of the flavours alone would do
		return forQuota, p.lacking(l)
	}
	p.turnTo(l, k)
	return active, reason.Reason{}
}

// pledge is a job's quota that is kept for it while others are looked at.
type pledge struct {
	line    *line
	charges []quota.Charge
}

// pledge keeps a job's quota until the end of the pass.
func (p *pass) pledge(l *line) {
	if l.stake != nil {
		p.pledges = append(p.pledges, pledge{l, l.stake.got.Charges})
		p.quotas.take(l.stake.queue.node, l.stake.got.Charges)
	}
}

// unpledge keeps nothing any longer.
func (p *pass) unpledge() {
	for _, x := range p.pledges {
		p.quotas.give(x.line.stake.queue.node, x.charges)
	}
	p.pledges = p.pledges[:0]
}

// unpledged reports whether a line's first job would fit if nothing were kept for
// others.
func (p *pass) unpledged(l *line) bool {
	for _, x := range p.pledges {
		p.quotas.give(x.line.stake.queue.node, x.charges)
	}
	fits := p.assign(l).Mode == quota.Fit
	for _, x := range p.pledges {
		p.quotas.take(x.line.stake.queue.node, x.charges)
	}
	return fits
}

// covered reports whether a queue can give what a line's first job was placed on,
// which may be more than it asked for. If not, the line rests.
func (p *pass) covered(l *line, claims []fleet.Claim) bool {
	x := p.beyond(l, claims)
	if x.Amount == 0 {
		return true
	}
	l.over, p.quotas.over = true, true
	p.resign(l)
	p.rest(l, forQuota, p.short(l.stake, x.FR, x.Amount))
	return false
}

// beyond is a part of what claims take that a line's queue cannot give; nothing if it
// can give all.
func (p *pass) beyond(l *line, claims []fleet.Claim) quota.Charge {
	s := l.stake
	if s == nil || !s.rough {
		return quota.Charge{}
	}
	for _, x := range p.quotas.Charges(s.queue.node, p.taken(claims), s.got.Flavors) {
		if x.Amount > p.spareQuota(s.queue.node, x.FR) {
			return x
		}
	}
	return quota.Charge{}
}

// rouseQuotas wakes the lines that rest for quota in trees of which something was
// given back.
func (p *pass) rouseQuotas() {
	if p.quotas == nil {
		return
	}
	if p.preemption != nil && p.preemption.byQuota {
		p.rouseClaims()
	}
	for _, t := range p.quotas.trees {
		if !t.freed {
			continue
		}
		t.freed = false
		if p.inTurn() {
			p.loosenFirst(t)
			continue
		}
		for _, q := range t.queues {
			p.loosen(q)
		}
	}
	p.quotas.stirred = true // something has changed, or there were no pass
	p.reconsider()
}

// loosen lets lines of a queue go on that rest for a quota that reaches again: all of
// them, or one after the other, each once the one before it has been looked at. What
// is taken by a line is not there for those behind it, so that most of them need not be
// touched.
func (p *pass) loosen(q *queue) {
	if p.inTurn() {
		if l := p.candidate(q, nil); l != nil {
			p.goFirst(l)
		}
		return
	}
	p.most = p.quotas.Most(q.node, p.most[:0])
	for _, d := range q.demands {
		if len(d.waiting) == 0 || p.scant(d) {
			continue
		}
		if l := p.quotas.first(d); l != nil && p.reaches(l) {
			for _, l := range d.still() {
				p.admit(l)
			}
		}
	}
}

// scant reports whether a queue has surely less than a demand asks for; p.most is what it
// could be given.
func (p *pass) scant(d *demand) bool {
	return len(p.pledges) == 0 && !d.cuts && quota.Short(d.needs, p.most)
}

// candidate is the line of a queue that goes first of those whose quota reaches again;
// nil if there is none, or none that goes before another line. One that has been looked
// at since anything changed is none.
func (p *pass) candidate(q *queue, than *line) *line {
	p.most = p.quotas.Most(q.node, p.most[:0])
	best := than
	for i := range q.asks {
		if n := &q.asks[i]; n.Amount > 0 && n.Amount > p.most[n.Resource] && len(p.pledges) == 0 {
			continue
		}
		d := q.demands[i]
		if len(d.waiting) == 0 || p.scant(d) {
			continue
		}
		l := p.quotas.first(d)
		if l == nil || l.stake.led == p.quotas.changes || best != nil && (!hasJobs(l) || hasJobs(best) && best.before(l)) {
			continue
		}
		if p.reaches(l) {
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
	p.admit(l)
}

// loosenFirst is loosen for all queues of a tree, as long as jobs are looked at in queue
// order alone: of the lines that these would let go on, only the one that goes first
// does, the others one after the other when it has been looked at. It reports whether
// there is one.
func (p *pass) loosenFirst(t *tree) bool {
	var best *line
	calm := true
	for _, q := range t.queues {
		l := p.candidate(q, best)
		if calm = calm && l == nil; l != nil && hasJobs(l) && l.jobs.first().reserves() {
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

// loosenRest lets a line of each queue go on, where only one of a whole tree did.
func (p *pass) loosenRest() {
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
				p.loosen(q)
			}
		}
	}
}

// reaches reports whether a line's quota does, now or once nothing is kept for others, so
// that looking at it again would not have it rest for the quota at once (see quota).
func (p *pass) reaches(l *line) bool {
	b := p.assign(l)
	if b.Mode != quota.Fit {
		return len(p.pledges) > 0 && p.unpledged(l)
	}
	k := p.kindIn(l, b.Flavors, b.cut)
	return k != nil && p.possible(k)
}

// inTurn reports whether each line that may start is looked at in this pass, in order.
func (p *pass) inTurn() bool {
	return p.byName() && !p.policy.Backfill.Off && !p.cfg.NoBackfill && !p.preemption.claims()
}

// lookedAt lets the next line of a queue go on after its leader, and reports whether
// there is one.
func (p *pass) lookedAt(l *line) bool {
	if l.stake == nil || l.stake.queue.leader != l {
		return false
	}
	q := l.stake.queue
	q.leader = nil
	if q.tree.single {
		return p.loosenFirst(q.tree)
	}
	p.loosen(q)
	return q.leader != nil
}

// loosenAll lets all lines go on whose leaders have not been looked at.
func (p *pass) loosenAll() {
	if p.quotas == nil {
		return
	}
	for _, q := range p.quotas.led {
		if q.leader == nil {
			continue
		}
		q.leader = nil
		for _, d := range q.demands {
			for _, l := range d.still() {
				if p.assign(l).Mode == quota.Fit {
					p.admit(l)
				}
			}
		}
	}
	clear(p.quotas.led)
	p.quotas.led = p.quotas.led[:0]
}

// reconsider wakes the lines whose jobs would be placed in other flavours than they
// were looked at in, and reports whether a line may go on that could not before.
func (p *pass) reconsider() bool {
	if p.quotas == nil {
		return false
	}
	again := p.quotas.rallied
	p.quotas.rallied = false
	if p.quotas.stirred {
		p.quotas.stirred = false
		again = p.retry() || again
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
				if a := p.assign(l); a.Mode != quota.Fit || p.kindIn(l, a.Flavors, a.cut) != l.kind {
					p.wake(l)
					again = true
				}
			}
		}
	}
	return again
}

// retry wakes the lines whose jobs were placed where they took more than there was:
// they may be placed elsewhere now.
func (p *pass) retry() (again bool) {
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
				p.admit(l)
				again = true
			}
		}
	}
	return again
}

// rally lets the lines of a strict queue go on that another one stood before.
func (c *Core) rally(q *queue) {
	if !q.strict || c.quotas == nil {
		return
	}
	for _, l := range q.lines {
		if l.rest == forTurn {
			c.admit(l)
			c.quotas.rallied = true
		}
	}
}

// lacking is why a line's quota does not reach.
func (c *Core) lacking(l *line) reason.Reason {
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
	return c.short(s, lacks[0], needs[i].Amount)
}

// short is the reason that so much of a resource of a flavour is more than there is.
func (c *Core) short(s *stake, fr int32, need resource.Amount) reason.Reason {
	x, n, then := c.quotas.FRs[fr], s.queue.node, c.quotas.then(c)
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
	if l.stake.got = c.assign(l); l.stake.got.Mode != quota.Fit {
		return c.lacking(l)
	}
	return reason.Reason{}
}
