package control_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestAReportUnderAnotherJobsNumberIsNoWord: the ledger says whose an attempt is. Two
// words about one attempt under two numbers could otherwise be in one batch, and the
// journal would end it twice.
func TestAReportUnderAnotherJobsNumberIsNoWord(t *testing.T) {
	b := open(t, newHand(2, 8))
	a := b.launched(b.submit(gang(1, 8)))
	o := b.launched(b.submit(gang(1, 8)))
	now := time.Now()
	b.hand.mu.Lock()
	b.hand.put(engine.Report{Ref: a.Ref, Job: o.Job.ID, Phase: engine.Ended, Gone: true, Cause: engine.Exited, Started: now, Ended: now})
	b.hand.mu.Unlock()
	b.hand.start(o) // heard after it
	b.begun(o.Job.ID)
	if v := b.state(a.Job.ID, job.Running); v.Job.Attempt != 1 {
		t.Errorf("%+v", v.Job)
	}
}
