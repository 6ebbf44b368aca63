package sched

import (
	"slices"
	"sort"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// reservation is what is kept for the head of the queue at the earliest instant at
// which it fits if every running job uses its whole limit. No job behind it may take
// that beyond the instant.
//
// What is kept is a number of nodes where the head's kind has an outlook, and named
// nodes and devices where it has not.
type reservation struct {
	job     job.ID
	station station // of a head with a quota
	at      Instant // never: a job without a limit stands in the way
	look    *outlook
	nodes   []int32       // told to the head, if it has an outlook
	claims  []fleet.Claim // if it has none; or made from nodes
	version uint64        // raised whenever it changes
}

// unplan drops the reservation.
func (p *pass) unplan() {
	if p.plan.job != 0 {
		p.plan = reservation{version: p.plan.version + 1}
		p.room = room{}
		p.rousePlanned()
	}
}

// reserve makes or renews the reservation of the head.
func (p *pass) reserve(head *entry) {
	if p.plan.job == head.id && !p.shaken && (p.plan.look == nil || p.plan.look == head.line.kind.look) {
		return
	}
	p.shaken = false
	if look := p.outlookOf(head.line.kind); look != nil {
		if at := look.start(); at != never {
			p.count(head, look, at)
			return
		}
	}
	at, claims := p.earliest(head)
	old := p.plan
	if old.job == head.id && old.look == nil && old.at <= at && old.at != never &&
		p.freeBy(old.at, old.claims).Fits(p.table, old.claims) {
		at, claims = old.at, old.claims // a promise is kept where it can be
	}
	p.replan(reservation{job: head.id, at: at, claims: claims})
}

// count reserves a number of nodes.
func (p *pass) count(head *entry, look *outlook, at Instant) {
	next := reservation{job: head.id, at: at, look: look}
	if p.plan.job == head.id {
		next.nodes = p.plan.nodes // as far as they will do (told)
	}
	p.replan(next)
}

func (p *pass) replan(r reservation) {
	r.version = p.plan.version + 1
	p.plan, p.room = r, room{}
	p.rousePlanned()
}

// told is the reservation's nodes: those that were told before, if they will do.
func (p *pass) told() []int32 {
	r, look := &p.plan, p.plan.look
	look.follow()
	ready := func(pos int32) bool { return int(pos) < len(look.when) && look.when[pos] <= r.at }
	if len(r.nodes) != look.need || slices.ContainsFunc(r.nodes, func(pos int32) bool { return !ready(pos) }) {
		r.nodes, r.claims = look.nodes(), nil
	}
	return r.nodes
}

// reserved is the claims of the reservation.
func (p *pass) reserved() []fleet.Claim {
	if p.plan.look != nil {
		nodes := p.told()
		p.plan.claims = p.plan.look.claims(nodes)
	}
	return p.plan.claims
}

// earliest finds the first planned end of a running job after which the head fits.
func (p *pass) earliest(head *entry) (Instant, []fleet.Claim) {
	shape := head.line.kind.shape
	ends := p.ends.all()
	steps := steps(ends)
	i := sort.Search(len(steps), func(i int) bool { return place.Fits(p.table, p.released(ends[:steps[i]]), shape) })
	for ; i < len(steps); i++ {
		if claims := place.Gang(p.table, p.released(ends[:steps[i]]), shape); claims != nil {
			return ends[steps[i]-1].until, claims
		}
	}
	return never, place.Gang(p.table, p.empty, shape)
}

// steps lists how many of the running jobs have ended after each planned end. Of
// jobs without a limit one after the other is taken to have ended.
func steps(ends []*run) []int {
	var out []int
	for i := range ends {
		if i+1 == len(ends) || ends[i+1].until != ends[i].until || ends[i].until == never {
			out = append(out, i+1)
		}
	}
	return out
}

// released is what is free after some jobs have ended.
func (p *pass) released(ended []*run) *index.State {
	s := p.state.Clone()
	for _, r := range ended {
		s.Release(p.table, r.claims)
	}
	return s
}

// freeBy is what is free at an instant. For the instant never, jobs without a
// limit end one after the other until the claims that wait for them are free.
func (p *pass) freeBy(at Instant, claims []fleet.Claim) *index.State {
	ends := p.ends.all()
	n := sort.Search(len(ends), func(i int) bool { return ends[i].until > at || ends[i].until == never })
	s := p.released(ends[:n])
	if at != never {
		return s
	}
	for _, r := range ends[n:] {
		if s.Fits(p.table, claims) {
			break
		}
		s.Release(p.table, r.claims)
	}
	return s
}

// beside places a shape so that the head keeps its start, for a job that outlasts
// the promised instant.
func (p *pass) beside(k *kind) []fleet.Claim {
	if k.full || k.shadowed == p.plan.version {
		return nil
	}
	claims, sure := p.sparing(k)
	if !sure {
		if claims = p.around(k); claims == nil {
			claims = p.aside(k)
		}
	}
	if claims == nil {
		k.shadowed = p.plan.version
	}
	return claims
}

// sparing places a shape on cells: where it is preferred, if the head has enough
// nodes left, else on nodes that the head does not need, else beside as many of
// these as it can spare. sure is false where that has to be looked at node by node.
func (p *pass) sparing(k *kind) (claims []fleet.Claim, sure bool) {
	look := p.plan.look
	if look == nil {
		return nil, false
	}
	look.follow()
	if claims = p.fit(k); claims == nil || look.allows(claims) {
		return claims, true
	}
	q := p.quickly(k)
	if q == nil {
		return nil, false
	}
	for _, spare := range []int{0, look.due - look.need} {
		claims, sure = q.Place(look.avoidance(q, spare))
		if !sure {
			return nil, false
		}
		if claims != nil && look.allows(claims) {
			return claims, true
		}
	}
	return nil, true
}

// around places a shape on what is free both now and beside the head at the
// promised instant.
func (p *pass) around(k *kind) []fleet.Claim {
	p.foresee()
	return place.Gang(p.table, p.room.both, k.shape)
}

// foresee builds what is free at the promised instant.
func (p *pass) foresee() {
	if p.room.after != nil {
		return
	}
	claims := p.reserved()
	p.room.after = p.freeBy(p.plan.at, claims)
	p.room.after.Take(p.table, claims)
	p.meet()
}

func (p *pass) meet() {
	p.room.both = p.state.Clone()
	p.room.both.Within(p.room.after)
}

// aside places a shape where it is in the head's way if the head finds other
// nodes for the same instant.
func (p *pass) aside(k *kind) []fleet.Claim {
	if p.plan.look != nil {
		return nil // sparing has looked
	}
	claims := p.fit(k)
	if claims == nil || p.moves == 0 {
		return nil
	}
	p.moves--
	p.foresee()
	then := p.room.after.Clone()
	then.Release(p.table, p.plan.claims)
	then.Take(p.table, claims)
	other := place.Gang(p.table, then, p.queued[p.plan.job].line.kind.shape)
	if other == nil {
		return nil
	}
	p.plan.claims = other
	p.plan.version++
	then.Release(p.table, claims) // start takes them
	then.Take(p.table, other)
	p.room.after = then
	p.meet()
	return claims
}
