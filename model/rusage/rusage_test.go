package rusage

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawUse draws a use of which some quantities may be unknown.
func drawUse(t *rapid.T) Use {
	u := Use{Known: Quantity(rapid.IntRange(0, 7).Draw(t, "known"))}
	n := func(q Quantity, name string) int64 {
		if !u.Has(q) {
			return 0
		}
		return rapid.Int64Range(0, 50).Draw(t, name)
	}
	u.User, u.System = time.Duration(n(CPU, "user")), time.Duration(n(CPU, "system"))
	u.Memory, u.Read, u.Written = n(Memory, "memory"), n(IO, "read"), n(IO, "written")
	return u
}

// TestStepsOfTasks: whatever the order in which tasks and nodes come together, a step has the sum of
// its tasks, and the extremes of those of which the quantity is known.
func TestStepsOfTasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "tasks")
		var uses []Use
		for range n {
			uses = append(uses, drawUse(t))
		}
		cut := rapid.IntRange(1, n).Draw(t, "cut")
		part := func(from, to int) Step {
			s := TaskStep(3, from, fmt.Sprint("n", from%2), uses[from])
			for i := from + 1; i < to; i++ {
				s.Merge(TaskStep(3, i, fmt.Sprint("n", i%2), uses[i]))
			}
			return s
		}
		got := part(0, cut)
		if cut < n {
			got.Merge(part(cut, n))
		}
		var sum Use
		most, least := -1, -1
		for i, u := range uses {
			sum = sum.Plus(u)
			if u.Has(Memory) && (most < 0 || u.Memory > uses[most].Memory) {
				most = i
			}
			if u.Has(CPU) && (least < 0 || u.CPUTime() < uses[least].CPUTime()) {
				least = i
			}
		}
		if got.Sum != sum || got.Tasks != n {
			t.Fatalf("%+v, want the sum %+v of %d tasks", got, sum, n)
		}
		if (got.MaxMemory == nil) != (most < 0) || most >= 0 && (got.MaxMemory.Task != most || got.MaxMemory.Node != fmt.Sprint("n", most%2)) {
			t.Fatalf("most memory %+v, want that of %d", got.MaxMemory, most)
		}
		if (got.MinCPU == nil) != (least < 0) || least >= 0 && got.MinCPU.Task != least {
			t.Fatalf("least CPU time %+v, want that of %d", got.MinCPU, least)
		}
	})
}

// TestRecordIsBounded: a job of very many steps and nodes has a record of bounded size with whole
// totals.
func TestRecordIsBounded(t *testing.T) {
	var nodes []Node
	var steps []Step
	one := Use{Known: CPU | Memory | IO, User: time.Second, Memory: 1 << 30, Read: 1}
	for i := range 5000 {
		nodes = append(nodes, Node{Name: fmt.Sprint("n", i), Use: one})
		steps = append(steps, TaskStep(i, 0, "n0", one))
	}
	r := Make(nodes, [][]Step{steps})
	if len(r.Nodes) != MaxNodes || r.LeftNodes != 4000 || len(r.Steps) != MaxSteps || r.LeftSteps != 4000 || r.Total.User != 5000*time.Second {
		t.Fatalf("%d nodes and %d left, %d steps and %d left, %+v", len(r.Nodes), r.LeftNodes, len(r.Steps), r.LeftSteps, r.Total)
	}
	if r.Step(499) == nil || r.Step(500) != nil || r.Step(4999) == nil {
		t.Error("the first 500 and the last 500 steps are kept")
	}
	text, err := json.Marshal(r)
	if err != nil || len(text) > 600<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if Make([]Node{{Name: "n"}}, nil) != nil {
		t.Error("nothing is known, and yet there is a record")
	}
}
