package index_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/index"
)

func TestNodeOrder(t *testing.T) {
	want := []string{"", "a", "a1", "a2", "a010", "a10", "a10b1", "a10b02", "b", "gpu-1", "gpu-2-x", "gpu-10"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, index.CompareNames)
	if !slices.Equal(got, want) {
		t.Errorf("order is %v, want %v", got, want)
	}
}

// TestOrderIsTotal: antisymmetric, transitive, and equal for equal names alone.
func TestOrderIsTotal(t *testing.T) {
	names := rapid.StringMatching(`[ab]{0,2}[0-2]{0,3}[ab]?[01]{0,2}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := names.Draw(t, "a"), names.Draw(t, "b"), names.Draw(t, "c")
		ab, ba := index.CompareNames(a, b), index.CompareNames(b, a)
		if ab != -ba || (ab == 0) != (a == b) {
			t.Fatalf("%q and %q: %d and %d", a, b, ab, ba)
		}
		if ab <= 0 && index.CompareNames(b, c) <= 0 && index.CompareNames(a, c) > 0 {
			t.Fatalf("%q ≤ %q ≤ %q, but not the first and the last", a, b, c)
		}
	})
}

func TestSetsOfDevices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (index.Set, map[int]bool) {
			var s index.Set
			m := map[int]bool{}
			for _, p := range rapid.SliceOf(rapid.IntRange(0, index.MaxDevices-1)).Draw(t, label) {
				s, m[p] = s.With(p), true
			}
			return s, m
		}
		a, x := draw("a")
		b, y := draw("b")
		for p := range index.MaxDevices {
			if a.Has(p) != x[p] || a.And(b).Has(p) != (x[p] && y[p]) || a.Minus(b).Has(p) != (x[p] && !y[p]) ||
				a.Union(b).Has(p) != (x[p] || y[p]) || a.Without(p).Has(p) {
				t.Fatalf("position %d of %v and %v", p, a.Positions(), b.Positions())
			}
		}
		if a.Len() != len(x) || len(a.Positions()) != len(x) || !slices.IsSorted(a.Positions()) {
			t.Fatalf("%d positions are %v", a.Len(), a.Positions())
		}
	})
}

func fleetOf(t *rapid.T) *index.Table {
	table := index.NewTable()
	for _, i := range rapid.Permutation([]int{1, 2, 3}).Draw(t, "order") {
		n := fleet.Node{Name: fmt.Sprintf("n%d", i), State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8)}.With("tape", 2)}
		for d := range 3 {
			n.Devices = append(n.Devices, fleet.Device{Index: d * 2, Kind: "gpu"}) // indices with gaps
		}
		table.Put(n)
	}
	return table
}

func claims(t *rapid.T) []fleet.Claim {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) fleet.Claim {
		c := fleet.Claim{Node: fmt.Sprintf("n%d", rapid.IntRange(1, 4).Draw(t, "node")), Whole: rapid.IntRange(0, 5).Draw(t, "whole") == 0}
		c.Take = resource.Vector{CPU: resource.CPUs(rapid.IntRange(0, 3).Draw(t, "cpu"))}.With("tape", resource.Amount(rapid.IntRange(0, 1).Draw(t, "tape")))
		for d := range 5 { // also ones that do not exist
			if rapid.Bool().Draw(t, "device") {
				x := fleet.DeviceClaim{Index: d, Share: rapid.SampledFrom([]resource.Share{250, 500, 1000}).Draw(t, "share")}
				x.Bytes = rapid.SampledFrom([]resource.Amount{0, 0, 1, 20 * resource.GiB}).Draw(t, "bytes")
				c.Devices = append(c.Devices, x)
			}
		}
		return c
	}), 0, 4).Draw(t, "claims")
}

func equal(t *index.Table, a, b *index.State) string {
	for i := range t.Len() {
		x, y := a.Row(i), b.Row(i)
		if !x.Same(t.Node(i), y) {
			return fmt.Sprintf("row %d: %+v and %+v", i, *x, *y)
		}
	}
	return ""
}

// TestReleaseUndoesTake: in any order, and a copy taken before is not touched. Seen
// to fail with hold that writes to the list of parts in place.
func TestReleaseUndoesTake(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := fleetOf(t)
		s := table.Empty(false)
		first, second := claims(t), claims(t)
		s.Take(table, first)
		before, copied := s.Clone(), s.Clone()
		s.Take(table, second)
		if d := equal(table, before, copied); d != "" {
			t.Fatalf("a copy changed: %s", d)
		}
		s.Release(table, first)
		s.Release(table, second)
		if d := equal(table, s, table.Empty(false)); d != "" {
			t.Fatalf("not as it was: %s", d)
		}
	})
}

// TestWithinIsBothAtOnce: what fits within two states fits each of them.
func TestWithinIsBothAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := fleetOf(t)
		a, b := table.Empty(false), table.Empty(false)
		a.Take(table, claims(t))
		b.Take(table, claims(t))
		both := a.Clone()
		both.Within(b)
		c := claims(t)
		if both.Fits(table, c) != (a.Fits(table, c) && b.Fits(table, c)) && len(c) <= 1 {
			t.Fatalf("%v: fits both %v, a %v, b %v", c, both.Fits(table, c), a.Fits(table, c), b.Fits(table, c))
		}
		if both.Fits(table, c) && !(a.Fits(table, c) && b.Fits(table, c)) {
			t.Fatalf("%v fits within both and not each", c)
		}
		sum := both.Summary()
		for i := range table.Len() {
			if r := both.Row(i); r.Whole == 0 && (r.Free.CPU > sum.Largest.CPU || r.Devices.Len() > sum.LargestDevices) {
				t.Fatalf("row %d has more than the largest: %+v, %+v", i, *r, *sum)
			}
		}
	})
}

func TestTable(t *testing.T) {
	table := index.NewTable()
	put := func(n fleet.Node, changed, moved bool) {
		t.Helper()
		if c, m := table.Put(n); c != changed || m != moved {
			t.Errorf("put %s: changed %v, moved %v", n.Name, c, m)
		}
	}
	put(fleet.Node{Name: "n10", Pool: "b", Path: []string{"s1", "l2"}}, true, true)
	put(fleet.Node{Name: "n2", Pool: "a", Path: []string{"s1", "l1"}}, true, true)
	put(fleet.Node{Name: "n2", Pool: "a", Path: []string{"s1", "l1"}}, false, false)
	put(fleet.Node{Name: "n2", Pool: "a", Path: []string{"s2", "l2"}}, true, false)
	find := func(pool, name string) int { return table.Find(fleet.NodeKey{Pool: pool, Name: name}) }
	if find("a", "n2") != 0 || find("b", "n10") != 1 || find("a", "n3") != -1 || table.Levels() != 2 {
		t.Errorf("n2 at %d, n10 at %d, %d levels", find("a", "n2"), find("b", "n10"), table.Levels())
	}
	if find("", "n2") != 0 || find("gone", "n2") != 0 {
		t.Errorf("the only n2 is not found without its pool (%d), or for a pool that has none (%d)", find("", "n2"), find("gone", "n2"))
	}
	if got := table.Pools(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("pools %v", got)
	}
	a, b := table.Node(0).Domains, table.Node(1).Domains
	if len(a) != 2 || a[0] == b[0] || a[1] == b[1] {
		t.Errorf("leaves of the same name under different spines are one domain: %v, %v", a, b)
	}
	n2 := fleet.NodeKey{Pool: "a", Name: "n2"}
	if table.Remove(fleet.NodeKey{Pool: "b", Name: "n2"}) || !table.Remove(n2) || table.Remove(n2) || find("b", "n10") != 0 {
		t.Error("a node is not removed once")
	}
}

// TestNodesOfOneName: two pools have nodes of one name.
func TestNodesOfOneName(t *testing.T) {
	table := index.NewTable()
	for _, n := range []fleet.Node{{Name: "n2", Pool: "b"}, {Name: "n10", Pool: "a"}, {Name: "n2", Pool: "a"}, {Name: "n1", Pool: "b"}} {
		table.Put(n)
	}
	find := func(pool, name string) int { return table.Find(fleet.NodeKey{Pool: pool, Name: name}) }
	if table.Len() != 4 || find("b", "n1") != 0 || find("a", "n2") != 1 || find("b", "n2") != 2 || find("a", "n10") != 3 {
		t.Fatalf("%d nodes; n1 of b at %d, n2 of a and b at %d and %d, n10 of a at %d", table.Len(), find("b", "n1"), find("a", "n2"), find("b", "n2"), find("a", "n10"))
	}
	if find("", "n2") != -1 || find("gone", "n2") != -1 || find("", "n10") != 3 {
		t.Errorf("without a pool n2 is at %d, of a pool that is gone at %d, n10 at %d", find("", "n2"), find("gone", "n2"), find("", "n10"))
	}
	var labels []string
	for pos := range table.Len() {
		labels = append(labels, table.Label(pos))
	}
	if want := []string{"n1", "a/n2", "b/n2", "n10"}; !slices.Equal(labels, want) {
		t.Errorf("labels %v, want %v", labels, want)
	}
	for text, want := range map[string][]int{"n2": {1, 2}, "b/n2": {2}, "a/n10": {3}, "b/n10": nil, "n3": nil} {
		if got := table.Named(text); !slices.Equal(got, want) {
			t.Errorf("%s is at %v, want %v", text, got, want)
		}
	}
	s := table.Empty(false)
	s.Take(table, []fleet.Claim{{Node: "n2", Pool: "b"}})
	if s.Row(1).Holds != 0 || s.Row(2).Holds != 1 {
		t.Errorf("a claim on n2 of b is on n2 of a: %d and %d are held", s.Row(1).Holds, s.Row(2).Holds)
	}
	if table.Remove(fleet.NodeKey{Name: "n2"}) || !table.Remove(fleet.NodeKey{Pool: "a", Name: "n2"}) || find("b", "n2") != 1 || table.Label(1) != "n2" || !table.Remove(fleet.NodeKey{Name: "n2"}) {
		t.Error("n2 of a is not removed by its pool, and then n2 of b by its name")
	}
}

// TestParentsAndForeignUse: a device that is cut into instances is not handed out
// itself, and one that others use only where that is taken to have ended.
func TestParentsAndForeignUse(t *testing.T) {
	table := index.NewTable()
	table.Put(fleet.Node{Name: "n", Devices: []fleet.Device{
		{Index: 0, UUID: "G0", Kind: "gpu"},
		{Index: 1, UUID: "M1", Parent: "G0", Profile: "1g", Kind: "gpu"},
		{Index: 2, UUID: "G2", Kind: "gpu", Foreign: 1},
		{Index: 3, Kind: "gpu"},
	}})
	if got := table.Empty(false).Row(0).Devices.Positions(); !slices.Equal(got, []int{1, 3}) {
		t.Errorf("free are %v", got)
	}
	if got := table.Empty(true).Row(0).Devices.Positions(); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("without foreign use free are %v", got)
	}
	if got := table.Mask(index.Match{Kind: "gpu", Profile: "1g"})[0].Positions(); !slices.Equal(got, []int{1}) {
		t.Errorf("instances are %v", got)
	}
}
