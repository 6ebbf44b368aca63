package fake_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// A call that arrives after one of a later hand-over changes nothing, and its caller has long had an error. Seen
// to fail with a world that keeps no epoch once the fence is removed.
func TestLateFence(t *testing.T) {
	c, lost := newClock(), true
	e := fake.New(fake.Config{Now: c.Now, Nodes: nodes("f1"), Fault: func(c fake.Call) (before, after error) {
		if c.Name == "fence" && lost {
			return fake.Late(fault.New(fault.Unavailable, "no answer")), nil
		}
		return nil, nil
	}})
	first, second := engine.NodeFence{Epoch: 1, Reason: "first"}, engine.NodeFence{Epoch: 2, Reason: "second"}
	if err := e.Fence(t.Context(), "f1", first); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("it is on its way: %v", err)
	}
	lost = false
	for _, err := range []error{e.Fence(t.Context(), "f1", second), e.Unfence(t.Context(), "f1", second)} {
		if err != nil {
			t.Error(err)
		}
	}
	if err := e.World().Arrive(); fault.KindOf(err) != fault.Conflict {
		t.Errorf("it arrives: %v", err)
	}
	if seen, err := e.Empty(t.Context(), "f1"); err != nil || seen.Fence != nil {
		t.Errorf("the late fence stands: %+v, %v", seen, err)
	}
}

// A call whose answer is lost has acted, and work that asks for no leave appears on a fenced node.
func TestFenceWithoutAnswer(t *testing.T) {
	c := newClock()
	e := fake.New(fake.Config{Now: c.Now, Nodes: nodes("f1"), Fault: func(c fake.Call) (before, after error) {
		if c.Name == "fence" {
			return nil, fault.New(fault.Unavailable, "the answer is lost")
		}
		return nil, nil
	}})
	f := engine.NodeFence{Epoch: 1}
	if err := e.Fence(t.Context(), "f1", f); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("fence: %v", err)
	}
	if seen, err := e.Empty(t.Context(), "f1"); err != nil || !seen.ProvedEmpty(1) {
		t.Errorf("fenced: %+v, %v", seen, err)
	}
	if err := e.World().StartForeign("f1", engine.NodeWork{Kind: "pod", Name: "tolerant"}, true); err != nil {
		t.Error(err)
	}
	if seen, err := e.Empty(t.Context(), "f1"); err != nil || seen.ProvedEmpty(1) || len(seen.Work) != 1 {
		t.Errorf("with work that tolerates it: %+v, %v", seen, err)
	}
}
