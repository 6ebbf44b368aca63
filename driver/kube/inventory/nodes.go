package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/driver/kube/nodefence"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/model/fleet"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// Machine is a node of the cluster as Coxswain knows nodes, and what a pod has to ask for to get a
// part of it.
type Machine struct {
	Node     fleet.Node
	Ask      []string       // of each device, by its place in Node.Devices: the name of the resource that a pod asks for; empty: it is claimed
	Pieces   []render.Piece // of each device: what it is by DRA; nil: none is
	Says     []string       // of each device: what tells it from devices of another type, in CEL; nil: none is DRA's
	Double   string         // what is to be known of devices that a plugin counts and DRA has, too; empty: none is
	Withheld map[string]int // devices of DRA that are not among Devices, by the reason
	Others   Use            // what pods that are not ours hold
	Ours     Use
	Ill      int            // devices that the node's plugin says are not healthy; they are not among Devices
	Notes    []string       // what people should know of its devices
	Taints   []corev1.Taint // as they stand
	Labels   map[string]string
	Whole    amount.Vector // what it can give to pods, whoever has it
	Pods     int           // how many its kubelet takes, whosever they are; 0: it does not say
	Cordoned bool
	Health   []fleet.CheckResult // what its conditions say, by name
	Strict   bool                // pods there can be kept to the groups that are named for them
	Far      map[string]string   // by namespace and claim: why pods there cannot have a volume of the paths
}

// readNodes reads the nodes of a pool and leaves out the others. use is what pods hold, by node.
func readNodes(t *settings.Terms, nodes []corev1.Node, use map[string]nodeUsage) []Machine {
	levels := topologyLevels(t, nodes)
	var out []Machine
	for i := range nodes {
		n := &nodes[i]
		if !t.SelectsNode(n) {
			continue
		}
		m := readNode(t, n, levels)
		u := use[n.Name]
		m.Others, m.Ours = u.others, u.ours
		m.subtractForeignUse(t)
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Machine) int { return strings.Compare(a.Node.Name, b.Node.Name) })
	return out
}

// readNode reads a node. levels are the labels of its path.
func readNode(t *settings.Terms, n *corev1.Node, levels [][]string) Machine {
	m := Machine{Taints: n.Spec.Taints, Labels: n.Labels, Cordoned: n.Spec.Unschedulable, Node: fleet.Node{
		Name: n.Name, Pool: t.Pool, Address: nodeAddress(n), Hosts: nodeHostnames(n), Features: nodeFeatures(t, n), Path: nodePath(n, levels),
	}}
	m.Node.State, m.Node.Why = nodeState(t, n)
	if f := nodefence.Read(n); f.Stands {
		m.Node.Fence = f.Epoch
	}
	m.Health = nodeHealth(n)
	if f := n.Status.Features; f != nil && f.SupplementalGroupsPolicy != nil {
		m.Strict = *f.SupplementalGroupsPolicy
	}
	v := amount.Vector{}
	for _, name := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
		q := n.Status.Allocatable[name]
		switch r := string(name); {
		case name == corev1.ResourceCPU:
			v.CPU = amount.Amount(q.MilliValue())
		case name == corev1.ResourceMemory:
			v.Memory = amount.Amount(q.Value())
		case name == corev1.ResourceEphemeralStorage:
			v.Disk = amount.Amount(q.Value())
		case name == corev1.ResourcePods:
			m.Pods = int(q.Value())
		case isDeviceResource(t, r):
			m.addPluginDevices(r, int(q.Value()), n)
		case q.Value() > 0 && !strings.HasPrefix(r, "attachable-volumes-"):
			v = v.With(Named(r), amount.Amount(q.Value()))
		}
	}
	m.Whole, m.Node.Capacity = v, v
	m.Ill = unhealthyGPUs(t, n)
	return m
}

// Named is the name under which a job asks for a resource that is only counted.
func Named(resource string) string { return "gres/" + resource }

// subtractForeignUse takes what others hold off a node where Coxswain places, and marks as many devices
// as they hold. It marks the last ones: which ones they really are only the kubelet knows. Where another
// scheduler chooses the nodes, what others hold is its business.
func (m *Machine) subtractForeignUse(t *settings.Terms) {
	if !t.Placed {
		return
	}
	m.Node.Capacity = remainingVector(m.Whole, m.Others.Take)
	for _, r := range slices.Sorted(maps.Keys(m.Others.Devices)) {
		n := m.Others.Devices[r]
		for i := len(m.Ask) - 1; i >= 0 && n > 0; i-- {
			if m.Ask[i] == r {
				m.Node.Devices[i].Foreign = 1
				n--
			}
		}
	}
}

// remainingVector is what is left of a node's amounts, at least zero each.
func remainingVector(v, used amount.Vector) amount.Vector {
	out := amount.Vector{CPU: max(0, v.CPU.Sub(used.CPU)), Memory: max(0, v.Memory.Sub(used.Memory)), Disk: max(0, v.Disk.Sub(used.Disk))}
	for _, x := range v.Named {
		if a := x.Amount.Sub(used.Get(x.Name)); a > 0 {
			out = out.With(x.Name, a)
		}
	}
	return out
}

func nodeAddress(n *corev1.Node) string {
	for _, kind := range []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeHostName, corev1.NodeExternalIP} {
		for _, a := range n.Status.Addresses {
			if a.Type == kind && a.Address != "" {
				return a.Address
			}
		}
	}
	return ""
}

// nodeHostnames are the machine's names, if it has others than the node's.
func nodeHostnames(n *corev1.Node) []string {
	other := n.Labels[corev1.LabelHostname]
	if other == "" || other == n.Name {
		return nil
	}
	out := []string{n.Name, other}
	slices.Sort(out)
	return out
}

// featureLabels are the labels whose values are features of a node, each with a prefix for the value.
var featureLabels = []struct{ label, before string }{
	{corev1.LabelArchStable, ""},
	{corev1.LabelInstanceTypeStable, ""},
	{labelProduct, ""},
	{"nvidia.com/gpu.family", ""},
	{"nvidia.com/cuda.driver-version.full", "driver-"},
	{"amd.com/gpu.product-name", ""},
	{"amd.com/gpu.family", ""},
}

func nodeFeatures(t *settings.Terms, n *corev1.Node) []string {
	var out []string
	for _, s := range featureLabels {
		if v := n.Labels[s.label]; v != "" {
			out = append(out, s.before+v)
		}
	}
	for _, label := range t.Features {
		switch v := n.Labels[label]; v {
		case "", "false":
		case "true":
			out = append(out, label[strings.LastIndexByte(label, '/')+1:])
		default:
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Labels of GPU feature discovery.
const (
	labelProduct  = "nvidia.com/gpu.product"
	labelMemory   = "nvidia.com/gpu.memory" // MiB
	labelCount    = "nvidia.com/gpu.count"  // of GPUs, whatever they are divided into
	labelReplicas = "nvidia.com/gpu.replicas"
	labelSharing  = "nvidia.com/gpu.sharing-strategy"
	migPrefix     = "nvidia.com/mig-"
)

// Shared is the profile of a device that is a turn on a GPU and no GPU: others compute on it
// at the same time and use its memory.
const Shared = "shared"

func isMIG(name string) bool { return strings.HasPrefix(name, migPrefix) }

// addPluginDevices adds the devices of one resource. What the labels say of a node that has several
// kinds of GPU is said of all of them: labels tell no more.
func (m *Machine) addPluginDevices(name string, count int, n *corev1.Node) {
	d := fleet.Device{Minor: -1, Kind: "gpu", NUMA: -1}
	product, memory := "", "" // MiB
	switch plain := strings.TrimSuffix(name, settings.SharedSuffix); {
	case isMIG(name):
		d.Profile = strings.TrimPrefix(plain, migPrefix)
		product, memory = firstOf(n.Labels, plain+".product", labelProduct), n.Labels[plain+".memory"]
	case strings.HasPrefix(name, "nvidia.com/"):
		product, memory = n.Labels[labelProduct], n.Labels[labelMemory]
	default:
		product = firstOf(n.Labels, "amd.com/gpu.product-name", "amd.com/gpu.family", "gpu.intel.com/product")
		if gib, ok := strings.CutSuffix(n.Labels["amd.com/gpu.vram"], "G"); ok {
			memory = gib + "Ki" // of MiB
		}
	}
	if q, err := resource.ParseQuantity(memory); err == nil && q.Value() > 0 {
		d.Memory = amount.MiB.Mul(int(q.Value()))
	}
	product, part, ok := strings.Cut(strings.TrimSuffix(product, "-SHARED"), "-MIG-")
	if ok && d.Profile == "" {
		d.Profile = part // every GPU of the node is divided alike
	}
	if product != "" {
		d.Type = discover.TypeName(product)
	}
	if replicas, how := deviceSharing(name, n); how != "" {
		if m.Notes = append(m.Notes, fmt.Sprintf("%s: a unit of %s is no device: %d of them share one (%s)", n.Name, name, replicas, how)); d.Profile == "" {
			d.Profile = Shared
		} else {
			d.Profile += settings.SharedSuffix
		}
		d.Memory = 0 // it is everybody's on the device
	}
	for range max(0, count) {
		d.Index = len(m.Node.Devices)
		m.Node.Devices = append(m.Node.Devices, d)
		m.Ask = append(m.Ask, name)
	}
}

// deviceSharing says how many units of a resource are one device, and by what; empty: each is one.
func deviceSharing(name string, n *corev1.Node) (replicas int, how string) {
	label, strategy := labelReplicas, labelSharing
	if isMIG(name) {
		base := strings.TrimSuffix(name, settings.SharedSuffix)
		label, strategy = base+".replicas", base+".sharing-strategy"
	}
	replicas, _ = strconv.Atoi(n.Labels[label])
	marked := strings.HasSuffix(name, settings.SharedSuffix) || strings.HasPrefix(name, "nvidia.com/") && !isMIG(name) && strings.HasSuffix(n.Labels[labelProduct], "-SHARED")
	if replicas <= 1 && !marked {
		return 1, ""
	}
	if how = n.Labels[strategy]; how == "" || how == "none" {
		how = "time-slicing"
	}
	return max(1, replicas), how
}

func firstOf(labels map[string]string, names ...string) string {
	for _, n := range names {
		if labels[n] != "" {
			return labels[n]
		}
	}
	return ""
}

// unhealthyGPUs is how many units of GPUs a node has and does not give, as they are not healthy.
func unhealthyGPUs(t *settings.Terms, n *corev1.Node) (sum int) {
	for name, q := range n.Status.Capacity {
		if r := string(name); isDeviceResource(t, r) {
			sum += max(0, int(q.Value()-quantityOf(n.Status.Allocatable, name)))
		}
	}
	return sum
}

func quantityOf(l corev1.ResourceList, name corev1.ResourceName) int64 {
	q, ok := l[name]
	if !ok {
		q = resource.Quantity{}
	}
	return q.Value()
}

// PodCapacity is how many pods of jobs a node has room for beside those of DaemonSets; -1: it does not
// say.
func (m *Machine) PodCapacity() int {
	if m.Pods == 0 {
		return -1
	}
	return max(0, m.Pods-m.Others.Daemons)
}
