package state

import (
	"testing"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// TestAHeldJobSaysSoAtOnce: a job that is held has its reason before the core has looked at it; others have none.
//
// Seen to fail with reasons of the core alone.
func TestAHeldJobSaysSoAtOnce(t *testing.T) {
	for flags, want := range map[job.Flags]reason.Code{
		0: reason.None, job.Held: reason.HeldUser, job.Held | job.HeldAdmin: reason.HeldAdmin,
		job.Held | job.HeldFailed: reason.MaxRequeue, job.Held | job.SpecialExit: reason.HeldUser,
	} {
		e := &JobRecord{State: job.Pending, Flags: flags}
		if got := e.waitReason(); got.Code != want {
			t.Errorf("flags %b: %s, want %s", flags, got.Code, want)
		}
		if e.State = job.Cancelled; e.waitReason() != (reason.Reason{}) {
			t.Errorf("flags %b: a job that has ended waits for something", flags)
		}
	}
}
