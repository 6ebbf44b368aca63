package local_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/resource"
)

func TestOutOfMemoryIsToldApart(t *testing.T) {
	e := newEngine(t, local.Config{})
	info, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !info.Abilities.Isolates {
		if len(info.Notes) == 0 {
			t.Error("memory is not limited, and nothing says why")
		}
		t.Skip(info.Notes)
	}
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := plan(t, e, 2, "exec "+me+" hog")
	for i := range l.Claims {
		l.Claims[i].Take.Memory = 64 * resource.MiB
	}
	r := run(t, e, l)
	if r.Cause != engine.OutOfMemory || !strings.Contains(r.Message, "64 MiB") || !strings.Contains(r.Message, "--mem") {
		t.Errorf("%s, %s: %q", r.Cause, r.Exit, r.Message)
	}
	// A SIGKILL that was not the kernel's is not taken for it.
	l = plan(t, e, 1, "kill -9 $$")
	l.Ref.Allocation = 2
	l.Claims[0].Take.Memory = 64 * resource.MiB
	if r := run(t, e, l); r.Cause != engine.Exited || r.Exit.Signal != 9 {
		t.Errorf("%s, %s: %q", r.Cause, r.Exit, r.Message)
	}
	// A script that coped with it has succeeded.
	l = plan(t, e, 1, me+" hog; exit 0")
	l.Ref.Allocation = 3
	l.Claims[0].Take.Memory = 64 * resource.MiB
	succeeded(t, run(t, e, l))
}

func TestSignalBeforeTheLimit(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1, "trap 'echo warned; exit 9' USR1", "while :; do sleep 0.05; done")
	l.Job.Spec.TimeLimit = 2 * time.Second
	l.Job.Spec.Signal = &job.SignalSpec{Signal: 10, Before: 1700 * time.Millisecond, BatchOnly: true}
	r := run(t, e, l)
	if r.Cause != engine.Exited || r.Exit.Status != 9 || read(t, r.Files[0]) != "warned\n" {
		t.Errorf("%s, %s, %q", r.Cause, r.Exit, read(t, r.Files[0]))
	}
}

func TestTimeLimitMessage(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 2, "exec sleep 600")
	l.Job.Spec.TimeLimit = 100 * time.Millisecond
	r := run(t, e, l)
	if r.Cause != engine.TimedOut || !strings.Contains(r.Message, "time limit of 100ms") {
		t.Errorf("%s: %q", r.Cause, r.Message)
	}
}
