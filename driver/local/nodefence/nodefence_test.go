package nodefence_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/local/nodefence"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// A fence that cannot be written down does not stand, and one that a file holds that cannot be read is an error
// rather than none.
func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	name := filepath.Join(dir, "fences")
	nodes := []fleet.Node{{Name: "n1", State: fleet.Up}}
	open := func() (*nodefence.Fences, error) {
		return nodefence.Open(name, nodes, &sync.Mutex{}, func(string) ([]engine.NodeWork, []string) { return nil, nil })
	}
	f, err := open()
	if err != nil {
		t.Fatal(err)
	}
	fence := engine.NodeFence{Epoch: 7, Reason: "pool b has it"}
	if err := f.Fence(t.Context(), "n1", fence); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("without a directory: %v", err)
	}
	if c, err := f.Empty(t.Context(), "n1"); err != nil || c.Fence != nil {
		t.Errorf("a fence that is not on the disk stands: %+v, %v", c, err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Fence(t.Context(), "n1", fence); err != nil {
		t.Error(err)
	}
	if f, err = open(); err != nil {
		t.Fatal(err)
	}
	if c, err := f.Empty(t.Context(), "n1"); err != nil || !c.ProvedEmpty(7) || *c.Fence != fence {
		t.Errorf("read again: %+v, %v", c, err)
	}
	if err := f.Refuse(engine.Ref{Allocation: 1, Attempt: 1}, nodes); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("a launch: %v", err)
	}
	if err := os.WriteFile(name, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = open(); err == nil {
		t.Error("a file that was cut off is taken for no fences")
	}
}
