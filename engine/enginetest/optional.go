package enginetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// testOptional is what holds for drivers with optional abilities. Commands of the
// shell are understood by those that execute any.
func testOptional(t *testing.T, h Harness) {
	h.run(t, "Exec", func(t *testing.T) { testExec(t, h) })
	h.run(t, "Suspend", func(t *testing.T) { testSuspend(t, h) })
	h.run(t, "Drain", func(t *testing.T) { testDrain(t, h) })
	h.run(t, "Logs", func(t *testing.T) { testLogs(t, h) })
}

func testExec(t *testing.T, h Harness) {
	b := startBench(t, h)
	x, ok := b.e.(engine.Execer)
	if !ok {
		t.Skip("this driver executes nothing beside tasks")
	}
	shell := func(script string) engine.ExecRequest {
		return engine.ExecRequest{Command: []string{"/bin/sh", "-c", script}}
	}
	_, err := x.Exec(t.Context(), engine.Ref{Allocation: 99, Attempt: 1}, shell("exit 0"))
	checkKind(t, err, fault.NotFound)
	ref := b.launchProgram(2, Program{Run: Forever})
	b.awaitRunning(ref)
	var out, errs bytes.Buffer
	r := shell("cat; echo $MINE; echo err >&2; exit 7")
	r.Stdin, r.Stdout, r.Stderr, r.Env = strings.NewReader("in\n"), &out, &errs, []string{"MINE=mine"}
	r.Node = b.nodeOf(ref, 1)
	code, err := x.Exec(t.Context(), ref, r)
	if err != nil || code != (job.ExitCode{Status: 7}) || out.String() != "in\nmine\n" || errs.String() != "err\n" {
		t.Errorf("%s, %v, %q, %q", code, err, out.String(), errs.String())
	}
	r = shell("exit 0")
	r.Node = "a node that it does not have"
	_, err = x.Exec(t.Context(), ref, r)
	checkKind(t, err, fault.NotFound)
	ctx, cancel := context.WithCancel(t.Context())
	said := writer(cancel) // as soon as it runs
	r = shell("echo; exec sleep 600")
	r.Stdout = said
	if _, err := x.Exec(ctx, ref, r); !errors.Is(err, context.Canceled) {
		t.Errorf("its caller has gone: %v", err)
	}
	b.awaitRunning(ref)
	b.mustStop(ref, engine.Stop{})
	b.awaitGone(ref)
	_, err = x.Exec(t.Context(), ref, shell("exit 0"))
	checkKind(t, err, fault.Conflict)
}

// writer calls itself for every Write.
type writer func()

func (w writer) Write(b []byte) (int, error) { w(); return len(b), nil }

func testSuspend(t *testing.T, h Harness) {
	b := startBench(t, h)
	info, err := b.e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, ok := b.e.(engine.Suspender)
	if ok != info.Abilities.Suspend {
		t.Errorf("it says suspend %t and is a Suspender %t", info.Abilities.Suspend, ok)
	}
	if !ok {
		t.Skip("this driver suspends nothing")
	}
	unknown := engine.Ref{Allocation: 99, Attempt: 1}
	checkKind(t, s.Suspend(t.Context(), unknown), fault.NotFound)
	checkKind(t, s.Resume(t.Context(), unknown), fault.NotFound)
	ref := b.launchProgram(2, Program{Run: Forever})
	b.awaitRunning(ref)
	for range 2 {
		if err := s.Suspend(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	suspended := func(r engine.Report) bool { return r.Suspended && r.Phase == engine.Running }
	last := b.awaitReport(ref, "suspended", suspended)
	began := time.Now()
	for n := 0; n < 8 && (n == 0 || time.Since(began) < 3*time.Second); n++ { // what it said before must not be taken for an answer to this; some engines take seconds for it
		if err := errors.Join(s.Resume(t.Context(), ref), s.Suspend(t.Context(), ref)); err != nil {
			t.Fatal(err)
		}
		r, err := b.e.Inspect(t.Context(), ref)
		if err != nil || r.Suspended && r.Version <= last.Version {
			t.Fatalf("resumed and suspended again, it is %+v, %v; before it was %+v", r, err, last)
		}
		last = b.awaitReport(ref, "suspended again", func(now engine.Report) bool { return suspended(now) && now.Version >= r.Version })
	}
	for range 2 {
		if err := s.Resume(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	b.pollUntil("it goes on", func() bool {
		r, err := b.e.Inspect(t.Context(), ref)
		return err == nil && !r.Suspended
	})
	if err := s.Suspend(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	b.mustStop(ref, engine.Stop{Grace: patience}) // it can act on the signal
	checkEnded(t, b.awaitGone(ref), engine.Stopped, job.ExitCode{Signal: sigterm})
	if err := errors.Join(s.Suspend(t.Context(), ref), s.Resume(t.Context(), ref)); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

func testLogs(t *testing.T, h Harness) {
	b := startBench(t, h)
	l, ok := b.e.(engine.Logger)
	if !ok {
		t.Skip("this driver opens no logs")
	}
	ref := b.launchProgram(1, Program{Run: Forever})
	b.awaitRunning(ref)
	b.awaitReady(ref)
	r, err := b.e.Inspect(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	name, err := engine.LogFile(r, "stdout", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	read := func() {
		t.Helper()
		f, err := l.OpenLog(t.Context(), job.Owner{}, name)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if text, err := io.ReadAll(f); err != nil || !strings.HasPrefix(string(text), "ready\n") { // an engine may add that it was killed
			t.Errorf("%q, %v", text, err)
		}
	}
	read()
	_, err = l.OpenLog(t.Context(), job.Owner{}, name+".none")
	checkKind(t, err, fault.NotFound)
	checkKind(t, l.Purge(t.Context(), ref), fault.Conflict)
	b.mustStop(ref, engine.Stop{})
	b.awaitGone(ref)
	if err := b.e.Forget(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	read()
	for range 2 {
		if err := l.Purge(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	if h.Keeps {
		_, err = l.OpenLog(t.Context(), job.Owner{}, name)
		checkKind(t, err, fault.NotFound)
		return
	}
	read() // the owner's own file
}
