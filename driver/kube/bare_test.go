package kube

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
)

// kubeletSays has a pod be as its kubelet says it is before a container can begin in it.
func (s *stand) kubeletSays(pod, ready string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[podOf(pod)]
	o["status"] = map[string]any{
		"phase": "Pending", "conditions": []any{map[string]any{"type": "PodReadyToStartContainers", "status": ready}},
		"initContainerStatuses": []any{map[string]any{"name": "cox", "state": map[string]any{"waiting": map[string]any{"reason": "PodInitializing"}}}},
		"containerStatuses":     []any{map[string]any{"name": render.Container, "state": map[string]any{"waiting": map[string]any{"reason": "PodInitializing"}}}},
	}
	s.keep(podOf(pod), "MODIFIED", o)
}

// TestAPodWhoseVolumeIsNotToBeHad: a kubelet cannot mount what a pod mounts, and tries on for ever. The
// attempt says that its pod is not ready for containers and how to see why, and gives its node back in
// the end. One that only waits for its image is let be, however long that takes.
//
// Seen to fail with: no end of it; all that have no container yet taken for such.
func TestAPodWhoseVolumeIsNotToBeHad(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	pod := s.bound(1)[0]
	e.mu.Lock()
	a := e.attempts[l.Ref]
	e.mu.Unlock()
	look := func(ready string, after time.Duration) engine.Report {
		t.Helper()
		s.kubeletSays(pod, ready)
		until(t, "the driver has heard of it", func() bool {
			e.mu.Lock()
			defer e.mu.Unlock()
			p := a.pods[0]
			return p != nil && len(p.Status.ContainerStatuses) > 0 && podstatus.LacksSandbox(p.Pod) == (ready == "False")
		})
		now := time.Now().Add(after)
		e.mu.Lock()
		members := e.readMembers(a, now)
		e.mu.Unlock()
		if _, err := e.endStuckAttempt(a, members, now); err != nil {
			t.Fatal(err)
		}
		r, err := e.Inspect(t.Context(), l.Ref)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := look("False", 0); r.Message != "" || r.Phase != engine.Accepted {
		t.Errorf("at once: %+v", r)
	}
	if r := look("False", time.Minute); !strings.Contains(r.Message, "kubectl describe pod "+pod) || !strings.Contains(r.Message, "on n1") {
		t.Errorf("after a minute: %+v", r)
	}
	if r := look("True", 2*time.Minute); r.Message != "" {
		t.Errorf("its volume is there: %+v", r)
	}
	if r := look("True", 24*time.Hour); r.Phase != engine.Accepted {
		t.Errorf("its image comes slowly: %+v", r)
	}
	look("False", 0)
	look("False", e.cfg.Ready+time.Minute)
	until(t, "it is given up", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Phase == engine.Ending && strings.Contains(r.Message, "kubectl describe pod "+pod) && strings.Contains(r.Message, "waited for")
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if a.stop == nil || a.stop.Cause != engine.Unready {
		t.Errorf("%+v", a.stop)
	}
}
