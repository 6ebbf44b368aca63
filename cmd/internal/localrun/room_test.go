package localrun

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

func gpus(n int, typ string) []resource.DeviceRequest {
	return []resource.DeviceRequest{{Type: typ, Count: n}}
}

func onlyGroup(g job.TaskGroup) *job.Spec { return &job.Spec{Groups: []job.TaskGroup{g}} }

func TestRoomGrowsToWhatIsAsked(t *testing.T) {
	laptop := Machine{CPUs: 2, Memory: 8 * resource.GiB}
	h100 := []fleet.Device{{Index: 0, Type: "h100"}, {Index: 1, Type: "h100"}}
	tests := []struct {
		name     string
		machine  Machine
		shape    Shape
		specs    []*job.Spec
		nodes    int
		cpus     int // of each node
		devices  int // of each node
		declared int // in all
		typ      string
	}{
		{
			"nothing asked", laptop,
			Shape{0, -1},
			[]*job.Spec{onlyGroup(job.TaskGroup{Tasks: job.Count{Want: 1}})},
			1, 2, 0, 0, "",
		},
		{
			"devices per node", laptop,
			Shape{0, -1},
			[]*job.Spec{onlyGroup(job.TaskGroup{
				Nodes: job.Range{Min: 4, Max: 4}, Tasks: job.Count{Want: 8}, TasksPerNode: 2,
				PerNode: resource.Requirements{Devices: gpus(2, "")},
				PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(3)}},
			})},
			4, 6, 2, 8, "gpu",
		},
		{
			"devices per task", laptop,
			Shape{0, -1},
			[]*job.Spec{onlyGroup(job.TaskGroup{
				Nodes: job.Range{Min: 2}, Tasks: job.Count{Want: 5},
				PerTask: resource.Requirements{Devices: gpus(1, "a100")},
			})},
			2, 2, 3, 6, "a100",
		},
		{
			"devices in all", laptop,
			Shape{0, -1},
			[]*job.Spec{onlyGroup(job.TaskGroup{
				Nodes: job.Range{Min: 2}, Tasks: job.Count{Want: 2}, Total: resource.Requirements{Devices: gpus(5, "")},
			})},
			2, 2, 3, 6, "gpu",
		},
		{
			"components stand beside each other", laptop,
			Shape{0, -1},
			[]*job.Spec{{Groups: []job.TaskGroup{
				{Nodes: job.Range{Min: 1}, Tasks: job.Count{Want: 1}},
				{Nodes: job.Range{Min: 2}, Tasks: job.Count{Want: 2}, PerNode: resource.Requirements{Devices: gpus(1, "")}},
			}}},
			3, 2, 1, 3, "gpu",
		},
		{
			"two jobs need not fit together", laptop,
			Shape{0, -1},
			[]*job.Spec{
				onlyGroup(job.TaskGroup{Nodes: job.Range{Min: 2}, Tasks: job.Count{Want: 2}}),
				onlyGroup(job.TaskGroup{Nodes: job.Range{Min: 3}, Tasks: job.Count{Want: 3}}),
			},
			3, 2, 0, 0, "",
		},
		{
			"a fixed shape stays", laptop,
			Shape{2, 4},
			[]*job.Spec{onlyGroup(job.TaskGroup{Nodes: job.Range{Min: 9}, PerNode: resource.Requirements{Devices: gpus(1, "")}})},
			2, 2, 4, 8, "gpu",
		},
		{
			"real devices are used",
			Machine{CPUs: 8, Devices: h100},
			Shape{0, -1},
			[]*job.Spec{onlyGroup(job.TaskGroup{
				Nodes: job.Range{Min: 2}, Tasks: job.Count{Want: 2}, PerNode: resource.Requirements{Devices: gpus(1, "h100")},
			})},
			2, 8, 1, 0, "h100",
		},
		{
			"not for another type",
			Machine{CPUs: 8, Devices: h100},
			Shape{0, -1},
			[]*job.Spec{onlyGroup(job.TaskGroup{Tasks: job.Count{Want: 1}, PerNode: resource.Requirements{Devices: gpus(1, "a100")}})},
			1, 8, 1, 1, "a100",
		},
		{
			"a number of tasks on every node", laptop,
			Shape{0, -1},
			[]*job.Spec{onlyGroup(job.TaskGroup{
				Nodes: job.Range{Min: 2, Max: 2}, TasksPerNode: 2, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(32)}},
			})},
			2, 64, 0, 0, "",
		},
		{
			"halves of one device lie together", laptop,
			Shape{0, -1},
			[]*job.Spec{onlyGroup(job.TaskGroup{Tasks: job.Count{Want: 1}, PerNode: resource.Requirements{
				Devices: []resource.DeviceRequest{{Count: 4, Share: 500}},
			}})},
			1, 2, 2, 2, "gpu",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := BuildRoom(tt.machine, tt.shape, tt.specs)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Nodes) != tt.nodes || len(r.Names) != tt.nodes || r.Declared != tt.declared {
				t.Fatalf("%d nodes, %d declared devices; want %d, %d", len(r.Nodes), r.Declared, tt.nodes, tt.declared)
			}
			for i, n := range r.Nodes {
				if n.Capacity.CPU != resource.CPUs(tt.cpus) || len(n.Devices) != tt.devices {
					t.Errorf("node %d: %d thousandths of a CPU, %d devices", i, n.Capacity.CPU, len(n.Devices))
				}
				for _, d := range n.Devices {
					if d.Type != tt.typ {
						t.Errorf("node %d: device of type %q, want %q", i, d.Type, tt.typ)
					}
				}
			}
		})
	}
}

func TestRoomMeetsNamesFeaturesAndPartitions(t *testing.T) {
	s := onlyGroup(job.TaskGroup{
		Nodes: job.Range{Min: 1}, NodeList: []string{"gpu07", "gpu08"},
		Constraint: job.Constraint{Alternatives: [][]string{{"ib", "a100"}, {"roce"}}},
	})
	s.Partitions = []string{"big"}
	r, err := BuildRoom(Machine{CPUs: 2}, Shape{0, -1}, []*job.Spec{s})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Nodes) != 2 || r.Names[0] != "gpu07" || r.Names[1] != "gpu08" {
		t.Errorf("names %q", r.Names)
	}
	if f := r.Nodes[0].Features; len(f) != 2 || f[0] != "a100" || f[1] != "ib" || len(r.Notes) != 1 {
		t.Errorf("features %q, notes %q", f, r.Notes)
	}
	if p := r.Nodes[1].Parts; len(p) != 1 || p[0] != "big" {
		t.Errorf("partitions %q", p)
	}
}

func TestARoomHasBounds(t *testing.T) {
	for _, g := range []job.TaskGroup{
		{Nodes: job.Range{Min: 1 << 30}},
		{Tasks: job.Count{Want: 1 << 30}},
		{PerNode: resource.Requirements{Devices: gpus(1<<30, "")}},
		{Nodes: job.Range{Min: 1 << 30}, Tasks: job.Count{Want: 1 << 30}, PerNode: resource.Requirements{Devices: gpus(1<<30, "")}},
	} {
		if _, err := BuildRoom(Machine{CPUs: 2}, Shape{0, -1}, []*job.Spec{onlyGroup(g)}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", g, err)
		}
	}
}

// Devices that somebody else of the machine has are not handed out, and never replaced by declared
// ones; what is free serves as far as it goes, and no more of it than the jobs can use is taken.
func TestDevicesThatOthersHave(t *testing.T) {
	var all []fleet.Device
	for i := range 4 {
		all = append(all, fleet.Device{Index: i, Type: "h100", UUID: "GPU-" + string(rune('0'+i))})
	}
	asks := func(n, tasks int) *job.Spec {
		s := onlyGroup(job.TaskGroup{Nodes: job.Range{Min: 1}, Tasks: job.Count{Want: 1}, PerNode: resource.Requirements{Devices: gpus(n, "")}})
		if tasks > 0 {
			s.Array = &job.ArraySpec{Indices: make([]uint32, tasks)}
		}
		return s
	}
	for _, c := range []struct {
		name          string
		held          int
		specs         []*job.Spec
		shape         Shape
		want          []int // indices of the devices of the only node
		declared      bool
		refusedSaying string
	}{
		{"one of four", 0, []*job.Spec{asks(1, 0)}, Shape{0, -1}, []int{0}, false, ""},
		{"the first that is free", 2, []*job.Spec{asks(1, 0)}, Shape{0, -1}, []int{2}, false, ""},
		{"two jobs at once", 1, []*job.Spec{asks(1, 0), asks(1, 0)}, Shape{0, -1}, []int{1, 2}, false, ""},
		{"an array takes what there is", 1, []*job.Spec{asks(1, 8)}, Shape{0, -1}, []int{1, 2, 3}, false, ""},
		{"more than are free", 2, []*job.Spec{asks(3, 0)}, Shape{0, -1}, nil, false, "3 GPUs needed, and 2 of this machine's 4 are free: anna has them"},
		{"as the shape says", 2, []*job.Spec{asks(1, 0)}, Shape{1, 3}, nil, false, "3 GPUs needed, and 2 of this machine's 4 are free: anna has them"},
		{"more than there are", 2, []*job.Spec{asks(5, 0)}, Shape{0, -1}, nil, true, ""},
	} {
		m := Machine{CPUs: 2, Devices: all[c.held:], Held: all[:c.held], Holder: errors.New("anna has them")}
		r, err := BuildRoom(m, c.shape, c.specs)
		if c.refusedSaying != "" {
			if fault.KindOf(err) != fault.Conflict || err.Error() != c.refusedSaying || !strings.Contains(fault.Remedy(err), "--share") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []int
		for _, d := range r.Nodes[0].Devices {
			if !d.Declared {
				got = append(got, d.Index)
			}
		}
		if !slices.Equal(got, c.want) || c.declared != (r.Declared > 0) {
			t.Errorf("%s: devices %v, %d declared; want %v, %v", c.name, got, r.Declared, c.want, c.declared)
		}
	}
}
