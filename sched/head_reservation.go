package sched

import (
	"slices"
	"sort"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// headReservation is what is kept for the head of the queue at the earliest instant at
// which it fits if every running job uses its whole limit. No job behind it may take
// that beyond the instant.
//
// What is kept is a number of nodes where the head's kind has an availability profile, and named
// nodes and devices where it has not.
type headReservation struct {
	job      job.ID
	position queuePosition // of a head with a quota
	at       Instant       // never: a job without a limit stands in the way
	profile  *availabilityProfile
	nodes    []int32       // told to the head, if it has an availability profile
	claims   []fleet.Claim // if it has none; or made from nodes
	version  uint64        // raised whenever it changes
}

// dropReservation drops the reservation.
func (p *schedulingCycle) dropReservation() {
	if p.plan.job != 0 {
		p.plan = headReservation{version: p.plan.version + 1}
		p.extra = extraNodes{}
		p.wakePlanned()
	}
}

// reserveHead makes or renews the reservation of the head.
func (p *schedulingCycle) reserveHead(head *queuedJob) {
	if p.plan.job == head.id && !p.planDirty && (p.plan.profile == nil || p.plan.profile == head.class.kind.profile) {
		return
	}
	p.planDirty = false
	if look := p.profileOf(head.class.kind); look != nil {
		if at := look.gangStart(); at != never {
			p.reserveCount(head, look, at)
			return
		}
	}
	at, claims := p.firstFittingEnd(head)
	old := p.plan
	if old.job == head.id && old.profile == nil && old.at <= at && old.at != never &&
		p.freeBy(old.at, old.claims).Fits(p.fleet.table, old.claims) {
		at, claims = old.at, old.claims // a promise is kept where it can be
	}
	p.setReservation(headReservation{job: head.id, at: at, claims: claims})
}

// reserveCount reserves a number of nodes.
func (p *schedulingCycle) reserveCount(head *queuedJob, look *availabilityProfile, at Instant) {
	next := headReservation{job: head.id, at: at, profile: look}
	if p.plan.job == head.id {
		next.nodes = p.plan.nodes // as far as they will do (toldNodes)
	}
	p.setReservation(next)
}

func (p *schedulingCycle) setReservation(r headReservation) {
	r.version = p.plan.version + 1
	p.plan, p.extra = r, extraNodes{}
	p.wakePlanned()
}

// toldNodes is the reservation's nodes: those that were told before, if they will do.
func (p *schedulingCycle) toldNodes() []int32 {
	r, look := &p.plan, p.plan.profile
	look.catchUp()
	ready := func(pos int32) bool { return int(pos) < len(look.when) && look.when[pos] <= r.at }
	if len(r.nodes) != look.need || slices.ContainsFunc(r.nodes, func(pos int32) bool { return !ready(pos) }) {
		r.nodes, r.claims = look.tellableNodes(), nil
	}
	return r.nodes
}

// reservedClaims is the claims of the reservation.
func (p *schedulingCycle) reservedClaims() []fleet.Claim {
	if p.plan.profile != nil {
		nodes := p.toldNodes()
		p.plan.claims = p.plan.profile.claimsOn(nodes)
	}
	return p.plan.claims
}

// firstFittingEnd finds the first planned end of a running job after which the head fits.
func (p *schedulingCycle) firstFittingEnd(head *queuedJob) (Instant, []fleet.Claim) {
	shape := head.class.kind.shape
	ends := p.runs.ends.allRuns()
	steps := endSteps(ends)
	i := sort.Search(len(steps), func(i int) bool { return place.Fits(p.fleet.table, p.freeAfter(ends[:steps[i]]), shape) })
	for ; i < len(steps); i++ {
		if claims := place.Gang(p.fleet.table, p.freeAfter(ends[:steps[i]]), shape); claims != nil {
			return ends[steps[i]-1].until, claims
		}
	}
	return never, place.Gang(p.fleet.table, p.fleet.empty, shape)
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
func (p *schedulingCycle) freeAfter(ended []*run) *index.State {
	s := p.fleet.state.Clone()
	for _, r := range ended {
		s.Release(p.fleet.table, r.claims)
	}
	return s
}

// freeBy is what is free at an instant. For the instant never, jobs without a
// limit end one after the other until the claims that wait for them are free.
func (p *schedulingCycle) freeBy(at Instant, claims []fleet.Claim) *index.State {
	ends := p.runs.ends.allRuns()
	n := sort.Search(len(ends), func(i int) bool { return ends[i].until > at || ends[i].until == never })
	s := p.freeAfter(ends[:n])
	if at != never {
		return s
	}
	for _, r := range ends[n:] {
		if s.Fits(p.fleet.table, claims) {
			break
		}
		s.Release(p.fleet.table, r.claims)
	}
	return s
}

// placeBesideHead places a shape so that the head keeps its start, for a job that outlasts
// the promised instant.
func (p *schedulingCycle) placeBesideHead(k *kind) []fleet.Claim {
	if k.full || k.blockedPlan == p.plan.version {
		return nil
	}
	claims, sure := p.placeSparing(k)
	if !sure {
		if claims = p.placeAround(k); claims == nil {
			claims = p.placeAside(k)
		}
	}
	if claims == nil {
		k.blockedPlan = p.plan.version
	}
	return claims
}

// placeSparing places a shape on cells: where it is preferred, if the head has enough
// nodes left, else on nodes that the head does not need, else beside as many of
// these as it can spare. sure is false where that has to be looked at node by node.
func (p *schedulingCycle) placeSparing(k *kind) (claims []fleet.Claim, sure bool) {
	look := p.plan.profile
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
func (p *schedulingCycle) placeAround(k *kind) []fleet.Claim {
	p.buildHeadState()
	return place.Gang(p.fleet.table, p.extra.both, k.shape)
}

// buildHeadState builds what is free at the promised instant.
func (p *schedulingCycle) buildHeadState() {
	if p.extra.after != nil {
		return
	}
	claims := p.reservedClaims()
	p.extra.after = p.freeBy(p.plan.at, claims)
	p.extra.after.Take(p.fleet.table, claims)
	p.intersectHeadState()
}

func (p *schedulingCycle) intersectHeadState() {
	p.extra.both = p.fleet.state.Clone()
	p.extra.both.Within(p.extra.after)
}

// placeAside places a shape where it is in the head's way if the head finds other
// nodes for the same instant.
func (p *schedulingCycle) placeAside(k *kind) []fleet.Claim {
	if p.plan.profile != nil {
		return nil // placeSparing has looked
	}
	claims := p.placeFree(k)
	if claims == nil || p.headMovesLeft == 0 {
		return nil
	}
	p.headMovesLeft--
	p.buildHeadState()
	then := p.extra.after.Clone()
	then.Release(p.fleet.table, p.plan.claims)
	then.Take(p.fleet.table, claims)
	other := place.Gang(p.fleet.table, then, p.queue.jobs[p.plan.job].class.kind.shape)
	if other == nil {
		return nil
	}
	p.plan.claims = other
	p.plan.version++
	then.Release(p.fleet.table, claims) // startJob takes them
	then.Take(p.fleet.table, other)
	p.extra.after = then
	p.intersectHeadState()
	return claims
}
