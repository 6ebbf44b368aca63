package control_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestAStopThatNobodyAskedForIsAFailedLaunch: a launch that was given up had arrived,
// and is ended. A job that may run again does.
func TestAStopThatNobodyAskedForIsAFailedLaunch(t *testing.T) {
	for _, again := range []bool{true, false} {
		b := open(t, newHand(1, 8))
		s := gang(1, 8)
		s.Requeue = again
		v := b.launched(b.submit(s))
		b.hand.end(v, engine.Stopped, 0)
		if again {
			b.until(v.Job.ID, "running again", func(v state.View) bool { return v.Job.State == job.Running && v.Job.Attempt == 2 })
			continue
		}
		if w := b.state(v.Job.ID, job.Failed); w.Job.Flags&job.LaunchFailed == 0 {
			t.Errorf("it has the flags %v", w.Job.Flags)
		}
	}
}
