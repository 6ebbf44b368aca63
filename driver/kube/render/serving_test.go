package render

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// serving is an attempt on two nodes of a replica.
func serving() *Attempt {
	a := sample()
	s := a.Launch.Job.Spec
	s.Part = &job.Part{Controller: "service/team/chat", Revision: 2, Index: 1}
	s.Serve = &job.Serve{
		Ports:     []job.Port{{Name: "http"}, {Name: "admin", Number: 20000}, {Name: "a-name-that-is-too-long"}},
		Startup:   &job.Probe{HTTP: "/started", Delay: 2 * time.Second, Every: 3 * time.Second, Failures: 10},
		Readiness: &job.Probe{HTTP: "/health", Port: "admin", Every: 1500 * time.Millisecond, Passes: 2},
		Liveness:  &job.Probe{Exec: []string{"check", "it"}, Timeout: 5 * time.Second, Failures: 4},
		Drain:     time.Minute,
	}
	return a
}

// TestTheFirstPodServes: the probes are the kubelet's, behind ours; the other pods have none.
func TestTheFirstPodServes(t *testing.T) {
	pods := serving().Pods("u1")
	c := pods[0].Spec.Containers[0]
	if !slices.Contains(c.StartupProbe.Exec.Command, "started") {
		t.Errorf("%+v", c.StartupProbe)
	}
	run := func(words ...string) corev1.ProbeHandler {
		return corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: append([]string{podagent.BinDir + "/cox-pod"}, words...)}}
	}
	ready := &corev1.Probe{
		ProbeHandler:  run("serves", "ready", `{"http":"/health","port":"admin"}`),
		PeriodSeconds: 2, TimeoutSeconds: 1, FailureThreshold: 3, SuccessThreshold: 2,
	}
	live := &corev1.Probe{
		ProbeHandler:  run("serves", "alive", `{"exec":["check","it"],"timeout":5000000000}`),
		PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 4, SuccessThreshold: 1,
	}
	if !reflect.DeepEqual(c.ReadinessProbe, ready) || !reflect.DeepEqual(c.LivenessProbe, live) {
		t.Errorf("%+v\n%+v", c.ReadinessProbe, c.LivenessProbe)
	}
	want := []corev1.ContainerPort{{Name: "http", ContainerPort: 20001, Protocol: "TCP"}, {Name: "admin", ContainerPort: 20000, Protocol: "TCP"}, {ContainerPort: 20002, Protocol: "TCP"}}
	if !reflect.DeepEqual(c.Ports, want) {
		t.Errorf("%+v", c.Ports)
	}
	if l := pods[0].Labels; l[LabelServes] != "true" || l[LabelLiveness] != "true" || l[LabelService] != "team-chat" {
		t.Errorf("%v", l)
	}
	o := pods[1].Spec.Containers[0]
	if o.ReadinessProbe != nil || o.LivenessProbe != nil || len(o.Ports) > 0 || pods[1].Labels[LabelServes] != "" {
		t.Errorf("the second pod: %+v", o)
	}
}

// TestProbesOfTheKubeletsOwn are those of a job without a startup probe.
func TestProbesOfTheKubeletsOwn(t *testing.T) {
	a := serving()
	a.Launch.Job.Spec.Serve.Startup = nil
	c := a.Pods("u1")[0].Spec.Containers[0]
	if p := c.ReadinessProbe; p.HTTPGet == nil || p.HTTPGet.Path != "/health" || p.HTTPGet.Port != intstr.FromInt32(20000) || p.SuccessThreshold != 2 {
		t.Errorf("%+v", p)
	}
	if p := c.LivenessProbe; p.Exec == nil || !slices.Equal(p.Exec.Command, []string{podagent.BinDir + "/cox-pod", "probe", "check", "it"}) {
		t.Errorf("%+v", p)
	}
	if slices.Contains(c.Command, "startup") {
		t.Errorf("%q", c.Command)
	}
}

// TestDefaultReadinessIsTheFirstPort has no probe at all.
func TestDefaultReadinessIsTheFirstPort(t *testing.T) {
	a := serving()
	s := a.Launch.Job.Spec.Serve
	s.Startup, s.Readiness, s.Liveness = nil, nil, nil
	c := a.Pods("u1")[0].Spec.Containers[0]
	if p := c.ReadinessProbe; p == nil || p.TCPSocket == nil || p.TCPSocket.Port.IntValue() != 20001 || c.LivenessProbe != nil {
		t.Errorf("%+v", c.ReadinessProbe)
	}
}

// TestThePlanOfWhatServes: the agent has the numbers of the ports, and no probe that the kubelet does.
func TestThePlanOfWhatServes(t *testing.T) {
	a := serving()
	got := a.agentPlan().Job.Spec.Serve
	if got.Readiness != nil || got.Liveness != nil || got.Startup == nil || got.Ports[0].Number != 20001 || got.Ports[1].Number != 20000 || got.Ports[2].Number != 20002 {
		t.Errorf("%+v", got)
	}
	if s := a.Launch.Job.Spec.Serve; s.Readiness == nil || s.Ports[0].Number != 0 {
		t.Errorf("the job itself was changed: %+v", s)
	}
}

// TestClientsFindAService by its name, on every revision.
func TestClientsFindAService(t *testing.T) {
	a := serving()
	s := a.ClientService("u1")
	want := []corev1.ServicePort{
		{Name: "http", Port: 80, TargetPort: intstr.FromString("http"), Protocol: "TCP"},
		{Name: "admin", Port: 20000, TargetPort: intstr.FromString("admin"), Protocol: "TCP"},
		{Name: "a-name-that-is-too-long", Port: 20002, TargetPort: intstr.FromInt32(20002), Protocol: "TCP"},
	}
	if s.Name != "team-chat" || !reflect.DeepEqual(s.Spec.Ports, want) || len(s.OwnerReferences) != 1 || s.Spec.ClusterIP == "None" {
		t.Errorf("%+v %+v", s.ObjectMeta, s.Spec)
	}
	pod := a.Pods("u1")[0]
	for k, v := range s.Spec.Selector {
		if pod.Labels[k] != v {
			t.Errorf("the pod has %s=%q", k, pod.Labels[k])
		}
	}
	if a.Launch.Job.Spec.Part = nil; a.ClientService("u1") != nil {
		t.Error("a job that is no part of a service has one")
	}
}

// TestChosenPortsOnTheNodesNetwork are refused by name.
func TestChosenPortsOnTheNodesNetwork(t *testing.T) {
	a := serving()
	a.Launch.Job.Spec.Serve.Log.Keep = 3
	if err := a.Check(); fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "kubelet's to rotate") {
		t.Error(err)
	}
	a.Launch.Job.Spec.Serve.Log = job.LogRotation{}
	a.HostNetwork = true
	if err := a.Check(); fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "port http is to be chosen") {
		t.Error(err)
	}
}

// TestServicesOfOneName: pods of two services whose names differ in a slash alone have different labels.
func TestServicesOfOneName(t *testing.T) {
	a, b := &job.Part{Controller: "service/team/chat-a"}, &job.Part{Controller: "service/team-chat/a"}
	if clientName(a) != clientName(b) || hashController(a) == hashController(b) {
		t.Errorf("%s %s, %s %s", clientName(a), clientName(b), hashController(a), hashController(b))
	}
}
