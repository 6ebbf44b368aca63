package ledger_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// TestPark: what is parked counts without CPUs and devices, so others may have these, and
// goes on only where all of it is free again.
func TestPark(t *testing.T) {
	l := ledger.New()
	l.SetNode(fleet.Node{Name: "a", State: fleet.Up, Capacity: resource.Vector{CPU: 4 * resource.OneCPU, Memory: 100}, Devices: []fleet.Device{{Index: 0, Kind: "gpu"}}})
	claim := func(memory resource.Amount) []fleet.Claim {
		return []fleet.Claim{{Node: "a", Tasks: 1, Take: resource.Vector{CPU: 4 * resource.OneCPU, Memory: memory}, Devices: []fleet.DeviceClaim{{Index: 0, Share: resource.WholeDevice}}}}
	}
	hold := func(id ledger.ID, memory resource.Amount) error {
		return l.Hold(ledger.Allocation{ID: id, Job: 2, Attempt: 1, Claims: claim(memory)})
	}
	const fine = fault.Kind(255)
	is := func(what string, err error, want fault.Kind) {
		t.Helper()
		if (err == nil) != (want == fine) || err != nil && fault.KindOf(err) != want {
			t.Fatalf("%s: %v", what, err)
		}
		if err := l.Check(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	is("first", l.Hold(ledger.Allocation{ID: 1, Job: 1, Attempt: 1, Claims: claim(60)}), fine)
	is("beside it", hold(2, 10), fault.Conflict)
	is("parked", l.Park(1, true), fine)
	is("memory is not free", hold(2, 50), fault.Conflict)
	is("in its place", hold(2, 10), fine)
	is("beside the other", l.Park(1, false), fault.Conflict)
	if a, _ := l.Get(1); !a.Parked {
		t.Error("it goes on, although it was refused")
	}
	is("the other is gone", l.Free(2, 1), fine)
	is("goes on", l.Park(1, false), fine)
	is("again", l.Park(1, false), fine)
	is("beside it", hold(3, 10), fault.Conflict)
	is("parked", l.Park(1, true), fine)
	is("ended while parked", l.Free(1, 1), fine)
	is("nothing is left", hold(4, 100), fine)
	is("of nobody", l.Park(9, true), fault.NotFound)
}
