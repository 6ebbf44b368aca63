package local_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
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
	// A script that goes on does not make it a success: who depends on it would begin. On which
	// node and how it was started makes no difference.
	for i, script := range []string{
		me + " hog; exit 0", me + " hog & wait; exit 0", "srun -n1 -N1 " + me + " hog; exit 0",
		"srun sh -c 'test $SLURM_NODEID = 1 && { " + me + " hog; true; }'; exit 0",
	} {
		l = plan(t, e, 2, script)
		l.Ref.Allocation = uint64(3 + i)
		l.Claims[0].Take.Memory, l.Claims[1].Take.Memory = 64*resource.MiB, 64*resource.MiB
		r := run(t, e, l)
		if r.Cause != engine.OutOfMemory || r.Exit != job.OutOfMemoryExit || !strings.Contains(r.Message, "64 MiB") {
			t.Errorf("%s: %s, %s: %q", script, r.Cause, r.Exit, r.Message)
		}
		of := []string{"7.batch", "7.batch", "7.0", ""}[i]
		if out := read(t, r.Files[0]); of != "" && !strings.Contains(out, "slurmstepd: error: Detected 1 oom_kill event in StepId="+of+". ") {
			t.Errorf("%s: %q", script, out)
		}
	}
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

// Only what the kernel killed is called out of memory, not what was killed after it.
func TestOnlyTheVictimIsOutOfMemory(t *testing.T) {
	e := newEngine(t, local.Config{})
	if info, err := e.Info(t.Context()); err != nil || !info.Abilities.Isolates {
		t.Skip("memory is not limited here")
	}
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := plan(t, e, 1, `srun -n 2 --overcommit --kill-on-bad-exit=1 sh -c 'trap "" TERM; test $SLURM_PROCID = 1 && exec "$0" hog; while :; do sleep 0.1; done' `+me)
	l.Claims[0].Tasks = 2
	l.Claims[0].Take = resource.Vector{CPU: 2 * resource.OneCPU, Memory: 64 * resource.MiB}
	l.Grace = 300 * time.Millisecond
	r := run(t, e, l)
	ts := tasks(r, 0)
	if r.Cause != engine.OutOfMemory || len(ts) != 2 || ts[1].Cause != engine.OutOfMemory || ts[0].Cause == engine.OutOfMemory || ts[0].Exit.Signal != 9 {
		t.Errorf("%s: %+v\n%s", r.Cause, ts, read(t, r.Files[0]))
	}
}

// TestProcessesAreBounded lets a job fork until it cannot.
func TestProcessesAreBounded(t *testing.T) {
	e := newEngine(t, local.Config{Processes: 40})
	info, err := e.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(info.Notes, func(n string) bool { return strings.Contains(n, "processes is not bounded") }) {
		t.Skip(info.Notes)
	}
	l := plan(t, e, 1, `i=0; while test $i -lt 200; do sleep 600 & i=$((i+1)); echo $i; done; echo all`)
	r := run(t, e, l)
	if out := read(t, r.Files[0]); r.Exit.OK() || strings.Contains(out, "all") || strings.Contains(out, "\n41\n") || !strings.Contains(out, "\n20\n") {
		t.Errorf("%s, %s: %q", r.Cause, r.Exit, out)
	}
	// Who comes next on the seat has his own.
	l = plan(t, e, 1, `i=0; while test $i -lt 20; do sleep 600 & i=$((i+1)); done; echo all`)
	l.Ref.Allocation = 2
	r = run(t, e, l)
	if succeeded(t, r); read(t, r.Files[0]) != "all\n" {
		t.Errorf("%q", read(t, r.Files[0]))
	}
}
