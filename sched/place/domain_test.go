package place_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// TestTopology: two blocks of two leaves with 3, 2, 4 and 1 free nodes (n1-n3, n4-n5, n6-n9, n10),
// and one node of which no path is known.
func TestTopology(t *testing.T) {
	table := index.NewTable()
	n := 0
	put := func(count int, path ...string) {
		for range count {
			n++
			table.Put(fleet.Node{Name: fmt.Sprintf("n%d", n), State: fleet.Up, Path: path, Capacity: resource.Vector{CPU: resource.CPUs(2)}})
		}
	}
	put(3, "b1", "l1")
	put(2, "b1", "l2")
	put(4, "b2", "l3")
	put(1, "b2", "l4")
	put(1)
	for _, c := range []struct {
		why                    string
		nodes, within, segment int
		want                   string
	}{
		{"anywhere: the closest is preferred", 3, 0, 0, "[n1 n2 n3]"},
		{"one leaf has as many", 4, job.InLeaf, 0, "[n6 n7 n8 n9]"},
		{"no leaf has as many", 5, job.InLeaf, 0, "[]"},
		{"one block has as many", 5, 1, 0, "[n1 n2 n3 n4 n5]"},
		{"no block has as many", 6, 1, 0, "[]"},
		{"the second level is the leaf here", 5, 2, 0, "[]"},
		{"deeper than anything", 1, 3, 0, "[]"},
		{"anywhere, over blocks", 10, 0, 0, "[n1 n2 n3 n4 n5 n6 n7 n8 n9 n10]"},
		{"three segments of two: a leaf with three nodes has one", 6, 0, 2, "[n1 n2 n6 n7 n8 n9]"},
		{"four of two", 8, 0, 2, "[n1 n2 n4 n5 n6 n7 n8 n9]"},
		{"five of two are not there", 10, 0, 2, "[]"},
		{"two of three", 6, 0, 3, "[n1 n2 n3 n6 n7 n8]"},
		{"less than a segment is in one leaf", 4, 0, 8, "[n6 n7 n8 n9]"},
		{"segments within a block", 4, 1, 2, "[n6 n7 n8 n9]"},
		{"no block has three segments", 6, 1, 2, "[]"},
	} {
		g := job.TaskGroup{Nodes: job.Range{Min: c.nodes, Max: c.nodes}, TasksPerNode: 1, Within: c.within, Segment: c.segment}
		g.PerTask.CPU = resource.CPUs(2)
		shape := class.Compile(&job.Spec{Groups: []job.TaskGroup{g}})
		got := []string{}
		for _, claim := range place.Gang(table, table.Empty(false), shape) {
			got = append(got, claim.Node)
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", c.why, got, c.want)
		}
		if fits := place.Fits(table, table.Empty(false), shape); fits != (len(got) > 0) {
			t.Errorf("%s: Fits says %v", c.why, fits)
		}
		if why := place.Never(table, shape, false); (why == nil) != (len(got) > 0) || slices.ContainsFunc(why, func(r reason.Reason) bool { return r.Need <= r.Free }) {
			t.Errorf("%s: %+v", c.why, why)
		}
	}
}
