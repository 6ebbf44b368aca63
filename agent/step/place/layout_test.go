package place

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// checkInfo checks one placed step against its allocation.
func checkInfo(i *step.Info, r *rapid.T, a *step.Alloc, q wire.ComponentRequest) {
	var ranks []int
	seen := make(map[int]bool)
	total := 0
	for _, p := range i.Parts {
		if seen[p.Node] || len(p.Ranks) == 0 || !slices.IsSorted(p.Ranks) {
			r.Fatalf("part %+v", p)
		}
		seen[p.Node] = true
		ranks = append(ranks, p.Ranks...)
		name, claim := a.Nodes[p.Node].Name, a.Groups[0].Parts[p.Node]
		switch {
		case slices.Contains(q.Exclude, name):
			r.Fatalf("excluded node %s is used", name)
		case p.CPUs > claim.CPUs:
			r.Fatalf("%d CPUs of %d", p.CPUs, claim.CPUs)
		case len(p.Devices) > len(claim.Devices):
			r.Fatalf("%d devices of %d", len(p.Devices), len(claim.Devices))
		case q.TasksPerNode > 0 && len(p.Ranks) > q.TasksPerNode:
			r.Fatalf("%d tasks on a node, at most %d asked", len(p.Ranks), q.TasksPerNode)
		case q.Devices.PerNode > 0 && len(p.Devices) != q.Devices.PerNode:
			r.Fatalf("%d devices on a node, %d asked", len(p.Devices), q.Devices.PerNode)
		case q.Devices.PerTask > 0 && len(p.Devices) != q.Devices.PerTask*len(p.Ranks):
			r.Fatalf("%d devices for %d tasks", len(p.Devices), len(p.Ranks))
		}
		total += len(p.Devices)
	}
	for _, name := range q.NodeList {
		if !seen[a.NodeIndex(name)] {
			r.Fatalf("node %s is not used", name)
		}
	}
	slices.Sort(ranks)
	if !isRange(ranks, i.Tasks) || q.Tasks > 0 && i.Tasks != q.Tasks {
		r.Fatalf("ranks %v of %d tasks, %d asked", ranks, i.Tasks, q.Tasks)
	}
	if q.NodesMin > 0 && len(i.Parts) != max(q.NodesMin, len(q.NodeList)) {
		r.Fatalf("%d nodes, %d asked", len(i.Parts), q.NodesMin)
	}
	if q.Devices.Total > 0 && total != q.Devices.Total {
		r.Fatalf("%d devices, %d asked", total, q.Devices.Total)
	}
}

// isRange reports whether ranks are 0 to n-1, in order.
func isRange(ranks []int, n int) bool {
	for i, r := range ranks {
		if r != i {
			return false
		}
	}
	return len(ranks) == n
}

func TestLayoutsAreSound(t *testing.T) {
	placed := 0
	rapid.Check(t, func(r *rapid.T) {
		a := steptest.Uniform(rapid.IntRange(1, 5).Draw(r, "nodes"), rapid.IntRange(1, 3).Draw(r, "tasks"), rapid.IntRange(1, 8).Draw(r, "cpus"), rapid.IntRange(0, 3).Draw(r, "gpus"))
		q := steptest.RandomRequest(r, a)
		info, err := layoutStep(a, allParts(a), wire.Request{Components: []wire.ComponentRequest{q}, Exact: rapid.Bool().Draw(r, "exact")})
		if errors.Is(err, errBusy) {
			r.Fatal("busy although no step runs")
		}
		if err == nil {
			placed++
			checkInfo(info, r, a, q)
		}
	})
	if placed == 0 {
		t.Error("nothing was ever placed")
	}
}

// TestArbiterNeverGivesTwice walks random steps that come and go: those that do not
// overlap never hold a CPU or device twice, and who waits does not fit.
func TestArbiterNeverGivesTwice(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := steptest.Uniform(rapid.IntRange(1, 3).Draw(r, "nodes"), 2, rapid.IntRange(2, 4).Draw(r, "cpus"), rapid.IntRange(0, 2).Draw(r, "gpus"))
		b := NewAllocator(a)
		steps := make(map[int]bool)
		for range rapid.IntRange(1, 12).Draw(r, "events") {
			if len(b.held) > 0 && rapid.Bool().Draw(r, "end") {
				b.Release(rapid.SampledFrom(b.held).Draw(r, "which"))
			} else {
				q := steptest.RandomRequest(r, a)
				q.Tasks = max(q.Tasks, 1)
				_, _, _ = b.Create(wire.Request{Components: []wire.ComponentRequest{q}, Exact: rapid.Bool().Draw(r, "exact"), Overlap: rapid.Bool().Draw(r, "overlap")})
			}
			cpus := make(map[int]int)
			devices := make(map[[2]int]bool)
			for _, i := range b.held {
				steps[i.Step] = true
				for _, p := range i.Parts {
					if i.Overlap {
						continue
					}
					cpus[p.Node] += p.CPUs
					for _, d := range p.Devices {
						if devices[[2]int{p.Node, d.Index}] {
							r.Fatalf("device %d of node %d is held twice", d.Index, p.Node)
						}
						devices[[2]int{p.Node, d.Index}] = true
					}
				}
			}
			for n, held := range cpus {
				if held > a.Groups[0].Parts[n].CPUs {
					r.Fatalf("%d CPUs of %d are held on node %d", held, a.Groups[0].Parts[n].CPUs, n)
				}
			}
			for _, w := range b.waiting {
				if _, err := layoutStep(a, b.freeResources(), w.request); err == nil {
					r.Fatal("a step waits although it fits")
				}
			}
		}
		for i := range len(steps) {
			if !steps[i] && b.next > i {
				continue // it ended between two looks
			}
			if i >= b.next {
				r.Fatalf("step %d was never numbered", i)
			}
		}
	})
}

func TestDeal(t *testing.T) {
	for dist, want := range map[string][][]int{
		"":        {{0, 1, 2}, {3}, {4, 5}},
		"cyclic":  {{0, 3, 5}, {1}, {2, 4}},
		"plane=2": {{0, 1, 5}, {2}, {3, 4}},
	} {
		if got := dealRanks([]int{3, 1, 2}, dist); !slices.EqualFunc(got, want, slices.Equal[[]int]) {
			t.Errorf("%s: %v, want %v", dist, got, want)
		}
	}
}

func TestPackFillsNodesInTurn(t *testing.T) {
	a := steptest.Uniform(3, 1, 4, 0)
	info, err := layoutStep(a, allParts(a), wire.Request{Components: []wire.ComponentRequest{{Tasks: 7, NodesMin: 3, Distribution: "block,pack"}}})
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, p := range info.Parts {
		got = append(got, len(p.Ranks))
	}
	if !slices.Equal(got, []int{4, 2, 1}) {
		t.Errorf("tasks per node %v", got)
	}
}

// TestCPUsOfTheJobWhereTheyFit: the job's --cpus-per-task holds for steps that can
// have it, and does not forbid others.
func TestCPUsOfTheJobWhereTheyFit(t *testing.T) {
	a := steptest.Uniform(1, 2, 8, 0)
	q := wire.ComponentRequest{Tasks: 2, CPUsPerTask: 4, Soft: true}
	for _, tc := range []struct {
		tasks, cpus int
		soft        bool
	}{{2, 8, true}, {1, 4, true}, {8, 8, true}, {3, 0, false}} {
		q.Tasks, q.Soft = tc.tasks, tc.soft
		info, err := layoutStep(a, allParts(a), wire.Request{Components: []wire.ComponentRequest{q}, Exact: true})
		if (err != nil) != (tc.cpus == 0) || err == nil && info.Parts[0].CPUs != tc.cpus {
			t.Errorf("%d tasks: %+v, %v; want %d CPUs", tc.tasks, info, err, tc.cpus)
		}
	}
}
