package local_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/podscript/podscripttest"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
	"github.com/coxswain-sched/coxswain/test/testcluster/podmanlab"
	"github.com/coxswain-sched/coxswain/test/testcluster/samejob"
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

// inUnit skips what make race leaves to make unit.
func inUnit(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("in make unit")
	}
}

// TestPods: the pods of a manifest run by a real podman, find each other by name, have their files and
// variables, and leave nothing. Under the race detector only those are run in which most of the
// engine works.
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
	var ref atomic.Uint64
	number := func(l *engine.Launch) {
		l.Ref.Allocation = ref.Add(1)
		l.Job.ID = job.ID(l.Ref.Allocation)
	}
	runSet := func(t *testing.T, set *podspec.Set, change func(*engine.Launch)) (engine.Report, string) {
		t.Helper()
		l := podsLaunch(t, e, set)
		number(l)
		if change != nil {
			change(l)
		}
		return outputOf(t, e, l)
	}
	t.Cleanup(func() { // when all have ended
		if left := lab.Containers(t); len(left) > 0 {
			t.Errorf("containers are left: %s", left)
		}
		for _, n := range e.Room() {
			for _, dir := range []string{"/tmp", "/dev/shm"} {
				if left, _ := filepath.Glob(dir + "/cox-pods-*/" + n.Address); len(left) > 0 {
					t.Errorf("left: %s", left)
				}
			}
		}
	})
	t.Run("a master and two workers", func(t *testing.T) {
		inUnit(t)
		t.Parallel()
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
	t.Run("the same files as on other engines", func(t *testing.T) {
		inUnit(t)
		results := meet(t)
		w, secrets, err := samejob.Read(podmanlab.Image, results)
		if err != nil {
			t.Fatal(err)
		}
		r, out := runSet(t, w.Set, func(l *engine.Launch) { l.Job.Spec.Secrets, l.Secrets = w.Job.Secrets, secrets })
		if problem := samejob.CheckFiles(results); !r.Exit.OK() || problem != "" {
			t.Errorf("%+v: %s\n%s", r, problem, out)
		}
	})
	t.Run("what an image runs", func(t *testing.T) {
		inUnit(t)
		t.Parallel()
		set := podscripttest.Entrypoint(podmanlab.Image)
		if r, out := runSet(t, set, nil); !r.Exit.OK() || !strings.Contains(out, "the entry point runs\nyes work-0 /srv image\n") {
			t.Errorf("%+v: %s", r, out)
		}
	})
	t.Run("a service", func(t *testing.T) {
		t.Parallel()
		port := podscripttest.FreePort()
		l := podsLaunch(t, e, podscripttest.Serving(podmanlab.Image, port))
		number(l)
		l.Job.Spec.Serve = &job.Serve{Ports: []job.Port{{Name: "http", Number: port}}, Readiness: &job.Probe{TCP: true, Every: 50 * time.Millisecond}}
		launch(t, e, l)
		at := untilServes(t, e, l.Ref, ready)
		eventually(t, "an answer", func() bool {
			conn, err := net.DialTimeout("tcp", net.JoinHostPort(at.List[0].Host, strconv.Itoa(at.List[0].Number)), patience)
			if err != nil {
				return false // between two connections
			}
			defer conn.Close()
			text, err := io.ReadAll(conn)
			return err == nil && string(text) == "hello from chat-0\n"
		})
		if err := e.Stop(t.Context(), l.Ref, engine.Stop{Signal: 15, Grace: patience}); err != nil {
			t.Fatal(err)
		}
		until(t, e, l.Ref, gone)
		if out := read(t, filepath.Join(l.Job.Spec.WorkDir, fmt.Sprintf("slurm-%d.out", l.Job.ID))); !strings.Contains(out, "told to end") {
			t.Error(out)
		}
	})
	t.Run("a path that is no job's to mount", func(t *testing.T) {
		inUnit(t)
		t.Parallel()
		r, out := runSet(t, podscripttest.Failing(podmanlab.Image, "/etc"), nil)
		if r.Exit.OK() || !strings.Contains(out, "jobs of this pool may mount "+shared) {
			t.Errorf("%+v: %s", r, out)
		}
	})
	t.Run("a worker fails", func(t *testing.T) {
		t.Parallel()
		set := podscripttest.Failing(podmanlab.Image, meet(t))
		r, out := runSet(t, set, nil)
		if r.Exit.Status != 7 || !strings.Contains(out, "pods: train-worker-1 on ") || !strings.Contains(out, "train-master-0 told to end") {
			t.Errorf("%+v: %s", r, out)
		}
	})
	t.Run("a worker fails, and the others go on", func(t *testing.T) {
		inUnit(t)
		t.Parallel()
		dir := meet(t)
		if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		set := podscripttest.Failing(podmanlab.Image, dir)
		set.KeepGoing = true
		r, out := runSet(t, set, nil)
		if r.Exit.Status != 7 || !strings.Contains(out, "train-worker-0 is done") {
			t.Errorf("%+v: %s", r, out)
		}
	})
}
