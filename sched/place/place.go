// Package place decides where a gang could start: all of its groups on nodes of
// one pool, or not at all. It knows nothing of time, order or promises.
//
// Placement is deterministic. Whether one group fits is exact (it is placed if
// any placement exists), with these exceptions: several kinds of device collected
// in total, one kind collected in total over very many nodes and tasks, shares of
// different sizes on one device, resources other than devices collected in
// total, and elastic groups that fit only with many tasks more than their least.
// Several groups are searched within bounds: by the order of groups and the nodes
// that earlier ones leave free, and on small fleets by every division.
//
// Which of several placements: few topology domains (or many, if they are to be
// spread), then nodes in use before empty ones, the fullest that will do, then node
// order. The claims of a group are in rank order: leaf by leaf, in node order there.
package place

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// tries bounds how many group placements are made for one gang of several groups.
const tries = 200

// Gang returns the claims of a whole gang on a state, by group and in rank order,
// or nil if it does not fit. The state is not changed.
func Gang(t *index.Table, s *index.State, shape *class.Shape) []fleet.Claim {
	return placeGang(t, s, shape, false)
}

// Ideal is Gang with every node taken to be up.
func Ideal(t *index.Table, s *index.State, shape *class.Shape) []fleet.Claim {
	return placeGang(t, s, shape, true)
}

// placeGang tries what else would do in turn.
func placeGang(t *index.Table, s *index.State, shape *class.Shape, ideal bool) []fleet.Claim {
	for ; shape != nil; shape = shape.Else {
		if c := placeQuickly(t, s, shape, ideal); c != nil {
			return c
		}
	}
	return nil
}

func placeQuickly(t *index.Table, s *index.State, shape *class.Shape, ideal bool) []fleet.Claim {
	partitions := shape.Partitions
	if len(partitions) == 0 {
		partitions = []string{""}
	}
	for _, pool := range t.Pools() {
		if !shape.In(pool) {
			continue
		}
		for _, partition := range partitions {
			p := &search{t: t, shape: shape, ideal: ideal, at: where{pool: pool, partition: partition}, left: tries}
			if c := p.placeGang(s); c != nil {
				return c
			}
		}
	}
	return nil
}

// search places the groups of one gang.
type search struct {
	t     *index.Table
	shape *class.Shape
	ideal bool
	at    where
	left  int // group placements that may still be tried
}

func (p *search) placeGang(s *index.State) []fleet.Claim {
	if len(p.shape.Groups) == 1 {
		return p.placeGroup(s, 0, nil)
	}
	if p.shape.Within == 0 {
		return p.placeSeveral(s)
	}
	for _, d := range p.enclosingDomains() {
		p.at.level, p.at.domain, p.left = d.level, d.id, tries
		if found := p.placeSeveral(s); found != nil {
			return found
		}
	}
	return nil
}

// placeSeveral places several groups.
func (p *search) placeSeveral(s *index.State) []fleet.Claim {
	var found []fleet.Claim
	eachOrder(len(p.shape.Groups), func(order []int) bool {
		found = p.placeInOrder(s, order)
		return found != nil || p.left <= 0
	})
	if found == nil {
		found = p.searchDeeply(s)
	}
	slices.SortStableFunc(found, func(a, b fleet.Claim) int {
		return cmp.Or(a.Group-b.Group, p.t.Ranked(p.t.Find(a.Key()), p.t.Find(b.Key())))
	})
	return found
}

// placeInOrder places groups in the given order. Where a later one does not fit, the
// first one is tried again without one of the nodes that it chose.
func (p *search) placeInOrder(s *index.State, order []int) []fleet.Claim {
	if len(order) == 0 {
		return []fleet.Claim{}
	}
	var without [][]int
	for without = append(without, nil); len(without) > 0 && p.left > 0; without = without[1:] {
		p.left--
		first := p.placeGroup(s, order[0], without[0])
		if first == nil {
			continue
		}
		after := s.Clone()
		after.Take(p.t, first)
		if rest := p.placeInOrder(after, order[1:]); rest != nil {
			return append(first, rest...)
		}
		if len(order) > 1 && len(without) < tries {
			for _, c := range first {
				without = append(without, append(slices.Clone(without[0]), p.t.Find(c.Key())))
			}
		}
	}
	return nil
}

// placeGroup places one group, on nodes with one common alternative of its constraint
// where it asks for that.
func (p *search) placeGroup(s *index.State, i int, without []int) []fleet.Claim {
	g := &p.shape.Groups[i]
	v := newView(p.t, s, g, p.ideal)
	if v.tooFull() {
		return nil
	}
	w := p.at
	w.without = without
	if !g.Same {
		return v.claimPortions(i, v.chooseNodes(&w))
	}
	for _, features := range g.Alternatives {
		w.features = features
		if c := v.claimPortions(i, v.chooseNodes(&w)); c != nil {
			return c
		}
	}
	return nil
}

func (v *view) claimPortions(group int, portions []portion) []fleet.Claim {
	if portions == nil {
		return nil
	}
	slices.SortStableFunc(portions, func(a, b portion) int { return v.compareRanks(a.pos, b.pos) })
	out := make([]fleet.Claim, len(portions))
	for i, p := range portions {
		out[i] = v.claimPortion(group, p)
	}
	return out
}

// eachOrder calls f with the orders of n groups, the natural one first, until f
// returns true. Above four groups only the natural order and its reverse are tried.
func eachOrder(n int, f func([]int) bool) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if n > 4 {
		if !f(slices.Clone(order)) {
			slices.Reverse(order)
			f(order)
		}
		return
	}
	var walk func(k int) bool
	walk = func(k int) bool {
		if k == n {
			return f(slices.Clone(order))
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			if walk(k + 1) {
				return true
			}
			order[k], order[i] = order[i], order[k]
		}
		return false
	}
	walk(0)
}
