package kube

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// stand stands for an API server where an answer is wanted that a real one gives once in a
// hundred storms. It keeps objects as they are sent to it, binds pods, deletes, lists and
// watches; it collects nothing, and no pod ever runs.
type stand struct {
	t *testing.T
	// refuse, if it is set, may answer in the server's place: true. It may be called by several.
	refuse func(w http.ResponseWriter, r *http.Request) bool

	mu      sync.Mutex
	version int
	objects map[string]map[string]any // by path
	events  []map[string]any
	grown   chan struct{}
}

func newStand(t *testing.T, nodes ...string) *stand {
	s := &stand{t: t, objects: map[string]map[string]any{}, grown: make(chan struct{})}
	for _, n := range nodes {
		s.put("/api/v1/nodes/"+n, "ADDED", map[string]any{"metadata": map[string]any{"name": n}, "status": map[string]any{
			"allocatable": map[string]any{"cpu": "8", "memory": "8Gi", "pods": "110"}, "capacity": map[string]any{"cpu": "8", "memory": "8Gi", "pods": "110"},
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		}})
	}
	return s
}

// open opens an engine of a placed pool on it.
func (s *stand) open(change func(*Config)) *Engine {
	s.t.Helper()
	server := httptest.NewServer(s)
	dir := s.t.TempDir()
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"`+server.URL+`"}}],"users":[{"name":"u","user":{}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],"current-context":"x"}`), 0o600); err != nil {
		s.t.Fatal(err)
	}
	k, err := cluster.Open(cluster.Config{Kubeconfig: file})
	if err != nil {
		s.t.Fatal(err)
	}
	c := Config{Root: dir, Cluster: k, Terms: settings.Terms{Pool: "kube", Namespace: "default", Placed: true, Image: "image", AgentImage: "agent"}}
	if change != nil {
		change(&c)
	}
	e, err := New(c)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := e.Close(); err != nil {
			s.t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
	})
	return e
}

// launchOn is a job of a task on each of some nodes.
func launchOn(allocation uint64, nodes ...string) *engine.Launch {
	l := &engine.Launch{
		Ref: engine.Ref{Allocation: allocation, Attempt: 1},
		Job: &job.Job{ID: job.ID(allocation), Attempt: 1, Spec: &job.Spec{
			Name: "test", WorkDir: "/", Program: job.Program{Kind: job.Batch, ScriptName: "test.sh"},
			Groups: []job.TaskGroup{{Nodes: job.Range{Min: len(nodes), Max: len(nodes)}, Tasks: job.Count{Want: len(nodes)}}},
		}},
		Script: []byte("#!/bin/sh\n"), Grace: time.Second,
	}
	for _, n := range nodes {
		l.Claims = append(l.Claims, fleet.Claim{Node: n, Tasks: 1})
	}
	return l
}

// answersBy sets refuse.
func (s *stand) answersBy(f func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = f
}

func meta(o map[string]any) map[string]any { m, _ := o["metadata"].(map[string]any); return m }

// put keeps an object, and tells the watchers. The caller may hold no lock.
func (s *stand) put(path, event string, o map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(path, event, o)
}

func (s *stand) keep(path, event string, o map[string]any) {
	s.version++
	m := meta(o)
	m["resourceVersion"] = strconv.Itoa(s.version)
	if m["uid"] == nil {
		m["uid"] = fmt.Sprintf("uid-%d", s.version)
	}
	s.objects[path] = o
	if event == "DELETED" {
		delete(s.objects, path)
	}
	var clone map[string]any
	text, _ := json.Marshal(o)
	_ = json.Unmarshal(text, &clone)
	s.events = append(s.events, map[string]any{"type": event, "object": clone, "path": path})
	close(s.grown)
	s.grown = make(chan struct{})
}

// names are those of all objects of a resource, "pods", in order.
func (s *stand) names(resource string) (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.objects {
		if dir, name := filepath.Split(p); strings.HasSuffix(dir, "/"+resource+"/") {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func (s *stand) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	refuse := s.refuse
	s.mu.Unlock()
	if r.Header.Get("Content-Type") == "application/vnd.kubernetes.protobuf" { // it has JSON alone
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	if refuse != nil && refuse(w, r) {
		return
	}
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[r.URL.Path]
	pod, binds := strings.CutSuffix(r.URL.Path, "/binding")
	whole, status := strings.CutSuffix(r.URL.Path, "/status")
	switch {
	case r.Method == http.MethodPatch && status && s.objects[whole] != nil:
		s.objects[whole]["status"] = body["status"]
		s.keep(whole, "MODIFIED", s.objects[whole])
		answer(w, http.StatusOK, s.objects[whole])
	case r.Method == http.MethodPost && binds:
		target, _ := body["target"].(map[string]any)
		spec, _ := s.objects[pod]["spec"].(map[string]any)
		spec["nodeName"] = target["name"]
		s.keep(pod, "MODIFIED", s.objects[pod])
		answer(w, http.StatusCreated, map[string]any{})
	case r.Method == http.MethodPost:
		name, _ := meta(body)["name"].(string)
		if s.objects[r.URL.Path+"/"+name] != nil {
			refusal(w, http.StatusConflict, "AlreadyExists", name)
			return
		}
		meta(body)["namespace"] = "default"
		s.keep(r.URL.Path+"/"+name, "ADDED", body)
		answer(w, http.StatusCreated, body)
	case r.URL.Query().Get("watch") != "":
		s.watch(w, r)
	case o == nil && r.Method == http.MethodGet && !strings.HasSuffix(filepath.Dir(r.URL.Path), "s"):
		s.list(w, r)
	case o == nil:
		refusal(w, http.StatusNotFound, "NotFound", filepath.Base(r.URL.Path))
	case r.Method == http.MethodGet:
		answer(w, http.StatusOK, o)
	case r.Method == http.MethodPatch:
		m, _ := body["metadata"].(map[string]any)
		meta(o)["finalizers"] = m["finalizers"]
		s.end(r.URL.Path, o)
		answer(w, http.StatusOK, o)
	case r.Method == http.MethodDelete:
		meta(o)["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
		s.end(r.URL.Path, o)
		answer(w, http.StatusOK, o)
	}
}

// end takes away what is to be deleted and that no finalizer holds. The lock is held.
func (s *stand) end(path string, o map[string]any) {
	f, _ := meta(o)["finalizers"].([]any)
	if meta(o)["deletionTimestamp"] != nil && len(f) == 0 {
		s.keep(path, "DELETED", o)
		return
	}
	s.keep(path, "MODIFIED", o)
}

func (s *stand) list(w http.ResponseWriter, r *http.Request) {
	items := []any{}
	for p, o := range s.objects {
		if filepath.Dir(p) == r.URL.Path || !strings.Contains(r.URL.Path, "/namespaces/") && filepath.Base(filepath.Dir(p)) == filepath.Base(r.URL.Path) {
			items = append(items, o)
		}
	}
	answer(w, http.StatusOK, map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version)}, "items": items})
}

// watch tells what has happened since, and goes on. The lock is held.
func (s *stand) watch(w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	for {
		for ; from < len(s.events); from++ { // each has made a version
			if ev := s.events[from]; filepath.Dir(fmt.Sprint(ev["path"])) == r.URL.Path {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": ev["type"], "object": ev["object"]})
			}
		}
		http.NewResponseController(w).Flush() //nolint:errcheck // it ends with its client
		grown := s.grown
		s.mu.Unlock()
		select {
		case <-grown:
		case <-r.Context().Done():
			s.mu.Lock()
			return
		}
		s.mu.Lock()
	}
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

// refusal is an answer that is no success, as API servers give it.
func refusal(w http.ResponseWriter, code int, reason, message string) {
	answer(w, code, map[string]any{"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message, "details": map[string]any{"name": "x"}})
}
