package render

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestShape: each setting of a pool, and each wish of a job, is in the pods; without them
// nothing of it is. Seen to fail with five of its lines left out in turn; with the
// address of its node in a pod of its own network; with none on the host's.
func TestShape(t *testing.T) {
	uid, gid := int64(7), int64(8)
	a := sample()
	a.Nodes[1].Address = "10.0.0.2"
	a.Shape = Shape{
		User: &uid, Group: &gid, FSGroup: &gid, SharedMemory: 1 << 30, HostNetwork: true, LockMemory: true, ServiceAccount: "pool", RuntimeClass: "nvidia",
		Labels: map[string]string{"team": "pool", "x": "y", LabelJob: "0"}, Annotations: map[string]string{"net": "a"},
	}
	a.Launch.Job.Spec.Pod = &job.Pod{SharedMemory: 2 << 30, ServiceAccount: "mine", PriorityClass: "high", Labels: map[string]string{"team": "mine"}}
	p := a.Pods("root-uid")[1]
	s, c := &p.Spec, &p.Spec.Containers[0]
	shm := slices.IndexFunc(s.Volumes, func(v corev1.Volume) bool { return v.Name == "shm" })
	for what, ok := range map[string]bool{
		"user":      *s.SecurityContext.RunAsUser == 7 && *s.SecurityContext.RunAsGroup == 8,
		"fs group":  *s.SecurityContext.FSGroup == 8,
		"shm":       shm >= 0 && s.Volumes[shm].EmptyDir.SizeLimit.Value() == 2<<30 && s.Volumes[shm].EmptyDir.Medium == corev1.StorageMediumMemory,
		"shm there": slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "shm" && m.MountPath == "/dev/shm" }),
		"host network": s.HostNetwork && s.DNSPolicy == corev1.DNSClusterFirstWithHostNet && c.Ports[0].HostPort == 20012 && a.agentPlan().Members[1].Port == 20012 && slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool {
			return v.Name == podagent.HereEnv && v.ValueFrom.FieldRef.FieldPath == "status.podIP"
		}),
		"host's address": a.agentPlan().Members[1].Node.Address == "10.0.0.2",
		"lock":           slices.Equal(c.SecurityContext.Capabilities.Add, []corev1.Capability{"IPC_LOCK"}) && len(s.InitContainers[0].SecurityContext.Capabilities.Add) == 0,
		"account":        s.ServiceAccountName == "mine" && *s.AutomountServiceAccountToken,
		"runtime":        *s.RuntimeClassName == "nvidia",
		"priority":       s.PriorityClassName == "high",
		"labels":         p.Labels["team"] == "mine" && p.Labels["x"] == "y" && p.Labels[LabelJob] == "7",
		"annotations":    p.Annotations["net"] == "a",
		"pool's own":     a.Labels["team"] == "pool",
	} {
		if !ok {
			t.Errorf("%s: %+v", what, p)
		}
	}

	a = sample()
	a.Nodes[1].Address = "10.0.0.2"
	p = a.Pods("root-uid")[1]
	s, c = &p.Spec, &p.Spec.Containers[0]
	if s.HostNetwork || len(c.Ports) > 0 || a.agentPlan().Members[1].Port != 0 || s.SecurityContext.FSGroup != nil || len(s.Volumes) != 3 || len(c.SecurityContext.Capabilities.Add) > 0 || s.ServiceAccountName != "" || s.RuntimeClassName != nil || len(p.Annotations) > 0 {
		t.Errorf("without any of it: %+v", p)
	}
	if at := a.agentPlan().Members[1].Node.Address; at != "" || a.Nodes[1].Address == "" {
		t.Errorf("a pod of its own network is said to be at %q, its node at %q", at, a.Nodes[1].Address)
	}
}

// TestShapeDelegated: where the cluster's scheduler chooses the nodes, what a job says of them
// is said to it, within the pool.
//
// Seen to fail with: the job's node selector over the pool's; its annotations over the gang's.
func TestShapeDelegated(t *testing.T) {
	a := sample()
	a.Placed, a.Selector = false, map[string]string{"pool": "a"}
	a.Launch.Job.Spec.Pod = &job.Pod{NodeSelector: map[string]string{"disk": "ssd", "pool": "b"}, Annotations: map[string]string{volcanoGroup: "another", "net": "a"}, Tolerations: []string{"spot", "gpu=h100:NoSchedule"}}
	a.Gang = Volcano
	p := a.Pods("u")[0]
	if p.Annotations[volcanoGroup] != a.name() || p.Annotations["net"] != "a" {
		t.Errorf("%v", p.Annotations)
	}
	s := p.Spec
	if s.NodeSelector["pool"] != "a" || s.NodeSelector["disk"] != "ssd" || a.Selector["disk"] != "" {
		t.Errorf("%v", s.NodeSelector)
	}
	for _, want := range []corev1.Toleration{{Key: "spot", Operator: "Exists"}, {Key: "gpu", Operator: "Equal", Value: "h100", Effect: "NoSchedule"}} {
		if !slices.Contains(s.Tolerations, want) {
			t.Errorf("%+v is not in %+v", want, s.Tolerations)
		}
	}
}

// TestAvoid: the cluster's scheduler is kept off nodes by name, in each term of the pod's own affinity that holds
// anywhere; that affinity is not written to.
//
// Seen to fail with: the first term alone, and an affinity that is shared.
func TestAvoid(t *testing.T) {
	a := sample()
	a.Placed, a.Launch.Avoid = false, []string{"k1", "k2"}
	off := func(s *corev1.PodSpec) (out string) {
		for _, term := range s.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			out += strconv.Itoa(len(term.MatchExpressions)) + ":"
			for _, r := range term.MatchFields {
				out += r.Key + " " + string(r.Operator) + " " + strings.Join(r.Values, ",") + ";"
			}
			out += "|"
		}
		return out
	}
	const both = "metadata.name NotIn k1;metadata.name NotIn k2;|"
	for _, p := range a.Pods("u") {
		if got := off(&p.Spec); got != "0:"+both || p.Spec.Affinity.PodAntiAffinity == nil {
			t.Errorf("%s, %+v", got, p.Spec.Affinity)
		}
	}
	own := &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{}, {MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "Exists"}}}, {MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "b", Operator: "Exists"}}},
	}}}}
	p := &corev1.Pod{Spec: corev1.PodSpec{Affinity: own}}
	a.Frame(p, 0, "u")
	if got, was := off(&p.Spec), off(&corev1.PodSpec{Affinity: own}); got != "0:|1:"+both+"1:"+both || was != "0:|1:|1:|" {
		t.Errorf("%s; its own was %s", got, was)
	}
	a.Placed = true
	if s := a.Pods("u")[0].Spec; s.Affinity != nil {
		t.Errorf("placed: %+v", s.Affinity)
	}
}

// TestVolumes: one volume that stands at two paths is one, and directories of the pod are each
// their own.
func TestVolumes(t *testing.T) {
	a := sample()
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	a.Mounts = []Mount{{Path: "/a", Source: claim, Sub: "x"}, {Path: "/b", Source: claim, ReadOnly: true}, {Path: "/c", Source: empty}, {Path: "/d", Source: empty}}
	volumes, mounts := a.volumeMounts()
	if len(volumes) != 3 || mounts[0].Name != mounts[1].Name || mounts[2].Name == mounts[3].Name || mounts[0].SubPath != "x" || !mounts[1].ReadOnly || mounts[0].ReadOnly {
		t.Errorf("%+v\n%+v", volumes, mounts)
	}
}
