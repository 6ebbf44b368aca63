package aggregate_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
)

func nodes(n, gpus int, kind string) (out []fleet.Node) {
	for i := range n {
		x := fleet.Node{Name: fmt.Sprintf("n%d", i), State: fleet.Up, Parts: []string{"main"}, Features: []string{"fast"}, Capacity: resource.Vector{CPU: resource.CPUs(16), Memory: resource.GiB}}
		for d := range gpus {
			x.Devices = append(x.Devices, fleet.Device{Index: d, Kind: "gpu", Type: kind, NUMA: -1})
		}
		out = append(out, x)
	}
	return out
}

// TestNode: what is down or drained counts for nothing, what others hold is not taken off.
func TestNode(t *testing.T) {
	all := append(nodes(3, 8, "h100"), nodes(1, 2, "")...)
	all[0].State = fleet.Draining
	all[1].Devices[0].Foreign = 1
	n := aggregate.Node("far", all)
	if n.Name != "@far" || !aggregate.Is(n.Name) || aggregate.Is("far") || n.Pool != "far" || n.State != fleet.Up || len(n.Devices) != 0 {
		t.Errorf("%+v", n)
	}
	c := n.Capacity
	if c.CPU != resource.CPUs(48) || c.Memory != 3*resource.GiB || c.Get("gres/gpu") != 18 || c.Get("gres/gpu:h100") != 16 || c.Get(aggregate.Whole) != 3 {
		t.Errorf("capacity %+v", c)
	}
	if !reflect.DeepEqual(n.Parts, []string{"main"}) || !reflect.DeepEqual(n.Features, []string{"fast", "gpu:h100"}) {
		t.Errorf("%v %v", n.Parts, n.Features)
	}
	if n := aggregate.Node("far", all[:1]); n.State != fleet.Down || n.Why == "" || !n.Capacity.IsZero() {
		t.Errorf("a pool without a node that is up: %+v", n)
	}
}

// TestSpec: a job takes what its least form takes of all its nodes together, and no wish of
// single nodes is left.
func TestSpec(t *testing.T) {
	devices := func(kind string, n int) resource.Requirements {
		return resource.Requirements{Devices: []resource.DeviceRequest{{Type: kind, Count: n}}}
	}
	four := job.TaskGroup{
		Nodes: job.Range{Min: 4, Max: 6}, TasksPerNode: 2, PerNode: devices("h100", 8), PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(3)}},
		Contiguous: true, Within: 1, Switches: 1, Constraint: job.Constraint{Text: "fast", Alternatives: [][]string{{"fast"}}},
	}
	whole := job.TaskGroup{Tasks: job.Count{Want: 7}, TasksPerNode: 2, Exclusive: true, PerTask: devices("", 1)}
	in := &job.Spec{Pool: "far", Reservation: "theirs", Groups: []job.TaskGroup{four, whole}}
	out := aggregate.Spec(in)
	if len(in.Groups) != 2 || !in.Groups[0].Contiguous || out.Reservation != "" || out.Pool != "far" {
		t.Errorf("%+v of %+v", out, in)
	}
	for asked, want := range map[string]string{"matlab:2,fluent": "fluent:1", "matlab": "", "fluent": "fluent:1", "fluent|matlab": ""} {
		if got := aggregate.Spec(&job.Spec{Groups: in.Groups, Licenses: asked, LicensesThere: []string{"matlab"}}).Licenses; got != want {
			t.Errorf("of licences %s, of which matlab is not ours, %q are left, want %q", asked, got, want)
		}
	}
	for i, want := range []job.TaskGroup{
		{
			Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 8},
			PerNode: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(24), Named: []resource.Named{{Name: "gres/gpu", Amount: 32}, {Name: "gres/gpu:h100", Amount: 32}, {Name: aggregate.Nodes, Amount: 3}}}},
		},
		{
			Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 7},
			PerNode: resource.Requirements{Vector: resource.Vector{Named: []resource.Named{{Name: "gres/gpu", Amount: 7}, {Name: aggregate.Nodes, Amount: 4}, {Name: aggregate.Whole, Amount: 4}}}},
		},
	} {
		if !reflect.DeepEqual(out.Groups[i], want) {
			t.Errorf("group %d: %+v, want %+v", i, out.Groups[i], want)
		}
	}
}

// TestSeen: what a job took is spread over the nodes on which it was seen, group by group.
func TestSeen(t *testing.T) {
	claims := []fleet.Claim{
		{Node: "@far", Tasks: 5, Take: resource.Vector{CPU: resource.CPUs(4)}.With(aggregate.Nodes, 1).With("gres/gpu", 3)},
		{Node: "@far", Group: 1, Tasks: 1, Take: resource.Vector{}.With(aggregate.Nodes, 1).With(aggregate.Whole, 1)},
	}
	got := aggregate.Seen(claims, []string{"c", "a", "b"})
	if len(got) != 3 || got[0].Node != "c" || got[1].Node != "a" || got[2].Node != "b" || got[2].Group != 1 || !got[2].Whole {
		t.Fatalf("%+v", got)
	}
	if got[0].Tasks != 3 || got[1].Tasks != 2 || got[0].Take.CPU != resource.CPUs(2) || len(got[0].Devices) != 2 || len(got[1].Devices) != 1 || got[0].Devices[0].Index != -1 {
		t.Errorf("%+v", got)
	}
	if got := aggregate.Seen(claims, []string{"c"}); len(got) != 1 {
		t.Errorf("of one node: %+v", got)
	}
}
