package enginetest

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

const (
	sigkill = 9
	sigterm = 15
)

func testExit(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		p    Program
		want job.ExitCode
	}{
		{"Zero", Program{}, job.ExitCode{}},
		{"Status", Program{Exit: 3}, job.ExitCode{Status: 3}},
		{"LargestStatus", Program{Exit: 255}, job.ExitCode{Status: 255}},
		{"Signal", Program{Signal: 11}, job.ExitCode{Signal: 11}},
		{"Kill", Program{Signal: sigkill}, job.ExitCode{Signal: sigkill}},
		{"LeavesProcess", Program{Exit: 4, Leaves: true}, job.ExitCode{Status: 4}},
	} {
		h.run(t, c.name, func(t *testing.T) {
			b := startBench(t, h)
			r := b.awaitGone(b.launchProgram(2, c.p))
			checkEnded(t, r, engine.Exited, c.want)
			if r.Ended.Before(r.Started) || r.Started.IsZero() {
				t.Errorf("started %s, ended %s", r.Started, r.Ended)
			}
			if len(r.Tasks) == 0 || r.Tasks[0].Step != engine.BatchStep || r.Tasks[0].Exit != c.want {
				t.Errorf("tasks %+v", r.Tasks)
			}
		})
	}
}

func testEnd(t *testing.T, h Harness) {
	h.run(t, "Term", func(t *testing.T) {
		b := startBench(t, h)
		ref := b.launchProgram(2, Program{Run: Forever})
		b.awaitRunning(ref)
		b.mustStop(ref, engine.Stop{Grace: patience, Reason: "enough"})
		r := b.awaitGone(ref)
		checkEnded(t, r, engine.Stopped, job.ExitCode{Signal: sigterm})
		if r.Message != "enough" {
			t.Errorf("message %q", r.Message)
		}
		b.mustStop(ref, engine.Stop{}) // no error
	})
	h.run(t, "Resists", func(t *testing.T) {
		b := startBench(t, h)
		ref := b.launchProgram(2, Program{Run: Forever, Resists: true})
		b.awaitRunning(ref)
		b.awaitReady(ref)
		const grace = 300 * time.Millisecond
		asked := b.Now()
		b.mustStop(ref, engine.Stop{Grace: grace})
		r := b.awaitReport(ref, "ending", func(r engine.Report) bool { return r.Phase == engine.Ending })
		if r.Gone { // nothing is freed while it lives
			t.Errorf("%s", describeReport(r))
		}
		r = b.awaitGone(ref)
		checkEnded(t, r, engine.Stopped, job.ExitCode{Signal: sigkill})
		if d := r.Ended.Sub(asked); d < grace {
			t.Errorf("killed after %s, in the grace of %s", d, grace)
		}
	})
	h.run(t, "LeftResists", func(t *testing.T) {
		b := startBench(t, h)
		l := b.planLaunch(1, 2, Program{Exit: 4, Leaves: true, Resists: true})
		l.Grace = 300 * time.Millisecond
		b.mustLaunch(l)
		checkEnded(t, b.awaitGone(l.Ref), engine.Exited, job.ExitCode{Status: 4})
	})
	h.run(t, "Hastened", func(t *testing.T) {
		b := startBench(t, h)
		ref := b.launchProgram(2, Program{Run: Forever, Resists: true})
		b.awaitRunning(ref)
		b.awaitReady(ref)
		b.mustStop(ref, engine.Stop{Grace: time.Hour})
		b.awaitReport(ref, "ending", func(r engine.Report) bool { return r.Phase == engine.Ending })
		b.mustStop(ref, engine.Stop{}) // a second one kills
		checkEnded(t, b.awaitGone(ref), engine.Stopped, job.ExitCode{Signal: sigkill})
	})
	h.run(t, "AtOnce", func(t *testing.T) {
		b := startBench(t, h)
		ref := b.launchProgram(2, Program{Run: Forever})
		b.awaitRunning(ref)
		b.mustStop(ref, engine.Stop{})
		checkEnded(t, b.awaitGone(ref), engine.Stopped, job.ExitCode{Signal: sigkill})
	})
	h.run(t, "OtherSignal", func(t *testing.T) {
		b := startBench(t, h)
		ref := b.launchProgram(1, Program{Run: Forever, Resists: true})
		b.awaitRunning(ref)
		b.awaitReady(ref)
		b.mustStop(ref, engine.Stop{Signal: sigkill, Grace: time.Hour})
		r := b.awaitGone(ref)
		if r.Cause != engine.Stopped || r.Exit.Signal != sigkill {
			t.Errorf("%s", describeReport(r))
		}
	})
}

func testSignal(t *testing.T, h Harness) {
	b := startBench(t, h)
	ref := b.launchProgram(2, Program{Run: Forever})
	b.awaitRunning(ref)
	if err := b.e.Signal(t.Context(), ref, 0, engine.ToAll); err != nil {
		t.Errorf("signal 0: %v", err)
	}
	if err := b.e.Signal(t.Context(), ref, sigterm, engine.ToTasks); err != nil { // not to the script
		t.Error(err)
	}
	if err := b.e.Signal(t.Context(), ref, sigterm, engine.ToBatch); err != nil {
		t.Error(err)
	}
	checkEnded(t, b.awaitGone(ref), engine.Exited, job.ExitCode{Signal: sigterm})
	if err := b.e.Signal(t.Context(), ref, sigterm, engine.ToAll); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

func testLimit(t *testing.T, h Harness) {
	h.run(t, "Term", func(t *testing.T) {
		b := startBench(t, h)
		l := b.planLaunch(1, 2, Program{Run: Forever})
		l.Job.Spec.TimeLimit = 200 * time.Millisecond
		b.mustLaunch(l)
		r := b.awaitGone(l.Ref)
		checkEnded(t, r, engine.TimedOut, job.ExitCode{Signal: sigterm})
		if d := r.Ended.Sub(r.Started); d < l.Job.Spec.TimeLimit {
			t.Errorf("ended after %s", d)
		}
	})
	h.run(t, "Resists", func(t *testing.T) {
		b := startBench(t, h)
		l := b.planLaunch(1, 2, Program{Run: Forever, Resists: true})
		l.Job.Spec.TimeLimit, l.Grace = time.Second, 200*time.Millisecond
		b.mustLaunch(l)
		r := b.awaitGone(l.Ref)
		checkEnded(t, r, engine.TimedOut, job.ExitCode{Signal: sigkill})
		if d := r.Ended.Sub(r.Started); d < l.Job.Spec.TimeLimit+l.Grace {
			t.Errorf("killed after %s", d)
		}
	})
}
