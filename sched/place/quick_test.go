package place_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/schedtest"
)

// TestQuickAnswersAsGang fills and empties a fleet in which nodes are alike, and
// asks at each step both the search over nodes and the one over cells, which follow
// the state change by change. Where the quick one is sure, the claims are the same.
//
// Seen to fail with: closer without its last line, single that stops at the first
// cell, a cell's key without the devices held in part, domain that takes the
// first domain that is large enough.
func TestQuickAnswersAsGang(t *testing.T) {
	sure, placed := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		table := index.NewTable()
		for _, n := range alike(t) {
			table.Put(n)
		}
		state := table.Empty(false)
		cells := index.NewCells(table, state)
		picks := place.NewPicks()
		quick := map[string]*place.Quick{}
		var held [][]fleet.Claim
		change := func(claims []fleet.Claim) {
			for _, c := range claims {
				cells.Update(table.Find(c.Key()))
			}
		}
		for range 12 {
			if len(held) > 0 && rapid.IntRange(0, 2).Draw(t, "end") == 0 {
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				state.Release(table, held[i])
				change(held[i])
				held = append(held[:i], held[i+1:]...)
			}
			spec := request(t)
			shape := class.Compile(spec)
			want := place.Gang(table, state, shape)
			if place.Regular(shape) {
				key := class.Key(spec)
				if quick[key] == nil {
					quick[key] = place.NewQuick(table, state, cells, shape, picks)
				}
				got, ok := quick[key].Place(nil)
				if ok {
					sure++
					if diff := cmp.Diff(want, got); diff != "" {
						t.Fatalf("the cells place it otherwise (-nodes +cells):\n%s", diff)
					}
					if want == nil && !cmp.Equal(place.Missing(table, state, shape)[0], quick[key].Missing()) {
						t.Fatalf("%+v is missing, the cells say %+v", place.Missing(table, state, shape), quick[key].Missing())
					}
					if fits, ok := quick[key].Fits(nil); !ok || fits != (want != nil) {
						t.Fatalf("Fits says %v (%v), Gang %v", fits, ok, want)
					}
				}
			}
			if want != nil {
				placed++
				state.Take(table, want)
				change(want)
				held = append(held, want)
			}
		}
	})
	if sure < placed/2 {
		t.Errorf("the quick search was sure %d times only, %d gangs were placed", sure, placed)
	}
}

// alike draws up to 12 nodes of at most two descriptions, in leaves and spines.
func alike(t *rapid.T) []fleet.Node {
	models := []fleet.Node{schedtest.Node(t, "a"), schedtest.Node(t, "b")}
	paths := rapid.Bool().Draw(t, "paths")
	var out []fleet.Node
	for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
		n := rapid.SampledFrom(models).Draw(t, "model")
		n.Name = fmt.Sprintf("n%d", i+1)
		n.Path = nil
		if paths {
			n.Path = []string{rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "spine"), rapid.SampledFrom([]string{"l1", "l2", "l3"}).Draw(t, "leaf")}
			if rapid.IntRange(0, 9).Draw(t, "no path") == 0 {
				n.Path = n.Path[:rapid.IntRange(0, 1).Draw(t, "levels")]
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "down") == 0 {
			n.State = fleet.Down
		}
		out = append(out, n)
	}
	return out
}

// request draws mostly regular requests of a few forms.
func request(t *rapid.T) *job.Spec {
	if rapid.IntRange(0, 2).Draw(t, "any") == 0 {
		return schedtest.Spec(t)
	}
	nodes := rapid.IntRange(1, 5).Draw(t, "nodes")
	g := job.TaskGroup{Nodes: job.Range{Min: nodes, Max: nodes}}
	if rapid.Bool().Draw(t, "tasks") {
		g.Tasks.Want = nodes * rapid.IntRange(1, 2).Draw(t, "each")
	}
	g.PerTask.CPU = resource.CPUs(rapid.IntRange(0, 2).Draw(t, "cpus"))
	switch rapid.IntRange(0, 3).Draw(t, "devices") {
	case 0, 1:
		g.PerTask.Devices = []resource.DeviceRequest{{Count: rapid.IntRange(1, 3).Draw(t, "gpus")}}
	case 2:
		g.Nodes = job.Range{Min: 1, Max: 1}
		g.PerTask.Devices = []resource.DeviceRequest{{Count: 1, Share: rapid.SampledFrom([]resource.Share{250, 500, 700}).Draw(t, "share")}}
	}
	return &job.Spec{Groups: []job.TaskGroup{g}}
}
