package kube

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
	"github.com/coxswain-sched/coxswain/driver/kube/render"
	"github.com/coxswain-sched/coxswain/engine"
)

// TestTheLogOfAPodThatLingers: what a job wrote is copied before its pod is deleted; the kubelet may
// have nothing of it after that. Only the pod that lingers is deleted.
//
// Seen to fail with: a log that is copied at the end alone; a copy that is made again at the end;
// all pods deleted.
func TestTheLogOfAPodThatLingers(t *testing.T) {
	s := newStand(t, "n1", "n2")
	var mu sync.Mutex
	var deleted []string
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		switch pods := strings.Contains(r.URL.Path, "/pods/"); {
		case pods && strings.HasSuffix(r.URL.Path, "/log"):
			if len(deleted) == 0 {
				_, _ = w.Write([]byte("all of it\n"))
			}
			return true
		case pods && r.Method == http.MethodDelete:
			deleted = append(deleted, filepath.Base(r.URL.Path))
		}
		return false
	})
	e := s.open(nil)
	l := launchOn(1, "n1", "n2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	until(t, "its pods are bound", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && len(r.Nodes) == 2 && len(s.names("pods")) == 2
	})
	names := s.names("pods")
	said := func(pod int, phase string, state map[string]any) {
		s.mu.Lock()
		defer s.mu.Unlock()
		path := "/api/v1/namespaces/default/pods/" + names[pod]
		o := s.objects[path]
		labels, _ := meta(o)["labels"].(map[string]any)
		labels[render.LabelPlugged] = "true"
		o["status"] = map[string]any{"phase": phase, "containerStatuses": []any{map[string]any{"name": render.Container, "containerID": "containerd://x", "started": true, "state": state}}}
		s.keep(path, "MODIFIED", o)
	}
	runs := map[string]any{"running": map[string]any{}}
	now := time.Now()
	ended := map[string]any{"terminated": map[string]any{
		"exitCode": 0, "finishedAt": now.Add(-time.Minute).UTC().Format(time.RFC3339),
		"message": string(podagent.Outcome{Ref: l.Ref, Cause: engine.Exited, Started: now.Add(-time.Hour), Ended: now.Add(-time.Minute)}.Text()),
	}}
	said(1, "Running", runs)
	said(0, "Running", ended)
	until(t, "the pod that lingers is deleted", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(deleted) > 0
	})
	said(0, "Succeeded", ended)
	said(1, "Succeeded", ended)
	goneFrom(t, e, l.Ref)
	if text, err := os.ReadFile(e.logs.fileOf(l.Ref)); err != nil || string(text) != "all of it\n" {
		t.Errorf("its log is %q, %v", text, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(deleted, names[1]) {
		t.Errorf("deleted are %q", deleted)
	}
}

// TestNoLaneForPodsThatDoNotLinger: every look at an attempt asks which of its pods linger. Where none
// does, it waits for none of the lanes that all attempts share.
//
// Seen to fail with: a lane for each pod.
func TestNoLaneForPodsThatDoNotLinger(t *testing.T) {
	e := newStand(t, "n1").open(nil)
	for range cap(e.calls.lanes) {
		e.calls.lanes <- struct{}{}
	}
	done := make(chan error, 1)
	go func() { done <- e.deleteLingering(ran(e, 1), make([]podstatus.Member, 3)) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it waits for a lane")
	}
	for range cap(e.calls.lanes) {
		<-e.calls.lanes
	}
}
