package topo_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/topo"
)

func set(positions ...int) index.Set {
	var s index.Set
	for _, p := range positions {
		s = s.With(p)
	}
	return s
}

// machine returns n devices whose links follow from a function of both indices.
func machine(n int, link func(i, j int) fleet.LinkKind, numa func(i int) int) []fleet.Device {
	out := make([]fleet.Device, n)
	for i := range out {
		out[i] = fleet.Device{Index: i, NUMA: numa(i)}
		for j := range n {
			if i != j {
				out[i].Links = append(out[i].Links, fleet.Link{Peer: j, Kind: link(i, j), Lanes: 1})
			}
		}
	}
	return out
}

func halves(i int) int { return i / 4 }

func pairs(i, j int) fleet.LinkKind {
	switch {
	case i/2 == j/2:
		return fleet.LinkDirect
	case i/4 == j/4:
		return fleet.LinkNUMA
	}
	return fleet.LinkSystem
}

func TestPick(t *testing.T) {
	full := func(int, int) fleet.LinkKind { return fleet.LinkDirect }
	ring := func(i, j int) fleet.LinkKind { // 0-2-4-6-1-3-5-7: neighbours are not those by index
		order := []int{0, 2, 4, 6, 1, 3, 5, 7}
		if d := (slices.Index(order, i) - slices.Index(order, j) + 8) % 8; d == 1 || d == 7 {
			return fleet.LinkDirect
		}
		return fleet.LinkSystem
	}
	unknown := func(int) int { return -1 }
	for _, c := range []struct {
		why     string
		devices []fleet.Device
		free    index.Set
		n       int
		want    index.Set
	}{
		{"a pair", machine(8, pairs, halves), set(1, 2, 3, 4), 2, set(2, 3)},
		{"one from a broken pair", machine(8, pairs, halves), set(0, 1, 3, 4, 5), 1, set(3)},
		{"four on one NUMA node", machine(8, pairs, halves), set(2, 3, 4, 5, 6, 7), 4, set(4, 5, 6, 7)},
		{"NUMA decides between equal links", machine(8, full, halves), set(3, 4, 5), 2, set(4, 5)},
		{"lowest index where all are equal", machine(8, full, unknown), set(1, 3, 5), 2, set(1, 3)},
		{"neighbours on a ring", machine(8, ring, unknown), set(0, 1, 3, 4, 5, 7), 2, set(0, 7)},
		{"all that are free", machine(8, ring, unknown), set(0, 5), 2, set(0, 5)},
		{"none", machine(8, full, unknown), set(), 0, set()},
	} {
		got, ok := topo.Pick(c.devices, c.free, c.n)
		if !ok || got != c.want {
			t.Errorf("%s: %d of %v are %v, want %v", c.why, c.n, c.free.Positions(), got.Positions(), c.want.Positions())
		}
	}
	if _, ok := topo.Pick(machine(2, full, unknown), set(0), 2); ok {
		t.Error("two devices were found where one is free")
	}
}

// TestPickManyDevices: above the bound of the exact search whole islands are found
// too: 32 devices in islands of 8, of which one is free as a whole.
func TestPickManyDevices(t *testing.T) {
	islands := func(i, j int) fleet.LinkKind {
		if i/8 == j/8 {
			return fleet.LinkDirect
		}
		return fleet.LinkSystem
	}
	devices := machine(32, islands, func(i int) int { return i / 8 })
	free := set(0, 1, 2, 3, 4, 9, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 23, 30)
	got, ok := topo.Pick(devices, free, 8)
	if want := set(16, 17, 18, 19, 20, 21, 22, 23); !ok || got != want {
		t.Errorf("picked %v, want the free island %v", got.Positions(), want.Positions())
	}
}

// TestPickIsTheBest: no other set has a stronger weakest link. Seen to fail with
// search that stops at the first combination.
func TestPickIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 7).Draw(t, "devices")
		kinds := rapid.SliceOfN(rapid.IntRange(0, 5), n*n, n*n).Draw(t, "links")
		link := func(i, j int) fleet.LinkKind { return fleet.LinkKind(kinds[min(i, j)*n+max(i, j)]) }
		devices := machine(n, link, halves)
		var free index.Set
		for i := range n {
			if rapid.Bool().Draw(t, "free") {
				free = free.With(i)
			}
		}
		k := rapid.IntRange(0, n).Draw(t, "k")
		got, ok := topo.Pick(devices, free, k)
		if ok != (free.Len() >= k) || ok && (got.Len() != k || got.Minus(free) != index.Set{}) {
			t.Fatalf("%d of %v: %v, %v", k, free.Positions(), got.Positions(), ok)
		}
		weakest := func(s index.Set) fleet.LinkKind {
			w := fleet.LinkDirect
			for _, i := range s.Positions() {
				for _, j := range s.Positions() {
					if i != j {
						w = min(w, link(i, j))
					}
				}
			}
			return w
		}
		for bits := range 1 << n {
			s := index.Set{uint64(bits)}
			if ok && s.Len() == k && (s.Minus(free) == index.Set{}) && weakest(s) > weakest(got) {
				t.Fatalf("%v is closer than %v", s.Positions(), got.Positions())
			}
		}
	})
}

// TestGatherUsesFewDomains compares with every choice of domains. Seen to fail with
// closer that prefers the smaller of two domains that do not suffice.
func TestGatherUsesFewDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		domain := rapid.SliceOfN(rapid.IntRange(-1, 4), 0, 12).Draw(t, "domains")
		n := rapid.IntRange(0, 13).Draw(t, "n")
		got := topo.Gather(domain, n)
		if (len(domain) < n) != (got == nil && n > 0) {
			t.Fatalf("%d of %v: %v", n, domain, got)
		}
		if got == nil {
			return
		}
		sizes, used := map[int]int{}, map[int]bool{}
		for _, d := range domain {
			sizes[d]++
		}
		for _, i := range got {
			used[domain[i]] = true
		}
		if len(got) != n {
			t.Fatalf("%d of %v: %v", n, domain, got)
		}
		least := len(sizes)
		for bits := range 1 << 6 {
			sum, count := 0, 0
			for d := -1; d <= 4; d++ {
				if bits>>(d+1)&1 == 1 {
					sum, count = sum+sizes[d], count+1
				}
			}
			if sum >= n {
				least = min(least, count)
			}
		}
		if len(used) != least {
			t.Fatalf("%d of %v use %d domains, %d would do", n, domain, len(used), least)
		}
	})
}
