package kube

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestANodeThatLeftAsItWasChosen: a node that is taken out of the cluster, as one that is scaled down,
// may be that of a job which is on its way. That one waits and is placed again; it has not failed.
//
// Seen to fail with: a node that is not there any more taken for one that never was; those that left before
// the server began anew taken for such.
func TestANodeThatLeftAsItWasChosen(t *testing.T) {
	s := newStand(t, "n1", "n2")
	e := s.open(nil)
	at := "/api/v1/nodes/n2"
	s.mu.Lock()
	n2 := s.objects[at]
	s.mu.Unlock()
	look := func(event string, want int) {
		t.Helper()
		s.put(at, event, n2)
		if all, err := e.Nodes(t.Context()); err != nil || len(all) != want {
			t.Fatalf("%d nodes, %v", len(all), err)
		}
	}
	look("MODIFIED", 2)
	look("DELETED", 1)
	err := e.Launch(t.Context(), launchOn(1, "n1", "n2"))
	if fault.KindOf(err) != fault.Exhausted {
		t.Errorf("on a node that has left: %v, %v", fault.KindOf(err), err)
	}
	if err := e.Launch(t.Context(), launchOn(2, "n9")); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("on a node that left before this server began: %v, %v", fault.KindOf(err), err)
	}
	look("ADDED", 2)
	if err := e.Launch(t.Context(), launchOn(3, "n1", "n2")); err != nil {
		t.Errorf("on one that came back: %v", err)
	}
}
