// Package render makes the objects of an attempt on Kubernetes: a root Secret that everything
// else belongs to, a headless Service, and a pod for each node or task. It is a function of what it is
// given, but for the keys in the root; it asks nobody. What cannot be said in pods is refused
// by name. docs/explanation/design/0011 has the reasons.
//
// Where what is: render.go has what an attempt is made from, its Secret and its Service; pod.go the
// pods, task.go which nodes and tasks are whose, shape.go what a pool and a job add to them;
// toleration.go how a job writes one; template.go what the pods of manifests get. claim.go has the claims of
// devices, gang.go what begins pods together, spread.go what is told where the cluster's scheduler chooses the
// nodes, serving.go ports and probes of jobs that serve, and secrets.go the values of a job's secrets.
package render

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Marks on every object.
const (
	LabelServer     = "coxswain.sh/server"
	LabelJob        = "coxswain.sh/job"
	LabelAllocation = "coxswain.sh/allocation"
	LabelAttempt    = "coxswain.sh/attempt"
	LabelIndex      = "coxswain.sh/index"   // of a pod in its attempt
	LabelPlugged    = "coxswain.sh/plugged" // of a pod that has devices of a plugin: "true"
	Digest          = "coxswain.sh/digest"  // annotation of the root: which launch it is of
	Finalizer       = "coxswain.sh/attempt" // keeps a pod until its end is written down
	Gate            = "coxswain.sh/gang"    // scheduling gate, until all pods are there
	Scheduler       = "coxswain.sh"         // of pods that are bound by us; no scheduler has the name
)

// Container is the name of the container that runs the job.
const Container = "job"

// Node is a node of the claims as the cluster has it.
type Node struct {
	fleet.Node
	Ask    []string // by device: the name of the resource of which one is asked for; empty: it is claimed
	Pieces []Piece  `json:",omitempty"` // by device: what a claim has; nil: all are asked for
	Bears  []string `json:",omitempty"` // keys of its taints that pods with a claimed device tolerate

	// Strict says that pods there can be kept to the groups that are named for them: the
	// image's /etc/group adds none.
	Strict bool `json:",omitempty"`
}

// Piece is a device as dynamic resource allocation (DRA) knows it. The zero value is none. Where
// the cluster's scheduler chooses, it is any of the class of which something is true.
type Piece struct {
	Class, Driver, Pool, Device string

	Where string `json:",omitempty"` // in CEL; empty: nothing has to be
}

// Mount is a volume and where it stands in the pods.
type Mount struct {
	Name     string // of the volume in its pod; empty: "path-" and a number
	Path     string // absolute
	Source   corev1.VolumeSource
	Sub      string // directory of the volume that stands there; empty: all of it
	ReadOnly bool
}

// Settings are what a pool's pods have in common.
type Settings struct {
	Namespace     string
	Domain        string // of the cluster's names; empty: cluster.local
	Image         string // of jobs that name none
	Agent         string // image with cox-pod, cox-slurm and cox-pmix
	AsImage       bool   // work runs as the user of its image; else as the job's owner
	Mounts        []Mount
	UploadRoom    int64                 // bytes that a directory which comes with a job may have in a pod; 0: any number
	Checkpoints   string                // where jobs have a directory for what they save; empty: they have none
	Strict        func(dir string) bool // a directory that is missing in the pods is an error; nil: none is
	Selector      map[string]string     // of nodes, where the cluster's scheduler chooses them
	Tolerations   []corev1.Toleration
	PriorityClass string
	PullSecrets   []string
	Ready         time.Duration // for all pods to be there once one runs
	Placed        bool          // bound by us; else by the cluster's scheduler, after a gate
	Scheduler     string        // that chooses the nodes; empty: that of the gang's kind, or the cluster's default
	Queue         string        // of Volcano, KAI or Kueue, in which the gang waits
	Shape
}

// Attempt is what objects are made of.
type Attempt struct {
	Server string // six characters
	Launch *engine.Launch
	Nodes  []Node // of the pods: those that the claims name, in their order, each once; if each task has a pod, one for each claim
	Digest string
	Gang   GangKind // what begins the pods together; empty: we bind them, or there is one
	Near   Near     // with Kueue
	// Template makes the pods of a job that brings its own templates; nil: the pods are of this package's making.
	Template Template
	Settings
}

// Name is that of all objects; a pod's has -INDEX after it.
func Name(server string, ref engine.Ref) string {
	return fmt.Sprintf("cox-%s-%d-%d", server, ref.Allocation, ref.Attempt)
}

// PodName is that of the pod of a member.
func PodName(server string, ref engine.Ref, i int) string {
	return Name(server, ref) + "-" + strconv.Itoa(i)
}

func (a *Attempt) name() string         { return Name(a.Server, a.Launch.Ref) }
func (a *Attempt) podName(i int) string { return PodName(a.Server, a.Launch.Ref, i) }

// objectLabels are those of every object of the attempt.
func (a *Attempt) objectLabels() map[string]string {
	return map[string]string{
		LabelServer: a.Server, LabelJob: strconv.FormatUint(uint64(a.Launch.Job.ID), 10),
		LabelAllocation: strconv.FormatUint(a.Launch.Ref.Allocation, 10), LabelAttempt: strconv.FormatUint(uint64(a.Launch.Ref.Attempt), 10),
	}
}

// RefOf is the attempt that an object's labels name. false: they name none.
func RefOf(o metav1.Object) (engine.Ref, bool) {
	l := o.GetLabels()
	allocation, err1 := strconv.ParseUint(l[LabelAllocation], 10, 64)
	attempt, err2 := strconv.ParseUint(l[LabelAttempt], 10, 32)
	return engine.Ref{Allocation: allocation, Attempt: uint32(attempt)}, err1 == nil && err2 == nil
}

// IndexOf is the number of a pod in its attempt; -1: its labels have none.
func IndexOf(p *corev1.Pod) int {
	i, err := strconv.Atoi(p.Labels[LabelIndex])
	if err != nil || i < 0 {
		return -1
	}
	return i
}

func (a *Attempt) objectMeta(name, kind string, root types.UID) (metav1.TypeMeta, metav1.ObjectMeta) {
	m := metav1.ObjectMeta{Name: name, Namespace: a.Namespace, Labels: a.objectLabels()}
	if root != "" {
		no := false
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: a.name(), UID: root, BlockOwnerDeletion: &no}}
	}
	return metav1.TypeMeta{APIVersion: "v1", Kind: kind}, m
}

// Root is the Secret that is created first: the crew's plan and its members' certificates.
func (a *Attempt) Root(now time.Time) (*corev1.Secret, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	var files map[string][]byte
	if a.Template == nil { // else no agent reads them
		var err error
		if files, err = podagent.Files(a.agentPlan(), now); err != nil {
			return nil, err
		}
	}
	size := 0
	for _, f := range files {
		size += len(f)
	}
	if size > corev1.MaxSecretSize {
		return nil, fault.New(fault.Invalid, "script, environment and certificates are %d bytes, and a cluster keeps %d of an attempt", size, corev1.MaxSecretSize).Advise("put data into a file that the pods mount, or have fewer pods: fewer nodes, or a pod for each node")
	}
	yes := true
	s := &corev1.Secret{Data: files, Immutable: &yes, Type: corev1.SecretTypeOpaque}
	s.TypeMeta, s.ObjectMeta = a.objectMeta(a.name(), "Secret", "")
	s.Annotations = map[string]string{Digest: a.Digest}
	return s, nil
}

// OnHost reports whether the pods are on the network of their nodes.
func (a *Attempt) OnHost() bool {
	return a.Template == nil && a.shapeForJob(a.Launch.Job.Spec.Pod).HostNetwork
}

// Service gives the members names.
func (a *Attempt) Service(root types.UID) *corev1.Service {
	s := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: a.objectLabels()}}
	s.TypeMeta, s.ObjectMeta = a.objectMeta(a.name(), "Service", root)
	return s
}

// memberDomain is that of the members' names.
func (a *Attempt) memberDomain() string {
	d := a.Domain
	if d == "" {
		d = "cluster.local"
	}
	return a.name() + "." + a.Namespace + ".svc." + d
}

// agentPlan is what the crew is told.
func (a *Attempt) agentPlan() *podagent.Plan {
	l := a.Launch
	p := &podagent.Plan{Ref: l.Ref, Job: l.Job, Script: l.Script, Env: l.Env, Grace: l.Grace, Ready: a.Ready, WorkDir: podagent.WorkDir}
	if a.Checkpoints != "" {
		p.Checkpoint, p.Saved = path.Join(a.Checkpoints, fmt.Sprintf("cox-%s-%d", a.Server, l.Job.ID)), l.Saved
	}
	if u := l.Job.Spec.Upload; u != nil {
		p.Upload, p.UploadRoom = u, a.UploadRoom
		p.Ready += time.Duration(u.Size>>20) * time.Second // a slow way is not the end
	}
	p.Strict = a.Strict != nil && a.Strict(l.Job.Spec.WorkDir)
	if a.perTask() {
		p.Job = jobPerTask(l.Job, len(a.Nodes))
	}
	p.Job = jobForPlan(p.Job)
	ofHost := a.OnHost()
	for i, n := range a.Nodes {
		node := n.Node
		node.Name = a.podName(i)
		node.State, node.Why, node.Hosts, node.Features = "", "", nil, nil // inside nobody reads them, and room is short with many pods
		if !ofHost {
			node.Address = "" // the node's; the pod has its own, which its members find out
		}
		p.Members = append(p.Members, podagent.Member{Name: node.Name, Host: a.podName(i) + "." + a.memberDomain(), Port: a.portOf(), Node: node})
	}
	for k, c := range l.Claims {
		c.Node = a.podName(a.podOfClaim(k))
		p.Claims = append(p.Claims, c)
	}
	for i := range p.Members {
		a.numberDevices(p, i)
	}
	return p
}

// numberDevices numbers a member's devices as its container has them: those that are claimed, from 0
// on, as the kubelet chooses which they are.
func (a *Attempt) numberDevices(p *podagent.Plan, i int) {
	m := &p.Members[i]
	var held []fleet.Device
	for j := range p.Claims {
		c := &p.Claims[j]
		if c.Node != m.Name {
			continue
		}
		c.Devices = slices.Clone(c.Devices)
		for k := range c.Devices {
			for _, d := range m.Node.Devices {
				if d.Index == c.Devices[k].Index {
					d.Index, d.Minor, d.Links, d.UUID, d.Bus = len(held), -1, nil, "", ""
					held = append(held, d)
					break
				}
			}
			c.Devices[k].Index = len(held) - 1
		}
	}
	m.Node.Devices = held
}

// Check reports what cannot be said in pods.
func (a *Attempt) Check() error {
	if err := a.CheckJob(); err != nil {
		return err
	}
	for k, c := range a.Launch.Claims {
		i := a.podOfClaim(k)
		if i < 0 {
			return fault.New(fault.Invalid, "there is no node %q in the pool", c.Node)
		}
		n := &a.Nodes[i]
		for _, d := range c.Devices {
			i := slices.IndexFunc(n.Devices, func(x fleet.Device) bool { return x.Index == d.Index })
			switch {
			case i < 0 || i >= len(n.Ask):
				return fault.New(fault.Invalid, "node %s has no device %d", c.Node, d.Index)
			case d.Share != resource.WholeDevice || d.Bytes != 0:
				return optionError("gres", "ask for whole devices or for a MIG profile", "a share of a device is not to be had on Kubernetes")
			}
		}
	}
	if a.Template != nil {
		return nil
	}
	return a.agentPlan().Check()
}

// optionError is a refusal that is about an option of the job.
func optionError(option, advice, format string, args ...any) error {
	return engine.About(fault.New(fault.Invalid, format, args...).Advise("%s", advice), option)
}

// checkContainer refuses what is said of a container beyond its image and what pods do anyway: an
// entry point that is not run and files that can be changed.
func checkContainer(c *job.Container) error {
	if c == nil {
		return nil
	}
	rest := *c
	if rest.Entrypoint != nil && !*rest.Entrypoint {
		rest.Entrypoint = nil
	}
	if rest.Writable != nil && *rest.Writable {
		rest.Writable = nil
	}
	words := containeropt.Words("", &rest)
	if len(words) == 0 {
		return nil
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(words[0], "--"), "=")
	advice := "leave it out, or name a pool of this machine or of Slurm"
	if len(rest.Mounts) > 0 {
		advice = "leave it out: pods see the volumes of their pool, under the paths that its settings say"
	}
	return optionError(name, advice, "--%s is not served in a pool of Kubernetes", name)
}

// CheckJob reports what cannot be said in pods wherever they are: the claims are not looked at.
func (a *Attempt) CheckJob() error {
	l := a.Launch
	s := l.Job.Spec
	if a.Template != nil {
		return a.Template.Check(a)
	}
	if err := checkContainer(s.Container); err != nil {
		return err
	}
	switch {
	case l.Adds != nil || s.Elastic():
		return engine.About(fault.New(fault.Unsupported, "a gang cannot grow or shrink on Kubernetes").Advise("give a fixed number of nodes"), "elastic")
	case s.Image == "" && a.Image == "":
		return optionError("image", "write #SBATCH --container-image=IMAGE, or image: in the native form; or have the pool's setting image name one for all", "a job on Kubernetes needs a container image")
	case strings.ContainsAny(s.Image, " \t\n\"'") || strings.HasPrefix(s.Image, "-"):
		return optionError("image", "write REGISTRY/NAME:TAG", "%.100q is no image", s.Image)
	case a.Agent == "":
		return fault.New(fault.Unsupported, "the pool names no image with cox-pod").Advise("name it by the pool's setting agent_image")
	case !path.IsAbs(s.WorkDir):
		return optionError("chdir", "give an absolute one", "the working directory %q is not absolute", s.WorkDir)
	case !s.Program.Kind.Known():
		return optionError("program", "use a script or a command", "%q is no kind of program", s.Program.Kind)
	case len(s.Program.Step) > 0:
		return optionError("step", "leave it out, or submit a script that calls srun with it", "srun's %s is not served for a command in a pool of Kubernetes: its pods run the command without srun", s.Program.Step[0])
	case slices.ContainsFunc(l.Env, func(v string) bool { return strings.ContainsRune(v, 0) }):
		return optionError("export", "leave that variable out", "the environment holds a NUL byte")
	case s.PodPerTask():
		if err := a.checkPerTask(); err != nil {
			return err
		}
	}
	return a.checkServe()
}
