package place_test

import (
	"fmt"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// TestLeavesOfAGang: of all sets of nodes on which a gang of equal parts could be, it gets
// one of the fewest leaves, and one of the most if it is to be spread, there as evenly as
// can be. Seen to fail with topo.Gather that takes the smaller of two leaves that do not
// suffice, and with topo.Scatter that takes the leaf with most left.
func TestLeavesOfAGang(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, leaf := index.NewTable(), make([]int, rapid.IntRange(1, 8).Draw(t, "nodes"))
		var room uint
		for i := range leaf {
			leaf[i] = rapid.IntRange(0, 3).Draw(t, "leaf")
			n := fleet.Node{Name: fmt.Sprintf("n%d", i), State: fleet.Up, Path: []string{fmt.Sprintf("leaf%d", leaf[i])}}
			if rapid.IntRange(0, 3).Draw(t, "full") > 0 {
				room |= 1 << i
				n.Capacity.CPU = resource.CPUs(rapid.IntRange(1, 2).Draw(t, "cpus"))
			}
			table.Put(n)
		}
		n := rapid.IntRange(1, len(leaf)).Draw(t, "gang")
		g := job.TaskGroup{Nodes: job.Range{Min: n, Max: n}, TasksPerNode: 1, Spread: rapid.Bool().Draw(t, "spread")}
		g.PerTask.CPU = resource.OneCPU
		claims := place.Gang(table, table.Empty(false), class.Compile(&job.Spec{Groups: []job.TaskGroup{g}}))
		if bits.OnesCount(room) < n {
			if claims != nil {
				t.Fatalf("%d nodes where %d have room: %v", n, bits.OnesCount(room), claims)
			}
			return
		}
		var set uint
		for _, c := range claims {
			set |= 1 << table.Find(c.Key())
		}
		got, most := spreadOver(leaf, set)
		for other := range uint(1) << len(leaf) {
			if other&^room != 0 || bits.OnesCount(other) != n {
				continue
			}
			leaves, fullest := spreadOver(leaf, other)
			switch {
			case !g.Spread && leaves < got, g.Spread && leaves > got, g.Spread && leaves == got && fullest < most:
				t.Fatalf("nodes %b of %v are in %d leaves, at most %d in one; nodes %b in %d, %d (spread: %v)", set, leaf, got, most, other, leaves, fullest, g.Spread)
			}
		}
		if bits.OnesCount(set) != n || set&^room != 0 {
			t.Fatalf("%d nodes: %v", n, claims)
		}
	})
}

// spreadOver counts the leaves of a set of nodes, and the nodes in the one with most.
func spreadOver(leaf []int, set uint) (leaves, most int) {
	in := map[int]int{}
	for i, l := range leaf {
		if set>>i&1 == 1 {
			in[l]++
			most = max(most, in[l])
		}
	}
	return len(in), most
}
