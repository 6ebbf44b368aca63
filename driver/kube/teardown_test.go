package kube

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
)

// TestNothingStaysOfAPoolThatIsTakenAway: a pool is taken away right after its last job has ended, and
// the API server has not taken the finalizer from its pod yet. Who leaves waits for that; if it does not
// come, it says what is left. In the end the cluster has nothing of the pool's.
//
// Seen to fail with: who leaves waiting for nothing; roots left of attempts that nobody has forgotten.
func TestNothingStaysOfAPoolThatIsTakenAway(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l := launchOn(1, "n1")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	pod := s.bound(1)[0]
	s.runs()
	s.shown(e, l.Ref)
	held := make(chan struct{})
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/pods/") {
			select {
			case <-held:
			case <-r.Context().Done():
			}
		}
		return false
	})
	s.become(hasEnded, "0")
	goneFrom(t, e, l.Ref)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Leave(over); err == nil || !strings.Contains(err.Error(), "default/"+pod) {
		t.Errorf("its pod is there, and who leaves says %v", err)
	}
	close(held)
	if err := e.Leave(t.Context()); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	kept := meta(s.objects[podOf(pod)])["finalizers"]
	s.mu.Unlock()
	if roots := s.names("secrets"); len(roots) > 0 || kept != nil { // with its root the cluster collects the pod
		t.Errorf("left are roots %q, and finalizers %v", roots, kept)
	}
	var _ engine.Leaver = e
}
