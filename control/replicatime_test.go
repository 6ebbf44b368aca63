package control_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestReplicasTeachNoRunTimes: when replicas of a service end says nothing of when other jobs do, whether
// they ended before somebody asked for estimates or after.
//
// Seen to fail with: noteEnded and loadEstimates that count parts.
func TestReplicasTeachNoRunTimes(t *testing.T) {
	b := open(t, newHand(1, 8))
	run := func(try uint32) {
		s := partOf(0, try)
		s.Owner.User = "anna"
		v := b.launched(b.submit(s))
		began := time.Now().Add(-time.Hour)
		b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Running, Started: began})
		b.begun(v.Job.ID)
		b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Ended, Gone: true, Cause: engine.Exited, Started: began, Ended: began.Add(time.Minute)})
		b.state(v.Job.ID, job.Completed)
	}
	for try := range uint32(4) {
		run(try)
	}
	if err := b.ctl.Foretell(t.Context()); err != nil { // the past is read
		t.Fatal(err)
	}
	for try := range uint32(4) {
		run(4 + try)
	}
	other := gang(1, 1)
	other.Owner.User, other.TimeLimit = "anna", time.Hour
	if d := b.ctl.RunTime(other.Name, other, 0); d != time.Hour {
		t.Errorf("a job of an hour is taken to last %s after replicas that ended at once", d)
	}
}
