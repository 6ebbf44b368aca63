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
		b := start(t, h)
		ref := b.begin(2, Program{Run: Forever})
		was := b.running(ref)
		b.reopen(func() {})
		r := b.running(ref)
		if !r.Started.Equal(was.Started) || len(r.Nodes) != len(was.Nodes) {
			t.Errorf("%s after the restart, %s before", describe(r), describe(was))
		}
		b.launch(b.plans[ref]) // the caller got no answer and repeats
		b.stop(ref, engine.Stop{Grace: patience})
		ended(t, b.gone(ref), engine.Stopped, job.ExitCode{Signal: sigterm})
	})
	h.run(t, "ExitWhileClosed", func(t *testing.T) {
		b := start(t, h)
		l := b.plan(1, 2, Program{Run: 300 * time.Millisecond, Exit: 7})
		b.launch(l)
		b.running(l.Ref)
		b.reopen(func() {
			if b.Living != nil {
				b.poll("the program has ended", func() bool { return b.Living(t, b.e, l.Ref) == 0 })
			}
		})
		ended(t, b.gone(l.Ref), engine.Exited, job.ExitCode{Status: 7})
	})
	h.run(t, "DuringLaunch", func(t *testing.T) {
		b := start(t, h)
		l := b.plan(1, 4, Program{Exit: 5})
		b.launch(l)
		b.reopen(func() {}) // wherever it was
		b.launch(l)
		ended(t, b.gone(l.Ref), engine.Exited, job.ExitCode{Status: 5})
	})
	h.run(t, "AfterEnd", func(t *testing.T) {
		b := start(t, h)
		ref := b.begin(2, Program{Exit: 6})
		was := b.gone(ref)
		b.reopen(func() {})
		r := b.gone(ref)
		ended(t, r, engine.Exited, job.ExitCode{Status: 6})
		if !r.Ended.Equal(was.Ended) || len(r.Tasks) != len(was.Tasks) {
			t.Errorf("%+v after the restart, %+v before", r, was)
		}
		if err := b.e.Forget(t.Context(), ref); err != nil {
			t.Error(err)
		}
		b.reopen(func() {})
		if all, err := b.e.List(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("forgotten, and there again: %+v, %v", all, err)
		}
	})
	h.run(t, "Ending", func(t *testing.T) {
		b := start(t, h)
		ref := b.begin(2, Program{Run: Forever, Resists: true})
		b.running(ref)
		b.ready(ref)
		b.stop(ref, engine.Stop{Grace: 500 * time.Millisecond, Reason: "enough"})
		b.await(ref, "ending", func(r engine.Report) bool { return r.Phase == engine.Ending })
		b.reopen(func() {})
		r := b.gone(ref)
		ended(t, r, engine.Stopped, job.ExitCode{Signal: sigkill})
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
			b := start(t, h)
			l := b.plan(1, 2, Program{Run: Forever, Resists: true, Leaves: true})
			l.Grace = 200 * time.Millisecond
			b.launch(l)
			b.running(l.Ref)
			b.ready(l.Ref)
			b.Kill(t, b.e, l.Ref, b.node(l.Ref, k))
			r := b.gone(l.Ref)
			if r.Cause != engine.NodeLost || r.Exit.OK() || r.Message == "" {
				t.Errorf("%s", describe(r))
			}
		})
	}
	h.run(t, "WhileClosed", func(t *testing.T) {
		if h.Reopen == nil {
			t.Skip("this driver leaves nothing behind")
		}
		b := start(t, h)
		ref := b.begin(2, Program{Run: Forever, Resists: true, Leaves: true})
		b.running(ref)
		b.ready(ref)
		head := b.node(ref, 0)
		b.reopen(func() { b.Kill(t, b.e, ref, head) })
		r := b.gone(ref)
		if r.Cause != engine.NodeLost || r.Exit.OK() {
			t.Errorf("%s", describe(r))
		}
	})
}
