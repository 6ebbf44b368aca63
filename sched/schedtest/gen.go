package schedtest

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Node draws a node: a few CPUs, up to 4 devices of two types or instances of
// one, sometimes features, partitions, a topology path and foreign use.
func Node(t *rapid.T, name string) fleet.Node {
	n := fleet.Node{Name: name, State: fleet.Up, Capacity: resource.Vector{
		CPU:    resource.CPUs(rapid.IntRange(1, 6).Draw(t, "cpus")),
		Memory: resource.Amount(rapid.IntRange(2, 8).Draw(t, "GiB")) * resource.GiB,
	}}
	if rapid.IntRange(0, 3).Draw(t, "licensed") == 0 {
		n.Capacity = n.Capacity.With("tape", 2)
	}
	n.Features = drawSubset(t, "features", "x", "y")
	n.Parts = drawSubset(t, "partitions", "p", "q")
	if rapid.Bool().Draw(t, "path") {
		n.Path = []string{"s" + rapid.SampledFrom([]string{"1", "2"}).Draw(t, "spine"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "leaf")}
	}
	mig := rapid.IntRange(0, 5).Draw(t, "mig") == 0
	for i := range rapid.IntRange(0, 4).Draw(t, "devices") {
		d := fleet.Device{Index: i, Kind: "gpu", Type: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "type"), NUMA: i / 2}
		d.Memory = resource.Amount(rapid.IntRange(1, 2).Draw(t, "device GiB")*40) * resource.GiB
		if mig && i%2 == 1 {
			d.Profile = "1g"
		}
		if rapid.IntRange(0, 11).Draw(t, "foreign") == 0 {
			d.Foreign = resource.GiB
		}
		n.Devices = append(n.Devices, d)
	}
	for i := range n.Devices {
		for j := range n.Devices {
			if i != j {
				kind := fleet.LinkKind(rapid.IntRange(0, 5).Draw(t, "link"))
				n.Devices[i].Links = append(n.Devices[i].Links, fleet.Link{Peer: j, Kind: kind})
			}
		}
	}
	return n
}

// OtherPool is the second pool of fleets that have two.
const OtherPool = "z"

// Nodes draws a fleet of up to 4 nodes, in every second case alike ones, in every fifth
// in two pools.
func Nodes(t *rapid.T) []fleet.Node {
	out := make([]fleet.Node, rapid.IntRange(1, 4).Draw(t, "nodes"))
	alike := rapid.Bool().Draw(t, "alike")
	pools := rapid.IntRange(0, 4).Draw(t, "pools") == 0
	for i := range out {
		name := fmt.Sprintf("n%d", i+1)
		if alike && i > 0 {
			out[i] = out[0]
			out[i].Name = name
		} else {
			out[i] = Node(t, name)
		}
		if pools {
			out[i].Pool = rapid.SampledFrom([]string{"", OtherPool}).Draw(t, "pool")
		}
	}
	return out
}

// Spec draws what a job asks for, of the kinds that the core places exactly: one
// group, or two whose devices are all alike.
func Spec(t *rapid.T) *job.Spec {
	s := &job.Spec{Partitions: drawSubset(t, "partition", "p", "q")}
	if rapid.IntRange(0, 11).Draw(t, "only in a pool") == 0 {
		s.Pool = OtherPool
	}
	if rapid.Bool().Draw(t, "limited") {
		s.TimeLimit = time.Duration(rapid.IntRange(1, 20).Draw(t, "limit")) * time.Second
		if rapid.IntRange(0, 3).Draw(t, "may be shortened") == 0 {
			s.TimeMin = time.Duration(rapid.IntRange(1, 20).Draw(t, "least")) * time.Second
		}
	}
	if s.TimeLimit == 0 && rapid.IntRange(0, 3).Draw(t, "serves") == 0 {
		s.Serve = &job.Serve{Ports: []job.Port{{Name: "http"}}}
		s.TimeMin = time.Duration(rapid.IntRange(1, 20).Draw(t, "least of an end granted")) * time.Second
	}
	if rapid.IntRange(0, 4).Draw(t, "het") == 0 {
		for range 2 {
			s.Groups = append(s.Groups, plainGroup(t))
		}
		s.Within = rapid.SampledFrom([]int{0, 0, 0, job.InLeaf, 1, 2}).Draw(t, "all within")
		return s
	}
	s.Groups = []job.TaskGroup{drawGroup(t)}
	return s
}

// Elastic is a group that may change its size.
func Elastic(t *rapid.T) job.TaskGroup {
	g := job.TaskGroup{Elastic: true, TasksPerNode: rapid.IntRange(0, 2).Draw(t, "tasks per node")}
	n := rapid.IntRange(1, 2).Draw(t, "least nodes")
	g.Nodes = job.Range{Min: n, Max: n + rapid.IntRange(1, 2).Draw(t, "more nodes")}
	if n == 2 && g.Nodes.Max == 4 && rapid.Bool().Draw(t, "subgroups") {
		g.Subgroup = 2
	}
	g.PerTask.CPU = resource.CPUs(rapid.IntRange(1, 3).Draw(t, "cpus per task"))
	g.Exclusive = rapid.IntRange(0, 7).Draw(t, "exclusive") == 0
	return g
}

// plainGroup is a group without choice among devices.
func plainGroup(t *rapid.T) job.TaskGroup {
	g := job.TaskGroup{Tasks: job.Count{Want: rapid.IntRange(1, 3).Draw(t, "tasks")}}
	g.PerTask.CPU = resource.CPUs(rapid.IntRange(0, 2).Draw(t, "cpus per task"))
	if rapid.Bool().Draw(t, "nodes asked") {
		n := rapid.IntRange(1, 2).Draw(t, "nodes")
		g.Nodes = job.Range{Min: n, Max: n}
	}
	if rapid.Bool().Draw(t, "gpus") {
		g.PerTask.Devices = []resource.DeviceRequest{{Count: rapid.IntRange(1, 2).Draw(t, "gpus per task")}}
	}
	g.Exclusive = rapid.IntRange(0, 7).Draw(t, "exclusive") == 0
	return g
}

func drawGroup(t *rapid.T) job.TaskGroup {
	g := job.TaskGroup{Tasks: job.Count{Want: rapid.IntRange(1, 4).Draw(t, "tasks")}}
	if rapid.IntRange(0, 3).Draw(t, "elastic") == 0 {
		g.Tasks.Min = rapid.IntRange(1, g.Tasks.Want).Draw(t, "least tasks")
	}
	if rapid.Bool().Draw(t, "nodes asked") {
		g.Nodes.Min = rapid.IntRange(1, 3).Draw(t, "least nodes")
		g.Nodes.Max = g.Nodes.Min + rapid.IntRange(0, 2).Draw(t, "more nodes")
		if rapid.IntRange(0, 3).Draw(t, "open") == 0 {
			g.Nodes.Max = 0
		}
		if rapid.IntRange(0, 3).Draw(t, "no task count") == 0 {
			g.Tasks = job.Count{}
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "bounded") == 0 {
		g.TasksPerNode = rapid.IntRange(1, 3).Draw(t, "tasks per node")
	}
	g.PerTask.CPU = resource.CPUs(rapid.IntRange(0, 2).Draw(t, "cpus per task"))
	g.PerNode.Memory = resource.Amount(rapid.IntRange(0, 3).Draw(t, "GiB")) * resource.GiB
	if rapid.IntRange(0, 5).Draw(t, "tape") == 0 {
		g.PerNode.Named = []resource.Named{{Name: "tape", Amount: 1}}
	}
	drawDevices(t, &g)
	drawPlacement(t, &g)
	return g
}

func drawDevices(t *rapid.T, g *job.TaskGroup) {
	r := resource.DeviceRequest{
		Count: rapid.IntRange(1, 2).Draw(t, "count"),
		Type:  rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "type"),
	}
	switch rapid.IntRange(0, 7).Draw(t, "devices") {
	case 0:
		g.PerNode.Devices = []resource.DeviceRequest{r}
	case 1:
		g.PerTask.Devices = []resource.DeviceRequest{r}
	case 2:
		r.Count = rapid.IntRange(1, 5).Draw(t, "total")
		g.Total.Devices = []resource.DeviceRequest{r}
	case 3:
		r.Share = rapid.SampledFrom([]resource.Share{250, 400, 500, 700}).Draw(t, "share")
		g.PerTask.Devices = []resource.DeviceRequest{r}
	case 7: // of 40 and 80 GiB: several parts, and sums that are a device to the byte
		r.Bytes = rapid.SampledFrom([]resource.Amount{8 * resource.GiB, 20 * resource.GiB, 80 * resource.GiB / 3, 40 * resource.GiB, 41 * resource.GiB}).Draw(t, "bytes")
		r.Share = rapid.SampledFrom([]resource.Share{0, resource.ShareOf(r.Bytes, 40*resource.GiB)}).Draw(t, "counts for")
		r.Count = 1
		g.PerTask.Devices = []resource.DeviceRequest{r}
	case 4:
		r.Type, r.Profile = "", "1g"
		g.PerTask.Devices = []resource.DeviceRequest{r}
	case 5:
		g.PerNode.Devices = []resource.DeviceRequest{r}
		r.Type, r.Memory = "", 80*resource.GiB
		g.PerTask.Devices = []resource.DeviceRequest{r}
	}
	if rapid.IntRange(0, 3).Draw(t, "per device") == 0 {
		g.PerDevice.CPU = resource.OneCPU
	}
}

func drawPlacement(t *rapid.T, g *job.TaskGroup) {
	g.FewNodes = rapid.IntRange(0, 7).Draw(t, "few nodes") == 0
	switch rapid.IntRange(0, 13).Draw(t, "where") {
	case 10:
		g.Switches = rapid.IntRange(1, 2).Draw(t, "switches")
	case 11:
		g.Spread = true
	case 12: // together with something else
		g.Switches = 1
		g.Within = rapid.SampledFrom([]int{0, 1}).Draw(t, "within")
		g.Contiguous = rapid.Bool().Draw(t, "contiguous")
	case 8:
		g.Within = rapid.SampledFrom([]int{job.InLeaf, 1, 2}).Draw(t, "within")
	case 9: // segments take alike portions
		n := rapid.IntRange(1, 2).Draw(t, "segments")
		g.Segment = 2
		g.Nodes, g.Tasks = job.Range{Min: 2 * n, Max: 2 * n}, job.Count{}
		g.Total = resource.Requirements{}
	case 0:
		g.Exclusive = true
	case 1:
		g.Contiguous = true
	case 2:
		g.AllMemory, g.PerNode.Memory = true, 0
	case 3:
		g.Constraint = job.Constraint{Text: "x", Alternatives: [][]string{{"x"}}}
	case 4:
		g.Constraint = job.Constraint{Text: "[x|y]", Alternatives: [][]string{{"x"}, {"y"}}, Same: true}
	case 5:
		g.Constraint = job.Constraint{Text: "x&y|y", Alternatives: [][]string{{"x", "y"}, {"y"}}}
	case 6:
		g.NodeList = []string{rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "named")}
	case 7:
		g.Exclude = []string{rapid.SampledFrom([]string{"n1", "n2", "n3"}).Draw(t, "excluded")}
	}
}

// Wish draws what a job would rather have and gives up, mostly nothing.
func Wish(t *rapid.T, s *job.Spec) {
	if rapid.IntRange(0, 3).Draw(t, "wishful") != 0 {
		return
	}
	wait := func() time.Duration {
		return time.Duration(rapid.SampledFrom([]int{0, 1, 3, 8, 400}).Draw(t, "patience")) * time.Second
	}
	level := func() int { return rapid.SampledFrom([]int{job.InLeaf, 1, 2}).Draw(t, "wish within") }
	if len(s.Groups) > 1 && rapid.Bool().Draw(t, "together") {
		s.Wish = job.Wish{N: level(), For: wait()}
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		switch rapid.IntRange(0, 3).Draw(t, "wish") {
		case 0:
			g.Wishes.Within = job.Wish{N: level(), For: wait()}
		case 1:
			g.Wishes.Switches = job.Wish{N: rapid.IntRange(1, 2).Draw(t, "wish switches"), For: wait()}
			if rapid.Bool().Draw(t, "as the site has it") {
				g.Wishes.Switches.For = job.SiteWait
			}
		case 2:
			g.Wishes.GPUs = rapid.Permutation([]string{"a", "b"}).Draw(t, "types")
			g.Wishes.GPUsFor = wait()
		}
		if g.Spread {
			g.Wishes.Switches = job.Wish{}
		}
	}
}

// drawSubset draws some of the words, mostly none.
func drawSubset(t *rapid.T, label string, words ...string) []string {
	switch rapid.IntRange(0, 4).Draw(t, label) {
	case 0:
		return words[:1]
	case 1:
		return words[1:]
	case 2:
		return slices.Clone(words)
	}
	return nil
}
