package enginetest

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// testWithdraw is what holds for drivers that take back what waits for another scheduler: it is ended with proof
// that it never began, and what has begun goes on.
func testWithdraw(t *testing.T, h Harness) {
	if h.Waiting == nil {
		t.Skip("this driver hands nothing over to a scheduler that takes things back")
	}
	h.run(t, "Waiting", func(t *testing.T) {
		h := h
		h.New, h.Delegated = h.Waiting, h.WaitingDelegated
		b := startBench(t, h)
		w := b.withdrawer()
		checkKind(t, w.Withdraw(t.Context(), engine.Ref{Allocation: 99, Attempt: 1}), fault.NotFound)
		b.checkEstimate()
		ref := b.launchProgram(1, Program{Run: Forever})
		b.pollUntil("it is taken back", func() bool {
			err := w.Withdraw(t.Context(), ref)
			if err != nil && fault.KindOf(err) != fault.Unavailable {
				t.Fatalf("of what waits: %v", err)
			}
			return err == nil
		})
		r := b.awaitGone(ref)
		if r.Cause != engine.Stopped || !r.Started.IsZero() || len(r.Tasks) > 0 || !r.ExpectedStart.IsZero() {
			t.Errorf("taken back it is %s, started %s, %d tasks, expected to start %s", describeReport(r), r.Started, len(r.Tasks), r.ExpectedStart)
		}
		if err := w.Withdraw(t.Context(), ref); err != nil {
			t.Errorf("after its end: %v", err)
		}
	})
	h.run(t, "Begun", func(t *testing.T) {
		b := startBench(t, h)
		w := b.withdrawer()
		ref := b.launchProgram(1, Program{Run: Forever})
		b.awaitRunning(ref)
		checkKind(t, w.Withdraw(t.Context(), ref), fault.Conflict)
		if r, err := b.e.Inspect(t.Context(), ref); err != nil || r.Phase != engine.Running {
			t.Errorf("it is %s, %v", describeReport(r), err)
		}
		b.mustStop(ref, engine.Stop{Grace: patience})
		checkEnded(t, b.awaitGone(ref), engine.Stopped, job.ExitCode{Signal: sigterm})
		if err := w.Withdraw(t.Context(), ref); err != nil {
			t.Errorf("after its end: %v", err)
		}
	})
}

func (b *bench) withdrawer() engine.Withdrawer {
	b.Helper()
	w, ok := b.e.(engine.Withdrawer)
	if !ok {
		b.Fatal("this driver is no Withdrawer")
	}
	return w
}

// checkEstimate asks when a job would start, where the driver can say it: not before now, and nothing of the
// job is there afterwards.
func (b *bench) checkEstimate() {
	b.Helper()
	k, ok := b.e.(engine.StartEstimator)
	if !ok {
		return
	}
	l := b.planLaunch(98, 1, Program{Run: Forever})
	var at time.Time
	b.pollUntil("it says when a job would start", func() bool {
		var err error
		at, err = k.EstimateStart(b.Context(), &engine.JobDraft{Spec: l.Job.Spec, Script: l.Script, Env: l.Env})
		if err != nil && fault.KindOf(err) != fault.Unavailable {
			b.Fatalf("of the start of a job: %v", err)
		}
		return err == nil
	})
	if at.IsZero() || time.Since(at) > time.Hour {
		b.Errorf("it would start at %s", at)
	}
	if all, err := b.e.List(b.Context()); err != nil || len(all) > 0 {
		b.Errorf("it has %d attempts, %v", len(all), err)
	}
}
