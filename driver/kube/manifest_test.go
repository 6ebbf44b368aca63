package kube

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// manifestOn is a job with the pods of a set, one on each of some nodes, role after role.
func manifestOn(t *testing.T, allocation uint64, set *podspec.Set, nodes ...string) *engine.Launch {
	t.Helper()
	script, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	l := &engine.Launch{
		Ref: engine.Ref{Allocation: allocation, Attempt: 1}, Script: script, Grace: time.Second,
		Job: &job.Job{ID: job.ID(allocation), Attempt: 1, Spec: &job.Spec{Name: set.Name, WorkDir: "/", Program: job.Program{Kind: job.Pods}}},
	}
	for g, r := range set.Roles {
		l.Job.Spec.Groups = append(l.Job.Spec.Groups, job.TaskGroup{Tasks: job.Count{Want: r.Replicas}})
		for range r.Replicas {
			l.Claims = append(l.Claims, fleet.Claim{Node: nodes[len(l.Claims)%len(nodes)], Group: g, Tasks: 1})
		}
	}
	return l
}

// torch is a set as that of a PyTorchJob.
func torch() *podspec.Set {
	container := func(name string) json.RawMessage {
		return json.RawMessage(`{"metadata":{"labels":{"app":"train"}},"spec":{"restartPolicy":"OnFailure","containers":[{"name":"` + name + `","image":"busybox","env":[{"name":"RANK","value":"mine"}],"envFrom":[{"configMapRef":{"name":"settings"}}]}]}}`)
	}
	return &podspec.Set{
		Kind: "PyTorchJob", Name: "train",
		Roles: []podspec.Role{
			{Name: "master", Replicas: 1, PodName: "train-master-{i}", Template: container("pytorch")},
			{Name: "worker", Replicas: 2, PodName: "train-worker-{i}", Template: container("pytorch"), Env: []podspec.EnvVar{{Name: "RANK", Value: "{i+1}"}, {Name: "MASTER_ADDR", Value: "{pod:master:0}"}}, Files: map[string]string{"/etc/hostfile": "{pod:master:0}\n"}},
		},
		Complete:   &podspec.Complete{Roles: []string{"master"}},
		ConfigMaps: []podspec.ConfigMap{{Name: "settings", Data: map[string]string{"LR": "3"}}},
		Services:   []podspec.Service{{Name: "train", Role: "master", Headless: true}},
	}
}

// containerIs has the kubelet of a pod say how its one container is.
func (s *stand) containerIs(pod, phase string, state map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[podOf(pod)]
	o["status"] = map[string]any{"phase": phase, "startTime": time.Now().UTC().Format(time.RFC3339), "containerStatuses": []any{map[string]any{"name": "pytorch", "containerID": "containerd://x", "state": state}}}
	s.keep(podOf(pod), "MODIFIED", o)
}

func runningSince(at time.Time) map[string]any {
	return map[string]any{"running": map[string]any{"startedAt": at.UTC().Format(time.RFC3339)}}
}

func exited(code int, began, at time.Time) map[string]any {
	return map[string]any{"terminated": map[string]any{"exitCode": code, "reason": "Error", "startedAt": began.UTC().Format(time.RFC3339), "finishedAt": at.UTC().Format(time.RFC3339)}}
}

// TestManifestGang: the pods of a manifest are those of its templates, and all are bound or none. The end of
// those that decide is the job's end, and the others are deleted with their own grace.
//
// Seen to fail with: a job that waits for all pods; pods that are deleted with the grace of an agent.
func TestManifestGang(t *testing.T) {
	began := time.Now().Add(-time.Minute)
	for name, c := range map[string]struct {
		pod, code int
		cause     engine.Cause
		exit      job.ExitCode
		says      string
	}{
		"the master succeeds": {pod: 0, cause: engine.Exited},
		"a worker fails":      {pod: 2, code: 3, cause: engine.Exited, exit: job.ExitCode{Status: 3}, says: "container pytorch ended with 3"},
		"a worker is killed":  {pod: 1, code: 137, cause: engine.Exited, exit: job.ExitCode{Signal: 9}, says: "ended with 137"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, "n1", "n2")
			grace := make(chan string, 10)
			s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, "/log") {
					_, _ = w.Write([]byte("said\n"))
					return true
				}
				if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/pods/") {
					var o map[string]any
					_ = json.NewDecoder(r.Body).Decode(&o)
					select {
					case grace <- mapText(o["gracePeriodSeconds"]):
					default:
					}
				}
				return false
			})
			e := s.open(nil)
			l := manifestOn(t, 1, torch(), "n1", "n2")
			if err := e.Launch(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			if err := e.Launch(t.Context(), l); err != nil { // again, as after a lost answer
				t.Fatal(err)
			}
			pods := s.bound(3)
			checkTorch(t, s, pods)
			for i, p := range pods {
				if i != c.pod {
					s.containerIs(p, "Running", runningSince(began))
				}
			}
			phase := map[bool]string{true: "Succeeded", false: "Failed"}[c.code == 0]
			s.containerIs(pods[c.pod], "Running", runningSince(began))
			until(t, "it runs", func() bool {
				r, err := e.Inspect(t.Context(), l.Ref)
				return err == nil && r.Phase == engine.Running && len(r.Tasks) == 3
			})
			s.containerIs(pods[c.pod], phase, exited(c.code, began, time.Now().Add(-time.Second)))
			if got := <-grace; got != "" {
				t.Errorf("the others were deleted with a grace of %s seconds", got)
			}
			for i, p := range pods {
				if i != c.pod {
					s.containerIs(p, "Failed", exited(143, began, time.Now()))
				}
			}
			r := goneFrom(t, e, l.Ref)
			if r.Cause != c.cause || r.Exit != c.exit || !strings.Contains(r.Message, c.says) || r.Message != "" != (c.says != "") {
				t.Errorf("%+v", r)
			}
			if len(r.Tasks) != 3 || r.Tasks[c.pod].Exit != c.exit || r.Tasks[0].Name != "train-master-0" || r.Tasks[2].Name != "train-worker-1" {
				t.Errorf("its tasks are %+v", r.Tasks)
			}
			for rank := range 3 {
				text, err := readAll(t, e, r.Tasks[rank].Log)
				if err != nil || text != "said\n" {
					t.Errorf("the log of rank %d is %q, %v", rank, text, err)
				}
			}
		})
	}
}

// checkTorch compares what was made of torch with what it says.
func checkTorch(t *testing.T, s *stand, pods []string) {
	t.Helper()
	attempt := strings.TrimSuffix(pods[0], "-0")
	if got := s.names("configmaps"); !slices.Equal(got, []string{attempt + "-settings", attempt + ".files-1"}) {
		t.Errorf("ConfigMaps %q", got)
	}
	if got := s.names("services"); !slices.Equal(got, []string{attempt, "train"}) {
		t.Errorf("Services %q", got)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var hosts []string
	for _, name := range pods {
		var p struct {
			Metadata struct{ Labels map[string]string }
			Spec     struct {
				Hostname, Subdomain, RestartPolicy, ServiceAccountName string
				AutomountServiceAccountToken                           *bool
				InitContainers                                         []any
				Containers                                             []struct {
					Name, Image string
					Env         []struct{ Name, Value string }
					EnvFrom     []struct{ ConfigMapRef struct{ Name string } }
				}
			}
		}
		text, _ := json.Marshal(s.objects[podOf(name)])
		if err := json.Unmarshal(text, &p); err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, p.Spec.Hostname)
		if p.Spec.RestartPolicy != "Never" || p.Spec.Subdomain != attempt || p.Metadata.Labels["app"] != "train" || p.Metadata.Labels[render.LabelManifest] != "true" || len(p.Spec.InitContainers) > 0 {
			t.Errorf("%s", text)
		}
		if a := p.Spec.AutomountServiceAccountToken; a == nil || *a {
			t.Errorf("%s has a token: %s", name, text)
		}
		c := p.Spec.Containers[0]
		env := map[string]string{}
		for _, v := range c.Env {
			env[v.Name] += v.Value
		}
		want := map[string]string{"RANK": "mine"}
		if strings.Contains(p.Spec.Hostname, "worker") {
			want["MASTER_ADDR"] = "train-master-0"
		}
		if !maps.Equal(env, want) || c.Image != "busybox" || c.EnvFrom[0].ConfigMapRef.Name != attempt+"-settings" {
			t.Errorf("%s: %v: %s", name, env, text)
		}
	}
	if !slices.Equal(hosts, []string{"train-master-0", "train-worker-0", "train-worker-1"}) {
		t.Errorf("hosts %q", hosts)
	}
}

// TestManifestServiceOfOthers: a Service that others have by the name which a manifest writes is left alone, and
// the launch says so. One that an ended attempt has left is taken over.
//
// Seen to fail with: a patch of whatever is there.
func TestManifestServiceOfOthers(t *testing.T) {
	const path = "/api/v1/namespaces/default/services/train"
	s := newStand(t, "n1")
	s.put(path, "ADDED", map[string]any{"metadata": map[string]any{"name": "train", "namespace": "default"}, "spec": map[string]any{"selector": map[string]any{"app": "theirs"}}})
	e := s.open(nil)
	l := manifestOn(t, 1, torch(), "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := goneFrom(t, e, l.Ref)
	if r.Cause != engine.LaunchFailed || !strings.Contains(r.Message, "there is a Service default/train that is not this job's") {
		t.Errorf("%+v", r)
	}
	if got := s.names("pods"); len(got) > 0 {
		t.Errorf("pods %q", got)
	}
	s.mu.Lock()
	left := s.objects[path]
	meta(left)["labels"] = map[string]any{render.LabelServer: e.log.server, render.LabelAllocation: "1", render.LabelAttempt: "1"}
	s.keep(path, "MODIFIED", left)
	s.mu.Unlock()
	patched := make(chan map[string]any, 1)
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPatch || r.URL.Path != path {
			return false
		}
		var o map[string]any
		_ = json.NewDecoder(r.Body).Decode(&o)
		answer(w, http.StatusOK, map[string]any{})
		patched <- o
		return true
	})
	again := manifestOn(t, 2, torch(), "n1")
	if err := e.Launch(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	s.bound(3)
	spec, _ := (<-patched)["spec"].(map[string]any)
	selector, _ := spec["selector"].(map[string]any)
	if old, there := selector["app"]; !there || old != nil || selector[render.LabelAllocation] != "2" {
		t.Errorf("it selects %v: a key of the old selector is to be null", selector)
	}
}

// TestManifestAsSubmitter: all that is made of a manifest is made in the name of who submits, where the pool has
// that; and nothing is where the template asks for more than the pool lets it.
//
// Seen to fail with: ConfigMaps or Services that are made as the pool's own account.
func TestManifestAsSubmitter(t *testing.T) {
	s := newStand(t, "n1")
	var mu sync.Mutex
	made := map[string]string{}
	s.answersBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && !strings.HasSuffix(r.URL.Path, "/binding") {
			mu.Lock()
			defer mu.Unlock()
			made[filepath.Base(r.URL.Path)] += r.Header.Get("Impersonate-User") + " "
		}
		return false
	})
	e := s.open(func(c *Config) {
		c.Terms.Impersonate = map[string]settings.Subject{"user:ada": {Kind: "User", Name: "ada@site"}}
	})
	set := torch()
	set.Secrets = []podspec.Secret{{Name: "login", Keys: []string{"token"}}}
	l := manifestOn(t, 1, set, "n1")
	l.Job.Spec.Owner, l.Job.Spec.Secrets = job.Owner{User: "ada", UID: 1000, GID: 1000}, []job.Secret{{Name: "login.token", File: "login.token"}}
	l.Secrets = []engine.Secret{{Secret: l.Job.Spec.Secrets[0], Value: []byte("hush")}}
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s.bound(3)
	mu.Lock()
	defer mu.Unlock()
	for kind, n := range map[string]int{"secrets": 2, "configmaps": 2, "services": 2, "pods": 3} {
		if want := strings.Repeat("ada@site ", n); made[kind] != want {
			t.Errorf("%s are made as %q, want %q", kind, made[kind], want)
		}
	}
	text, err := os.ReadFile(filepath.Join(e.cfg.Root, "kube"))
	if err != nil || bytes.Contains(text, []byte("hush")) || bytes.Contains(text, []byte("aHVzaA")) {
		t.Errorf("the journal has the value of a secret: %v", err)
	}
}

// TestManifestWithoutAgent: what the agent in the pods does is refused by name where there is none.
func TestManifestWithoutAgent(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := manifestOn(t, 1, torch(), "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for _, p := range s.bound(3) {
		s.containerIs(p, "Running", runningSince(time.Now()))
	}
	until(t, "it runs", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Phase == engine.Running
	})
	_, exec := e.Exec(t.Context(), l.Ref, engine.ExecRequest{Command: []string{"ls"}})
	for what, err := range map[string]error{"exec": exec, "signal": e.Signal(t.Context(), l.Ref, 10, ""), "suspend": e.Suspend(t.Context(), l.Ref)} {
		if fault.KindOf(err) != fault.Unsupported || fault.Remedy(err) == "" || !strings.Contains(err.Error(), "without Coxswain's agent") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if u, err := e.Usage(t.Context(), l.Ref); u != nil || err != nil {
		t.Errorf("%v, %v", u, err)
	}
}

// TestManifestAfterRestart: a driver that begins anew knows which pods of a manifest decide.
//
// Seen to fail with: a script that is not kept once the objects are made.
func TestManifestAfterRestart(t *testing.T) {
	s := newStand(t, "n1")
	root := t.TempDir()
	e := s.open(func(c *Config) { c.Root = root })
	l := manifestOn(t, 1, torch(), "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	pods, began := s.bound(3), time.Now().Add(-time.Minute)
	for _, p := range pods {
		s.containerIs(p, "Running", runningSince(began))
	}
	until(t, "it runs", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Phase == engine.Running
	})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e = s.open(func(c *Config) { c.Root = root })
	s.containerIs(pods[0], "Succeeded", exited(0, began, time.Now()))
	until(t, "the workers are deleted", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return meta(s.objects[podOf(pods[1])])["deletionTimestamp"] != nil && meta(s.objects[podOf(pods[2])])["deletionTimestamp"] != nil
	})
	for _, p := range pods[1:] {
		s.containerIs(p, "Failed", exited(143, began, time.Now()))
	}
	if r := goneFrom(t, e, l.Ref); r.Cause != engine.Exited || !r.Exit.OK() {
		t.Errorf("%+v", r)
	}
}

// TestManifestTimeLimit: a driver ends pods whose job's time is over, as no agent does it.
func TestManifestTimeLimit(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := manifestOn(t, 1, torch(), "n1")
	l.Job.Spec.TimeLimit = time.Hour
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	pods, began := s.bound(3), time.Now().Add(-2*time.Hour)
	for _, p := range pods {
		s.containerIs(p, "Running", runningSince(began))
	}
	until(t, "its pods are deleted", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return !slices.ContainsFunc(pods, func(p string) bool { return meta(s.objects[podOf(p)])["deletionTimestamp"] == nil })
	})
	for _, p := range pods {
		s.containerIs(p, "Failed", exited(143, began, time.Now()))
	}
	if r := goneFrom(t, e, l.Ref); r.Cause != engine.TimedOut || !strings.Contains(r.Message, "time limit of 1h0m0s") {
		t.Errorf("%+v", r)
	}
}

func readAll(t *testing.T, e *Engine, file string) (string, error) {
	t.Helper()
	r, err := e.OpenLog(t.Context(), job.Owner{}, file)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(r)
	return string(text), errors.Join(err, r.Close())
}

// mapText is a value of a body; empty: it is not there.
func mapText(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}
