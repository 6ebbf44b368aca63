package victim

import "slices"

// Best is the slow twin of Choose: the cheapest of all sets that do, found by trying
// each (branch and bound over at most 16 units). Tests compare Choose with it.
func Best(units []Unit, f Field) []int {
	if len(units) > 16 {
		panic("victim.Best: more than 16 units")
	}
	b := &bound{units: units, f: f}
	for i := range units {
		f.Take(i)
	}
	b.branchFrom(0, nil)
	for i := range units {
		f.Back(i)
	}
	return b.best
}

// bound tries sets depth first, from all units on: a set that does not fit has no
// subset that does.
type bound struct {
	units []Unit
	f     Field
	best  []int
}

func (b *bound) branchFrom(next int, kept []int) {
	if !b.f.Fits() || b.best != nil && Compare(b.units, kept, b.best) >= 0 {
		return // kept are taken for sure: the set only becomes dearer
	}
	if next == len(b.units) {
		b.best = append([]int{}, kept...)
		return
	}
	b.f.Back(next)
	b.branchFrom(next+1, kept)
	b.f.Take(next)
	b.branchFrom(next+1, append(slices.Clone(kept), next))
}
