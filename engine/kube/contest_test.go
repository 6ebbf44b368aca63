package kube

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/fleet"
	amount "github.com/coxswain-sched/coxswain/resource"
)

// TestClaimContest: another scheduler gives the device away between our look at the claims and
// our writing. Nothing is bound, the attempt ends with the name of that claim, and its own claim
// has no device any more. Seen to fail without the look after the writing, and without taking the
// device back.
func TestClaimContest(t *testing.T) {
	const at = "/apis/resource.k8s.io/v1/"
	s := newStand(t, "n1")
	s.put(at+"deviceclasses/gpu.example.com", "ADDED", map[string]any{"metadata": map[string]any{"name": "gpu.example.com"}, "spec": map[string]any{}})
	s.put(at+"resourceslices/n1", "ADDED", map[string]any{"metadata": map[string]any{"name": "n1"}, "spec": map[string]any{
		"driver": "gpu.example.com", "nodeName": "n1", "pool": map[string]any{"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": []any{map[string]any{"name": "gpu-0"}},
	}})
	var once sync.Once
	bound := false
	s.answersBy(func(_ http.ResponseWriter, r *http.Request) bool {
		bound = bound || strings.HasSuffix(r.URL.Path, "/binding")
		if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status") {
			once.Do(func() {
				s.put(at+"namespaces/other/resourceclaims/theirs", "ADDED", map[string]any{"metadata": map[string]any{"name": "theirs", "namespace": "other"}, "status": map[string]any{
					"allocation": map[string]any{"devices": map[string]any{"results": []any{map[string]any{"request": "g", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}}}},
				}})
			})
		}
		return false
	})
	e := s.open(func(c *Config) { c.Terms.Classes = []string{"gpu.example.com"} })
	l := launchOn(1, "n1")
	l.Claims[0].Devices = []fleet.DeviceClaim{{Index: 0, Share: amount.WholeDevice}}
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := goneFrom(t, e, l.Ref)
	if r.Cause != engine.LaunchFailed || !strings.Contains(r.Message, "device gpu-0 of node n1 is of ResourceClaim other/theirs") || bound {
		t.Errorf("bound %v: %+v", bound, r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, o := range s.objects {
		if strings.Contains(p, "/namespaces/default/resourceclaims/") {
			if status, _ := o["status"].(map[string]any); status["allocation"] != nil {
				t.Errorf("%s has %v", p, status)
			}
		}
	}
}

// goneFrom waits until an attempt is gone.
func goneFrom(t *testing.T, e *Engine, ref engine.Ref) (last engine.Report) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := e.Watch(ctx, "", func(ev engine.Event) error {
		if last = ev.Report; last.Ref == ref && last.Gone {
			return io.EOF
		}
		return nil
	}); !errors.Is(err, io.EOF) {
		t.Fatalf("it is not gone: %v; %+v", err, last)
	}
	return last
}
