package render

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	amount "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// margin is what a pod has after the grace of its attempt until it is killed: the crew ends in
// that time, and writes down how.
const margin = 30 * time.Second

// Pods are the attempt's, one for each of Nodes. What Check refuses must not be rendered.
func (a *Attempt) Pods(root types.UID) []*corev1.Pod {
	out := make([]*corev1.Pod, len(a.Nodes))
	for i := range a.Nodes {
		out[i] = a.podOf(i, root)
	}
	return out
}

func (a *Attempt) podOf(i int, root types.UID) *corev1.Pod {
	if a.Template != nil {
		return a.Template.Pod(a, i, root)
	}
	p := new(corev1.Pod)
	a.markPod(p, i, root)
	s := a.Launch.Job.Spec
	no := false
	grace := Grace(a.Launch.Grace)
	p.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
		Hostname: p.Name, Subdomain: a.name(), DNSConfig: &corev1.PodDNSConfig{Searches: []string{a.memberDomain()}},
		EnableServiceLinks: &no, AutomountServiceAccountToken: &no,
		SecurityContext: a.podSecurity(i), PriorityClassName: a.priorityClass(),
		Tolerations: a.podTolerations(i),
		Volumes: []corev1.Volume{
			{Name: "cox", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "cox-attempt", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: a.name(), Items: a.rootFiles(i)}}},
		},
	}
	for _, name := range a.PullSecrets {
		p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	if !a.Placed {
		p.Spec.Affinity = a.antiAffinity()
	}
	a.holdPod(p, root)
	mounts := []corev1.VolumeMount{{Name: "cox", MountPath: podagent.Dir}, {Name: "cox-attempt", MountPath: podagent.PlanDir, ReadOnly: true}}
	volumes, more := a.volumeMounts()
	p.Spec.Volumes, mounts = append(p.Spec.Volumes, volumes...), append(mounts, more...)
	take, devices := a.claimedAmounts(i)
	p.Spec.InitContainers = []corev1.Container{{
		Name: "cox", Image: a.Agent, Command: []string{"cox-pod", "install", podagent.BinDir},
		ImagePullPolicy: corev1.PullIfNotPresent, // it is given to nodes without a registry, by whatever tag
		Resources:       resourceRequirements(take, nil), SecurityContext: containerSecurity(), VolumeMounts: mounts[:1],
	}}
	p.Spec.Containers = []corev1.Container{{
		Name: Container, Image: cmp.Or(s.Image, a.Image), Command: a.containerCommand(),
		Env: []corev1.EnvVar{{Name: podagent.IndexEnv, Value: strconv.Itoa(i)}}, Resources: resourceRequirements(take, devices),
		SecurityContext: containerSecurity(), VolumeMounts: mounts,
		StartupProbe: &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{podagent.BinDir + "/cox-pod", "started"}}},
			PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: math.MaxInt32,
		},
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}}
	if hasPluginDevice(p.Spec.Containers[0].Resources.Limits) {
		p.Labels[LabelPlugged] = "true"
	}
	a.addSecrets(p)
	a.addServing(p, i)
	a.addPodClaim(p, i)
	a.applyShape(p)
	return p
}

// markPod gives a pod its name, our labels, its owner and the finalizer.
func (a *Attempt) markPod(p *corev1.Pod, i int, root types.UID) {
	p.TypeMeta, p.ObjectMeta = a.objectMeta(a.podName(i), "Pod", root)
	p.Labels[LabelIndex] = strconv.Itoa(i)
	p.Finalizers = []string{Finalizer}
}

// holdPod keeps a pod from beginning before all are there: it waits for our binding, or for its gate.
func (a *Attempt) holdPod(p *corev1.Pod, root types.UID) {
	if a.Placed {
		p.Spec.SchedulerName = Scheduler
		return
	}
	p.Spec.SchedulerName, p.Spec.NodeSelector = a.schedulerName(), mergeMaps(p.Spec.NodeSelector, a.Selector)
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: Gate}}
	avoidNodes(&p.Spec, a.Launch.Avoid)
	a.joinGang(p, root)
}

// avoidNodes keeps the cluster's scheduler off nodes, by name: each term of the pod's own node affinity, any of
// which may hold, gets a requirement for each. The pod's own affinity may be shared, and is not written to.
func avoidNodes(p *corev1.PodSpec, nodes []string) {
	if len(nodes) == 0 {
		return
	}
	if p.Affinity = p.Affinity.DeepCopy(); p.Affinity == nil {
		p.Affinity = new(corev1.Affinity)
	}
	if p.Affinity.NodeAffinity == nil {
		p.Affinity.NodeAffinity = new(corev1.NodeAffinity)
	}
	required := &p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = new(corev1.NodeSelector)
	}
	var off []corev1.NodeSelectorRequirement // a field takes one value
	for _, n := range nodes {
		off = append(off, corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{n}})
	}
	terms := &(*required).NodeSelectorTerms
	if len(*terms) == 0 {
		*terms = []corev1.NodeSelectorTerm{{MatchFields: off}}
		return
	}
	for i := range *terms {
		if t := &(*terms)[i]; len(t.MatchExpressions)+len(t.MatchFields) > 0 { // an empty one holds nowhere
			t.MatchFields = append(t.MatchFields, off...)
		}
	}
}

// hasPluginDevice reports whether there is something among these resources that a kubelet has of a
// device plugin.
func hasPluginDevice(l corev1.ResourceList) bool {
	for name := range l {
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage {
			return true
		}
	}
	return false
}

// containerCommand is what the job's container runs. A cox-pod that knows of no files, secrets or startup
// probe that come with a job ends at their word, before it runs anything without them.
func (a *Attempt) containerCommand() []string {
	out := []string{podagent.BinDir + "/cox-pod", "run"}
	if a.Launch.Job.Spec.Upload != nil {
		out = append(out, "files")
	}
	if len(a.Launch.Job.Spec.Secrets) > 0 {
		out = append(out, "secrets")
	}
	if s := a.Launch.Job.Spec.Serve; s != nil && s.Startup != nil {
		out = append(out, "startup")
	}
	return out
}

// volumeMounts are the volumes of the settings, each once, and where they stand.
func (a *Attempt) volumeMounts() (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	for _, m := range a.Mounts {
		k := slices.IndexFunc(volumes, func(v corev1.Volume) bool {
			return m.Source.EmptyDir == nil && m.Source.Ephemeral == nil && reflect.DeepEqual(v.VolumeSource, m.Source)
		})
		if k < 0 {
			k = len(volumes)
			volumes = append(volumes, corev1.Volume{Name: cmp.Or(m.Name, "path-"+strconv.Itoa(k)), VolumeSource: m.Source})
		}
		mounts = append(mounts, corev1.VolumeMount{Name: volumes[k].Name, MountPath: m.Path, SubPath: m.Sub, ReadOnly: m.ReadOnly})
	}
	return volumes, mounts
}

// antiAffinity keeps the pods of an attempt on different nodes, where we do not choose these; those of
// single tasks may be together.
func (a *Attempt) antiAffinity() *corev1.Affinity {
	if len(a.Nodes) == 1 || a.perTask() {
		return nil
	}
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: a.objectLabels()}, TopologyKey: corev1.LabelHostname},
	}}}
}

// Grace is what a pod is given to end, in seconds, for a grace of its attempt.
func Grace(d time.Duration) int64 { return int64((max(0, d) + margin + time.Second - 1) / time.Second) }

// rootFiles are those of the root that a member sees: its own key, and no other's.
func (a *Attempt) rootFiles(i int) []corev1.KeyToPath {
	names := []string{podagent.PlanFile}
	if len(a.Nodes) > 1 {
		names = append(names, podagent.CAFile, fmt.Sprintf("%d.crt", i), fmt.Sprintf("%d.key", i))
	}
	out := make([]corev1.KeyToPath, len(names))
	for k, n := range names {
		out[k] = corev1.KeyToPath{Key: n, Path: n}
	}
	return out
}

// podSecurity is as whom pod i runs: the job's owner, by numbers, and in no group that the image would
// have him in, where the node can do that.
func (a *Attempt) podSecurity(i int) *corev1.PodSecurityContext {
	c := &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if !a.AsImage {
		uid, gid := int64(a.Launch.Job.Spec.Owner.UID), int64(a.Launch.Job.Spec.Owner.GID)
		c.RunAsUser, c.RunAsGroup = &uid, &gid
		if yes := true; uid != 0 {
			c.RunAsNonRoot = &yes // what follows from the uid, and namespaces of the level restricted want to read
		}
		if strict := corev1.SupplementalGroupsPolicyStrict; a.Nodes[i].Strict {
			c.SupplementalGroupsPolicy = &strict
		}
	}
	return c
}

// containerSecurity takes all that a job has no need of.
func containerSecurity() *corev1.SecurityContext {
	no := false
	return &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}
}

// claimedAmounts is what the claims of a pod come to, and its devices by the resource's name.
func (a *Attempt) claimedAmounts(i int) (resource.Vector, map[string]int) {
	var sum resource.Vector
	devices := map[string]int{}
	n := &a.Nodes[i]
	for _, c := range a.podClaims(i) {
		sum = sum.Add(c.Take)
		for _, d := range c.Devices {
			for k := range n.Devices {
				if n.Devices[k].Index == d.Index {
					if n.Ask[k] != "" {
						devices[n.Ask[k]]++
					}
				}
			}
		}
	}
	return sum, devices
}

// resourceRequirements asks for amounts and devices: as much as is claimed, and no more than that.
func resourceRequirements(v resource.Vector, devices map[string]int) corev1.ResourceRequirements {
	l := corev1.ResourceList{}
	if v.CPU > 0 {
		l[corev1.ResourceCPU] = *amount.NewMilliQuantity(int64(v.CPU), amount.DecimalSI)
	}
	if v.Memory > 0 {
		l[corev1.ResourceMemory] = *amount.NewQuantity(int64(v.Memory), amount.BinarySI)
	}
	if v.Disk > 0 {
		l[corev1.ResourceEphemeralStorage] = *amount.NewQuantity(int64(v.Disk), amount.BinarySI)
	}
	for _, n := range v.Named { // a resource that is only counted
		if name, ok := strings.CutPrefix(n.Name, "gres/"); ok && devices != nil && n.Amount > 0 {
			l[corev1.ResourceName(name)] = *amount.NewQuantity(int64(n.Amount), amount.DecimalSI)
		}
	}
	for name, n := range devices {
		l[corev1.ResourceName(name)] = *amount.NewQuantity(int64(n), amount.DecimalSI)
	}
	if len(l) == 0 {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Limits: l, Requests: maps.Clone(l)}
}

// podTolerations are the settings' and one for each resource's own taint, with which clusters keep
// other pods off nodes that have devices.
func (a *Attempt) podTolerations(i int) []corev1.Toleration {
	out := slices.Clone(a.Tolerations)
	_, devices := a.claimedAmounts(i)
	keys := slices.Collect(maps.Keys(devices))
	if len(a.Held(i)) > 0 {
		keys = append(keys, a.Nodes[i].Bears...)
	}
	slices.Sort(keys)
	for _, name := range slices.Compact(keys) {
		out = append(out, corev1.Toleration{Key: name, Operator: corev1.TolerationOpExists})
	}
	return out
}
