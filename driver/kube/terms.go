package kube

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
)

// Marks on what is made in a cluster.
const (
	LabelServer     = "coxswain.sh/server"
	LabelJob        = "coxswain.sh/job"
	LabelAllocation = "coxswain.sh/allocation"
	LabelAttempt    = "coxswain.sh/attempt"
	LabelIndex      = "coxswain.sh/index" // of a pod in its attempt
	TaintPool       = "coxswain.sh/pool"  // on nodes that are kept for a placed pool; its value is the pool's name
)

// Terms are what a pool's settings say about the cluster: what is used there and how pods
// are made. They are not written to.
type Terms struct {
	Pool      string
	Namespace string   // empty: the client's own
	Placed    bool     // Coxswain chooses the nodes and binds
	Gang      GangKind // what begins pods together; empty: the first that is found and can be used
	Queue     string   // of Volcano, KAI or Kueue; empty: Volcano's default
	Scheduler string   // that chooses the nodes of pods that are not placed; empty: that of the gang's kind

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
	// Reserve says that nodes are kept for the pool, which is Placed: the taint is put on them.
	Reserve bool

	Image      string // of jobs that name none; empty: these are refused
	AgentImage string // with cox-pod and cox-slurm; empty: nothing can be launched

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
		return name == t.GPU || name == t.GPU+shared
	}
	return strings.HasSuffix(strings.TrimSuffix(name, shared), "/gpu")
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

// selectsNode reports whether a node belongs to the pool.
func (t *Terms) selectsNode(n *corev1.Node) bool {
	for k := range maps.Keys(t.Selector) {
		if v, ok := n.Labels[k]; !ok || v != t.Selector[k] {
			return false
		}
	}
	return true
}
