package sched

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/victim"
)

// This file looks for the victims of one job: which running ones have to go so that it
// fits whole, at the least cost (sched/victim), with everything tried on the state of the
// moment and put back. Who may take from whom is in preemption_order.go, what follows in
// preempt.go, where reservations keep the job off in victim_search_reserved.go.

// Bounds of one search for victims, and of what is remembered.
const (
	searchWork   = 1024      // placements that are tried
	restartTime  = 60        // seconds that a job loses by being started again
	leafSeeds    = 16        // topology leaves that are looked at more closely
	stoppingTier = -3        // of units that go anyway
	nomineeTier  = -2        // of what is only held for a job of lower order
	lentTier     = -1        // of what was added to a gang beyond its minimum
	sliceTier    = 1 << 20   // of jobs with which it would take turns
	noUnit       = int32(-1) // of runs outside a search
)

// victimSearch looks for the victims of one job.
type victimSearch struct {
	*schedulingCycle
	entry           *queuedJob
	kind            *kind
	unitRuns        []*run
	units           []victim.Unit
	chosen          []*run
	fitsWithLeavers bool // the job fits once those have gone who go anyway
}

// findVictims finds where the job would run and whose place it takes there; nil: nowhere.
func (s *victimSearch) findVictims() []fleet.Claim {
	if !s.mightSuffice() {
		return nil
	}
	s.gatherCandidates()
	defer s.endSearch()
	s.closeReservedNodes()
	seeds, ok := s.seedSets()
	if !ok || len(s.units) == 0 {
		return nil
	}
	set := victim.Choose(s.units, seeds, s, searchWork)
	if set == nil {
		return nil
	}
	others := s.preempt.rules.mayPreempt(s.entry.class.key.policy.preemption)
	for _, i := range set {
		s.Take(i)
		s.chosen = append(s.chosen, s.unitRuns[i])
		others = others || s.unitRuns[i].nominee != nil || s.unitRuns[i].of != nil
	}
	if s.fitsWithLeavers = !others; s.fitsWithLeavers {
		return nil // it would only wait for what ends anyway, before those who are before it
	}
	return s.placeJob()
}

// endSearch leaves everything as it was before the search.
func (s *victimSearch) endSearch() {
	s.undoLifts()
	for _, r := range s.unitRuns {
		r.search.unit, r.search.lifts = noUnit, 0
	}
}

// mightSuffice compares counters: whether all that the job may take, with what is free,
// could be enough at all.
func (s *victimSearch) mightSuffice() bool {
	x, mine := s.preempt.rules, s.entry.class.key.policy.preemption
	if s.elastic.lent > 0 || x == nil {
		return true // what is lent is not counted
	}
	_, free := s.fleet.cells.Devices()
	runs, held := s.Core.runs.stopping+len(s.preempt.nominees), int64(free)*int64(resource.WholeDevice)
	for _, o := range x.all {
		if o.mode != account.PreemptOff && x.mayTakeFrom(mine, 1, o, 0) || mine.alternatesWith(o) {
			runs += o.runs
			held += o.held
		}
	}
	if runs == 0 {
		return false
	}
	need := int64(0)
	for i := range s.kind.shape.Groups {
		need += int64(s.kind.shape.Groups[i].AllDevices) * int64(resource.WholeDevice)
	}
	if s.Core.runs.stopping+len(s.preempt.nominees) > 0 {
		return true // what these hold is not counted
	}
	return need <= held
}

// gatherCandidates lists what may be taken: what is being ended anyway, what is held for
// jobs of lower order, and running jobs that this one outranks and that have run for
// their exempt time.
func (s *victimSearch) gatherCandidates() {
	for _, chunk := range s.runs.ends.chunks {
		for _, r := range chunk {
			if tier, ok := s.candidateTier(r); ok {
				r.search.unit = int32(len(s.unitRuns))
				s.unitRuns = append(s.unitRuns, r)
				s.units = append(s.units, victim.Unit{Tier: tier, Cost: s.lossOf(r), Size: r.search.weight})
			}
		}
	}
	s.numberTiers()
}

func (s *victimSearch) candidateTier(r *run) (tier int32, ok bool) {
	switch {
	case r.target != nil:
		return 0, false
	case r.nominee != nil && r.nominee.target != nil: // it is as if it ran there
		return nomineeTier, s.jobOutranks(s.entry, r.nominee.entry)
	case r.nominee != nil:
		o := r.nominee.entry
		return nomineeTier, s.entry.compareOrder(o) < 0 && !s.jobOutranks(o, s.entry)
	case r.stopping:
		return stoppingTier, !r.pause.givesWay
	case r.of != nil:
		return lentTier, s.entry.id != r.id
	case !s.mayTake(r):
		return sliceTier, s.mayJoin(r)
	case r.pause.suspended != nil:
		return 0, true
	}
	if since := addDuration(r.began, time.Duration(r.policy.preemption.exempt)); since > s.now {
		if s.preempt.exemptUntil == 0 || since < s.preempt.exemptUntil {
			s.preempt.exemptUntil = since
		}
		return 0, false
	}
	return 0, true
}

func (s *victimSearch) mayTake(r *run) bool {
	o := r.policy.preemption
	return s.preempt.rules != nil && (o.mode != account.PreemptOff || r.pause.suspended != nil) && !(o.mode == account.PreemptSuspend && (r.isElastic() || r.isAggregate())) &&
		(planted.AnyonePreempts || s.preempt.rules.mayTakeFrom(s.entry.class.key.policy.preemption, s.entry.priority, o, r.priority))
}

// lossOf is what taking a run back costs: what it holds, for as long as nothing of it
// is saved and for starting it again.
func (s *victimSearch) lossOf(r *run) int64 {
	if r.nominee != nil || r.stopping {
		return 1
	}
	if r.yieldsSuspended() {
		return min(r.search.weight, 1<<31) // it loses nothing but time
	}
	lost := max(int64(s.now-max(r.began, r.move.savedAt))/int64(time.Second), 0)
	return min(lost+restartTime, 1<<31) * min(r.search.weight, 1<<31)
}

// numberTiers numbers the tiers of candidates: partition, then QOS, then the job's own
// priority where that decides who may take.
func (s *victimSearch) numberTiers() {
	order := make([]*run, 0, len(s.unitRuns))
	for i, r := range s.unitRuns {
		if s.units[i].Tier == 0 {
			order = append(order, r)
		}
	}
	compare := func(a, b *run) int {
		x, y := a.policy.preemption, b.policy.preemption
		c := cmp.Or(cmp.Compare(x.tier, y.tier), cmp.Compare(x.worth, y.worth))
		if c == 0 && s.preempt.rules.byPriority {
			c = cmp.Compare(a.priority, b.priority)
		}
		return c
	}
	slices.SortStableFunc(order, compare)
	tier := int32(0)
	for i, r := range order {
		if i > 0 && compare(order[i-1], r) != 0 {
			tier++
		}
		s.units[r.search.unit].Tier = tier
	}
}

// seedSets proposes sets for shapes that need a number of alike nodes: the cheapest
// nodes of each of the leaves that hold the whole gang, and of the fleet. ok is false
// if even all units together are not enough.
func (s *victimSearch) seedSets() (sets [][]int, ok bool) {
	q := s.quickPlacement(s.kind)
	if q == nil || !q.Countable() {
		return nil, true
	}
	_, need := q.Part()
	var spots [][]int
	leaves := s.fleet.table.Leaves()
	from := make([]int, len(leaves)+1)
	pages := s.fleet.table.Pages()
	for i, leaf := range leaves {
		from[i] = len(spots)
		for no := leaf.From; no < leaf.To; no++ {
			for _, pos := range pages[no].Nodes {
				if spot, ok := s.nodeVictims(q, int(pos)); ok {
					spots = append(spots, spot)
				}
			}
		}
	}
	from[len(leaves)] = len(spots)
	if len(spots) < need {
		return nil, false
	}
	if need > 1 && len(leaves) > 1 {
		for i := range leaves {
			if set, ok := victim.Cover(s.units, spots[from[i]:from[i+1]], need); ok {
				sets = append(sets, set)
			}
		}
		slices.SortStableFunc(sets, func(a, b []int) int { return victim.Compare(s.units, a, b) })
		sets = sets[:min(len(sets), leafSeeds)]
	}
	set, _ := victim.Cover(s.units, spots, need)
	return append(sets, set), true
}

// nodeVictims is what has to go for a node to take its part; ok is false if nothing helps.
func (s *victimSearch) nodeVictims(q *place.Quick, pos int) (gone []int, ok bool) {
	cell := s.fleet.cells.Of(pos)
	if cell < 0 {
		return nil, false
	}
	if q.Serves(cell) {
		return nil, true
	}
	var on []int
	held := s.fleet.nodes[pos].held
	for _, h := range held {
		if h.run.search.unit != noUnit && !slices.Contains(on, int(h.run.search.unit)) {
			on = append(on, int(h.run.search.unit))
		}
	}
	desc := s.fleet.table.Node(pos)
	gone = victim.Spot(s.units, on, func(gone []int) bool {
		row := *s.fleet.state.Row(pos)
		for _, h := range held {
			if slices.Contains(gone, int(h.run.search.unit)) {
				row.Change(desc, &h.run.claims[h.claim], -1)
				if h.run.yieldsSuspended() {
					b := retainedClaim(&h.run.claims[h.claim])
					row.Change(desc, &b, 1)
				}
			}
		}
		return q.Serves(s.fleet.cells.Intern(pos, &row))
	})
	return gone, gone != nil
}

// Take, Back and Fits are victim.Field, on the state of the moment.
func (s *victimSearch) Take(unit int) { s.liftWithAdditions(s.unitRuns[unit], -1) }

// Back puts a unit back.
func (s *victimSearch) Back(unit int) { s.liftWithAdditions(s.unitRuns[unit], 1) }

// liftWithAdditions lifts a run, and with a job all that was added to it, or puts them back. An
// addition may be lifted for itself and for its job.
func (s *victimSearch) liftWithAdditions(r *run, sign int) {
	was := r.search.lifts
	if r.search.lifts -= sign; was == 0 || r.search.lifts == 0 {
		s.liftRun(r, sign)
	}
	for _, a := range r.added {
		s.liftWithAdditions(a, sign)
	}
}

// Fits reports whether the job fits on what is free.
func (s *victimSearch) Fits() bool {
	if q := s.quickPlacement(s.kind); q != nil {
		if fits, sure := q.Fits(nil); sure {
			return fits
		}
	}
	return place.Fits(s.fleet.table, s.fleet.state, s.kind.shape)
}

func (s *victimSearch) placeJob() []fleet.Claim {
	if q := s.quickPlacement(s.kind); q != nil {
		if claims, sure := q.Place(nil); sure {
			return claims
		}
	}
	return place.Gang(s.fleet.table, s.fleet.state, s.kind.shape)
}
