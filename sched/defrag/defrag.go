// Package defrag chooses which running jobs move so that a gang fits that waits, where
// enough is free and lies in pieces. It is pure, and knows neither jobs nor nodes: what
// is freed by lifting a unit, and whether those that were lifted find other places
// once the gang has its own, is asked of a Field.
//
// Unlike victims (sched/victim), those that move go on at once elsewhere, so that a
// larger set may fail where a smaller one does: each of them needs a place.
//
// What is guaranteed of the units that Choose returns:
//   - the gang fits beside all that stays, and each of them has a place beside both;
//   - they cost less than what the move is worth;
//   - where it says so (sure), no set costs less, or there is none.
//
// Best is the slow twin: it tries all sets, of at most 16 units.
//
// Sources: "consolidate" of KAI (nobody is stopped without a proven place), and the
// evacuation of the cheapest domain, which is the choice of victims with one more
// condition (docs/explanation/defrag.md).
package defrag

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/coxswain-sched/coxswain/sched/victim"
)

// Field is the state in which units are lifted and put back.
type Field interface {
	victim.Field
	// Settles reports whether each of the lifted units finds a place once the gang has
	// taken its own. It is asked where Fits holds, and leaves the field as it was.
	Settles(lifted []int) bool
}

// Bounds of one search.
type Bounds struct {
	Worth int64 // sets that do not cost less are not looked at
	Most  int   // units of a set
	Work  int   // sets that are tried
}

// Choose returns the units to move, ascending; nil if it found none. seeds are sets
// that are likely to do (victim.Cover). sure is false where it stopped before all
// cheaper sets were tried.
func Choose(units []victim.Unit, seeds [][]int, f Field, b Bounds) (moves []int, sure bool) {
	s := &search{units: units, f: f, Bounds: b}
	for _, seed := range seeds {
		if len(seed) > 0 {
			s.trySet(slices.Sorted(slices.Values(seed)))
		}
	}
	sure = s.enumerateSets()
	s.liftSet(nil)
	return s.best, sure
}

// search is one call of Choose.
type search struct {
	Bounds
	units []victim.Unit
	f     Field
	taken []int
	best  []int
}

// costOf is what a set costs.
func costOf(units []victim.Unit, set []int) (sum int64) {
	for _, i := range set {
		sum += units[i].Cost
	}
	return sum
}

// trySet keeps a set if it does and costs less than what is known.
func (s *search) trySet(set []int) {
	c := costOf(s.units, set)
	if c >= s.Worth || len(set) > s.Most || s.Work <= 0 {
		return
	}
	s.Work--
	s.liftSet(set)
	if s.f.Fits() && s.f.Settles(set) {
		s.best, s.Worth = slices.Clone(set), c
	}
}

// liftSet lifts exactly these units.
func (s *search) liftSet(want []int) {
	for _, i := range s.taken {
		if !slices.Contains(want, i) {
			s.f.Back(i)
		}
	}
	for _, i := range want {
		if !slices.Contains(s.taken, i) {
			s.f.Take(i)
		}
	}
	s.taken = append(s.taken[:0], want...)
}

// enumerateSets tries sets, the cheapest first, up to the best one that is known: the
// first that does is the cheapest of all. It reports whether it came to the end.
func (s *search) enumerateSets() bool {
	order := make([]int, 0, len(s.units))
	for i := range s.units {
		if s.units[i].Cost < s.Worth {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.units[a].Cost, s.units[b].Cost) })
	q := &sets{}
	if len(order) > 0 {
		heap.Push(q, subset{cost: s.units[order[0]].Cost, at: []int{0}})
	}
	for q.Len() > 0 {
		next := heap.Pop(q).(subset)
		switch {
		case next.cost >= s.Worth:
			return true // so are all that are left
		case s.Work <= 0:
			return false
		}
		set := make([]int, len(next.at))
		for i, at := range next.at {
			set[i] = order[at]
		}
		slices.Sort(set)
		s.trySet(set)
		last := next.at[len(next.at)-1] + 1
		if last == len(order) {
			continue
		}
		more := s.units[order[last]].Cost
		swapped := append(slices.Clone(next.at[:len(next.at)-1]), last)
		heap.Push(q, subset{next.cost - s.units[order[last-1]].Cost + more, swapped})
		if len(next.at) < s.Most {
			heap.Push(q, subset{next.cost + more, append(slices.Clone(next.at), last)})
		}
	}
	return true
}

// subset is a set of units by their places in the order of cost, ascending. Each set
// comes of exactly one cheaper or equal one: by adding the unit behind its last, or
// by putting that in the place of its last.
type subset struct {
	cost int64
	at   []int
}

// sets is a heap of subsets: the cheapest first, then the smallest, then in order.
type sets []subset

func (q sets) Len() int { return len(q) }
func (q sets) Less(i, j int) bool {
	a, b := q[i], q[j]
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(len(a.at), len(b.at)), slices.Compare(a.at, b.at)) < 0
}
func (q sets) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *sets) Push(x any)   { *q = append(*q, x.(subset)) }
func (q *sets) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
