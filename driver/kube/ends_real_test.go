package kube_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// collected: pods that have ended are deleted by who collects such pods, while no driver runs.
// Their ends are there when one begins again.
//
// Seen to fail with: pods without our finalizer.
func (w *weather) collected(t *testing.T) {
	root := t.TempDir()
	first := w.open(t, w.l.Kubeconfig(), root)
	r := w.run(t, first, 1, "h1", "h2")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	w.h.end(t, r, 12)
	w.l.Kubectl(t, "delete", "--wait=false", "pod/"+r.Native+"-0", "pod/"+r.Native+"-1")
	w.exits(t, w.open(t, w.l.Kubeconfig(), root), r.Ref, 12)
}

// finalized: another's finalizer keeps the pods' objects. The attempt has ended all the same, and
// can be forgotten; the finalizer stays where it is.
//
// Seen to fail with: a driver that takes away all finalizers.
func (w *weather) finalized(t *testing.T) {
	e := w.open(t, w.l.Kubeconfig(), t.TempDir())
	r := w.run(t, e, 1, "h1", "h2")
	pods := []string{"pod/" + r.Native + "-0", "pod/" + r.Native + "-1"}
	for _, p := range pods {
		w.l.Kubectl(t, "patch", p, "--type=json", `--patch=[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/theirs"}]`)
	}
	w.h.end(t, r, 13)
	if r := gone(t, e, r.Ref); r.Cause != engine.Exited || r.Exit.Status != 13 {
		t.Errorf("%+v", r)
	}
	if err := e.Forget(t.Context(), r.Ref); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		w.l.Kubectl(t, "wait", "--for=jsonpath={.metadata.finalizers[*]}=example.com/theirs", p, "--timeout=5m")
		w.l.Kubectl(t, "patch", p, "--type=merge", `--patch={"metadata":{"finalizers":null}}`)
	}
	w.h.ledger(t, e.Engine, e.root)
}

// testEvicted: a pod is evicted by the API, as kubectl drain does it: the job is to be queued
// again, and the cluster's words are there.
func testEvicted(t *testing.T, b *bench, e *kube.Engine) {
	l := launch(1, forever, "n1", "n2")
	first := begin(t, e, l)
	pod := first.Native + "-1"
	body := fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q,"namespace":"default"}}`, pod)
	if _, err := b.l.Try(t.Context(), body, "create", "--raw", "/api/v1/namespaces/default/pods/"+pod+"/eviction", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); r.Cause != engine.NodeLost || r.Message == "" {
		t.Errorf("%+v", r)
	}
}

// testOutOfMemory: a job that takes more than it asked for is ended by the kernel, which is said.
func testOutOfMemory(t *testing.T, _ *bench, e *kube.Engine) {
	l := launch(1, "#!/bin/sh\nx=aaaaaaaaaaaaaaaa\nwhile :; do x=$x$x; done\n", "n1")
	l.Claims[0].Take = resource.Vector{Memory: 64 * resource.MiB}
	begin(t, e, l)
	if r := gone(t, e, l.Ref); r.Cause != engine.OutOfMemory {
		t.Errorf("%+v", r)
	}
}

// testNextInLine: jobs that each want all CPUs of a node are launched there one after the other, each
// as soon as the one before is gone. Every one begins at once: its kubelet counts the one before no
// more.
//
// Seen to fail with: a pod over as soon as its container has ended (OutOfcpu).
func testNextInLine(t *testing.T, _ *bench, e *kube.Engine) {
	all, err := e.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(n fleet.Node) bool { return n.Name == "n4" })
	if i < 0 {
		t.Fatalf("%+v", all)
	}
	for n := range uint64(5) {
		l := launch(n+1, "#!/bin/sh\nexit 3\n", "n4")
		l.Claims[0].Take = resource.Vector{CPU: all[i].Capacity.CPU}
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if r := gone(t, e, l.Ref); r.Cause != engine.Exited || r.Exit.Status != 3 {
			t.Errorf("%d of those in line: %+v", n+1, r)
		}
	}
}

// testOneByOne: ranks end at different times; the job goes on until its script ends.
func testOneByOne(t *testing.T, _ *bench, e *kube.Engine) {
	l := launch(1, "#!/bin/sh\nsrun sh -c 'sleep $((SLURM_PROCID * 2)); echo $SLURM_PROCID has ended'\nsrun true || exit 9\nexit 5\n", "n1", "n2", "n3")
	begin(t, e, l)
	var ended []time.Time
	r := await(t, e, l.Ref, "gone", func(r engine.Report) bool {
		if r.Uncertain {
			t.Errorf("%+v", r)
		}
		return r.Gone
	})
	if r.Cause != engine.Exited || r.Exit.Status != 5 {
		t.Errorf("%+v", r)
	}
	for _, x := range r.Tasks {
		if x.Step == 0 {
			ended = append(ended, x.Ended)
		}
	}
	if len(ended) != 3 || slices.Compact(ended)[0].Equal(ended[len(ended)-1]) {
		t.Errorf("its ranks ended at %v", ended)
	}
}

// testGroups: groups of a job that begin together, of which each has its own steps.
func testGroups(t *testing.T, _ *bench, e *kube.Engine) {
	l := launch(1, "#!/bin/sh\nsrun --het-group=0 true && srun --het-group=1 true || exit 9\nexit 6\n", "n1", "n2")
	g := &l.Job.Spec.Groups[0]
	g.Nodes, g.Tasks = job.Range{Min: 1, Max: 1}, job.Count{Want: 1}
	l.Job.Spec.Groups = append(l.Job.Spec.Groups, *g)
	l.Claims[1].Group = 1
	begin(t, e, l)
	r := gone(t, e, l.Ref)
	if r.Cause != engine.Exited || r.Exit.Status != 6 {
		t.Errorf("%+v", r)
	}
	on := map[int]string{}
	for _, x := range r.Tasks {
		on[x.Step] = x.Node
	}
	if on[0] != "n1" || on[1] != "n2" {
		t.Errorf("steps ran on %v", on)
	}
}

// testPartialBind: a policy of others refuses one node of four: nothing of the job runs, all
// pods go, and with the policy gone the next attempt runs once.
func testPartialBind(t *testing.T, b *bench, e *kube.Engine) {
	admit := refuse(t, b.l, openBy(t, b.l.Kubeconfig()), "n3")
	script := "#!/bin/sh\necho it runs\nsrun sh -c 'echo on $SLURMD_NODENAME'\nexit 3\n"
	l := launch(1, script, "n1", "n2", "n3", "n4")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, l.Ref)
	if r.Cause != engine.Unready || !r.Started.IsZero() || !strings.Contains(r.Message, "not to n3") {
		t.Errorf("%+v", r)
	}
	if n := len(living(t, r, "", "")); n != 0 {
		t.Errorf("%d processes of it live", n)
	}
	admit()
	l = launch(1, script, "n1", "n2", "n3", "n4")
	l.Ref.Attempt, l.Job.Attempt = 2, 2
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); r.Cause != engine.Exited || r.Exit.Status != 3 {
		t.Errorf("%+v", r)
	}
}
