package sched

import (
	"container/heap"

	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/reason"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// pass looks once at the whole queue: it starts what may start, in order, makes
// the reservation of the first job that cannot, and fills the holes behind it.
type pass struct {
	*Core
	now   Instant
	order order // lines with their first jobs, next one first
	out   []Decision
	after *index.State // free at the promised instant beside what is reserved; nil: not built
	room  *index.State // free both now and after
	moves int          // times that the head may still be moved aside
	depth int          // kinds that may still be tried
}

// maxMoves bounds how often a pass tries to move the head's reservation to other
// nodes for the sake of a job behind it.
const maxMoves = 16

func (p *pass) run() {
	p.depth = p.cfg.Depth
	if p.depth == 0 {
		p.depth = 500
	}
	p.keep()
	for _, l := range p.lines {
		if len(l.entries) > 0 {
			p.order = append(p.order, l)
		}
	}
	heap.Init(&p.order)
	head := p.advance()
	if head == nil {
		p.plan = reservation{version: p.plan.version + 1}
		return
	}
	p.reserve(head)
	if p.cfg.NoBackfill {
		p.park(head.line, p.missing(head.line))
		return
	}
	p.backfill()
}

// keep tries the job with the reservation before all others, by its identity: on
// the nodes promised to it if it finds no better ones.
func (p *pass) keep() {
	e := p.queued[p.plan.job]
	if e == nil || e.blocked {
		return
	}
	claims := p.fit(e.line.kind)
	if claims == nil && p.plan.claims != nil && p.state.Fits(p.table, p.plan.claims) {
		claims = p.plan.claims
	}
	if claims != nil {
		p.start(e, claims)
	}
}

// advance starts jobs in queue order up to the first that cannot start, which it
// returns. Jobs that the fleet can never take are passed over.
func (p *pass) advance() *entry {
	for len(p.order) > 0 {
		l := p.order[0]
		if !p.possible(l.kind) {
			p.refuse(l)
			p.next()
			continue
		}
		e := l.entries[0]
		claims := p.fit(l.kind)
		if claims == nil {
			return e
		}
		p.start(e, claims)
		p.shaken = true // it may outlast the promised instant: it is before the head
		l.parked = 0    // its first job could not start behind the head; what comes now may be before it
		p.next()
	}
	return nil
}

// next puts the first line back in order after its first job started, or drops it
// if that did not.
func (p *pass) next() {
	l := p.order[0]
	if len(l.entries) == 0 || p.depth == 0 || l.parked == p.grown && l.planned == p.plan.version {
		heap.Pop(&p.order)
		return
	}
	heap.Fix(&p.order, 0)
}

// park notes that a line's first job cannot start before something changes.
func (p *pass) park(l *line, why reason.Reason) {
	l.parked, l.planned, l.why = p.grown, p.plan.version, why
}

func (p *pass) refuse(l *line) {
	if l.parked != p.grown {
		l.why = place.Never(p.table, l.kind.shape, false)[0]
	}
	p.park(l, l.why)
}

// backfill starts jobs behind the head that do not delay it.
func (p *pass) backfill() {
	head := p.queued[p.plan.job]
	for len(p.order) > 0 {
		l := p.order[0]
		e := l.entries[0]
		switch {
		case l.parked == p.grown && l.planned == p.plan.version:
			// nothing has changed for it
		case e == head:
			p.park(l, p.missing(l))
		case !p.possible(l.kind):
			p.refuse(l)
		default:
			p.try(l, e)
		}
		p.next()
	}
}

// try starts a job if it ends before the head is to start, or leaves the head its
// start at that instant.
func (p *pass) try(l *line, e *entry) {
	if p.depth == 0 {
		l.parked = 0
		return
	}
	var claims []fleet.Claim
	if l.limit > 0 && ending(p.now, l.limit) <= p.plan.at {
		claims = p.fit(l.kind)
	} else if claims = p.beside(l.kind); claims == nil {
		claims = p.aside(l.kind)
	}
	switch {
	case claims != nil:
		p.start(e, claims)
	case l.kind.full == p.grown:
		p.park(l, p.missing(l))
	default:
		p.depth--
		p.park(l, reason.Reason{Code: reason.Reserved, Job: uint64(p.plan.job)})
	}
}

// missing is why a shape does not fit now. It is worked out where it may have to
// be told.
func (p *pass) missing(l *line) reason.Reason {
	if l.why.Code == reason.Resources && l.leader == l.entries[0] {
		return l.why
	}
	if all := place.Missing(p.table, p.state, l.kind.shape); len(all) > 0 {
		return all[0]
	}
	return reason.Reason{Code: reason.Resources, Resource: "nodes"}
}

// start takes a job out of the queue and holds its claims.
func (p *pass) start(e *entry, claims []fleet.Claim) {
	until := ending(p.now, e.line.limit)
	p.drop(e)
	p.hold(&run{id: e.id, claims: claims, until: until})
	if p.after != nil {
		if until > p.plan.at || until == never {
			p.after.Take(p.table, claims)
		}
		for i := range claims {
			pos := p.table.Find(claims[i].Node)
			p.room.Copy(p.state, p.after, pos)
		}
	}
	if until == never {
		until = 0
	}
	p.out = append(p.out, Start{Job: e.id, Claims: claims, Until: until})
}

// order is a heap of lines by their first jobs.
type order []*line

func (o order) Len() int           { return len(o) }
func (o order) Less(i, j int) bool { return o[i].entries[0].before(o[j].entries[0]) < 0 }
func (o order) Swap(i, j int)      { o[i], o[j] = o[j], o[i] }
func (o *order) Push(x any)        { *o = append(*o, x.(*line)) }
func (o *order) Pop() any {
	old := *o
	l := old[len(old)-1]
	*o = old[:len(old)-1]
	return l
}
