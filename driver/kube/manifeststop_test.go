package kube

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestManifestOwnGrace: pods that are left of a decided job hold their nodes for no longer than the cap, or the job's
// time limit, whatever their template says; and a cancel or a preemption ends them earlier. The job ends as its pods
// have decided.
//
// Seen to fail with: the template's grace as it is; a Stop that a decided job ignores.
func TestManifestOwnGrace(t *testing.T) {
	for name, c := range map[string]struct {
		limit time.Duration
		most  int
	}{
		"no limit":     {0, 600},
		"a time limit": {3 * time.Minute, 120},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, "n1")
			graces := make(chan int, 10)
			s.answersBy(func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/pods/") {
					var o map[string]any
					_ = json.NewDecoder(r.Body).Decode(&o)
					seconds, err := strconv.Atoi(mapText(o["gracePeriodSeconds"]))
					if err != nil {
						seconds = -1
					}
					graces <- seconds
				}
				return false
			})
			e := s.open(nil)
			set := torch()
			for i := range set.Roles {
				set.Roles[i].Template = json.RawMessage(strings.Replace(string(set.Roles[i].Template), `"spec":{`, `"spec":{"terminationGracePeriodSeconds":1000000000,`, 1))
			}
			l := manifestOn(t, 1, set, "n1")
			l.Job.Spec.TimeLimit = c.limit
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
			s.containerIs(pods[2], "Failed", exited(3, began, time.Now().Add(-time.Second)))
			for range 2 {
				if got := <-graces; got < c.most-30 || got > c.most {
					t.Errorf("the others were deleted with a grace of %d seconds, want %d", got, c.most)
				}
			}
			if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: 5 * time.Second, Reason: "cancelled"}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				select {
				case got := <-graces:
					if got < 1 || got > 5 {
						t.Errorf("after a stop: a grace of %d seconds, want 5", got)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("the stop is ignored")
				}
			}
			for _, p := range pods[:2] {
				s.containerIs(p, "Failed", exited(137, began, time.Now()))
			}
			if r := goneFrom(t, e, l.Ref); r.Cause != engine.Exited || r.Exit != (job.ExitCode{Status: 3}) {
				t.Errorf("%+v", r)
			}
		})
	}
}
