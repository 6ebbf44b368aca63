package kube

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	amount "github.com/coxswain-sched/coxswain/model/resource"
)

// claimsAt is where the API has devices and claims.
const claimsAt = "/apis/resource.k8s.io/v1/"

// claimable stands for a cluster of one node, n1, with so many devices.
func claimable(t *testing.T, devices int) *stand {
	s := newStand(t, "n1")
	s.put(claimsAt+"deviceclasses/gpu.example.com", "ADDED", map[string]any{"metadata": map[string]any{"name": "gpu.example.com"}, "spec": map[string]any{}})
	var all []any
	for i := range devices {
		all = append(all, map[string]any{"name": fmt.Sprintf("gpu-%d", i)})
	}
	s.put(claimsAt+"resourceslices/n1", "ADDED", map[string]any{"metadata": map[string]any{"name": "n1"}, "spec": map[string]any{
		"driver": "gpu.example.com", "nodeName": "n1", "pool": map[string]any{"name": "n1", "generation": 1, "resourceSliceCount": 1}, "devices": all,
	}})
	return s
}

// launchWith is a job on n1 with one of its devices.
func launchWith(allocation uint64, device int) *engine.Launch {
	l := launchOn(allocation, "n1")
	l.Claims[0].Devices = []fleet.DeviceClaim{{Index: device, Share: amount.WholeDevice}}
	return l
}

// TestSlowClaims: a cluster takes longer to list its claims than for any one answer. Jobs begin
// all the same, and few of these lists are under way at a time.
//
// Seen to fail with: the time for one answer over all of a list (none is bound); no bound on the
// lists that are under way (five at a time).
func TestSlowClaims(t *testing.T) {
	const jobs, patience = looksAtMost + 1, time.Second
	s := claimable(t, jobs)
	var mu sync.Mutex
	under, most, bound := 0, 0, map[string]bool{}
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		if pod, ok := strings.CutSuffix(r.URL.Path, "/binding"); ok {
			bound[pod] = true
		}
		slow := r.Method == http.MethodGet && r.URL.Path == claimsAt+"resourceclaims"
		if slow {
			under++
			most = max(most, under)
		}
		mu.Unlock()
		if !slow {
			return false
		}
		time.Sleep(patience * 3 / 5) // what is tested is that so much time goes by
		mu.Lock()
		defer mu.Unlock()
		under--
		if r.URL.Query().Get("continue") != "" {
			return false
		}
		answer(w, http.StatusOK, map[string]any{"metadata": map[string]any{"continue": "more"}, "items": []any{}})
		return true
	})
	e := s.open(func(c *Config) { c.Terms.Classes, c.Patience = []string{"gpu.example.com"}, patience })
	for i := range jobs {
		if err := e.Launch(t.Context(), launchWith(uint64(i+1), i)); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "all pods are bound", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(bound) == jobs
	})
	mu.Lock()
	defer mu.Unlock()
	if most > looksAtMost {
		t.Errorf("%d lists of claims at a time", most)
	}
}

// TestClaimContest: another scheduler gives the device away between our look at the claims and
// our writing. Nothing is bound, the attempt ends with the name of that claim, and its own claim
// has no device any more. Seen to fail without the look after the writing, and without taking the
// device back.
func TestClaimContest(t *testing.T) {
	const at = claimsAt
	s := claimable(t, 1)
	var once sync.Once
	var bound atomic.Bool
	s.answersBy(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/binding") {
			bound.Store(true)
		}
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
	l := launchWith(1, 0)
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	r := goneFrom(t, e, l.Ref)
	if r.Cause != engine.LaunchFailed || !strings.Contains(r.Message, "device gpu-0 of node n1 is of ResourceClaim other/theirs") || bound.Load() {
		t.Errorf("bound %v: %+v", bound.Load(), r)
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
