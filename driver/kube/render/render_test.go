package render

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// sample is an attempt on two nodes: all of two of four GPUs on the first one.
func sample() *Attempt {
	gpus := make([]fleet.Device, 4)
	for i := range gpus {
		gpus[i] = fleet.Device{Index: i, Kind: "gpu", Type: "h100", UUID: fmt.Sprint("GPU-", i)}
	}
	return &Attempt{
		Server: "abc123", Digest: "d1",
		Launch: &engine.Launch{
			Ref: engine.Ref{Allocation: 12, Attempt: 3},
			Job: &job.Job{ID: 7, Spec: &job.Spec{
				WorkDir: "/home/ada", Image: "pytorch:2", Owner: job.Owner{User: "ada", UID: 1000, GID: 100},
				Groups: []job.TaskGroup{{}}, Program: job.Program{Kind: job.Batch},
			}},
			Script: []byte("#!/bin/sh\n"), Env: []string{"A=b"}, Grace: 1500 * time.Millisecond,
			Claims: []fleet.Claim{
				{Node: "n1", Tasks: 1, Take: resource.Vector{CPU: 1500, Memory: 2 * resource.GiB}, Devices: []fleet.DeviceClaim{{Index: 1, Share: resource.WholeDevice}, {Index: 3, Share: resource.WholeDevice}}},
				{Node: "n2", Tasks: 1, Take: resource.Vector{CPU: 500}},
			},
		},
		Nodes: []Node{
			{Node: fleet.Node{Name: "n1", Devices: gpus}, Ask: slices.Repeat([]string{"nvidia.com/gpu"}, 4)},
			{Node: fleet.Node{Name: "n2"}},
		},
		Settings: Settings{
			Namespace: "jobs", Agent: "cox:1", Ready: time.Minute, Placed: true,
			Mounts: []Mount{{Path: "/home", Source: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/e"}}}}, PullSecrets: []string{"pull"}, PriorityClass: "jobs",
		},
	}
}

func TestTheRootHasThePlanAndACertificateForEach(t *testing.T) {
	a := sample()
	s, err := a.Root(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "cox-abc123-12-3" || s.Namespace != "jobs" || s.Immutable == nil || !*s.Immutable || s.Annotations[Digest] != "d1" {
		t.Errorf("%+v", s.ObjectMeta)
	}
	if ref, ok := RefOf(s); !ok || ref != a.Launch.Ref || s.Labels[LabelServer] != "abc123" || s.Labels[LabelJob] != "7" {
		t.Errorf("labels %v", s.Labels)
	}
	for i := range 2 {
		if _, err := tls.X509KeyPair(s.Data[fmt.Sprint(i, ".crt")], s.Data[fmt.Sprint(i, ".key")]); err != nil {
			t.Errorf("member %d: %v", i, err)
		}
	}
	var p podagent.Plan
	if err := json.Unmarshal(s.Data[podagent.PlanFile], &p); err != nil {
		t.Fatal(err)
	}
	if p.Members[1].Name != "cox-abc123-12-3-1" || p.Members[1].Host != "cox-abc123-12-3-1.cox-abc123-12-3.jobs.svc.cluster.local" || p.Claims[1].Node != p.Members[1].Name {
		t.Errorf("members %+v, claims %+v", p.Members, p.Claims)
	}
	// In the container the claimed devices are numbered from 0 on.
	if d := p.Members[0].Node.Devices; len(d) != 2 || d[0].Index != 0 || d[1].Index != 1 || p.Claims[0].Devices[1].Index != 1 {
		t.Errorf("devices %+v, claimed %+v", d, p.Claims[0].Devices)
	}
	if a.Launch.Claims[0].Devices[1].Index != 3 {
		t.Error("the launch was written to")
	}
}

func TestPods(t *testing.T) {
	pods := sample().Pods("root-uid")
	if len(pods) != 2 {
		t.Fatalf("%d pods", len(pods))
	}
	p := pods[0]
	s := &p.Spec
	c := s.Containers[0]
	for what, ok := range map[string]bool{
		"name":                p.Name == "cox-abc123-12-3-0" && s.Hostname == p.Name && s.Subdomain == "cox-abc123-12-3" && IndexOf(p) == 0 && IndexOf(pods[1]) == 1,
		"owner":               len(p.OwnerReferences) == 1 && p.OwnerReferences[0].UID == "root-uid" && p.OwnerReferences[0].Kind == "Secret",
		"finalizer":           slices.Equal(p.Finalizers, []string{Finalizer}),
		"no restart":          s.RestartPolicy == corev1.RestartPolicyNever,
		"no scheduler":        s.SchedulerName == Scheduler && len(s.SchedulingGates) == 0,
		"no account":          s.AutomountServiceAccountToken != nil && !*s.AutomountServiceAccountToken,
		"user":                *s.SecurityContext.RunAsUser == 1000 && *s.SecurityContext.RunAsGroup == 100,
		"confined":            !*c.SecurityContext.AllowPrivilegeEscalation && len(c.SecurityContext.Capabilities.Drop) == 1,
		"grace":               *s.TerminationGracePeriodSeconds == 32, // 1.5 s and 30 s, rounded up
		"image":               c.Image == "pytorch:2" && s.InitContainers[0].Image == "cox:1",
		"command":             slices.Equal(c.Command, []string{"/cox/bin/cox-pod", "run"}) && slices.Equal(c.StartupProbe.Exec.Command, []string{"/cox/bin/cox-pod", "started"}),
		"cpu":                 c.Resources.Limits.Cpu().String() == "1500m" && c.Resources.Requests.Cpu().String() == "1500m",
		"memory":              c.Resources.Limits.Memory().String() == "2Gi",
		"devices":             c.Resources.Limits.Name("nvidia.com/gpu", "").String() == "2",
		"said to have them":   pods[0].Labels[LabelPlugged] == "true" && pods[1].Labels[LabelPlugged] == "",
		"devices not in init": s.InitContainers[0].Resources.Limits.Name("nvidia.com/gpu", "").IsZero(),
		"none on the other":   pods[1].Spec.Containers[0].Resources.Limits.Name("nvidia.com/gpu", "").IsZero(),
		"tolerates":           slices.ContainsFunc(s.Tolerations, func(x corev1.Toleration) bool { return x.Key == "nvidia.com/gpu" }),
		"mount":               c.VolumeMounts[2].MountPath == "/home" && s.Volumes[2].NFS.Path == "/e",
		"pull":                s.ImagePullSecrets[0].Name == "pull" && s.PriorityClassName == "jobs",
		"search":              slices.Equal(s.DNSConfig.Searches, []string{"cox-abc123-12-3.jobs.svc.cluster.local"}),
		"own key alone":       keys(s.Volumes[1].Secret.Items) == "plan.json ca.crt 0.crt 0.key",
	} {
		if !ok {
			t.Errorf("%s: %+v", what, p.Spec)
		}
	}
}

func keys(items []corev1.KeyToPath) string {
	var out []string
	for _, k := range items {
		if k.Key == k.Path {
			out = append(out, k.Key)
		}
	}
	return strings.Join(out, " ")
}

func TestPodsOfTheClustersOwnSchedulerWaitAtAGate(t *testing.T) {
	a := sample()
	a.Placed, a.Selector, a.AsImage = false, map[string]string{"gpu": "yes"}, true
	s := a.Pods("u")[0].Spec
	if len(s.SchedulingGates) != 1 || s.SchedulingGates[0].Name != Gate || s.SchedulerName != "" || s.NodeSelector["gpu"] != "yes" || s.SecurityContext.RunAsUser != nil {
		t.Errorf("%+v", s)
	}
}

func TestWhatCannotBeSaidIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*Attempt)
		kind  fault.Kind
		says  string
	}{
		"no image":      {func(a *Attempt) { a.Launch.Job.Spec.Image = "" }, fault.Invalid, "container image"},
		"no agent":      {func(a *Attempt) { a.Agent = "" }, fault.Unsupported, "cox-pod"},
		"growing":       {func(a *Attempt) { a.Launch.Adds = &engine.Joining{} }, fault.Unsupported, "grow"},
		"a share":       {func(a *Attempt) { a.Launch.Claims[0].Devices[0].Share = 500 }, fault.Invalid, "share"},
		"no device":     {func(a *Attempt) { a.Launch.Claims[0].Devices[0].Index = 9 }, fault.Invalid, "n1 has no device 9"},
		"no node":       {func(a *Attempt) { a.Launch.Claims[1].Node = "n9" }, fault.Invalid, `"n9"`},
		"no script":     {func(a *Attempt) { a.Launch.Script = nil }, fault.Invalid, "script"},
		"work relative": {func(a *Attempt) { a.Launch.Job.Spec.WorkDir = "here" }, fault.Invalid, `"here"`},
		"too large":     {func(a *Attempt) { a.Launch.Script = make([]byte, 1<<20) }, fault.Invalid, "1048576"},
	} {
		a := sample()
		c.spoil(a)
		_, err := a.Root(time.Now())
		if err == nil || fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v is %s", name, err, fault.KindOf(err))
		}
	}
}
