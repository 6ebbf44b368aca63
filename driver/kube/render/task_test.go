package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// sampleTasks is sample with two tasks on each of its two nodes and a pod for each task: those on
// n1 have a GPU each.
func sampleTasks(t *testing.T) *Attempt {
	t.Helper()
	a := sample()
	s := a.Launch.Job.Spec
	s.Pod = &job.Pod{PerTask: true}
	s.Groups = []job.TaskGroup{{Nodes: job.Range{Min: 2, Max: 2}, TasksPerNode: 2}}
	s.Source.Given = map[string]string{"nodes": "2", "ntasks-per-node": "2", "mem": "4G", "cpus-per-task": "1"}
	for i := range a.Launch.Claims {
		a.Launch.Claims[i].Tasks = 2
	}
	var err error
	if a.Launch.Claims, a.Nodes, err = Split(a.Launch.Claims, a.Nodes); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestAPodForEachTask: each has its share and one device of its own, those of a node are on it, and
// to the processes each is a node with one task.
//
// Seen to fail with: claims found by the node's name; Given as it was submitted.
func TestAPodForEachTask(t *testing.T) {
	a := sampleTasks(t)
	s, err := a.Root(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var p podagent.Plan
	if err := json.Unmarshal(s.Data[podagent.PlanFile], &p); err != nil {
		t.Fatal(err)
	}
	pods := a.Pods("u")
	if len(pods) != 4 || len(p.Members) != 4 || len(p.Claims) != 4 {
		t.Fatalf("%d pods, %d members, %d claims", len(pods), len(p.Members), len(p.Claims))
	}
	for i, want := range []struct {
		node, cpu, memory, gpus string
		held                    string
	}{{"n1", "750m", "1Gi", "1", "GPU-1"}, {"n1", "750m", "1Gi", "1", "GPU-3"}, {"n2", "250m", "0", "0", ""}, {"n2", "250m", "0", "0", ""}} {
		l := pods[i].Spec.Containers[0].Resources.Limits
		gpus := l.Name("nvidia.com/gpu", "")
		if a.Nodes[i].Name != want.node || l.Cpu().String() != want.cpu || l.Memory().String() != want.memory || gpus.String() != want.gpus {
			t.Errorf("pod %d is on %s and has %v", i, a.Nodes[i].Name, l)
		}
		held := ""
		for _, d := range a.Nodes[i].Devices {
			held += d.UUID
		}
		if held != want.held {
			t.Errorf("pod %d holds %q, want %q", i, held, want.held)
		}
		c := p.Claims[i]
		if c.Node != pods[i].Name || p.Members[i].Name != c.Node || c.Tasks != 1 || len(c.Devices) > 0 && c.Devices[0].Index != 0 || len(p.Members[i].Node.Devices) != len(c.Devices) {
			t.Errorf("claim %d is %+v, its member %+v", i, c, p.Members[i])
		}
	}
	if spec := p.Job.Spec; spec.Groups[0].TasksPerNode != 1 || spec.Source.Given["ntasks"] != "4" || spec.Source.Given["mem"] != "" || spec.Source.Given["cpus-per-task"] != "1" {
		t.Errorf("%+v, %v", spec.Groups, spec.Source.Given)
	}
	if own := a.Launch.Job.Spec; own.Groups[0].TasksPerNode != 2 || own.Source.Given["mem"] != "4G" {
		t.Error("the job was written to")
	}
}

// TestPodsOfTasksMayBeTogether: where the cluster's scheduler chooses, there are as many pods as
// tasks, in a gang, and none keeps off the nodes of others.
//
// Seen to fail with: anti-affinity.
func TestPodsOfTasksMayBeTogether(t *testing.T) {
	a := sample()
	s := a.Launch.Job.Spec
	s.Pod = &job.Pod{PerTask: true}
	s.Groups = []job.TaskGroup{{Tasks: job.Count{Want: 6}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: 2000}, Devices: []resource.DeviceRequest{{Count: 2}}}, PerDevice: resource.Vector{Memory: resource.GiB}}}
	a.Placed, a.Gang = false, Native
	var err error
	if a.Nodes, a.Launch.Claims, err = Spread(s, nvidia, nil); err != nil {
		t.Fatal(err)
	}
	if err := a.Check(); err != nil {
		t.Fatal(err)
	}
	pods := a.Pods("u")
	if len(pods) != 6 {
		t.Fatalf("%d pods", len(pods))
	}
	for _, p := range pods {
		l := p.Spec.Containers[0].Resources.Limits
		if gpus := l.Name("nvidia.com/gpu", ""); p.Spec.Affinity != nil || l.Cpu().String() != "2" || l.Memory().String() != "2Gi" || gpus.String() != "2" {
			t.Errorf("%+v, %v", p.Spec.Affinity, l)
		}
	}
	text, err := json.Marshal(a.Group("u", "v1alpha2"))
	if err != nil || !strings.Contains(string(text), `"minCount":6`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestWhatDoesNotDivideIsRefused: with what would mend it, and without pods for tasks it is taken.
//
// Seen to fail with: tasks on a node taken for TasksPerNode, which is at most; tasks that the nodes
// divide taken for so many on each; several groups taken where the cluster's scheduler chooses.
func TestWhatDoesNotDivideIsRefused(t *testing.T) {
	gpus := func(n int) resource.Requirements {
		return resource.Requirements{Devices: []resource.DeviceRequest{{Count: n}}}
	}
	two := job.Range{Min: 2, Max: 2}
	memory := resource.Requirements{Vector: resource.Vector{Memory: 10 * resource.GiB}}
	for _, c := range []struct {
		what      string
		g         job.TaskGroup
		delegated bool
		says      string // empty: it is taken
		mend      string
	}{
		{what: "by task", g: job.TaskGroup{Tasks: job.Count{Want: 5}, PerTask: gpus(1)}},
		{what: "of four on a node", g: job.TaskGroup{Nodes: two, TasksPerNode: 4, PerNode: gpus(8)}},
		{what: "memory is rounded", g: job.TaskGroup{Nodes: two, TasksPerNode: 3, PerNode: memory}},
		{what: "four on one node", g: job.TaskGroup{Nodes: job.Range{Min: 1, Max: 1}, Tasks: job.Count{Want: 4}, PerNode: gpus(4)}},
		{what: "two on each of two nodes", g: job.TaskGroup{Nodes: two, Tasks: job.Count{Want: 4}, TasksPerNode: 2, PerNode: gpus(2)}},
		{what: "four on two nodes, maybe three and one", g: job.TaskGroup{Nodes: two, Tasks: job.Count{Want: 4}, PerNode: gpus(2)}, says: "how many tasks a node has is not known", mend: "--ntasks-per-node"},
		{what: "four on two nodes, at most three on each", g: job.TaskGroup{Nodes: two, Tasks: job.Count{Want: 4}, TasksPerNode: 3, PerNode: memory}, says: "how many tasks a node has is not known", mend: "--mem-per-cpu"},
		{what: "eight among three", g: job.TaskGroup{Nodes: two, TasksPerNode: 3, PerNode: gpus(8)}, says: "does not divide among its 3 tasks", mend: "--gpus-per-task"},
		{what: "at most so many", g: job.TaskGroup{Tasks: job.Count{Want: 8}, TasksPerNode: 4, PerNode: gpus(4)}, says: "how many tasks a node has is not known", mend: "--gpus-per-task"},
		{what: "five on two nodes", g: job.TaskGroup{Nodes: two, Tasks: job.Count{Want: 5}, PerNode: memory}, says: "how many tasks a node has is not known", mend: "--mem-per-cpu"},
		{what: "whole nodes", g: job.TaskGroup{Nodes: two, Exclusive: true}, says: "--exclusive", mend: "leave it out"},
		{what: "all memory", g: job.TaskGroup{AllMemory: true}, says: "--mem=0", mend: "--mem-per-cpu"},
		{what: "of all together", g: job.TaskGroup{Tasks: job.Count{Want: 4}, Total: gpus(4)}, says: "--gpus is of all tasks", mend: "--gpus-per-task"},
		{what: "cyclic", g: job.TaskGroup{Tasks: job.Count{Want: 4}, Distribution: "cyclic"}, says: "in blocks", mend: "--distribution"},
		{what: "delegated", g: job.TaskGroup{Tasks: job.Count{Want: 4}, PerTask: gpus(1)}, delegated: true},
		{what: "delegated, nodes", g: job.TaskGroup{Nodes: two, TasksPerNode: 2}, delegated: true, says: "puts each where there is room", mend: "--ntasks"},
		{what: "delegated, of a node", g: job.TaskGroup{Tasks: job.Count{Want: 4}, PerNode: memory}, delegated: true, says: "how many tasks a node has is not known", mend: "--mem-per-cpu"},
	} {
		a := sample()
		s := a.Launch.Job.Spec
		a.Placed, s.Groups = !c.delegated, []job.TaskGroup{c.g}
		if err := a.CheckJob(); err != nil {
			t.Errorf("%s: a pod for each node: %v", c.what, err)
		}
		s.Pod = &job.Pod{PerTask: true}
		err := a.CheckJob()
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.what, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(fault.Remedy(err), c.mend) || !strings.Contains(fault.Remedy(err), "pods: task")):
			t.Errorf("%s: %v, %q", c.what, err, fault.Remedy(err))
		}
	}
	for placed, kind := range map[bool]fault.Kind{true: 0, false: fault.Unsupported} {
		a := sample()
		a.Placed, a.Launch.Job.Spec.Pod = placed, &job.Pod{PerTask: true}
		a.Launch.Job.Spec.Groups = []job.TaskGroup{{Tasks: job.Count{Want: 2}}, {Tasks: job.Count{Want: 3}}}
		if err := a.CheckJob(); (err != nil) == placed || !placed && (fault.KindOf(err) != kind || !strings.Contains(fault.Remedy(err), "a job of its own")) {
			t.Errorf("several groups, placed %v: %v, %q", placed, err, fault.Remedy(err))
		}
	}
	a := sample()
	a.Launch.Job.Spec.Pod = &job.Pod{PerTask: true, HostNetwork: true}
	if err := a.CheckJob(); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "host_network") {
		t.Errorf("on the node's network: %v", err)
	}
}

// TestSplitTakesNoMoreAndNoLess: what the pods of a node have together is what the claim was, but
// for bytes that are rounded; what does not divide is refused, and a claim of no task has no pod.
//
// Seen to fail with: a claim of no task refused.
func TestSplitTakesNoMoreAndNoLess(t *testing.T) {
	node := Node{Node: fleet.Node{Name: "n1"}, Ask: []string{"g", "g", "g", "g"}, Pieces: []Piece{{Device: "a"}, {Device: "b"}, {Device: "c"}, {Device: "d"}}}
	claim := fleet.Claim{Node: "n1", Tasks: 2, Take: resource.Vector{CPU: 3000, Memory: 1001}.With("gres/rdma/hca", 2)}
	for i := range 4 {
		node.Devices = append(node.Devices, fleet.Device{Index: 10 + i})
		claim.Devices = append(claim.Devices, fleet.DeviceClaim{Index: 13 - i})
	}
	claims, nodes, err := Split([]fleet.Claim{claim, {Node: "n1", Take: resource.Vector{CPU: 1}}, {Node: "n1", Group: 1, Tasks: 1}}, []Node{node})
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for i, c := range claims {
		var pieces []string
		for _, p := range nodes[i].Pieces {
			pieces = append(pieces, p.Device)
		}
		got += fmt.Sprint(c.Group, c.Tasks, c.Take.CPU, c.Take.Memory, c.Take.Get("gres/rdma/hca"), pieces, len(nodes[i].Ask), ";")
	}
	if want := "0 1 1500 500 1 [d c] 2;0 1 1500 500 1 [b a] 2;1 1 0 0 0 [] 0;"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for what, spoil := range map[string]func(*fleet.Claim){
		"devices": func(c *fleet.Claim) { c.Devices = c.Devices[:3] },
		"cpu":     func(c *fleet.Claim) { c.Take.CPU = 1001 },
		"counted": func(c *fleet.Claim) { c.Take = c.Take.With("gres/rdma/hca", 3) },
		"whole":   func(c *fleet.Claim) { c.Whole = true },
		"none":    func(c *fleet.Claim) { c.Tasks = 0 },
		"node":    func(c *fleet.Claim) { c.Node = "n2" },
	} {
		c := claim
		c.Devices = slices.Clone(claim.Devices)
		spoil(&c)
		if _, _, err := Split([]fleet.Claim{c}, []Node{node}); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestHowManyPodsARootHasRoomFor: what the documentation says of it, of nodes as the cluster's
// scheduler has them and of such as we choose, of which more is known.
//
// Seen to fail with: the nodes' features told to the crew.
func TestHowManyPodsARootHasRoomFor(t *testing.T) {
	for placed, room := range map[bool]int{false: 1000, true: 850} {
		for n, fits := range map[int]bool{room: true, 2 * room: false} {
			a := sample()
			a.Launch.Job.Spec.Pod = &job.Pod{PerTask: true}
			a.Launch.Job.Spec.Groups = []job.TaskGroup{{Tasks: job.Count{Want: n}, PerTask: resource.Requirements{Devices: []resource.DeviceRequest{{Count: 1}}}}}
			a.Placed = placed
			var err error
			if a.Nodes, a.Launch.Claims, err = Spread(a.Launch.Job.Spec, nvidia, nil); err != nil {
				t.Fatal(err)
			}
			for i := range a.Nodes {
				if !placed {
					break
				}
				node, claim := &a.Nodes[i], &a.Launch.Claims[i]
				node.Name = fmt.Sprintf("ip-10-0-%d-%d.us-east-2.compute.internal", i/2048, i/8%256)
				node.Pool, node.Address = "k8s-production", fmt.Sprintf("10.0.%d.%d", i/2048, i/8%256)
				node.Hosts = []string{node.Name, "ip-10-0-0-1"}
				node.Features = []string{"NVIDIA-H100-80GB-HBM3", "amd64", "driver-550.54.15", "hopper", "ib", "p5.48xlarge", "rack-r12", "zone-us-east-2b"}
				node.Path = []string{"us-east-2b", "network-spine-0123456789abcdef", "network-leaf-0123456789abcdef"}
				node.Capacity = resource.Vector{CPU: 24000, Memory: 250 * resource.GiB, Disk: 10 * resource.GiB}
				node.Devices = []fleet.Device{{Index: i % 8, Minor: -1, Kind: "gpu", Type: "h100-80gb-hbm3", Memory: 81559 * resource.MiB, NUMA: -1}}
				claim.Node, claim.Take, claim.Devices = node.Name, node.Capacity, []fleet.DeviceClaim{{Index: i % 8, Share: resource.WholeDevice}}
			}
			s, err := a.Root(time.Now())
			if (err == nil) != fits {
				t.Errorf("%d pods, placed %v: %v", n, placed, err)
			}
			if err != nil && !strings.Contains(fault.Remedy(err), "have fewer pods") {
				t.Errorf("%q", fault.Remedy(err))
			}
			if s != nil {
				size := 0
				for _, f := range s.Data {
					size += len(f)
				}
				t.Logf("%d pods, placed %v: %d bytes of %d, %d of the plan", n, placed, size, corev1.MaxSecretSize, len(s.Data[podagent.PlanFile]))
			}
		}
	}
}
