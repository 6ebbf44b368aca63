// Package victim chooses which running work makes room for a job: as little as
// possible of it, never of a higher tier where a lower one does, and nothing that is
// not needed. It is pure, and knows neither jobs nor nodes: what is freed by taking
// a unit away is asked of a Field.
//
// The general problem contains set cover (a unit frees parts of several nodes), so
// there is no exact answer in bounded work. What is guaranteed:
//   - the chosen units make the job fit, and without any one of them it does not
//     (the set is minimal), unless the work allowed for ends before that was tried;
//   - the highest tier in the set is the lowest with which the job fits at all;
//   - "no" is said only where taking everything does not help either.
//
// Best is the slow twin: it is optimal, and for at most 16 units.
//
// Sources: the put-back pass is Slurm's and Kueue's, whole gangs as units and the
// domain before the victims are Volcano's, the counters that refuse early answer
// what KAI reports of searches without result (docs/explanation/preemption.md).
package victim

import (
	"cmp"
	"slices"
)

// Unit is work that is taken away as a whole: a gang, or what an elastic gang has
// above its minimum.
type Unit struct {
	Tier int32 // a unit of a higher tier is worth more than any number of lower ones
	Cost int64 // what is lost with it; more than 0
	Size int64 // how much it holds; more than 0
}

// Field is the state in which units are taken away and put back. Fits must not
// become false because one more unit is taken.
type Field interface {
	Take(unit int)
	Back(unit int)
	Fits() bool
}

// Choose returns the units to take, ascending, or nil if the job does not fit
// without all of them either. It leaves the field with nothing taken. Seeds are sets
// that are likely to do (see Cover). work bounds how often Fits is asked.
func Choose(units []Unit, seeds [][]int, f Field, work int) []int {
	s := &search{units: units, f: f, work: work}
	for _, seed := range seeds {
		if s.best != nil && Compare(units, seed, s.best) >= 0 {
			continue // what is put back makes it cheaper, but seeds are near to minimal
		}
		s.setTaken(seed)
		if s.fitsNow() {
			s.putBackUnneeded()
			s.keepIfCheaper()
		}
	}
	if s.best == nil || len(units) <= few {
		s.takeGreedily()
	}
	s.trySingle()
	s.setTaken(nil)
	return s.best
}

// few is how many units are always searched greedily beside the seeds.
const few = 64

// search is one call of Choose.
type search struct {
	units []Unit
	f     Field
	work  int
	taken []int // in the order in which they were taken
	best  []int
}

func (s *search) fitsNow() bool {
	s.work--
	return s.f.Fits()
}

func (s *search) takeUnit(i int) {
	s.f.Take(i)
	s.taken = append(s.taken, i)
}

// setTaken takes exactly these units.
func (s *search) setTaken(want []int) {
	for _, i := range s.taken {
		s.f.Back(i)
	}
	s.taken = s.taken[:0]
	for _, i := range want {
		s.takeUnit(i)
	}
}

// takeGreedily takes units of low tiers first, and of these what loses least for what it
// holds, until the job fits; then it puts back what was not needed.
func (s *search) takeGreedily() {
	order := make([]int, len(s.units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &s.units[a], &s.units[b]
		return cmp.Or(cmp.Compare(x.Tier, y.Tier), cmp.Compare(x.Cost/x.Size, y.Cost/y.Size), cmp.Compare(x.Cost, y.Cost))
	})
	s.setTaken(nil)
	fits, step := false, 1
	for n := 0; n < len(order) && !fits; step *= 2 {
		next := min(n+step, len(order))
		for _, i := range order[n:next] {
			s.takeUnit(i)
		}
		n, fits = next, s.fitsNow()
	}
	if !fits {
		return
	}
	s.putBackUnneeded()
	s.keepIfCheaper()
}

// putBackUnneeded puts back, the dearest first, each unit without which the job fits as well.
// One round is enough: what was needed beside more is needed beside less.
func (s *search) putBackUnneeded() {
	order := slices.Clone(s.taken)
	slices.SortStableFunc(order, func(a, b int) int { return -s.compareCost(a, b) })
	for _, i := range order {
		if s.work <= 0 {
			return
		}
		s.f.Back(i)
		if s.fitsNow() {
			at := slices.Index(s.taken, i)
			s.taken = slices.Delete(s.taken, at, at+1)
		} else {
			s.f.Take(i)
		}
	}
}

func (s *search) compareCost(a, b int) int {
	x, y := &s.units[a], &s.units[b]
	return cmp.Or(cmp.Compare(x.Tier, y.Tier), cmp.Compare(x.Cost, y.Cost), cmp.Compare(a, b))
}

// keepIfCheaper keeps what is taken if it is cheaper than the best so far.
func (s *search) keepIfCheaper() {
	if s.best == nil || Compare(s.units, s.taken, s.best) < 0 {
		s.best = slices.Sorted(slices.Values(s.taken))
		if s.best == nil {
			s.best = []int{}
		}
	}
}

// trySingle looks for one unit that is enough and cheaper than the best set.
func (s *search) trySingle() {
	if len(s.best) < 2 {
		return
	}
	for i := range s.units {
		if one := []int{i}; s.work > 0 && Compare(s.units, one, s.best) < 0 {
			s.setTaken(one)
			if s.fitsNow() {
				s.keepIfCheaper()
			}
		}
	}
}

// Compare orders sets of units by what is lost with them: first what they cost in
// the highest tier that either has, then in the next one, then by their number.
func Compare(units []Unit, a, b []int) int {
	tiers := make([]int32, 0, 8)
	for _, set := range [][]int{a, b} {
		for _, i := range set {
			if t := units[i].Tier; !slices.Contains(tiers, t) {
				tiers = append(tiers, t)
			}
		}
	}
	slices.SortFunc(tiers, func(x, y int32) int { return cmp.Compare(y, x) })
	for _, t := range tiers {
		if c := cmp.Compare(costOf(units, a, t), costOf(units, b, t)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func costOf(units []Unit, set []int, tier int32) (sum int64) {
	for _, i := range set {
		if units[i].Tier == tier {
			sum += units[i].Cost
		}
	}
	return sum
}
