package kube_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// launch is a job of a task on each of some nodes.
func launch(allocation uint64, script string, nodes ...string) *engine.Launch {
	l := &engine.Launch{
		Ref: engine.Ref{Allocation: allocation, Attempt: 1},
		Job: &job.Job{ID: job.ID(100 + allocation), Attempt: 1, State: job.Running, Spec: &job.Spec{
			Name: "test", WorkDir: "/home/nobody",
			Groups:  []job.TaskGroup{{Nodes: job.Range{Min: len(nodes), Max: len(nodes)}, Tasks: job.Count{Want: len(nodes)}}},
			Program: job.Program{Kind: job.Batch, ScriptName: "test.sh"},
		}},
		Script: []byte(script), Env: []string{"PATH=/bin"}, Grace: time.Second,
	}
	for _, n := range nodes {
		l.Claims = append(l.Claims, fleet.Claim{Node: n, Tasks: 1})
	}
	return l
}

const forever = "#!/bin/sh\nexec sleep 600\n"

// patience is how long what must come is waited for: clusters share a machine with other tests.
const patience = 5 * time.Minute

// await waits for a report.
func await(t *testing.T, e engine.Engine, ref engine.Ref, what string, is func(engine.Report) bool) engine.Report {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last engine.Report
	found := errors.New("found")
	if err := e.Watch(ctx, "", func(ev engine.Event) error {
		if ref == (engine.Ref{}) || ev.Report.Ref == ref { // of any, if none is named
			if last = ev.Report; is(last) {
				return found
			}
		}
		return nil
	}); !errors.Is(err, found) {
		t.Fatalf("attempt %s is not %s: %v; the last report is %+v", ref, what, err, last)
	}
	return last
}

func begin(t *testing.T, e engine.Engine, l *engine.Launch) engine.Report {
	t.Helper()
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return await(t, e, l.Ref, "running", func(r engine.Report) bool { return r.Phase == engine.Running })
}

func gone(t *testing.T, e engine.Engine, ref engine.Ref) engine.Report {
	t.Helper()
	return await(t, e, ref, "gone", func(r engine.Report) bool { return r.Gone })
}

// testFaults does to attempts what happens to pods in clusters.
func testFaults(t *testing.T, b *bench) {
	for name, test := range map[string]func(*testing.T, *bench, *kube.Engine){
		"Foreign": testForeign, "Deleted": testDeleted, "Evicted": testEvicted, "OutOfMemory": testOutOfMemory, "OneByOne": testOneByOne, "Groups": testGroups,
		"NextInLine": testNextInLine,
	} {
		b.beside(t, name, func(t *testing.T) { test(t, b, b.open(t, t.TempDir())) })
	}
	b.beside(t, "Sidecars", func(t *testing.T) { testSidecars(t, b) })
	b.beside(t, "ToldAgain", func(t *testing.T) { testToldAgain(t, b) })
	b.beside(t, "NoImage", func(t *testing.T) {
		c := b.config(t, t.TempDir())
		c.Pull = 2 * time.Second
		l := launch(1, forever, "n1", "n2")
		l.Job.Spec.Image = "lab/none:1"
		r := b.neverBegins(t, c, l)
		if r.Cause != engine.Refused || !strings.Contains(r.Message, "lab/none:1") || !strings.Contains(r.Message, "Pull") {
			t.Errorf("%+v", r)
		}
	})
	b.beside(t, "NoVolume", func(t *testing.T) { // seen to fail with: a pod whose volume is not to be had waited for without end
		c := b.config(t, t.TempDir())
		c.Ready = 2 * time.Second
		c.Terms.Paths = []settings.Path{{Prefix: "/home", Volume: settings.Volume{Kind: settings.Host, Dir: "/there/is/none"}}}
		r := b.neverBegins(t, c, launch(1, forever, "n1"))
		if r.Cause != engine.Unready || !strings.Contains(r.Message, "-0 on n1: its kubelet has not made it ready") || !strings.Contains(r.Message, "kubectl describe pod") {
			t.Errorf("%+v", r)
		}
	})
	b.beside(t, "NoRoom", func(t *testing.T) {
		l := launch(1, forever, "n1", "n2")
		l.Claims[1].Take = resource.Vector{CPU: resource.CPUs(1 << 16)}
		r := b.neverBegins(t, b.config(t, t.TempDir()), l)
		if r.Cause != engine.Unready || !strings.Contains(r.Message, "OutOfcpu") || !strings.Contains(r.Message, "n2") {
			t.Errorf("%+v", r)
		}
	})
}

// testServerDies: the apiserver dies while a job runs, and is there again when it ends.
func testServerDies(t *testing.T, b *bench, e *kube.Engine) {
	l := launch(1, "#!/bin/sh\nsleep 5\nexit 9\n", "n1", "n2")
	begin(t, e, l)
	b.l.Kill(t, "apiserver")
	b.l.Restart(t, "apiserver")
	if r := gone(t, e, l.Ref); r.Cause != engine.Exited || r.Exit.Status != 9 {
		t.Errorf("%+v", r)
	}
}

// neverBegins launches what cannot begin and returns how that ended.
func (b *bench) neverBegins(t *testing.T, c kube.Config, l *engine.Launch) engine.Report {
	t.Helper()
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := gone(t, e, l.Ref)
	if !r.Started.IsZero() || r.Exit.OK() {
		t.Errorf("it began: %+v", r)
	}
	return r
}

// testForeign: objects of an attempt's names that others made are left as they are.
func testForeign(t *testing.T, b *bench, e *kube.Engine) {
	first := begin(t, e, launch(1, forever, "n1"))
	server := strings.Split(first.Native, "-")[1]
	manifest := `apiVersion: v1
kind: %s
metadata: {name: %s}
`
	pod := fmt.Sprintf("cox-%s-2-1-1", server)
	b.l.Apply(t, fmt.Sprintf(manifest+"spec: {containers: [{name: c, image: "+lab.Base+", command: [sleep, '600']}]}\n", "Pod", pod))
	secret := fmt.Sprintf("cox-%s-3-1", server)
	b.l.Apply(t, fmt.Sprintf(manifest, "Secret", secret))
	t.Cleanup(func() {
		_, err1 := b.l.Try(context.Background(), "", "delete", "--wait=false", "--grace-period=0", "--force", "pod/"+pod)
		_, err2 := b.l.Try(context.Background(), "", "delete", "secret/"+secret)
		if err := errors.Join(err1, err2); err != nil {
			t.Error(err)
		}
	})
	uid := func(what string) string {
		return b.l.Kubectl(t, "get", what, "-o", "jsonpath={.metadata.uid}{.metadata.deletionTimestamp}{.metadata.finalizers}")
	}
	before := []string{uid("pod/" + pod), uid("secret/" + secret)}
	for allocation, name := range map[uint64]string{2: pod, 3: secret} {
		l := launch(allocation, forever, "n1", "n2")
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		r := gone(t, e, l.Ref)
		if r.Cause != engine.LaunchFailed || !strings.Contains(r.Message, name) {
			t.Errorf("%+v, want it to name %s", r, name)
		}
		if err := e.Forget(t.Context(), l.Ref); err != nil {
			t.Error(err)
		}
	}
	if after := []string{uid("pod/" + pod), uid("secret/" + secret)}; fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("others' objects were %q and are %q", before, after)
	}
}

// testDeleted: a person deletes a pod, by force: its end is reported all the same, once its
// kubelet has said it.
func testDeleted(t *testing.T, b *bench, e *kube.Engine) {
	l := launch(1, forever, "n1", "n2")
	first := begin(t, e, l)
	b.l.Kubectl(t, "delete", "--force", "--grace-period=0", "--wait=false", "pod/"+first.Native+"-1")
	r := gone(t, e, l.Ref)
	if r.Cause != engine.Cancelled && r.Cause != engine.NodeLost || r.Exit.OK() || r.Message == "" {
		t.Errorf("%+v", r)
	}
	if err := e.Forget(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	b.l.Kubectl(t, "wait", "--for=delete", "pod/"+first.Native+"-0", "pod/"+first.Native+"-1", "secret/"+first.Native, "service/"+first.Native, "--timeout=5m")
}

// testSilent: what ran on a node whose kubelet is silent is uncertain, and not gone, however
// often it is stopped; the kubelet's word makes it so.
func testSilent(t *testing.T, b *bench, e *kube.Engine, node string) {
	l := launch(1, forever, "n1", node)
	begin(t, e, l)
	b.l.Crash(t, node)
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	r := await(t, e, l.Ref, "uncertain", func(r engine.Report) bool {
		if r.Gone {
			t.Fatalf("gone without proof: %+v", r)
		}
		return r.Uncertain
	})
	if !strings.Contains(r.Message, node) {
		t.Errorf("%+v", r)
	}
	b.l.Boot(t, node)
	if r := gone(t, e, l.Ref); r.Cause != engine.Stopped {
		t.Errorf("%+v", r)
	}
}

// testToldAgain: a driver is closed before anybody knows whether an attempt heard that it goes
// on; the next one tells it again.
//
// Seen to fail with: a driver that goes by what is written down alone (the attempt stays
// suspended for ever).
func testToldAgain(t *testing.T, b *bench) {
	root := t.TempDir()
	e := b.open(t, root)
	l := launch(1, "#!/bin/sh\nsleep 15\nexit 7\n", "n1", "n2")
	begin(t, e, l)
	if err := e.Suspend(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	b.close(t, e)
	f, err := os.OpenFile(filepath.Join(root, "kube"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(f, `{"kind":"held","ref":{"allocation":%d,"attempt":%d}}`+"\n", l.Ref.Allocation, l.Ref.Attempt)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, b.open(t, root), l.Ref); r.Cause != engine.Exited || r.Exit.Status != 7 {
		t.Errorf("%+v", r)
	}
}
