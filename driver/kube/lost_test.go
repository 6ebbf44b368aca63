package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
)

// TestABindThatStorageFailed: the API server calls every failure of a binding a conflict, that
// of its etcd too. The pod has no node then and is not being deleted: it is bound again.
//
// Seen to fail with: a conflict that ends the attempt whatever the pod's object says; an error
// that the report tells for ever.
func TestABindThatStorageFailed(t *testing.T) {
	s := newStand(t, "n1", "n2")
	var failed atomic.Bool
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "-1/binding") || failed.Swap(true) {
			return false
		}
		refusal(w, http.StatusConflict, "Conflict", `Operation cannot be fulfilled on pods/binding "x": rpc error: code = Unavailable desc = error reading from server: EOF`)
		return true
	})
	e := s.open(nil)
	l := launchOn(1, "n1", "n2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	until(t, "both pods are bound", func() bool {
		if r, err := e.Inspect(t.Context(), l.Ref); err != nil || r.Phase > engine.Accepted {
			t.Fatalf("%+v, %v", r, err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for path, o := range s.objects {
			if spec, _ := o["spec"].(map[string]any); strings.Contains(path, "/pods/") && spec["nodeName"] != nil {
				n++
			}
		}
		return n == 2
	})
	until(t, "it says nothing more of what failed", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Message == ""
	})
	if !failed.Load() {
		t.Error("no binding failed")
	}
}

// TestWhatIsSaidWithoutALeader: while etcd has no leader, or gets another one, the API server fails
// whatever is written, in etcd's words, and may call it by any code of its own faults; of a binding, a
// conflict. None of that refuses the launch: each call is made again.
//
// Seen to fail with: an answer of 500 taken for a refusal.
func TestWhatIsSaidWithoutALeader(t *testing.T) {
	for code, words := range map[int]string{
		http.StatusInternalServerError: "etcdserver: leader changed",
		http.StatusServiceUnavailable:  "etcdserver: no leader",
		http.StatusGatewayTimeout:      "etcdserver: request timed out, possibly due to previous leader failure",
	} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, "n1", "n2")
			var mu sync.Mutex
			failed := map[string]bool{}
			s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
				mu.Lock()
				defer mu.Unlock()
				call := r.Method + " " + r.URL.Path
				if r.Method == http.MethodGet || failed[call] {
					return false
				}
				failed[call] = true
				if strings.HasSuffix(r.URL.Path, "/binding") {
					refusal(w, http.StatusConflict, "Conflict", `Operation cannot be fulfilled on pods/binding "x": `+words)
				} else {
					refusal(w, code, "", words)
				}
				return true
			})
			e := s.open(nil)
			l := launchOn(1, "n1", "n2")
			if err := e.Launch(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			s.bound(2)
			if r, err := e.Inspect(t.Context(), l.Ref); err != nil || r.Phase > engine.Accepted {
				t.Errorf("%+v, %v", r, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(failed) < 4 { // Secret, pods, bindings
				t.Errorf("only these calls failed: %v", failed)
			}
		})
	}
}

// TestAPodThatOthersBoundElsewhere: while bindings fail somebody else gives one of the pods to
// another node, which the watch tells. It does not run there: the attempt ends.
//
// Seen to fail with: a pod that has a node taken for one that has its own.
func TestAPodThatOthersBoundElsewhere(t *testing.T) {
	s := newStand(t, "n1", "n2")
	var failed atomic.Bool
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		pod, ok := strings.CutSuffix(r.URL.Path, "/binding")
		if !ok || !strings.HasSuffix(pod, "-1") {
			return false
		}
		if failed.Swap(true) {
			refusal(w, http.StatusConflict, "Conflict", "pod x is already assigned to node n9")
			return true
		}
		s.mu.Lock()
		o := s.objects[pod]
		spec, _ := o["spec"].(map[string]any)
		spec["nodeName"] = "n9"
		s.keep(pod, "MODIFIED", o)
		s.mu.Unlock()
		refusal(w, http.StatusServiceUnavailable, "ServiceUnavailable", "not now")
		return true
	})
	e := s.open(nil)
	l := launchOn(1, "n1", "n2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	reported(t, e, l.Ref, "ending, with where its pod is", func(r engine.Report) bool {
		return r.Phase == engine.Ending && strings.Contains(r.Message, "n9")
	})
}

// TestACreateThatMetAnother: the API server calls it a conflict, too, that something else was
// written at the same moment, as the use of a quota. The pod is not there then: it is created
// again.
//
// Seen to fail with: a conflict taken for a name that others have.
func TestACreateThatMetAnother(t *testing.T) {
	s := newStand(t, "n1")
	var failed atomic.Bool
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/pods") || failed.Swap(true) {
			return false
		}
		refusal(w, http.StatusConflict, "Conflict", `Operation cannot be fulfilled on resourcequotas "team": the object has been modified`)
		return true
	})
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	until(t, "its pod is there", func() bool {
		if r, err := e.Inspect(t.Context(), l.Ref); err != nil || r.Phase > engine.Accepted {
			t.Fatalf("%+v, %v", r, err)
		}
		return len(s.names("pods")) == 1
	})
	if !failed.Load() {
		t.Error("no create failed")
	}
}

// TestARootThatCouldNotBeDeleted: what Forget could not delete is deleted as soon as that can
// be done, not at some later look at everything.
//
// Seen to fail with: a Forget that leaves it to the look of every ten minutes.
func TestARootThatCouldNotBeDeleted(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	until(t, "its pod is bound", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && len(r.Nodes) > 0 && len(s.names("pods")) == 1
	})
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	pod := "/api/v1/namespaces/default/pods/" + s.names("pods")[0]
	until(t, "its pod is being deleted", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return meta(s.objects[pod])["deletionTimestamp"] != nil
	})
	s.mu.Lock()
	o := s.objects[pod]
	o["status"] = map[string]any{"phase": "Failed", "reason": "Evicted"} // the kubelet's word
	s.keep(pod, "MODIFIED", o)
	s.mu.Unlock()
	goneFrom(t, e, l.Ref)
	ctx, cancel := context.WithCancel(t.Context())
	s.answersBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if ctx.Err() != nil || !strings.Contains(r.URL.Path, "/secrets/") {
			return false
		}
		cancel() // its caller goes, in the middle of it
		<-r.Context().Done()
		return true
	})
	if err := e.Forget(ctx, l.Ref); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	until(t, "its root is deleted", func() bool { return len(s.names("secrets")) == 0 })
}

// reported waits for a report of an attempt.
func reported(t *testing.T, e *Engine, ref engine.Ref, what string, is func(engine.Report) bool) (last engine.Report) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := e.Watch(ctx, "", func(ev engine.Event) error {
		if ev.Report.Ref != ref {
			return nil
		}
		if last = ev.Report; is(last) {
			return io.EOF
		}
		return nil
	}); !errors.Is(err, io.EOF) {
		t.Fatalf("attempt %s is not reported %s: %v; %+v", ref, what, err, last)
	}
	return last
}

// goneFrom waits until an attempt is gone.
func goneFrom(t *testing.T, e *Engine, ref engine.Ref) engine.Report {
	t.Helper()
	return reported(t, e, ref, "gone", func(r engine.Report) bool { return r.Gone })
}

// until waits for what no one event tells: what the stand has been sent, and what the engine makes of it.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}
