package defrag_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/sched/defrag"
	"github.com/coxswain-sched/coxswain/sched/victim"
)

// shelves is a field of nodes with so many free places; each unit holds some of one
// node, and the gang wants so many of each of some nodes.
type shelves struct {
	free   []int
	at     []int // node of each unit
	size   []int
	each   int // that the gang takes of a node
	nodes  int // of the gang
	lifted map[int]bool
}

func (s *shelves) Take(i int) { s.free[s.at[i]] += s.size[i]; s.lifted[i] = true }
func (s *shelves) Back(i int) { s.free[s.at[i]] -= s.size[i]; delete(s.lifted, i) }
func (s *shelves) Fits() bool { return s.gang() != nil }

// gang is the nodes that it would take: those with the least room that do.
func (s *shelves) gang() (at []int) {
	order := make([]int, len(s.free))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return s.free[a] - s.free[b] })
	for _, n := range order {
		if s.free[n] >= s.each && len(at) < s.nodes {
			at = append(at, n)
		}
	}
	if len(at) < s.nodes {
		return nil
	}
	return at
}

// Settles puts each unit on the first node that takes it, as they come.
func (s *shelves) Settles(units []int) bool {
	free := slices.Clone(s.free)
	for _, n := range s.gang() {
		free[n] -= s.each
	}
	for _, u := range units {
		n := slices.IndexFunc(free, func(room int) bool { return room >= s.size[u] })
		if n < 0 {
			return false
		}
		free[n] -= s.size[u]
	}
	return true
}

func draw(t *rapid.T) (*shelves, []victim.Unit) {
	s := &shelves{lifted: map[int]bool{}, each: rapid.IntRange(2, 4).Draw(t, "each"), nodes: rapid.IntRange(1, 3).Draw(t, "nodes")}
	for range rapid.IntRange(1, 5).Draw(t, "shelves") {
		s.free = append(s.free, rapid.IntRange(0, 3).Draw(t, "free"))
	}
	var units []victim.Unit
	for range rapid.IntRange(0, 9).Draw(t, "units") {
		s.at = append(s.at, rapid.IntRange(0, len(s.free)-1).Draw(t, "at"))
		s.size = append(s.size, rapid.IntRange(1, 3).Draw(t, "size"))
		units = append(units, victim.Unit{Cost: int64(rapid.IntRange(1, 6).Draw(t, "cost")), Size: 1})
	}
	return s, units
}

// TestChooseIsBest: with enough work Choose finds what the slow twin finds, whatever
// the seeds; it leaves the field as it was; with little work it says that it is not
// sure.
//
// Seen to fail with: the swap in enumerate left out, sets that cost as much as the
// move is worth taken, Settles not asked.
func TestChooseIsBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, units := draw(t)
		b := defrag.Bounds{Worth: int64(rapid.IntRange(1, 30).Draw(t, "worth")), Most: rapid.IntRange(1, 9).Draw(t, "most"), Work: 1 << 12}
		var seeds [][]int
		if len(units) > 0 {
			for range rapid.IntRange(0, 3).Draw(t, "seeds") {
				seeds = append(seeds, rapid.SliceOfNDistinct(rapid.IntRange(0, len(units)-1), 0, len(units), func(i int) int { return i }).Draw(t, "seed"))
			}
		}
		before := slices.Clone(s.free)
		want, ok := defrag.Best(units, s, b)
		got, sure := defrag.Choose(units, seeds, s, b)
		if !slices.Equal(before, s.free) || len(s.lifted) > 0 {
			t.Fatalf("the field is left with %v free, it had %v", s.free, before)
		}
		sum := int64(0)
		for _, i := range got {
			sum += units[i].Cost
		}
		if !sure || (got != nil) != ok || ok && sum != want {
			t.Fatalf("Choose: %v for %d, sure %v; the cheapest costs %d (%v)", got, sum, sure, want, ok)
		}
		b.Work = rapid.IntRange(0, 5).Draw(t, "work")
		hasty, sure := defrag.Choose(units, nil, s, b)
		sum = 0
		for _, i := range hasty {
			sum += units[i].Cost
		}
		if sure && ((hasty != nil) != ok || ok && sum != want) {
			t.Fatalf("with little work it is sure of %v for %d; the cheapest costs %d (%v)", hasty, sum, want, ok)
		}
	})
}
