package ledger_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/model/resource"
)

func on(pool string, cpus int) fleet.Node {
	return fleet.Node{Name: "n1", Pool: pool, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(cpus)}}
}

func claim(id ledger.ID, pool string, cpus int) ledger.Allocation {
	return ledger.Allocation{
		ID: id, Job: job.ID(id), Attempt: 1, Pool: pool,
		Claims: []fleet.Claim{{Node: "n1", Tasks: 1, Take: resource.Vector{CPU: resource.CPUs(cpus)}}},
	}
}

func wantUsed(t *testing.T, l *ledger.Ledger, pool string, cpus int) {
	t.Helper()
	if used, _ := l.Used(fleet.NodeKey{Pool: pool, Name: "n1"}); used.CPU != resource.CPUs(cpus) {
		t.Errorf("of n1 of pool %s %d thousandths of a CPU are held, want %d CPUs", pool, used.CPU, cpus)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// TestNodesOfOneName: what is held on a node is not held on that of the same name in another
// pool, and the end of one says nothing about the other.
func TestNodesOfOneName(t *testing.T) {
	l := ledger.New()
	l.SetNode(on("a", 4))
	l.SetNode(on("b", 2))
	if err := l.Hold(claim(1, "a", 4)); err != nil {
		t.Fatal(err)
	}
	if err := l.Hold(claim(2, "a", 1)); fault.KindOf(err) != fault.Conflict {
		t.Errorf("more is held than n1 of a has: %v", err)
	}
	if err := l.Hold(claim(2, "b", 2)); err != nil {
		t.Errorf("n1 of b is not free: %v", err)
	}
	wantUsed(t, l, "a", 4)
	wantUsed(t, l, "b", 2)
	gone := on("b", 2)
	gone.State = fleet.Down
	l.SetNode(gone)
	if err := l.Free(1, 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Hold(claim(3, "a", 4)); err != nil {
		t.Errorf("n1 of a is down with that of b: %v", err)
	}
	if err := l.Free(2, 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Hold(claim(4, "b", 1)); fault.KindOf(err) != fault.Conflict {
		t.Errorf("n1 of b is down, and used: %v", err)
	}
	wantUsed(t, l, "a", 4)
	wantUsed(t, l, "b", 0)
}

// TestMachineChangesPool: what is held on a machine is held there in its new pool, too.
func TestMachineChangesPool(t *testing.T) {
	l := ledger.New()
	whole := claim(1, "a", 3)
	whole.Claims[0].Whole = true
	if err := l.Restore(whole); err != nil { // the journal knows it, and no engine has said anything yet
		t.Fatal(err)
	}
	l.SetNode(on("b", 4))
	wantUsed(t, l, "b", 3)
	if err := l.Hold(claim(2, "b", 1)); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a node is used that is held whole, for another pool: %v", err)
	}
	l.SetNode(on("a", 4))
	wantUsed(t, l, "a", 3)
	wantUsed(t, l, "b", 0)
	l.RemoveNode(fleet.NodeKey{Pool: "a", Name: "n1"})
	wantUsed(t, l, "a", 3) // n1 of b was there with it: it is another machine
	wantUsed(t, l, "b", 0)
	l.RemoveNode(fleet.NodeKey{Pool: "b", Name: "n1"})
	l.SetNode(on("a", 4))
	l.RemoveNode(fleet.NodeKey{Pool: "a", Name: "n1"})
	l.SetNode(on("b", 4))
	wantUsed(t, l, "a", 0)
	wantUsed(t, l, "b", 3)
	if err := l.Free(1, 1); err != nil {
		t.Fatal(err)
	}
	wantUsed(t, l, "b", 0)
	if err := l.Hold(claim(2, "b", 4)); err != nil {
		t.Error(err)
	}
}
