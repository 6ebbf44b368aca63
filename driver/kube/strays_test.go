package kube

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// podOf is the path of a pod.
func podOf(name string) string { return "/api/v1/namespaces/default/pods/" + name }

// bound waits until so many pods have nodes, and returns their names.
func (s *stand) bound(n int) []string {
	s.t.Helper()
	until(s.t, "its pods are bound", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		has := 0
		for path, o := range s.objects {
			if spec, _ := o["spec"].(map[string]any); filepath.Dir(path) == filepath.Dir(podOf("x")) && spec["nodeName"] != nil {
				has++
			}
		}
		return has == n
	})
	return s.names("pods")
}

// shown waits until an attempt is reported to run.
func (s *stand) shown(e *Engine, ref engine.Ref) {
	s.t.Helper()
	until(s.t, "it runs", func() bool {
		r, err := e.Inspect(s.t.Context(), ref)
		return err == nil && r.Phase == engine.Running
	})
}

// TestAPodThatWasTakenAwayWhileNobodyLooked: one of the pods of an attempt that runs is not there when
// the server is started again. What ran in it nobody knows; the attempt is not ended for that, and not
// as one that never began, which would have its job run again whatever its --no-requeue says.
//
// Seen to fail with: all pods bound again.
func TestAPodThatWasTakenAwayWhileNobodyLooked(t *testing.T) {
	s := newStand(t, "n1", "n2")
	root := t.TempDir()
	e := s.open(func(c *Config) { c.Root = root })
	l := launchOn(1, "n1", "n2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	pods := s.bound(2)
	s.runs()
	s.shown(e, l.Ref)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.keep(podOf(pods[1]), "DELETED", s.objects[podOf(pods[1])])
	s.mu.Unlock()
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/binding") {
			refusal(w, http.StatusNotFound, "NotFound", "pods not found")
			return true
		}
		return false
	})
	e = s.open(func(c *Config) { c.Root = root })
	until(t, "it is uncertain", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		if err != nil || r.Phase != engine.Running {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.Uncertain && strings.Contains(r.Message, pods[1])
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if meta(s.objects[podOf(pods[0])])["deletionTimestamp"] != nil {
		t.Error("the pod that runs is deleted")
	}
}

// TestPodsThatMayNotBeListed: a server begins anew, and its account may not list pods any more. A job that
// runs says so, and one that is told to end: nothing can be done for it. Once pods may be listed it
// says nothing more of that, and ends.
//
// Seen to fail with: said of what does not run yet alone; said on.
func TestPodsThatMayNotBeListed(t *testing.T) {
	s := newStand(t, "n1", "n2")
	root := t.TempDir()
	e := s.open(func(c *Config) { c.Root = root })
	runs, ends := launchOn(1, "n1"), launchOn(2, "n2")
	for _, l := range []*engine.Launch{runs, ends} {
		if err := e.Launch(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
	s.bound(2)
	s.runs()
	s.shown(e, runs.Ref)
	s.shown(e, ends.Ref)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces/default/pods" {
			return false
		}
		refusal(w, http.StatusForbidden, "Forbidden", "pods is forbidden")
		return true
	})
	e = s.open(func(c *Config) { c.Root = root })
	if err := e.Stop(t.Context(), ends.Ref, engine.Stop{Reason: "by its user"}); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*engine.Launch{runs, ends} {
		reported(t, e, l.Ref, "with why nothing is known of it", func(r engine.Report) bool {
			return r.Phase == engine.Running && strings.Contains(r.Message, "pods is forbidden")
		})
	}
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/exec") {
			return false
		}
		refusal(w, http.StatusNotFound, "NotFound", "nobody is there") // so its pod is deleted
		return true
	})
	reported(t, e, runs.Ref, "to run, and no more", func(r engine.Report) bool { return r.Phase == engine.Running && r.Message == "" })
	reported(t, e, ends.Ref, "to end", func(r engine.Report) bool { return r.Phase == engine.Ending && r.Message == "by its user" })
}

// TestACopyOfAPod: a pod that somebody has made of one of ours, as to look into it, has our labels and
// a name of its own. It is left alone.
//
// Seen to fail with: whatever has our labels taken for what a late create has made.
func TestACopyOfAPod(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	pod := s.bound(1)[0]
	s.mu.Lock()
	labels := meta(s.objects[podOf(pod)])["labels"]
	s.mu.Unlock()
	s.put(podOf("copy"), "ADDED", map[string]any{"metadata": map[string]any{"name": "copy", "namespace": "default", "labels": labels}, "spec": map[string]any{}})
	s.runs() // the watch tells the one after the other
	s.shown(e, l.Ref)
	e.mu.Lock()
	_, buried := e.graves["default/copy"]
	e.mu.Unlock()
	if buried || !slices.Contains(s.names("pods"), "copy") {
		t.Error("the copy is deleted")
	}
}

// TestACopyOfAPodThatIsDeleted: a copy that was made with our finalizer, too, goes when its maker deletes
// it: the finalizer is taken away, and nothing else is done to it.
//
// Seen to fail with: copies left alone whatever they have.
func TestACopyOfAPodThatIsDeleted(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	pod := s.bound(1)[0]
	s.mu.Lock()
	labels := meta(s.objects[podOf(pod)])["labels"]
	s.mu.Unlock()
	var did []string
	s.answersBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet && strings.Contains(r.URL.Path, podOf("copy")) {
			s.mu.Lock()
			did = append(did, r.Method+" "+r.URL.Path)
			s.mu.Unlock()
		}
		return false
	})
	for name, deleted := range map[string]any{"copy-kept": nil, "copy-deleted": time.Now().UTC().Format(time.RFC3339)} {
		m := map[string]any{"name": name, "namespace": "default", "labels": labels, "finalizers": []any{render.Finalizer}}
		if deleted != nil {
			m["deletionTimestamp"] = deleted
		}
		s.put(podOf(name), "ADDED", map[string]any{"metadata": m, "spec": map[string]any{"nodeName": "n1"}})
	}
	until(t, "the copy is gone", func() bool { return !slices.Contains(s.names("pods"), "copy-deleted") })
	s.runs()
	s.shown(e, l.Ref) // nothing is on its way any more
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := []string{"PATCH " + podOf("copy-deleted")}; !slices.Equal(did, want) {
		t.Errorf("%q; want %q", did, want)
	}
}

// TestOneErrorOfMany: of many calls that fail alike one is told. A report of a gang of a thousand pods
// would else have a thousand lines, at each try.
//
// Seen to fail with: all of them joined.
func TestOneErrorOfMany(t *testing.T) {
	e := newStand(t, "n1").open(nil)
	err := e.calls.forEach(100, func(int) error { return fault.New(fault.Unavailable, "nobody answers") })
	if err == nil || err.Error() != "nobody answers" || fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}

// TestPodsThatMayNotBeSeen: an attempt whose pods the server may not list does not begin, and says
// why.
//
// Seen to fail with: nothing said.
func TestPodsThatMayNotBeSeen(t *testing.T) {
	s := newStand(t, "n1")
	var may atomic.Bool
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if may.Load() || r.Method != http.MethodGet || r.URL.Path != filepath.Dir(podOf("x")) {
			return false
		}
		refusal(w, http.StatusForbidden, "Forbidden", `pods is forbidden: User "u" cannot list resource "pods"`)
		return true
	})
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	until(t, "it says why", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && strings.Contains(r.Message, "cannot list resource") && strings.Contains(r.Message, "give the account")
	})
	may.Store(true)
	s.bound(1)
	until(t, "it says nothing more", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Message == ""
	})
}
