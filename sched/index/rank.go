package index

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
)

// computeRanks works out the order in which ranks go over nodes: domain by domain, of each
// level that with the first node first, so that neighbours in rank are neighbours in
// the topology; in node order where no two nodes differ in that. Nodes of which no
// path is known come last.
func (t *Table) computeRanks() {
	t.ranks = nil
	if t.levels == 0 {
		return
	}
	order := make([]int32, len(t.nodes))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		x, y := t.nodes[a].Domains, t.nodes[b].Domains
		if len(x) == 0 || len(y) == 0 {
			return cmp.Compare(len(y), len(x))
		}
		return slices.Compare(x, y) // numbers were given in node order
	})
	if slices.IsSorted(order) {
		return
	}
	t.ranks = make([]int32, len(order))
	for rank, pos := range order {
		t.ranks[pos] = int32(rank)
	}
}

// Ranked compares two positions by the ranks that tasks there get.
func (t *Table) Ranked(a, b int) int {
	if t.ranks == nil || a < 0 || b < 0 {
		return cmp.Compare(a, b)
	}
	return cmp.Compare(t.ranks[a], t.ranks[b])
}

// InRankOrder returns claims by group and then in rank order; they are not changed.
func (t *Table) InRankOrder(claims []fleet.Claim) []fleet.Claim {
	t.renewDerived()
	if t.ranks == nil || len(claims) < 2 {
		return claims
	}
	by := func(a, b fleet.Claim) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), t.Ranked(t.Find(a.Key()), t.Find(b.Key())))
	}
	if slices.IsSortedFunc(claims, by) {
		return claims
	}
	out := slices.Clone(claims)
	slices.SortStableFunc(out, by)
	return out
}
