package slurm

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control/dispatch/dispatchtest"
	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs/sbatchargstest"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestALaunchMeetsADiskThatFails for a moment: it is repeated, and none is refused, whether the disk
// fails at its own entry or after another's. Nothing of it was written down, and the job is not to fail
// for it.
//
// Seen to fail with: an error of the disk that is fault.Internal, for the second one.
func TestALaunchMeetsADiskThatFails(t *testing.T) {
	locks, err := lockdir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{
		Root: t.TempDir(), Pool: "far", Room: locks,
		Site: command.New(&command.Here{Before: []string{"/nonexistent"}}), // no cluster is needed, and none answers
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	var launches []*engine.Launch
	for n := uint64(1); n < 3; n++ {
		launches = append(launches, &engine.Launch{Ref: engine.Ref{Allocation: n, Attempt: 1}, Job: &job.Job{ID: job.ID(n), Attempt: 1, Spec: sbatchargstest.Job()}, Claims: []fleet.Claim{{Node: "n1", Tasks: 2}, {Node: "n2", Tasks: 2}}})
	}
	dispatchtest.LaunchOnFailingDisk(t, e, e.log.On, launches, func(n int, err error) bool {
		return n == 1 || fault.KindOf(err) == fault.Unavailable && fault.Remedy(err) != ""
	})
	if n := len(e.log.Lives()); n != 2 {
		t.Errorf("%d attempts are in the journal", n)
	}
}
