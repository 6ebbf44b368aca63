package ledger_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
)

// TestPropose: a batch is verified as a whole, and nothing of it is held.
func TestPropose(t *testing.T) {
	l := ledger.New()
	l.SetNode(on("a", 4))
	parked := claim(1, "a", 2)
	if err := l.Hold(parked); err != nil {
		t.Fatal(err)
	}
	if err := l.Park(1, true); err != nil {
		t.Fatal(err)
	}
	hold := func(id job.ID, cpus int) ledger.Change {
		a := claim(0, "a", cpus)
		a.Job = id
		return ledger.Change{Hold: &a}
	}
	batch := []ledger.Change{hold(2, 2), hold(3, 3), {Resume: 1}, hold(4, 1), hold(2, 0), {Resume: 9}}
	refused := l.Propose(batch)
	for i, want := range []fault.Kind{fault.Internal, fault.Conflict, fault.Internal, fault.Conflict, fault.Conflict, fault.NotFound} {
		if (refused[i] == nil) != (want == fault.Internal) || want != fault.Internal && fault.KindOf(refused[i]) != want {
			t.Errorf("change %d: %v, want %v (0: it is taken)", i, refused[i], want)
		}
	}
	if batch[0].Hold.ID != 2 || batch[1].Hold.ID != 0 || l.NextID() != 3 {
		t.Errorf("numbers %d and %d, next %d; want 2, none, and 3", batch[0].Hold.ID, batch[1].Hold.ID, l.NextID())
	}
	if a, _ := l.Of(1); !a.Parked || len(l.Live()) != 1 {
		t.Errorf("something is held, or goes on, that was only proposed: %+v", l.Live())
	}
	wantUsed(t, l, "a", 0)
}
