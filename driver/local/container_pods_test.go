package local_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/podscript/podscripttest"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
)

// podsLaunch plans the pods of a set: those of each role on nodes of their own.
func podsLaunch(t *testing.T, e *local.Engine, set *podspec.Set) *engine.Launch {
	t.Helper()
	l := plan(t, e, 1)
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	l.Script, l.Claims = text, nil
	l.Job.Spec.Program = job.Program{Kind: job.Pods, ScriptName: set.Name}
	l.Job.Spec.Groups = nil
	nodes, err := e.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for g := range set.Roles {
		n := set.Roles[g].Replicas
		l.Job.Spec.Groups = append(l.Job.Spec.Groups, job.TaskGroup{Name: set.Roles[g].Name, Tasks: job.Count{Want: n}})
		for range n {
			l.Claims = append(l.Claims, fleet.Claim{Node: nodes[len(l.Claims)%len(nodes)].Name, Group: g, Tasks: 1})
		}
	}
	return l
}

// TestPods: the pods of a manifest run by a real podman, find each other by name, have their files and
// variables, and leave nothing.
func TestPods(t *testing.T) {
	lab := podmanlab.Start(t)
	shared := t.TempDir()
	e := newEngine(t, local.Config{Root: t.TempDir(), Cox: lab.Cox, Containers: container.Settings{Runtime: container.Podman, Program: lab.Podman, Mounts: []string{shared}}})
	meet := func(t *testing.T) string {
		t.Helper()
		dir, err := os.MkdirTemp(shared, "")
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	ref := uint64(0)
	runSet := func(t *testing.T, set *podspec.Set, change func(*engine.Launch)) (engine.Report, string) {
		t.Helper()
		l := podsLaunch(t, e, set)
		ref++
		l.Ref.Allocation = ref
		if change != nil {
			change(l)
		}
		r, out := outputOf(t, e, l)
		if left := lab.Containers(t); len(left) > 0 {
			t.Errorf("containers are left: %s", left)
		}
		for _, dir := range []string{"/tmp", "/dev/shm"} {
			if left, _ := filepath.Glob(dir + "/cox-pods-*"); len(left) > 0 {
				t.Errorf("left: %s", left)
			}
		}
		return r, out
	}
	t.Run("a master and two workers", func(t *testing.T) {
		results := meet(t)
		set := podscripttest.Train(podmanlab.Image, results)
		r, out := runSet(t, set, func(l *engine.Launch) {
			l.Job.Spec.Secrets = []job.Secret{{Name: "login.token", File: "login.token"}}
			l.Secrets = []engine.Secret{{Secret: l.Job.Spec.Secrets[0], Value: []byte(podscripttest.Token)}}
		})
		if !r.Exit.OK() {
			t.Errorf("%+v: %s", r, out)
		}
		if problem := podscripttest.CheckTrain(results); problem != "" {
			t.Errorf("%s\n%s", problem, out)
		}
	})
	t.Run("what an image runs", func(t *testing.T) {
		set := podscripttest.Entrypoint(podmanlab.Image)
		if r, out := runSet(t, set, nil); !r.Exit.OK() || !strings.Contains(out, "the entry point runs\nyes work-0 /srv image\n") {
			t.Errorf("%+v: %s", r, out)
		}
	})
	t.Run("a path that is no job's to mount", func(t *testing.T) {
		r, out := runSet(t, podscripttest.Failing(podmanlab.Image, "/etc"), nil)
		if r.Exit.OK() || !strings.Contains(out, "jobs of this pool may mount "+shared) {
			t.Errorf("%+v: %s", r, out)
		}
	})
	t.Run("a worker fails", func(t *testing.T) {
		set := podscripttest.Failing(podmanlab.Image, meet(t))
		r, out := runSet(t, set, nil)
		if r.Exit.Status != 7 || !strings.Contains(out, "pods: train-worker-1 on ") || !strings.Contains(out, "train-master-0 told to end") {
			t.Errorf("%+v: %s", r, out)
		}
		set = podscripttest.Failing(podmanlab.Image, meet(t))
		set.KeepGoing = true
		r, out = runSet(t, set, nil)
		if r.Exit.Status != 7 || !strings.Contains(out, "train-worker-0 is done") {
			t.Errorf("%+v: %s", r, out)
		}
	})
}
