package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// pass looks once at the queue: it starts what may start, in order, makes the
// reservation of the first job that cannot, and fills the holes behind it. Lines
// that rest are passed over.
type pass struct {
	*Core
	now     Instant
	order   order // lines behind the head that are looked at and have no quota; those with one are in order of their queues
	out     []Decision
	room    room     // built for jobs that are not placed on cells
	moves   int      // times that the head's nodes may still be changed for one of these
	depth   int      // kinds that may still be tried
	pledges []pledge // quota that is kept for jobs that wait for room
	first   bool     // what is looked at stands before the first job that cannot start
	tried   []int32  // flavours in which the job that is looked at cannot start
	stood   uint64   // stirs when what is planned was looked at last (outrun)
}

// maxMoves bounds how often a pass tries to move the head's reservation to other
// nodes for the sake of a job behind it.
const maxMoves = 16

func (p *pass) run() {
	p.depth = p.cfg.Depth
	if p.depth == 0 {
		p.depth = 500
	}
	if p.likeSlurm() {
		p.Core.pinched = 0 // nothing grows
		return
	}
	p.stood = p.stirs
	anew := true
	for again := true; again; again = p.regain() || p.reopened() || p.outrun() || p.seizeLate() || p.recalls() || p.grow() {
		p.board()
		p.regain()
		p.allow(anew)
		anew = false
		p.rouse()
		if p.byName() {
			p.named()
			continue
		}
		p.unname()
		p.keep()
		p.fill()
		for p.reconsider() {
			p.fill()
		}
	}
	p.alternate()
}

// fill starts what may start.
func (p *pass) fill() {
	head, at := p.advance()
	for head != nil && p.overtake(head) {
		head, at = p.advance()
	}
	if head == nil {
		p.unplan()
		return
	}
	before := p.plan
	p.reserve(head)
	p.stand(head, at, &before)
	p.rest(head.line, forRoom, p.missing(head.line))
	if !p.cfg.NoBackfill {
		p.pledge(head.line)
		p.backfill()
		p.unpledge()
	}
}

// rouse wakes the lines that rest for what has become free.
func (p *pass) rouse() {
	p.rouseQuotas()
	if len(p.freed) == 0 {
		return
	}
	cells := p.cleared[:0]
	for _, pos := range p.freed {
		if id := p.cells.Of(int(pos)); id >= 0 && !slices.Contains(cells, id) {
			cells = append(cells, id)
		}
	}
	p.cleared = cells
	p.Core.freed = p.freed[:0]
	var opened []*kind
	for _, k := range p.kinds {
		if k.full && p.served(k, cells) {
			k.full = false
			opened = append(opened, k)
			for _, l := range k.lines {
				if l.rest == forRoom {
					p.admit(l)
				}
			}
		}
	}
	p.rouseFallen(func(k *kind) bool { return slices.Contains(opened, k) })
	p.rousePlanned()
}

// served reports whether one of the cells could take part in a kind.
func (p *pass) served(k *kind, cells []int32) bool {
	q := p.quickly(k)
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

// rousePlanned wakes the lines that rest for the plan.
func (p *pass) rousePlanned() {
	for _, l := range p.planned {
		if l.rest == forPlan {
			p.wake(l)
		}
	}
	p.Core.planned = p.planned[:0]
}

// keep tries the job with the reservation before all others, by its identity: on
// the nodes promised to it if it finds no better ones.
func (p *pass) keep() {
	e := p.queued[p.plan.job]
	if e == nil || e.blocked || p.yield(e) {
		return
	}
	if e.line.jobs.first() != e && e.line.stake != nil && e.line.stake.queue.strict || !p.ready(e.line) {
		return
	}
	claims := p.fit(e.line.kind)
	if claims == nil && p.plan.claims != nil && p.state.Fits(p.table, p.plan.claims) {
		claims = p.plan.claims
	}
	if claims != nil && p.beyond(e.line, claims).Amount == 0 && p.permitted(e.line, claims) {
		p.start(e, claims)
	}
}

// advance starts jobs in queue order up to the first that cannot start, which it
// returns, and where that stands. Jobs that the fleet can never take, that a limit
// stops, or for which nothing may be kept, are passed over.
func (p *pass) advance() (*entry, station) {
	for len(p.heads) > 0 {
		at := stationOf(p.heads[0].jobs.first())
		l := p.turn(p.heads[0])
		p.first = true
		ready := p.ready(l)
		p.first = false
		if !ready {
			p.reclaim(l)
			continue
		}
		e := l.jobs.first()
		if p.yield(e) {
			continue
		}
		claims := p.fit(l.kind)
		if claims == nil && (p.preempt(e) || p.consolidate(e)) {
			continue
		}
		if claims == nil && e.reserves() {
			return e, at
		}
		if claims == nil {
			p.resign(l)
			p.rest(l, forRoom, p.missing(l))
			continue
		}
		if !p.covered(l, claims) || !p.permitted(l, claims) {
			continue
		}
		p.start(e, claims)
		p.shaken = true // it may outlast the promised instant: it is before the head
	}
	return nil, station{}
}

// rest notes that a line's first job cannot start before something changes.
func (p *pass) rest(l *line, for_ rest, why reason.Reason) {
	l.rest, l.why = for_, why
	p.touch(l)
	switch for_ {
	case forPlan:
		p.Core.planned = append(p.planned, l)
	case forQuota:
		l.await()
	}
}

// backfill starts jobs behind the head that do not delay it.
func (p *pass) backfill() {
	head := p.queued[p.plan.job].line
	for _, l := range p.woken {
		l.awake = false
		if l.jobs.len() > 0 && l.rest == active && l != head {
			p.enter(l)
		}
	}
	p.Core.woken = p.woken[:0]
	p.drain()
}

// follow adds a line that may go on after another one.
func (p *pass) follow(l *line) {
	if l.spot < 0 && l.jobs.len() > 0 && l.rest == active {
		p.enter(l)
	}
}

// enter adds a line to those that are looked at behind the head.
func (p *pass) enter(l *line) {
	if l.stake == nil {
		p.order.fix(l)
		return
	}
	q := l.stake.queue
	if q.order.fix(l); !q.behind {
		q.behind = true
		p.quotas.behind = append(p.quotas.behind, q)
	}
}

// orderOf is the order that a line stands in behind the head.
func (p *pass) orderOf(l *line) *order {
	if l.stake == nil {
		return &p.order
	}
	return &l.stake.queue.order
}

// next is the line that goes first of those behind the head; nil: none is left.
func (p *pass) next() *line {
	best := p.order.first()
	if p.quotas == nil {
		return best
	}
	p.quotas.behind = slices.DeleteFunc(p.quotas.behind, func(q *queue) bool {
		l := q.order.first()
		if l != nil && (best == nil || l.before(best)) {
			best = l
		}
		q.behind = l != nil
		return l == nil
	})
	return best
}

// drain looks at the lines behind the head in order.
func (p *pass) drain() {
	for l := p.next(); l != nil; l = p.next() {
		l = p.turn(l)
		if p.look(l) {
			p.orderOf(l).fix(l) // its next job
		} else {
			p.orderOf(l).remove(l)
		}
		if p.lookedAt(l) {
			p.follow(l.stake.queue.leader)
		}
	}
}

// look tries the first job of a line and reports whether it started.
func (p *pass) look(l *line) bool {
	switch {
	case !p.ready(l):
	case p.depth == 0:
		p.wake(l) // next time
		p.touch(l)
	default:
		e := l.jobs.first()
		started := p.try(l, e)
		for !started && (l.rest == forRoom || l.rest == forPlan) && p.elsewhere(l) {
			started = p.try(l, e)
		}
		p.settled(l, started)
		return started
	}
	return false
}

// try starts a job if it ends before the head is to start, or leaves the head its
// start at that instant.
func (p *pass) try(l *line, e *entry) bool {
	var claims []fleet.Claim
	if p.wasNamed {
		return p.tryNamed(l, e)
	}
	ends := l.limit > 0 && ending(p.now, l.limit) <= p.plan.at
	if !ends && p.crowds(l) && p.plan.at-p.now < Instant(l.key.least) {
		p.rest(l, forPlan, reason.Reason{Code: reason.Reserved, Job: uint64(p.plan.job)})
		return false
	}
	if ends {
		claims = p.fit(l.kind)
	} else {
		claims = p.beside(l.kind)
	}
	until := ending(p.now, l.limit)
	if claims == nil {
		claims, until = p.shorter(l)
	}
	switch {
	case claims != nil && (!p.covered(l, claims) || !p.permitted(l, claims)):
	case claims != nil:
		p.startUntil(e, claims, until)
		return true
	case l.kind.full:
		p.rest(l, forRoom, p.missing(l))
	default:
		p.depth--
		p.rest(l, forPlan, reason.Reason{Code: reason.Reserved, Job: uint64(p.plan.job)})
	}
	return false
}

// missing is why a shape does not fit now. It is worked out where it may have to
// be told.
func (p *pass) missing(l *line) reason.Reason {
	if l.why.Code == reason.Resources && l.leader == l.jobs.first() {
		return l.why
	}
	if q := p.quickly(l.kind); q != nil {
		return q.Missing()
	}
	if all := place.Missing(p.table, p.state, l.kind.shape); len(all) > 0 {
		return all[0]
	}
	return reason.Reason{Code: reason.Resources, Resource: "nodes"}
}

// start takes a job out of the queue and holds its claims.
func (p *pass) start(e *entry, claims []fleet.Claim) {
	p.startUntil(e, claims, e.line.finish(p.now))
}

func (p *pass) startUntil(e *entry, claims []fleet.Claim, until Instant) {
	p.startBefore(e, claims, until, 0)
}

// startBefore starts a job that is to end at an instant; tail is how long those may go on
// after it that are suspended for it.
func (p *pass) startBefore(e *entry, claims []fleet.Claim, until, tail Instant) {
	if e.id == p.plan.job {
		p.unplan()
	}
	if p.policy == nil || p.policy.Compat == "" {
		claims = p.table.InRankOrder(claims)
	}
	terms, license := p.heldBy(e)
	flavors := p.flavorsFor(e)
	rank := e.shown()
	p.drop(e)
	r := &run{id: e.id, spec: e.spec, terms: terms, claims: claims, began: p.now, turn: p.now, until: later(until, tail), tail: tail, flavors: flavors, license: license, priority: e.priority, rank: rank, submitted: e.at, moved: e.moved}
	r.waits = r.folded()
	p.hold(r)
	p.room.take(p, claims, r.until)
	if until == never {
		until = 0
	}
	p.out = append(p.out, Start{Job: e.id, Claims: claims, Until: until, Flavors: r.flavors, License: license})
}

// room is what is free for a job that outlasts the head's instant, where that has
// to be looked at node by node.
type room struct {
	after *index.State // free at that instant beside what is reserved; nil: not built
	both  *index.State // free both now and then
}

// take counts what starts.
func (r *room) take(p *pass, claims []fleet.Claim, until Instant) {
	if r.after == nil {
		return
	}
	if until > p.plan.at || until == never {
		r.after.Take(p.table, claims)
	}
	for i := range claims {
		r.both.Copy(p.state, r.after, p.table.Find(claims[i].Key()))
	}
}
