package control_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// ranks is a site where jobs of QOS hi take the place of those of lo.
func (b *bench) ranks(mode string) {
	b.t.Helper()
	p := &account.Policy{
		QOS:        []account.QOS{{Name: "hi", Priority: 10, Preempts: []string{"lo"}}, {Name: "lo"}},
		Preemption: account.Preemption{By: []string{"qos"}, Mode: mode, Grace: account.Duration(7 * time.Second)},
	}
	if _, err := b.ctl.SetPolicy(b.t.Context(), job.Actor{Name: "me"}, control.PolicyChange{Rules: p, Text: "preemption"}); err != nil {
		b.t.Fatal(err)
	}
}

// ranked submits a job that fills the one node.
func (b *bench) ranked(qos string, requeue bool) job.ID {
	b.t.Helper()
	s := gang(1, 4)
	s.QOS, s.Requeue = qos, requeue
	return b.submit(s)
}

// TestAJobMakesRoom: the victim is asked to end, with the grace of the rules; what it
// holds goes to the other job only when it is proved gone; it waits again, says why
// it was ended, and runs as its next attempt. A restart in between loses nothing.
func TestAJobMakesRoom(t *testing.T) {
	for _, crash := range []string{"", "asked"} {
		t.Run("restart "+crash, func(t *testing.T) {
			b := open(t, newHand(1, 4))
			b.ranks("")
			low := b.ranked("lo", true)
			first := b.launched(low)
			b.hand.start(first)
			b.begun(low)
			high := b.ranked("hi", true)
			stops := b.hand.stopped(t, first.Ref)
			if stops[0].Grace != 7*time.Second {
				t.Errorf("it is stopped as %+v, want a grace of 7 s", stops[0])
			}
			if crash != "" {
				b.reopen()
			}
			b.until(high, "nominated", func(v state.View) bool {
				return v.Why.Code == reason.Preempting && v.Why.Job == uint64(low)
			})
			b.hand.end(first, engine.Stopped, 143)
			b.state(high, job.Running)
			v := b.state(low, job.Pending)
			if v.Message == "" || v.Job.Flags&job.Requeued == 0 {
				t.Errorf("the victim says %q and has the flags %v", v.Message, v.Job.Flags)
			}
			other := b.launched(high)
			b.hand.start(other)
			b.hand.end(other, engine.Exited, 0)
			b.state(high, job.Completed)
			if v = b.launched(low); v.Ref.Attempt != 2 {
				t.Errorf("the victim runs as attempt %d, want 2", v.Ref.Attempt)
			}
		})
	}
}

// TestWhoCannotSaveYet: a job of which nobody has heard that it runs is not told to save, and gets
// no time for that: it ends by SIGTERM and the grace of all jobs, not by the signal and the grace
// that its --signal asks for. It may have begun all the same.
//
// Seen to fail with: the signal and the grace for saving.
func TestWhoCannotSaveYet(t *testing.T) {
	b := open(t, newHand(1, 4))
	b.ranks(account.PreemptCheckpoint)
	s := gang(1, 4)
	s.QOS, s.Requeue, s.Signal = "lo", true, &job.SignalSpec{Signal: 10, Before: 5 * time.Second, BatchOnly: true}
	low := b.submit(s)
	v := b.launched(low)
	b.ranked("hi", true)
	if stops := b.hand.stopped(t, v.Ref); stops[0].Signal != 0 || stops[0].Grace != 30*time.Second {
		t.Errorf("it is stopped as %+v", stops[0])
	}
}

// TestHowAVictimEnds: what becomes of a job that was asked to make room follows from
// the mode, from whether it may be requeued, and from how it ends.
func TestHowAVictimEnds(t *testing.T) {
	for _, c := range []struct {
		name, mode string
		requeue    bool
		saves      bool
		cause      engine.Cause
		exit       int
		want       job.State
	}{
		{"stopped", account.PreemptRequeue, true, false, engine.Stopped, 143, job.Pending},
		{"may not be requeued", account.PreemptRequeue, false, false, engine.Stopped, 143, job.Preempted},
		{"cancelled", account.PreemptCancel, true, false, engine.Stopped, 143, job.Preempted},
		{"ends with an error", account.PreemptRequeue, true, false, engine.Exited, 1, job.Pending},
		{"had done its work", account.PreemptRequeue, true, false, engine.Exited, 0, job.Completed},
		{"saved and left", account.PreemptCheckpoint, true, true, engine.Exited, 0, job.Pending},
		{"was at its limit", account.PreemptRequeue, true, false, engine.TimedOut, 0, job.Timeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t, newHand(1, 4))
			b.ranks(c.mode)
			low := b.ranked("lo", c.requeue)
			v := b.launched(low)
			b.hand.start(v)
			high := b.ranked("hi", true)
			b.hand.stopped(t, v.Ref)
			if c.saves {
				if err := ask(t.Context(), b.ctl, low, control.Saved{}); err != nil {
					t.Fatal(err)
				}
			}
			b.hand.end(v, c.cause, c.exit)
			b.state(low, c.want)
			b.state(high, job.Running)
		})
	}
}
