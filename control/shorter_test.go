package control_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// TestALimitIsShortenedToFit: a job that allows it starts before the head with less
// time than it asked for; its attempt has that limit, and everybody is shown it.
//
// Seen to fail with: a record without the limit, a view of the job's own limit.
func TestALimitIsShortenedToFit(t *testing.T) {
	c := newClock()
	b := openWith(t, newHand(1, 8), control.Config{Clock: c})
	first := gang(1, 4)
	first.TimeLimit = time.Hour
	b.launched(b.submit(first))
	head := gang(1, 8)
	head.TimeLimit = time.Hour
	b.waits(b.submit(head), reason.Resources)
	rigid := gang(1, 4)
	rigid.TimeLimit = 2 * time.Hour
	b.waits(b.submit(rigid), reason.Reserved)
	s := gang(1, 4)
	s.TimeLimit, s.TimeMin = 3*time.Hour, 30*time.Minute
	id := b.submit(s)
	v := b.launched(id)
	if got := v.Job.Spec.TimeLimit; got > time.Hour || got < 30*time.Minute {
		t.Errorf("its attempt has a limit of %v, want one that ends before the head starts", got)
	}
	b.reopen()
	if w := b.state(id, job.Running); w.Job.Spec.TimeLimit != v.Job.Spec.TimeLimit {
		t.Errorf("after a restart its limit is %v, it was %v", w.Job.Spec.TimeLimit, v.Job.Spec.TimeLimit)
	}
}
