package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Labels of pods that serve: those with the first task of a job that does.
const (
	LabelServes   = "coxswain.sh/serves"   // "true"
	LabelLiveness = "coxswain.sh/liveness" // "true": its kubelet ends its container when a probe fails
	LabelService  = "coxswain.sh/service"  // the name of the Service by which clients in the cluster find it
	LabelWhose    = "coxswain.sh/whose"    // a hash of the service's full name: "a/b-c" and "a-b/c" have one Service name
)

// firstPort is the first number of ports of which the job names none: a pod has a network of its own.
const firstPort = 20000

// longestPortName is how long the name of a port of a container may be.
const longestPortName = 15

// ServePorts are the ports of an attempt that serves, in the order of job.Serve.Ports.
func ServePorts(s *job.Serve) []int {
	out := make([]int, len(s.Ports))
	next := firstPort
	for i, p := range s.Ports {
		if out[i] = p.Number; p.Number != 0 {
			continue
		}
		for slices.ContainsFunc(s.Ports, func(o job.Port) bool { return o.Number == next }) {
			next++
		}
		out[i] = next
		next++
	}
	return out
}

// checkServe refuses what pods cannot do for a job that serves.
func (a *Attempt) checkServe() error {
	s := a.Launch.Job.Spec.Serve
	if s != nil && s.Log != (job.LogRotation{}) {
		return engine.About(fault.New(fault.Unsupported, "the output of pods is the kubelet's to rotate").
			Advise("leave log out: containerLogMaxSize of the kubelets' configuration bounds it"), "log")
	}
	if s == nil || !a.OnHost() {
		return nil
	}
	for _, p := range s.Ports {
		if p.Number == 0 {
			return engine.About(fault.New(fault.Unsupported, "port %s is to be chosen, and on the network of their nodes pods cannot know which are free", p.Name).
				Advise("give it a number, or leave host_network out"), "ports")
		}
	}
	return nil
}

// jobForPlan is the job as the agent in its pods has it: with the numbers of its ports, and without the
// probes that the kubelet does.
func jobForPlan(j *job.Job) *job.Job {
	s := j.Spec.Serve
	if s == nil {
		return j
	}
	out, spec := *j, *j.Spec
	serve := job.Serve{Ports: slices.Clone(s.Ports), Startup: s.Startup, Drain: s.Drain}
	for i, n := range ServePorts(s) {
		serve.Ports[i].Number = n
	}
	spec.Serve, out.Spec = &serve, &spec
	return &out
}

// addServing says on a pod how it serves, if it has the first task.
func (a *Attempt) addServing(p *corev1.Pod, i int) {
	s := a.Launch.Job.Spec.Serve
	if s == nil || i != 0 {
		return
	}
	p.Labels[LabelServes] = "true"
	c := &p.Spec.Containers[0]
	numbers := ServePorts(s)
	for k, n := range numbers {
		port := corev1.ContainerPort{ContainerPort: int32(n), Protocol: corev1.ProtocolTCP}
		if len(s.Ports[k].Name) <= longestPortName {
			port.Name = s.Ports[k].Name
		}
		c.Ports = append(c.Ports, port)
	}
	ready := s.Readiness
	if ready == nil {
		ready = &job.Probe{TCP: true}
	}
	c.ReadinessProbe = kubeletProbe(s, ready, numbers, podagent.WordReady)
	if s.Liveness != nil {
		p.Labels[LabelLiveness] = "true"
		c.LivenessProbe = kubeletProbe(s, s.Liveness, numbers, podagent.WordAlive)
		c.LivenessProbe.SuccessThreshold = 1
	}
	if name := clientName(a.Launch.Job.Spec.Part); name != "" {
		p.Labels[LabelService], p.Labels[LabelWhose] = name, hashController(a.Launch.Job.Spec.Part)
	}
}

// kubeletProbe is a probe in Kubernetes' form, whose times are whole seconds. Where there is a startup probe it
// goes through the agent, which knows whether that has passed.
func kubeletProbe(s *job.Serve, p *job.Probe, numbers []int, word string) *corev1.Probe {
	out := &corev1.Probe{
		InitialDelaySeconds: wholeSeconds(p.Delay), PeriodSeconds: max(1, wholeSeconds(cmp.Or(p.Every, job.ProbeEvery))),
		TimeoutSeconds:   max(1, wholeSeconds(cmp.Or(p.Timeout, job.ProbeTimeout))),
		FailureThreshold: int32(cmp.Or(p.Failures, job.ProbeFailures)), SuccessThreshold: int32(cmp.Or(p.Passes, 1)),
	}
	k := slices.IndexFunc(s.Ports, func(o job.Port) bool { return p.Port == "" || o.Name == p.Port })
	port := intstr.FromInt32(int32(numbers[max(k, 0)]))
	switch {
	case s.Startup != nil:
		text, err := json.Marshal(job.Probe{HTTP: p.HTTP, TCP: p.TCP, Exec: p.Exec, Port: p.Port, Timeout: p.Timeout})
		if err != nil {
			panic("a probe: " + err.Error()) // plain data
		}
		out.Exec = &corev1.ExecAction{Command: []string{podagent.BinDir + "/cox-pod", "serves", word, string(text)}}
	case len(p.Exec) > 0:
		out.Exec = &corev1.ExecAction{Command: append([]string{podagent.BinDir + "/cox-pod", "probe"}, p.Exec...)}
	case p.HTTP != "":
		out.HTTPGet = &corev1.HTTPGetAction{Path: p.HTTP, Port: port, Scheme: corev1.URISchemeHTTP}
	default:
		out.TCPSocket = &corev1.TCPSocketAction{Port: port}
	}
	return out
}

// wholeSeconds is a time in seconds, rounded up.
func wholeSeconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }

// clientName is the name of the Service by which clients in the cluster find a service: "team-chat" of
// the controller "service/team/chat". Empty: the job is no part of a service.
func clientName(p *job.Part) string {
	if p == nil {
		return ""
	}
	_, name, ok := strings.Cut(p.Controller, "/")
	if name = strings.ReplaceAll(name, "/", "-"); !ok || len(name) > 63 {
		return ""
	}
	return name
}

// hashController is the value of LabelWhose.
func hashController(p *job.Part) string {
	sum := sha256.Sum256([]byte(p.Controller))
	return hex.EncodeToString(sum[:8])
}

// ClientService is the Service by which clients in the cluster find a service, whose replica this is:
// it has the ready pods of all its replicas. nil: the job is no part of a service. Each replica's root owns
// it, so it goes with the last one.
func (a *Attempt) ClientService(root types.UID) *corev1.Service {
	spec := a.Launch.Job.Spec
	name := clientName(spec.Part)
	if name == "" || spec.Serve == nil || a.Template != nil && spec.Serve.Ports[0].Number == 0 { // pods of a manifest that serve nobody
		return nil
	}
	labels := map[string]string{LabelServer: a.Server, LabelService: name, LabelWhose: hashController(spec.Part)}
	out := &corev1.Service{Spec: corev1.ServiceSpec{Selector: maps.Clone(labels)}}
	out.TypeMeta, out.ObjectMeta = a.objectMeta(name, "Service", root)
	out.Labels = labels
	for k, n := range ServePorts(spec.Serve) {
		p := &spec.Serve.Ports[k]
		to := intstr.FromInt32(int32(n))
		if len(p.Name) <= longestPortName && a.Template == nil { // a template has names of its own
			to = intstr.FromString(p.Name) // a later revision may have another number
		}
		number := int32(cmp.Or(p.Number, n))
		if k == 0 && p.Number == 0 && spec.Serve.PortNumbered(80) == nil {
			number = 80
		}
		out.Spec.Ports = append(out.Spec.Ports, corev1.ServicePort{Name: p.Name, Port: number, TargetPort: to, Protocol: corev1.ProtocolTCP})
	}
	return out
}
