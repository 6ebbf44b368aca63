package enginetest

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

func testRestart(t *testing.T, h Harness) {
	if h.Reopen == nil {
		t.Skip("this driver leaves nothing behind")
	}
	h.run(t, "GoesOn", func(t *testing.T) {
		b := startBench(t, h)
		ref := b.launchProgram(2, Program{Run: Forever})
		was := b.awaitRunning(ref)
		b.reopenEngine(func() {})
		r := b.awaitRunning(ref)
		if !r.Started.Equal(was.Started) || len(r.Nodes) != len(was.Nodes) {
			t.Errorf("%s after the restart, %s before", describeReport(r), describeReport(was))
		}
		b.mustLaunch(b.plans[ref]) // the caller got no answer and repeats
		b.mustStop(ref, engine.Stop{Grace: patience})
		checkEnded(t, b.awaitGone(ref), engine.Stopped, job.ExitCode{Signal: sigterm})
	})
	h.run(t, "ExitWhileClosed", func(t *testing.T) {
		b := startBench(t, h)
		l := b.planLaunch(1, 2, Program{Run: 300 * time.Millisecond, Exit: 7})
		b.mustLaunch(l)
		b.awaitRunning(l.Ref)
		b.reopenEngine(func() {
			if b.Living != nil {
				b.pollUntil("the program has ended", func() bool { return b.Living(t, b.e, l.Ref) == 0 })
			}
		})
		checkEnded(t, b.awaitGone(l.Ref), engine.Exited, job.ExitCode{Status: 7})
	})
	h.run(t, "DuringLaunch", func(t *testing.T) {
		b := startBench(t, h)
		l := b.planLaunch(1, 4, Program{Exit: 5})
		b.mustLaunch(l)
		b.reopenEngine(func() {}) // wherever it was
		b.mustLaunch(l)
		checkEnded(t, b.awaitGone(l.Ref), engine.Exited, job.ExitCode{Status: 5})
	})
	h.run(t, "AfterEnd", func(t *testing.T) {
		b := startBench(t, h)
		ref := b.launchProgram(2, Program{Exit: 6})
		was := b.awaitGone(ref)
		b.reopenEngine(func() {})
		r := b.awaitGone(ref)
		checkEnded(t, r, engine.Exited, job.ExitCode{Status: 6})
		if !r.Ended.Equal(was.Ended) || len(r.Tasks) != len(was.Tasks) {
			t.Errorf("%+v after the restart, %+v before", r, was)
		}
		if err := b.e.Forget(t.Context(), ref); err != nil {
			t.Error(err)
		}
		b.reopenEngine(func() {})
		if all, err := b.e.List(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("forgotten, and there again: %+v, %v", all, err)
		}
	})
	h.run(t, "Ending", func(t *testing.T) {
		b := startBench(t, h)
		ref := b.launchProgram(2, Program{Run: Forever, Resists: true})
		b.awaitRunning(ref)
		b.awaitReady(ref)
		b.mustStop(ref, engine.Stop{Grace: 500 * time.Millisecond, Reason: "enough"})
		b.awaitReport(ref, "ending", func(r engine.Report) bool { return r.Phase == engine.Ending })
		b.reopenEngine(func() {})
		r := b.awaitGone(ref)
		checkEnded(t, r, engine.Stopped, job.ExitCode{Signal: sigkill})
		if r.Message != "enough" {
			t.Errorf("message %q", r.Message)
		}
	})
}

func testLost(t *testing.T, h Harness) {
	if h.Kill == nil {
		t.Skip("what watches over an attempt of this driver cannot be killed")
	}
	for name, k := range map[string]int{"Head": 0, "Other": 1} {
		h.run(t, name, func(t *testing.T) {
			b := startBench(t, h)
			l := b.planLaunch(1, 2, Program{Run: Forever, Resists: true, Leaves: true})
			l.Grace = 200 * time.Millisecond
			b.mustLaunch(l)
			b.awaitRunning(l.Ref)
			b.awaitReady(l.Ref)
			b.Kill(t, b.e, l.Ref, b.nodeOf(l.Ref, k))
			r := b.awaitGone(l.Ref)
			if r.Cause != engine.NodeLost || r.Exit.OK() || r.Message == "" {
				t.Errorf("%s", describeReport(r))
			}
		})
	}
	h.run(t, "WhileClosed", func(t *testing.T) {
		if h.Reopen == nil {
			t.Skip("this driver leaves nothing behind")
		}
		b := startBench(t, h)
		ref := b.launchProgram(2, Program{Run: Forever, Resists: true, Leaves: true})
		b.awaitRunning(ref)
		b.awaitReady(ref)
		head := b.nodeOf(ref, 0)
		b.reopenEngine(func() { b.Kill(t, b.e, ref, head) })
		r := b.awaitGone(ref)
		if r.Cause != engine.NodeLost || r.Exit.OK() {
			t.Errorf("%s", describeReport(r))
		}
	})
}
