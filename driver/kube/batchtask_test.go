package kube_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// tasksAlone is a job of so many tasks, each with a pod of its own, and of nothing else.
func tasksAlone(allocation uint64, script string, tasks int, each resource.Requirements) *engine.Launch {
	l := folded(allocation, script, 1)
	l.Job.Spec.Groups = []job.TaskGroup{{Tasks: job.Count{Want: tasks}, PerTask: each}}
	l.Job.Spec.Pod = &job.Pod{PerTask: true}
	return l
}

// smallTasks is a job of tasks of which two have room on one of the fake nodes.
func smallTasks(allocation uint64, tasks int) *engine.Launch {
	return tasksAlone(allocation, forever, tasks, resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(4)}})
}

// gangsOfTasks: of two gangs of ten pods of tasks, of which the eight nodes have room for sixteen at
// most, the first begins whole, on fewer nodes than it has pods; the other waits in these words, and
// no pod of it has a node, though there is room for some.
//
// Seen to fail with: pods of tasks that are in no gang (coscheduling's).
func gangsOfTasks(t *testing.T, l *lab.Lab, terms settings.Terms, words string) {
	terms.Pool = "k8s-s"
	e := gangsBy(t, l, "sue", &terms, nil)
	first, second := smallTasks(21, 10), smallTasks(22, 10)
	if err := e.Launch(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	await(t, e, first.Ref, "bound whole", func(r engine.Report) bool { return r.Phase == engine.Ready })
	on := map[string]int{}
	for _, node := range pods(t, l, first.Ref) {
		on[node]++
	}
	if on[""] != 0 || len(on) > 8 || bound(t, l, first.Ref) != 10 || slices.Max(slices.Collect(maps.Values(on))) != 2 {
		t.Errorf("of ten pods of tasks there are on nodes %v", on)
	}
	if err := e.Launch(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	r := await(t, e, second.Ref, "waiting with "+words, func(r engine.Report) bool { return strings.Contains(r.Message, words) })
	t.Logf("it waits: %s", r.Message)
	if n := bound(t, l, second.Ref); n != 0 || r.Phase != engine.Accepted {
		t.Errorf("of the gang that waits %d pods are bound: %+v", n, r)
	}
}

// anH100 is what a task asks for that wants such a device. A pod that asked for no CPU would be in no
// gang of Volcano's: its action backfill begins such pods one by one.
var anH100 = resource.Requirements{Vector: resource.Vector{CPU: resource.OneCPU / 20}, Devices: []resource.DeviceRequest{{Type: "h100", Count: 1}}}

// gangsWithClaims: n1 has three H100 and an A100 that are claimed. Of two gangs of two tasks, of which
// each has a pod and claims an H100, one begins whole, and its node's driver was asked for a device
// for each task; the other waits in these words, and no pod of it has a node, nor any claim a device,
// until there is a fourth H100. Nobody has the A100.
//
// Seen to fail with: pods of tasks that are in no gang (coscheduling's); pods that ask for no CPU
// (Volcano's).
func gangsWithClaims(t *testing.T, l *lab.Lab, terms settings.Terms, words string) {
	h100 := pieces(4, 1)
	l.Claimable(t, map[string][]lab.Piece{"n1": h100})
	l.Publish(t, "n1", slices.Delete(slices.Clone(h100), 3, 4)...)
	terms.Pool, terms.Classes = "k8s-c", []string{lab.Driver}
	e := gangsBy(t, l, "cleo", &terms, nil)
	taken(t, e, terms)
	first, second := tasksAlone(31, tellScript+"exec sleep 600\n", 2, anH100), tasksAlone(32, forever, 2, anH100)
	had := map[string]bool{}
	has := func(native string) {
		t.Helper()
		for _, pod := range []string{native + "-0", native + "-1"} {
			got := l.Prepared("n1")[pod]
			if len(got) != 1 || had[got[0]] || got[0] == "gpu-4" {
				t.Errorf("%s has %q, others %v", pod, got, had)
			}
			had[strings.Join(got, ",")] = true
		}
	}
	r := begin(t, e, first)
	newBench(l).toldBy(t, r.Native, 2)
	has(r.Native)
	if err := e.Launch(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	r = await(t, e, second.Ref, "waiting with "+words, func(r engine.Report) bool { return strings.Contains(r.Message, words) })
	t.Logf("it waits: %s", r.Message)
	if n, all := bound(t, l, second.Ref), allocations(t, l); n != 0 || len(all) != 2 {
		t.Errorf("of the gang that waits %d pods are bound; allocated are %v", n, all)
	}
	l.Publish(t, "n1", h100...)
	has(await(t, e, second.Ref, "running", func(r engine.Report) bool { return r.Phase == engine.Running }).Native)
	for _, g := range []*engine.Launch{first, second} {
		if err := e.Stop(t.Context(), g.Ref, engine.Stop{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range []*engine.Launch{first, second} {
		gone(t, e, g.Ref)
	}
}

// claimsIgnored: a scheduler gives a pod with a claim a node, and the claim no devices, which its
// kubelet waits for in vain. The look says what that scheduler has to be told, and so does the end of
// the attempt, which comes though a kubelet would wait for five minutes.
func claimsIgnored(t *testing.T, l *lab.Lab, terms settings.Terms) {
	l.Claimable(t, map[string][]lab.Piece{"n1": pieces(1, 0)})
	terms.Pool, terms.Classes, terms.Selector = "k8s-i", []string{lab.Driver}, map[string]string{"kubernetes.io/hostname": "n1"}
	e := gangsBy(t, l, "ida", &terms, func(c *kube.Config) { c.Pull = time.Second }) // it is half a minute otherwise
	said(t, e, engine.Warning, "Volcano gives claims devices only with predicate.DynamicResourceAllocationEnable: true")
	g := tasksAlone(41, forever, 1, anH100)
	if err := e.Launch(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, g.Ref)
	if r.Cause != engine.LaunchFailed || !r.Started.IsZero() || !strings.Contains(r.Message, "Volcano has given it a node, and its ResourceClaim no devices: it takes predicate.DynamicResourceAllocationEnable: true") {
		t.Errorf("%+v", r)
	}
}

// claimsRefused: Kueue admits no pod that names a claim; so a job that asks for devices is refused
// where they are claimed, and the look says it. One that asks for none is taken.
func claimsRefused(t *testing.T, l *lab.Lab, terms settings.Terms) {
	l.Publish(t, "f1", pieces(2, 0)...)
	terms.Pool, terms.Classes = "k8s-r", []string{lab.Driver}
	e := gangsBy(t, l, "ria", &terms, nil)
	said(t, e, engine.Missing, "jobs that ask for devices are refused: Kueue")
	g := oneEach(51, 2)
	for what, err := range map[string]error{"at the door": e.Admit(t.Context(), &engine.JobDraft{Spec: g.Job.Spec, Script: g.Script}), "at its launch": e.Launch(t.Context(), g)} {
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "admits no pod that has a ResourceClaim") || !strings.Contains(fault.Remedy(err), "placed=true") {
			t.Errorf("%s: %v, %q", what, err, fault.Remedy(err))
		}
	}
	g = folded(52, forever, 2)
	if err := e.Admit(t.Context(), &engine.JobDraft{Spec: g.Job.Spec, Script: g.Script}); err != nil {
		t.Errorf("without devices: %v", err)
	}
	// That it is so: a pod of anybody's.
	l.Apply(t, `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: theirs}
spec: {devices: {requests: [{name: g, exactly: {deviceClassName: `+lab.Driver+`}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: theirs, labels: {kueue.x-k8s.io/queue-name: research}}
spec: {resourceClaims: [{name: g, resourceClaimName: theirs}], containers: [{name: c, image: i, resources: {limits: {nvidia.com/gpu: 1}, claims: [{name: g}]}}]}
`)
	text := ""
	for end := time.Now().Add(patience); !strings.Contains(text, "does not support use of resource claims"); time.Sleep(100 * time.Millisecond) { // there is no event for it
		if time.Now().After(end) {
			t.Fatalf("Kueue says of a pod with a claim: %s", text)
		}
		text = l.Kubectl(t, "get", "workloads", "--output=jsonpath={.items[*].status.conditions[*].message}")
	}
	l.Kubectl(t, "delete", "pod/theirs", "resourceclaim/theirs", "resourceslice/f1-"+lab.Driver, "--wait=false")
}

// said looks for a finding about devices that are claimed.
func said(t *testing.T, e *kube.Engine, state engine.FindingState, text string) {
	t.Helper()
	found, err := e.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(found, func(f engine.Finding) bool {
		return f.What == "devices with attributes" && f.State == state && strings.HasPrefix(f.Text, text) && f.Mend != ""
	}) {
		t.Errorf("a look does not say %q: %+v", text, found)
	}
}
