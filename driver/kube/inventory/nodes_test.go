package inventory

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fleet"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// hgx is a node with eight H100 as the GPU operator labels it: what its fields mean is in the
// operator's and topograph's documents.
//
//go:embed testdata/hgx.json
var hgx string

func nodeOf(t *testing.T, text string, change func(*corev1.Node)) corev1.Node {
	t.Helper()
	var n corev1.Node
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&n); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&n)
	}
	return n
}

func one(t *testing.T, terms settings.Terms, n corev1.Node, pods ...corev1.Pod) Machine {
	t.Helper()
	use := map[string]nodeUsage{}
	for i := range pods {
		addPodUse(&terms, use, &pods[i], func(p *corev1.Pod) bool { return p.Labels[render.LabelServer] == "abcdef" })
	}
	all := readNodes(&terms, []corev1.Node{n}, use)
	if len(all) != 1 {
		t.Fatalf("%d nodes", len(all))
	}
	return all[0]
}

// TestNodeOfTheOperator: everything that is known of a node with GPUs. One of eight GPUs is
// not healthy, so seven are there.
func TestNodeOfTheOperator(t *testing.T) {
	m := one(t, settings.Terms{Pool: "k8s-a", Features: []string{"example.com/ib", "example.com/rack", "example.com/none"}}, nodeOf(t, hgx, nil))
	want := fleet.Node{
		Name: "gpu-7", Pool: "k8s-a", State: fleet.Up, Address: "10.0.0.7",
		Features: []string{"NVIDIA-H100-80GB-HBM3", "amd64", "driver-550.54.15", "hopper", "ib", "p5.48xlarge", "r12"},
		Capacity: amount.Vector{
			CPU: 191500, Memory: 2000 * amount.GiB, Disk: 90 * amount.GiB,
			Named: []amount.Named{{Name: "gres/rdma/hca_shared_devices_a", Amount: 63}},
		},
		Path: []string{"us-east-2", "us-east-2b", "s3", "s2", "s1", "nvl1"},
	}
	for i := range 7 {
		want.Devices = append(want.Devices, fleet.Device{Index: i, Minor: -1, NUMA: -1, Kind: "gpu", Type: "h100", Memory: 81559 * amount.MiB})
	}
	if d := cmp.Diff(want, m.Node); d != "" {
		t.Error(d)
	}
	if m.Ill != 1 || len(m.Notes) != 0 || !slices.Equal(m.Ask, slices.Repeat([]string{"nvidia.com/gpu"}, 7)) {
		t.Errorf("ill %d, notes %q, ask %q", m.Ill, m.Notes, m.Ask)
	}
}

// TestDividedDevices: instances of MIG and turns on a GPU are no whole GPUs, and each asks
// for its own resource.
func TestDividedDevices(t *testing.T) {
	set := func(labels map[string]string, has map[string]string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			for k, v := range labels {
				n.Labels[k] = v
			}
			for _, l := range []corev1.ResourceList{n.Status.Allocatable, n.Status.Capacity} {
				delete(l, "nvidia.com/gpu")
				for k, v := range has {
					l[corev1.ResourceName(k)] = parse(t, v)
				}
			}
		}
	}
	type dev struct {
		typ, profile, ask string
		memory            amount.Amount
		n                 int
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Node)
		want   []dev
		note   string
	}{
		"MIG, single": {
			set(map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "nvidia.com/gpu.memory": "9728", "nvidia.com/gpu.count": "56"}, map[string]string{"nvidia.com/gpu": "56"}),
			[]dev{{"a100", "1g.10gb", "nvidia.com/gpu", 9728 * amount.MiB, 56}},
			"",
		},
		"MIG, mixed": {
			set(map[string]string{
				"nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe",
				"nvidia.com/mig-1g.10gb.product": "NVIDIA-A100-80GB-PCIe-MIG-1g.10gb", "nvidia.com/mig-1g.10gb.memory": "9728", "nvidia.com/mig-1g.10gb.replicas": "1", "nvidia.com/mig-1g.10gb.sharing-strategy": "none",
				"nvidia.com/mig-3g.40gb.product": "NVIDIA-A100-80GB-PCIe-MIG-3g.40gb", "nvidia.com/mig-3g.40gb.memory": "40192",
			}, map[string]string{"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "2", "nvidia.com/mig-3g.40gb": "1"}),
			[]dev{{"a100", "1g.10gb", "nvidia.com/mig-1g.10gb", 9728 * amount.MiB, 2}, {"a100", "3g.40gb", "nvidia.com/mig-3g.40gb", 40192 * amount.MiB, 1}},
			"",
		},
		"time slices": {
			set(map[string]string{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "10", "nvidia.com/gpu.sharing-strategy": "time-slicing", "nvidia.com/gpu.count": "2"}, map[string]string{"nvidia.com/gpu": "20"}),
			[]dev{{"t4", "shared", "nvidia.com/gpu", 0, 20}},
			"a unit of nvidia.com/gpu is no device: 10 of them share one (time-slicing)",
		},
		"time slices under a name of their own": {
			set(map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.sharing-strategy": "mps"}, map[string]string{"nvidia.com/gpu.shared": "4"}),
			[]dev{{"l4", "shared", "nvidia.com/gpu.shared", 0, 4}},
			"4 of them share one (mps)",
		},
		"turns on an instance": {
			set(map[string]string{"nvidia.com/mig-1g.10gb.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb-SHARED", "nvidia.com/mig-1g.10gb.replicas": "2", "nvidia.com/mig-1g.10gb.sharing-strategy": "time-slicing"}, map[string]string{"nvidia.com/mig-1g.10gb.shared": "4"}),
			[]dev{{"h100", "1g.10gb.shared", "nvidia.com/mig-1g.10gb.shared", 0, 4}},
			"2 of them share one",
		},
		"another maker": {
			set(map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}, map[string]string{"amd.com/gpu": "8"}),
			[]dev{{"mi300x", "", "amd.com/gpu", 192 * amount.GiB, 8}},
			"",
		},
	} {
		m := one(t, settings.Terms{}, nodeOf(t, hgx, tt.change))
		var got []dev
		for i, d := range m.Node.Devices {
			x := dev{d.Type, d.Profile, m.Ask[i], d.Memory, 1}
			if d.Index != i {
				t.Errorf("%s: device %d has index %d", name, i, d.Index)
			}
			if k := len(got) - 1; k >= 0 && got[k].typ == x.typ && got[k].profile == x.profile && got[k].ask == x.ask {
				got[k].n++
				continue
			}
			got = append(got, x)
		}
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(dev{})); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if notes := strings.Join(m.Notes, "\n"); !strings.Contains(notes, tt.note) || tt.note == "" && notes != "" {
			t.Errorf("%s: notes %q", name, notes)
		}
	}
}

// TestStates: what keeps new work off a node, with the reason.
func TestStates(t *testing.T) {
	ready := func(s corev1.ConditionStatus, message string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Status.Conditions[1].Status, n.Status.Conditions[1].Message = s, message
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "node.kubernetes.io/unreachable", Effect: "NoExecute"})
		}
	}
	tainted := func(x corev1.Taint) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, x) }
	}
	for name, tt := range map[string]struct {
		change func(*corev1.Node)
		level  fleet.NodeState
		why    string
	}{
		"as it is":        {nil, fleet.Up, ""},
		"not ready":       {ready("False", "container runtime is down"), fleet.Down, "NotReady: container runtime is down"},
		"silent":          {ready("Unknown", "Kubelet stopped posting node status."), fleet.Unknown, "its kubelet is silent since 0001-01-01 00:00:00Z: Kubelet stopped posting node status."},
		"never seen":      {func(n *corev1.Node) { n.Status.Conditions = nil }, fleet.Unknown, "its kubelet has not reported yet"},
		"cordoned":        {func(n *corev1.Node) { n.Spec.Unschedulable = true }, fleet.Draining, "cordoned (kubectl uncordon gpu-7)"},
		"full of memory":  {func(n *corev1.Node) { n.Status.Conditions[0].Status = "True" }, fleet.Draining, "MemoryPressure"},
		"both":            {func(n *corev1.Node) { n.Spec.Unschedulable = true; n.Status.Conditions[1].Status = "Unknown" }, fleet.Unknown, "its kubelet is silent since 0001-01-01 00:00:00Z: KubeletReady; cordoned (kubectl uncordon gpu-7)"},
		"control plane":   {tainted(corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}), fleet.Draining, "the taint node-role.kubernetes.io/control-plane:NoSchedule, which the pool does not tolerate"},
		"preferred":       {tainted(corev1.Taint{Key: "a", Effect: "PreferNoSchedule"}), fleet.Up, ""},
		"ours":            {tainted(corev1.Taint{Key: settings.TaintPool, Value: "k8s-a", Effect: "NoSchedule"}), fleet.Up, ""},
		"another pool's":  {tainted(corev1.Taint{Key: settings.TaintPool, Value: "k8s-b", Effect: "NoSchedule"}), fleet.Draining, "the taint coxswain.sh/pool=k8s-b:NoSchedule, which the pool does not tolerate"},
		"tolerated":       {tainted(corev1.Taint{Key: "team", Value: "nlp", Effect: "NoExecute"}), fleet.Up, ""},
		"not by its team": {tainted(corev1.Taint{Key: "team", Value: "vision", Effect: "NoExecute"}), fleet.Draining, "the taint team=vision:NoExecute, which the pool does not tolerate"},
		"windows":         {func(n *corev1.Node) { n.Labels["kubernetes.io/os"] = "windows" }, fleet.Draining, "it runs windows"},
	} {
		m := one(t, settings.Terms{Pool: "k8s-a", Tolerations: []corev1.Toleration{{Key: "team", Value: "nlp"}}}, nodeOf(t, hgx, tt.change))
		if m.Node.State != tt.level || m.Node.Why != tt.why {
			t.Errorf("%s: %s %q, want %s %q", name, m.Node.State, m.Node.Why, tt.level, tt.why)
		}
	}
}

// TestPaths: a node lies where its labels say; below a gap nothing is known.
func TestPaths(t *testing.T) {
	labelled := func(name string, labels ...string) corev1.Node {
		n := corev1.Node{}
		n.Name, n.Labels = name, map[string]string{}
		for _, l := range labels {
			k, v, _ := strings.Cut(l, "=")
			n.Labels[k] = v
		}
		return n
	}
	paths := func(terms settings.Terms, nodes ...corev1.Node) map[string][]string {
		out := map[string][]string{}
		for _, m := range readNodes(&terms, nodes, nil) {
			out[m.Node.Name] = m.Node.Path
		}
		return out
	}
	clique := "nvidia.com/gpu.clique=7b968a6d.32766"
	got := paths(settings.Terms{},
		labelled("a", "topology.kubernetes.io/zone=z1", "network.topology.nvidia.com/leaf=l1", clique),
		labelled("b", "topology.kubernetes.io/zone=z1", clique),
		labelled("c", "topology.kubernetes.io/zone=z1", "network.topology.nvidia.com/leaf=l1"),
		labelled("d"))
	want := map[string][]string{"a": {"z1", "l1", "7b968a6d.32766"}, "b": {"z1"}, "c": {"z1", "l1"}, "d": nil}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// The levels of a Kueue Topology, by setting.
	levels := settings.Terms{Topology: []string{"cloud.example.com/block", "cloud.example.com/rack", "kubernetes.io/hostname"}, Selector: map[string]string{"pool": "a"}}
	got = paths(levels,
		labelled("a", "cloud.example.com/block=b1", "cloud.example.com/rack=r1", "topology.kubernetes.io/zone=z1", "kubernetes.io/hostname=a", "pool=a"),
		labelled("not-the-pools", "cloud.example.com/block=b1", "pool=b"))
	if d := cmp.Diff(map[string][]string{"a": {"b1", "r1"}}, got); d != "" {
		t.Error(d)
	}
}

// TestOthers: what pods that are not ours ask for is theirs, counted as the scheduler does.
func TestOthers(t *testing.T) {
	pod := func(text string) corev1.Pod {
		var p corev1.Pod
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatal(err)
		}
		return p
	}
	pods := []corev1.Pod{
		pod(`{"metadata":{"name":"exporter","ownerReferences":[{"kind":"DaemonSet"}]},"spec":{"nodeName":"gpu-7","containers":[{"resources":{"requests":{"cpu":"100m","memory":"1Gi"}}},{"resources":{"requests":{"cpu":"1"}}}]}}`),
		// Beginning needs 6 (a sidecar's 2 and 4), running 3 and 2; the sidecar stays; overhead is added.
		pod(`{"metadata":{"name":"train"},"spec":{"nodeName":"gpu-7","overhead":{"cpu":"500m"},"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}},{"resources":{"requests":{"cpu":"4","rdma/hca_shared_devices_a":"1"}}}],
			"containers":[{"resources":{"requests":{"cpu":"3","nvidia.com/gpu":"2"}}}]},"status":{"phase":"Running"}}`),
		pod(`{"metadata":{"name":"ours","labels":{"coxswain.sh/server":"abcdef"}},"spec":{"nodeName":"gpu-7","containers":[{"resources":{"requests":{"cpu":"8","nvidia.com/gpu":"4"}}}]}}`),
		pod(`{"metadata":{"name":"another-servers","labels":{"coxswain.sh/server":"zzzzzz"}},"spec":{"nodeName":"gpu-7","containers":[{"resources":{"requests":{"memory":"2Gi"}}}]}}`),
		pod(`{"metadata":{"name":"of-itself"},"spec":{"nodeName":"gpu-7","resources":{"requests":{"cpu":"10"}},"containers":[{"resources":{"requests":{"cpu":"3"}}}]}}`),
		pod(`{"metadata":{"name":"over"},"spec":{"nodeName":"gpu-7","containers":[{"resources":{"requests":{"cpu":"50"}}}]},"status":{"phase":"Succeeded"}}`),
		pod(`{"metadata":{"name":"waits"},"spec":{"containers":[{"resources":{"requests":{"cpu":"50"}}}]}}`),
		pod(`{"metadata":{"name":"elsewhere"},"spec":{"nodeName":"gpu-8","containers":[{"resources":{"requests":{"cpu":"50"}}}]}}`),
	}
	m := one(t, settings.Terms{Placed: true}, nodeOf(t, hgx, nil), pods...)
	want := Use{Pods: 4, Daemons: 1, Devices: map[string]int{"nvidia.com/gpu": 2}, Take: amount.Vector{
		CPU: 1100 + 6500 + 10000, Memory: 3 * amount.GiB, Named: []amount.Named{{Name: "gres/rdma/hca_shared_devices_a", Amount: 1}},
	}}
	if d := cmp.Diff(want, m.Others); d != "" {
		t.Error(d)
	}
	if m.Ours.Pods != 1 || m.Ours.Take.CPU != 8000 || m.Ours.Devices["nvidia.com/gpu"] != 4 {
		t.Errorf("ours: %+v", m.Ours)
	}
	left := amount.Vector{CPU: 191500 - 17600, Memory: 1997 * amount.GiB, Disk: 90 * amount.GiB, Named: []amount.Named{{Name: "gres/rdma/hca_shared_devices_a", Amount: 62}}}
	if d := cmp.Diff(left, m.Node.Capacity); d != "" {
		t.Error(d)
	}
	foreign := 0
	for i, d := range m.Node.Devices {
		if d.Foreign > 0 {
			if foreign++; i < 5 {
				t.Errorf("device %d is called foreign: the last ones are", i)
			}
		}
	}
	if foreign != 2 {
		t.Errorf("%d devices are foreign", foreign)
	}
	// Where another scheduler places, what others hold is its business.
	m = one(t, settings.Terms{}, nodeOf(t, hgx, nil), pods...)
	if m.Node.Capacity.CPU != 191500 || slices.ContainsFunc(m.Node.Devices, func(d fleet.Device) bool { return d.Foreign > 0 }) || m.Others.Pods != 4 {
		t.Errorf("%+v", m.Node)
	}
}

func parse(t *testing.T, text string) apiresource.Quantity {
	t.Helper()
	q, err := apiresource.ParseQuantity(text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// A node that is said to be off and whose kubelet answers gets no work: its pods are evicted at once.
//
// Seen to fail with: the taint passed over, as those are that say what a condition says too.
func TestOutOfServiceIsSaid(t *testing.T) {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if state, why := nodeState(&settings.Terms{}, n); state != fleet.Draining || !strings.Contains(why, "out-of-service") {
		t.Errorf("%v: %s", state, why)
	}
}

// Seen to fail with conditions of others that pass.
func TestConditionsAsChecks(t *testing.T) {
	n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Message: "the disk is full"},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
		{Type: "KernelDeadlock", Status: corev1.ConditionTrue, Message: "task docker:20744 blocked"},
		{Type: "ReadonlyFilesystem", Status: corev1.ConditionUnknown},
	}}}
	var got []string
	for _, r := range readNode(&settings.Terms{Pool: "p"}, n, nil).Health {
		got = append(got, string(r.Verdict)+" "+r.Check+", "+r.Text+", "+r.From)
	}
	want := []string{
		"fail DiskPressure, DiskPressure=True: the disk is full, kubernetes",
		"warn KernelDeadlock, KernelDeadlock=True: task docker:20744 blocked, kubernetes",
		"pass MemoryPressure, MemoryPressure=False, kubernetes",
		"unknown ReadonlyFilesystem, ReadonlyFilesystem=Unknown, kubernetes",
		"fail Ready, Ready=False: KubeletNotReady, kubernetes",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
