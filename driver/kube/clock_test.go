package kube

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/kube/podstatus"
)

// TestTheAPIServersClock: by when a pod is to be gone the API server says by its own clock. That one may
// be minutes behind or ahead of the driver's: a kubelet is called silent neither before its time nor
// long after.
//
// Seen to fail with: that time held against the driver's clock.
func TestTheAPIServersClock(t *testing.T) {
	for what, off := range map[string]time.Duration{"the same": 0, "behind": -10 * time.Minute, "ahead": 10 * time.Minute} {
		t.Run(what, func(t *testing.T) {
			s := newStand(t, "n1")
			e := s.open(nil)
			l := launchOn(1, "n1")
			if err := e.Launch(t.Context(), l); err != nil {
				t.Fatal(err)
			}
			at := podOf(s.bound(1)[0])
			s.runs()
			s.shown(e, l.Ref)
			const grace = 31
			s.mu.Lock()
			o := s.objects[at]
			meta(o)["deletionTimestamp"] = time.Now().Add(off + grace*time.Second).UTC().Format(time.RFC3339)
			meta(o)["deletionGracePeriodSeconds"] = grace
			s.keep(at, "MODIFIED", o)
			s.mu.Unlock()
			unsure := func(after time.Duration) bool {
				e.mu.Lock()
				defer e.mu.Unlock()
				return e.readMembers(e.attempts[l.Ref], time.Now().Add(after))[0].Uncertain
			}
			until(t, "it is heard of", func() bool {
				e.mu.Lock()
				defer e.mu.Unlock()
				return e.attempts[l.Ref].pods[0].DeletionTimestamp != nil
			})
			if unsure(0) || !unsure(grace*time.Second+2*podstatus.Silence) {
				t.Errorf("silent at once: %v; after its time: %v", unsure(0), unsure(grace*time.Second+2*podstatus.Silence))
			}
		})
	}
}
