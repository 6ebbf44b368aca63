package kube

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control/dispatch/dispatchtest"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestALaunchMeetsADiskThatFails for a moment: it is repeated, and none is refused, whether the disk
// fails at its own entry or after another's. Nothing of it was written down, and the job is not to fail
// for it.
//
// Seen to fail with: the disk's error as it is.
func TestALaunchMeetsADiskThatFails(t *testing.T) {
	s := newStand(t, "n1", "n2")
	e := s.open(nil)
	launches := []*engine.Launch{launchOn(1, "n1"), launchOn(2, "n1")}
	dispatchtest.LaunchOnFailingDisk(t, e, e.log.On, launches, func(_ int, err error) bool {
		return fault.KindOf(err) == fault.Unavailable && fault.Remedy(err) == "look at the disk of the state directory"
	})
	if n := len(e.log.Lives()); n != 2 {
		t.Errorf("%d attempts are in the journal", n)
	}
}
