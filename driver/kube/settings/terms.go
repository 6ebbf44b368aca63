package settings

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
)

// TaintPool is the key of the taint on nodes that are kept for a placed pool. Its value is the pool's name.
const TaintPool = "coxswain.sh/pool"

// SharedSuffix ends the name of a resource whose units share a device.
const SharedSuffix = ".shared"

// Terms are what a pool's settings say about the cluster: what is used there and how pods
// are made. They are not written to.
type Terms struct {
	Pool      string
	Namespace string          // empty: the client's own
	Placed    bool            // Coxswain chooses the nodes and binds
	Gang      render.GangKind // what begins pods together; empty: the first that is found and can be used
	Queue     string          // of Volcano, KAI or Kueue; empty: Volcano's default
	Scheduler string          // that chooses the nodes of pods that are not placed; empty: that of the gang's kind

	// Namespaces are those of accounts whose jobs are not in Namespace. OnlyNamed says that jobs of
	// all other accounts are refused.
	Namespaces map[string]string
	OnlyNamed  bool
	// Impersonate says as whom the objects of jobs are made, by account, KeyUser with a name, or
	// KeyOthers; a service account without a namespace is that of the job's. Without a key it is the
	// pool's own account. It does not go with Reserve.
	Impersonate map[string]Subject
	// ServiceAccounts are those of the pods of accounts; others have that of Shape.
	ServiceAccounts map[string]string

	// Approximate says that gangs which are all or none in quota alone (Kueue's) will do.
	Approximate bool
	// Within is what Kueue is told of where the pods of a job are to be that says nothing of it.
	Within render.Near
	// Handover says that nodes are closed and opened as their machines change pools (driver/kube/nodefence), so
	// that the account needs the rights to.
	Handover bool
	// Reserve says that nodes are kept for the pool, which is Placed: the taint is put on them.
	Reserve bool

	Image      string // of jobs that name none; empty: these are refused
	AgentImage string // with cox-pod, cox-slurm and cox-pmix; empty: nothing can be launched

	Classes  []string          // DeviceClasses of DRA whose devices are the pool's GPUs; none: GPUs are counted
	GPU      string            // the one resource that counts as a GPU; empty: all whose names end in /gpu
	Topology []string          // labels that say where a node lies, from the top down; KueueTopology and a name: as Kueue has it; empty: Places
	Features []string          // more labels that become features of a node
	Selector map[string]string // labels that a node of the pool has

	Tolerations   []corev1.Toleration
	PriorityClass string
	PullSecrets   []string
	AsImage       bool // work runs as the user of its image; else as its submitter
	Paths         []Path
	Checkpoints   string // directory in one of Paths where jobs have a directory for what they save; empty: they have none
	Shape         render.Shape
	Allow         []string    // of Allowances: what jobs may ask of their pods
	WorkDir       WorkDirRule // what becomes of a working directory that no path has
	UploadRoom    int64       // bytes that one which came with a job has in each pod; 0: DefaultUploadRoom
	Domain        string      // of the cluster's names; empty: cluster.local
}

// IsGPU reports whether a resource of a node is counted as GPUs, whole ones or shares.
func (t *Terms) IsGPU(name string) bool {
	if t.GPU != "" {
		return name == t.GPU || name == t.GPU+SharedSuffix
	}
	return strings.HasSuffix(strings.TrimSuffix(name, SharedSuffix), "/gpu")
}

// Tolerate are the tolerations of every pod of the pool that uses these resources: the
// settings', one for the pool's own taint, and one for each resource's own taint, with which
// many clusters keep other pods off nodes with GPUs.
func (t *Terms) Tolerate(resources ...string) []corev1.Toleration {
	out := slices.Clone(t.Tolerations)
	if t.Pool != "" {
		out = append(out, corev1.Toleration{Key: TaintPool, Operator: corev1.TolerationOpEqual, Value: t.Pool, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, r := range resources {
		out = append(out, corev1.Toleration{Key: r, Operator: corev1.TolerationOpExists})
	}
	return out
}

// SelectsNode reports whether a node belongs to the pool.
func (t *Terms) SelectsNode(n *corev1.Node) bool {
	for k := range maps.Keys(t.Selector) {
		if v, ok := n.Labels[k]; !ok || v != t.Selector[k] {
			return false
		}
	}
	return true
}

// KueueTopology stands before the name of a Topology of Kueue's in Terms.Topology, whose levels the
// labels are; without a name it is the only one that the cluster has.
const KueueTopology = "kueue:"

// ToleratesTaint reports whether pods of the pool may have a taint. Those of resources that the
// project counts are tolerated by the pods that ask for them.
func (t *Terms) ToleratesTaint(x *corev1.Taint) bool {
	if t.IsGPU(x.Key) {
		return true
	}
	return slices.ContainsFunc(t.Tolerate(), func(o corev1.Toleration) bool { return toleratesWith(&o, x) })
}

func toleratesWith(o *corev1.Toleration, x *corev1.Taint) bool {
	switch {
	case o.Effect != "" && o.Effect != x.Effect, o.Key != "" && o.Key != x.Key:
		return false
	case o.Operator == corev1.TolerationOpExists:
		return true
	}
	return o.Key != "" && (o.Operator == "" || o.Operator == corev1.TolerationOpEqual) && o.Value == x.Value
}

// ReserveName is that of the policy, of its binding, and of the ConfigMap in the pool's
// namespace that has the nodes which are kept.
func (t *Terms) ReserveName() string { return "coxswain-" + t.Pool }

// NeedsProvisioning reports whether pods have claims of which somebody has to say where they are wanted.
func (t *Terms) NeedsProvisioning() bool {
	if t.Placed && (slices.Contains(t.Allow, VolumeAllowance("persistentVolumeClaim")) || slices.Contains(t.Allow, VolumeAllowance("ephemeral"))) {
		return true
	}
	for _, p := range t.Paths {
		if t.Placed && (p.Volume.Kind == Claim || p.Volume.Kind == Fresh) {
			return true
		}
	}
	return false
}

// IsOwnTaint reports whether a taint is the pool's.
func (t *Terms) IsOwnTaint(x *corev1.Taint) bool {
	return x.Key == TaintPool && x.Value == t.Pool && x.Effect == corev1.TaintEffectNoSchedule
}
