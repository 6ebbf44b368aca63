package sched

import (
	"sort"

	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// reservation is what is kept for the head of the queue: named nodes and devices
// at the earliest instant at which it fits if every running job uses its whole
// limit. No job behind it may take these beyond that instant.
type reservation struct {
	job     job.ID
	at      Instant // never: a job without a limit stands in the way
	claims  []fleet.Claim
	version uint64 // raised whenever it changes
}

// reserve makes or renews the reservation of the head.
func (p *pass) reserve(head *entry) {
	if p.plan.job == head.id && !p.shaken {
		return
	}
	at, claims := p.earliest(head)
	old := p.plan
	if old.job == head.id && old.at <= at && old.at != never &&
		p.freeBy(old.at, old.claims).Fits(p.table, old.claims) {
		at, claims = old.at, old.claims // a promise is kept where it can be
	}
	p.plan = reservation{job: head.id, at: at, claims: claims, version: old.version + 1}
	p.shaken = false
}

// earliest finds the first planned end of a running job after which the head fits.
func (p *pass) earliest(head *entry) (Instant, []fleet.Claim) {
	shape := head.line.kind.shape
	steps := p.steps()
	i := sort.Search(len(steps), func(i int) bool { return place.Fits(p.table, p.released(steps[i]), shape) })
	for ; i < len(steps); i++ {
		if claims := place.Gang(p.table, p.released(steps[i]), shape); claims != nil {
			return p.ends[steps[i]-1].until, claims
		}
	}
	return never, place.Gang(p.table, p.empty, shape)
}

// steps lists how many of the running jobs have ended after each planned end. Of
// jobs without a limit one after the other is taken to have ended.
func (p *pass) steps() []int {
	var out []int
	for i := range p.ends {
		if i+1 == len(p.ends) || p.ends[i+1].until != p.ends[i].until || p.ends[i].until == never {
			out = append(out, i+1)
		}
	}
	return out
}

// released is what is free after the first n planned ends.
func (p *pass) released(n int) *index.State {
	s := p.state.Clone()
	for _, r := range p.ends[:n] {
		s.Release(p.table, r.claims)
	}
	return s
}

// freeBy is what is free at an instant. For the instant never, jobs without a
// limit end one after the other until the claims that wait for them are free.
func (p *pass) freeBy(at Instant, claims []fleet.Claim) *index.State {
	n := sort.Search(len(p.ends), func(i int) bool { return p.ends[i].until > at || p.ends[i].until == never })
	s := p.released(n)
	if at != never {
		return s
	}
	for _, r := range p.ends[n:] {
		if s.Fits(p.table, claims) {
			break
		}
		s.Release(p.table, r.claims)
	}
	return s
}

// beside places a shape on what is free both now and beside the head at the
// promised instant.
func (p *pass) beside(k *kind) []fleet.Claim {
	if k.full == p.grown || k.shadowed == p.plan.version {
		return nil
	}
	p.foresee()
	claims := place.Gang(p.table, p.room, k.shape)
	if claims == nil {
		k.shadowed = p.plan.version
	}
	return claims
}

// foresee builds what is free at the promised instant.
func (p *pass) foresee() {
	if p.after != nil {
		return
	}
	p.after = p.freeBy(p.plan.at, p.plan.claims)
	p.after.Take(p.table, p.plan.claims)
	p.room = p.state.Clone()
	p.room.Within(p.after)
}

// aside places a shape where it is in the head's way if the head finds other
// nodes for the same instant.
func (p *pass) aside(k *kind) []fleet.Claim {
	claims := p.fit(k)
	if claims == nil || p.moves == 0 {
		return nil
	}
	p.moves--
	p.foresee()
	then := p.after.Clone()
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
	p.after = then
	p.room = p.state.Clone()
	p.room.Within(p.after)
	return claims
}
