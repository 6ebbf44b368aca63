package control_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// retried is a job of one CPU that runs again after failures.
func retried(count int, backoff time.Duration, on ...string) *job.Spec {
	s := gang(1, 1)
	s.Retries = &job.Retries{Count: count, Backoff: backoff, On: on}
	return s
}

// fail lets a job's present attempt run and end.
func (b *bench) fail(id job.ID, cause engine.Cause, exit int) {
	b.t.Helper()
	v := b.launched(id)
	b.hand.start(v)
	b.hand.end(v, cause, exit)
}

// TestRetriesAreSpacedCountedAndShown: a job waits before each retry, twice as long each time, also
// over a restart of the server; why it waits says which retry begins when; dependents wait for
// the last attempt, and every attempt is kept.
//
// Seen to fail with: mayRetry always false; Pause that does not double.
func TestRetriesAreSpacedCountedAndShown(t *testing.T) {
	c := newClock()
	b := openWith(t, newHand(1, 8), control.Config{Clock: c})
	id := b.submit(retried(2, time.Minute))
	after, notAfter := b.submit(depending(on(job.AfterOK, id))), b.submit(depending(on(job.AfterNotOK, id)))
	for n := 1; n <= 2; n++ {
		b.fail(id, engine.Exited, 3)
		v := b.until(id, "waiting for a retry", func(v state.View) bool { return v.Job.State == job.Pending && v.Why.Code == reason.Backoff })
		pause := time.Minute << (n - 1)
		if v.Why.Until != c.Now().Add(pause).Unix() || v.Why.Need != int64(n) || v.Why.Most != 2 || v.Retried != n {
			t.Errorf("retry %d waits for %+v", n, v.Why)
		}
		if text := v.Why.String(); !strings.HasPrefix(text, fmt.Sprintf("retry %d of 2 begins at ", n)) || !strings.HasSuffix(text, ", after exit 3") {
			t.Error(text)
		}
		b.reopen()
		b.waits(id, reason.Backoff)
		b.waits(after, reason.Dependency)
		b.waits(notAfter, reason.Dependency)
		b.pass(c, pause)
	}
	b.fail(id, engine.Exited, 4)
	v := b.state(id, job.Failed)
	if v.Job.Attempt != 3 || v.Job.Exit.Status != 4 || len(v.Past) != 2 {
		t.Fatalf("after the last retry: %+v, %+v", v.Job, v.Past)
	}
	for i, p := range v.Past {
		if p.Attempt != uint32(i+1) || p.Retry != i+1 || p.Exit.Status != 3 || p.Cause != engine.Exited || p.Nodes == "" || p.Started == 0 || p.Ended == 0 {
			t.Errorf("attempt %d is kept as %+v", i+1, p)
		}
	}
	b.launched(notAfter)
	b.waits(after, reason.DependNever)

	if err := ask(t.Context(), b.ctl, id, control.Requeue{}); err != nil { // whoever runs it again by hand gives it new retries
		t.Fatal(err)
	}
	b.fail(id, engine.Exited, 3)
	if v = b.until(id, "waiting for a retry", func(v state.View) bool { return v.Why.Code == reason.Backoff }); v.Retried != 1 || len(v.Past) != 4 {
		t.Errorf("after a requeue by hand: retry %d, %+v", v.Retried, v.Past)
	}
}

// TestWhatIsRetried: which ends lead to a retry, for what the job says.
//
// Seen to fail with: Covers that takes an empty list for every cause.
func TestWhatIsRetried(t *testing.T) {
	type end struct {
		cause engine.Cause
		exit  int
	}
	for _, tt := range []struct {
		on    []string
		ends  end
		again bool
		state job.State
	}{
		{nil, end{engine.Exited, 1}, true, 0},
		{nil, end{engine.Exited, 0}, false, job.Completed},
		{nil, end{engine.OutOfMemory, 1}, false, job.OutOfMemory},
		{nil, end{engine.TimedOut, 1}, false, job.Timeout},
		{nil, end{engine.NodeLost, 1}, false, job.NodeFail},
		{nil, end{engine.Refused, 1}, false, job.Failed},
		{nil, end{engine.LaunchFailed, 1}, false, job.Failed},
		{nil, end{engine.Cancelled, 1}, false, job.Cancelled},
		{[]string{"75", "oom"}, end{engine.Exited, 75}, true, 0},
		{[]string{"75", "oom"}, end{engine.Exited, 1}, false, job.Failed},
		{[]string{"75", "oom"}, end{engine.OutOfMemory, 1}, true, 0},
		{[]string{"node"}, end{engine.NodeLost, 1}, true, 0},
		{[]string{"node"}, end{engine.Exited, 1}, false, job.Failed},
		{[]string{"timeout"}, end{engine.TimedOut, 1}, true, 0},
		{[]string{"error", "timeout"}, end{engine.Exited, 9}, true, 0},
	} {
		t.Run(fmt.Sprint(tt.on, tt.ends), func(t *testing.T) {
			b := open(t, newHand(1, 8))
			id := b.submit(retried(1, 0, tt.on...))
			b.fail(id, tt.ends.cause, tt.ends.exit)
			if !tt.again {
				b.state(id, tt.state)
				return
			}
			b.until(id, "run again", func(v state.View) bool { return v.Job.Attempt == 2 && v.Retried == 1 })
			b.fail(id, tt.ends.cause, tt.ends.exit)
			b.until(id, "ended", func(v state.View) bool { return v.Job.State.Final() && v.Job.Attempt == 2 })
		})
	}
}

// TestACancelEndsRetries: while it waits for one, and while an attempt that is being ended fails by itself.
//
// Seen to fail with: mayRetry that does not look at the cancel.
func TestACancelEndsRetries(t *testing.T) {
	c := newClock()
	b := openWith(t, newHand(1, 8), control.Config{Clock: c})
	waits, runs := b.submit(retried(5, time.Hour)), b.submit(retried(5, 0))
	b.fail(waits, engine.Exited, 1)
	b.waits(waits, reason.Backoff)
	v := b.launched(runs)
	b.hand.start(v)
	for _, id := range []job.ID{waits, runs} {
		if err := ask(t.Context(), b.ctl, id, control.Cancel{Grace: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	b.state(waits, job.Cancelled)
	b.hand.end(v, engine.Exited, 1)
	b.until(runs, "ended", func(v state.View) bool { return v.Job.State == job.Failed && v.Job.Attempt == 1 })
}

// TestRetriesAndRequeues: a requeue for a lost node takes nothing off the retries, and the row of a
// job keeps its past attempts.
//
// Seen to fail with: Retried and Past left out of the row.
func TestRetriesAndRequeues(t *testing.T) {
	b := openWith(t, newHand(1, 8), control.Config{Keep: -1})
	s := retried(1, 0, "node", "error")
	s.Requeue = true
	id := b.submit(s)
	for n := range 3 {
		v := b.launched(id)
		b.hand.start(v)
		b.hand.end(v, engine.NodeLost, 1)
		b.until(id, "requeued", func(v state.View) bool { return v.Job.Attempt == uint32(n+2) })
	}
	b.fail(id, engine.Exited, 1)
	b.until(id, "retried", func(v state.View) bool { return v.Job.Attempt == 5 && v.Retried == 1 })
	b.fail(id, engine.Exited, 1)
	v := b.state(id, job.Failed)
	if causes := []engine.Cause{v.Past[0].Cause, v.Past[3].Cause}; !slices.Equal(causes, []engine.Cause{engine.NodeLost, engine.Exited}) || v.Past[0].Retry != 0 {
		t.Errorf("%+v", v.Past)
	}
	waitProjected(t, b.ctl)
	b.reopen()
	if again := b.state(id, job.Failed); again.Retried != 1 || !slices.Equal(again.Past, v.Past) {
		t.Errorf("read back from its row: retry %d, %+v; want %+v", again.Retried, again.Past, v.Past)
	}
}

// TestRequeueExit: a site's exit codes requeue a job, up to five times in a row, and hold one in
// SPECIAL_EXIT until it is released; other codes, signals and a cancelled job end it.
//
// Seen to fail with: RequeueExitHold counted as a failed attempt, which holds the job for another reason.
func TestRequeueExit(t *testing.T) {
	c := newClock()
	b := openWith(t, newHand(1, 8), control.Config{Clock: c, Backoff: time.Minute})
	site := func() *job.Spec {
		s := gang(1, 1)
		s.RequeueExit, s.RequeueExitHold = "1-9", "9,75"
		return s
	}
	id := b.submit(site())
	b.fail(id, engine.Exited, 75)
	v := b.until(id, "held", func(v state.View) bool {
		return v.Job.State == job.Pending && v.Job.Attempt == 1 && v.Job.Flags&job.Held != 0
	})
	if v.Job.Flags&(job.SpecialExit|job.HeldFailed) != job.SpecialExit || v.Why.Code != reason.HeldUser {
		t.Errorf("%b %+v", v.Job.Flags, v.Why)
	}
	if err := ask(t.Context(), b.ctl, id, control.Hold{}); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		b.pass(c, 10*time.Minute)
		b.fail(id, engine.Exited, 9-n)
		b.until(id, "requeued", func(v state.View) bool { return len(v.Past) == n+2 })
	}
	b.waits(id, reason.MaxRequeue)

	for _, end := range []struct {
		exit  int
		asked bool
	}{{10, false}, {1, true}} {
		id := b.submit(site())
		v := b.launched(id)
		b.hand.start(v)
		if end.asked {
			if err := ask(t.Context(), b.ctl, id, control.Cancel{Grace: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		b.hand.end(v, engine.Exited, end.exit)
		b.state(id, job.Failed)
	}
}

// TestALimitThatControlEnforcesIsATimeout for retries, too: a job whose limit was lowered while it ran
// is retried if it names timeout, also where its program fails when it is told to end, and else not.
//
// Seen to fail with: a program that fails in its grace taken for an error.
func TestALimitThatControlEnforcesIsATimeout(t *testing.T) {
	for _, tt := range []struct {
		on    string
		cause engine.Cause
		again bool
		state job.State
	}{
		{"timeout", engine.Stopped, true, 0},
		{"timeout", engine.Exited, true, 0},
		{"error", engine.Stopped, false, job.Timeout},
		{"error", engine.Exited, false, job.Failed},
	} {
		c := newClock()
		b := openWith(t, newHand(1, 8), control.Config{Clock: c})
		s := retried(1, 0, tt.on)
		s.TimeLimit = time.Hour
		id := b.submit(s)
		v := b.launched(id)
		b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Running, Started: c.Now()})
		b.until(id, "started", func(v state.View) bool { return !v.Job.Started.IsZero() })
		shorter := time.Minute
		if err := ask(t.Context(), b.ctl, id, control.Update{TimeLimit: &shorter}); err != nil {
			t.Fatal(err)
		}
		b.pass(c, time.Minute)
		b.hand.stopped(t, v.Ref)
		b.hand.end(v, tt.cause, 1)
		if tt.again {
			b.until(id, "run again", func(v state.View) bool { return v.Job.Attempt == 2 && v.Retried == 1 })
			continue
		}
		b.state(id, tt.state)
	}
}
