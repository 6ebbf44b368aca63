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

// dropReservation drops the reservation.
func (p *pass) dropReservation() {
	if p.plan.job != 0 {
		p.plan = reservation{version: p.plan.version + 1}
		p.room = room{}
		p.wakePlanned()
	}
}

// reserveHead makes or renews the reservation of the head.
func (p *pass) reserveHead(head *entry) {
	if p.plan.job == head.id && !p.shaken && (p.plan.look == nil || p.plan.look == head.line.kind.look) {
		return
	}
	p.shaken = false
	if look := p.profileOf(head.line.kind); look != nil {
		if at := look.gangStart(); at != never {
			p.reserveCount(head, look, at)
			return
		}
	}
	at, claims := p.firstFittingEnd(head)
	old := p.plan
	if old.job == head.id && old.look == nil && old.at <= at && old.at != never &&
		p.freeBy(old.at, old.claims).Fits(p.table, old.claims) {
		at, claims = old.at, old.claims // a promise is kept where it can be
	}
	p.setReservation(reservation{job: head.id, at: at, claims: claims})
}

// reserveCount reserves a number of nodes.
func (p *pass) reserveCount(head *entry, look *outlook, at Instant) {
	next := reservation{job: head.id, at: at, look: look}
	if p.plan.job == head.id {
		next.nodes = p.plan.nodes // as far as they will do (told)
	}
	p.setReservation(next)
}

func (p *pass) setReservation(r reservation) {
	r.version = p.plan.version + 1
	p.plan, p.room = r, room{}
	p.wakePlanned()
}

// toldNodes is the reservation's nodes: those that were told before, if they will do.
func (p *pass) toldNodes() []int32 {
	r, look := &p.plan, p.plan.look
	look.catchUp()
	ready := func(pos int32) bool { return int(pos) < len(look.when) && look.when[pos] <= r.at }
	if len(r.nodes) != look.need || slices.ContainsFunc(r.nodes, func(pos int32) bool { return !ready(pos) }) {
		r.nodes, r.claims = look.tellableNodes(), nil
	}
	return r.nodes
}

// reservedClaims is the claims of the reservation.
func (p *pass) reservedClaims() []fleet.Claim {
	if p.plan.look != nil {
		nodes := p.toldNodes()
		p.plan.claims = p.plan.look.claimsOn(nodes)
	}
	return p.plan.claims
}

// firstFittingEnd finds the first planned end of a running job after which the head fits.
func (p *pass) firstFittingEnd(head *entry) (Instant, []fleet.Claim) {
	shape := head.line.kind.shape
	ends := p.ends.allRuns()
	steps := endSteps(ends)
	i := sort.Search(len(steps), func(i int) bool { return place.Fits(p.table, p.freeAfter(ends[:steps[i]]), shape) })
	for ; i < len(steps); i++ {
		if claims := place.Gang(p.table, p.freeAfter(ends[:steps[i]]), shape); claims != nil {
			return ends[steps[i]-1].until, claims
		}
	}
	return never, place.Gang(p.table, p.empty, shape)
}

// endSteps lists how many of the running jobs have ended after each planned end. Of
// jobs without a limit one after the other is taken to have ended.
func endSteps(ends []*run) []int {
	var out []int
	for i := range ends {
		if i+1 == len(ends) || ends[i+1].until != ends[i].until || ends[i].until == never {
			out = append(out, i+1)
		}
	}
	return out
}

// freeAfter is what is free after some jobs have ended.
func (p *pass) freeAfter(ended []*run) *index.State {
	s := p.state.Clone()
	for _, r := range ended {
		s.Release(p.table, r.claims)
	}
	return s
}

// freeBy is what is free at an instant. For the instant never, jobs without a
// limit end one after the other until the claims that wait for them are free.
func (p *pass) freeBy(at Instant, claims []fleet.Claim) *index.State {
	ends := p.ends.allRuns()
	n := sort.Search(len(ends), func(i int) bool { return ends[i].until > at || ends[i].until == never })
	s := p.freeAfter(ends[:n])
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

// placeBesideHead places a shape so that the head keeps its start, for a job that outlasts
// the promised instant.
func (p *pass) placeBesideHead(k *kind) []fleet.Claim {
	if k.full || k.shadowed == p.plan.version {
		return nil
	}
	claims, sure := p.placeSparing(k)
	if !sure {
		if claims = p.placeAround(k); claims == nil {
			claims = p.placeAside(k)
		}
	}
	if claims == nil {
		k.shadowed = p.plan.version
	}
	return claims
}

// placeSparing places a shape on cells: where it is preferred, if the head has enough
// nodes left, else on nodes that the head does not need, else beside as many of
// these as it can spare. sure is false where that has to be looked at node by node.
func (p *pass) placeSparing(k *kind) (claims []fleet.Claim, sure bool) {
	look := p.plan.look
	if look == nil {
		return nil, false
	}
	look.catchUp()
	if claims = p.placeFree(k); claims == nil || look.sparesGang(claims) {
		return claims, true
	}
	q := p.quickPlacement(k)
	if q == nil {
		return nil, false
	}
	for _, spare := range []int{0, look.due - look.need} {
		claims, sure = q.Place(look.nodesToAvoid(q, spare))
		if !sure {
			return nil, false
		}
		if claims != nil && look.sparesGang(claims) {
			return claims, true
		}
	}
	return nil, true
}

// placeAround places a shape on what is free both now and beside the head at the
// promised instant.
func (p *pass) placeAround(k *kind) []fleet.Claim {
	p.buildHeadState()
	return place.Gang(p.table, p.room.both, k.shape)
}

// buildHeadState builds what is free at the promised instant.
func (p *pass) buildHeadState() {
	if p.room.after != nil {
		return
	}
	claims := p.reservedClaims()
	p.room.after = p.freeBy(p.plan.at, claims)
	p.room.after.Take(p.table, claims)
	p.intersectHeadState()
}

func (p *pass) intersectHeadState() {
	p.room.both = p.state.Clone()
	p.room.both.Within(p.room.after)
}

// placeAside places a shape where it is in the head's way if the head finds other
// nodes for the same instant.
func (p *pass) placeAside(k *kind) []fleet.Claim {
	if p.plan.look != nil {
		return nil // sparing has looked
	}
	claims := p.placeFree(k)
	if claims == nil || p.moves == 0 {
		return nil
	}
	p.moves--
	p.buildHeadState()
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
	p.intersectHeadState()
	return claims
}
