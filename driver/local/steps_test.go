package local_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// tasks are the reports of a step's tasks, by rank.
func tasks(r engine.Report, step int) []engine.TaskReport {
	return slices.DeleteFunc(slices.Clone(r.Tasks), func(t engine.TaskReport) bool { return t.Step != step })
}

func TestStepOverNodes(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 3, "srun sh -c 'echo rank $SLURM_PROCID; exit $SLURM_PROCID'", "exit $?")
	r := run(t, e, l)
	if r.Cause != engine.Exited || r.Exit.Status != 2 {
		t.Errorf("%s, %s: %s", r.Cause, r.Exit, read(t, r.Files[0]))
	}
	ts := tasks(r, 0)
	if len(ts) != 3 {
		t.Fatalf("tasks %+v", r.Tasks)
	}
	for i, task := range ts {
		if task.Rank != i || task.Node != l.Claims[i].Node || task.Exit.Status != i || task.Running || task.Started.IsZero() || task.Ended.Before(task.Started) {
			t.Errorf("task %+v", task)
		}
		if want := "rank " + string(rune('0'+i)) + "\n"; read(t, task.Log) != want {
			t.Errorf("log of rank %d: %q", i, read(t, task.Log))
		}
	}
	if r.Tasks[0].Step != engine.BatchStep {
		t.Errorf("the first task is %+v", r.Tasks[0])
	}
	// The logs are kept for history when the attempt is forgotten.
	if err := e.Forget(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	if read(t, ts[1].Log) != "rank 1\n" {
		t.Error("the log is gone")
	}
}

func TestDirectProgram(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 4)
	l.Script, l.Job.Spec.Program = nil, job.Program{Kind: job.Direct, Args: []string{"sh", "-c", `test "$SLURM_PROCID" = 3 && exit 6; exec sleep 600`}}
	l.Job.Spec.KillOnBadExit = true
	r := run(t, e, l) // one that fails ends the others
	if r.Cause != engine.Exited || r.Exit.Status != 6 {
		t.Errorf("%s, %s", r.Cause, r.Exit)
	}
	if ts := tasks(r, 0); len(ts) != 4 || ts[3].Exit.Status != 6 || ts[0].Exit.Signal == 0 {
		t.Errorf("tasks %+v", ts)
	}
}

// TestDirectProgramGoesOn: without KillOnBadExit a failed task ends no other one.
//
// Seen to fail with: an srun that is always told to kill.
func TestDirectProgramGoesOn(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 2)
	end := filepath.Join(t.TempDir(), "end")
	l.Script, l.Job.Spec.Program = nil, job.Program{Kind: job.Direct, Args: []string{"sh", "-c", `test "$SLURM_PROCID" = 1 && exit 6; while ! test -e ` + end + `; do sleep 0.05; done`}}
	launch(t, e, l)
	until(t, e, l.Ref, func(r engine.Report) bool {
		ts := tasks(r, 0)
		return len(ts) == 2 && !ts[1].Running
	})
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := until(t, e, l.Ref, gone)
	if ts := tasks(r, 0); len(ts) != 2 || !ts[0].Exit.OK() || ts[1].Exit.Status != 6 || r.Exit.Status != 6 {
		t.Errorf("%s, %s, tasks %+v", r.Cause, r.Exit, ts)
	}
}

func TestSignalToTasks(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 2, "trap 'echo the script too; exit 9' USR1",
		`srun sh -c 'trap "echo caught; exit 0" USR1; echo ready; while :; do sleep 0.05; done'; exit $?`)
	launch(t, e, l)
	r := until(t, e, l.Ref, func(r engine.Report) bool { return len(tasks(r, 0)) == 2 && tasks(r, 0)[1].Running })
	eventually(t, "both ranks are ready", func() bool {
		for _, task := range tasks(r, 0) {
			if b, err := os.ReadFile(task.Log); err != nil || !strings.Contains(string(b), "ready") {
				return false
			}
		}
		return true
	})
	if err := e.Signal(t.Context(), l.Ref, int(unix.SIGUSR1), engine.ToTasks); err != nil {
		t.Fatal(err)
	}
	r = until(t, e, l.Ref, gone)
	succeeded(t, r)
	if out := read(t, r.Files[0]); strings.Count(out, "caught") != 2 || strings.Contains(out, "script") {
		t.Errorf("output %q", out)
	}
}

// A job whose script has ended takes the steps that still run with it, on every
// node, also those that ignore SIGTERM.
func TestEndOfScriptEndsSteps(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 3, `srun sh -c 'trap "" TERM; echo ready; while :; do sleep 1; done' &`, "read line < $GATE", "exit 4")
	open := gate(t, l)
	l.Grace = 300 * time.Millisecond
	launch(t, e, l)
	until(t, e, l.Ref, func(r engine.Report) bool { return len(tasks(r, 0)) == 3 })
	open()
	r := until(t, e, l.Ref, gone)
	if r.Cause != engine.Exited || r.Exit.Status != 4 {
		t.Errorf("%s, %s", r.Cause, r.Exit)
	}
	for _, task := range tasks(r, 0) {
		if st, err := proc.Read(task.PID); err == nil && !st.Dead() && st.Parent != os.Getpid() {
			t.Errorf("rank %d lives: %+v", task.Rank, st)
		}
		if task.Exit.OK() {
			t.Errorf("rank %d: %s", task.Rank, task.Exit)
		}
	}
}

// The end of the script ends the gang with no server there to help.
func TestGangEndsWithoutServer(t *testing.T) {
	e := newEngine(t, local.Config{})
	root, nodes := e.Root(), e.Room()
	l := plan(t, e, 3, "srun sleep 600 &", "read line < $GATE", "exit 4")
	open := gate(t, l)
	launch(t, e, l)
	r := until(t, e, l.Ref, func(r engine.Report) bool { return len(tasks(r, 0)) == 3 })
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	open()
	eventually(t, "every supervisor has ended", func() bool {
		for _, n := range r.Nodes {
			if st, err := proc.Read(n.PID); err == nil && !st.Dead() {
				return false
			}
		}
		return true
	})
	again := newEngine(t, local.Config{Root: root, Nodes: nodes})
	r = until(t, again, l.Ref, gone)
	if r.Cause != engine.Exited || r.Exit.Status != 4 || len(tasks(r, 0)) != 3 {
		t.Errorf("%s, %s, %+v", r.Cause, r.Exit, r.Tasks)
	}
}

func TestOutOfMemoryInAStep(t *testing.T) {
	e := newEngine(t, local.Config{})
	if info, err := e.Info(t.Context()); err != nil || !info.Abilities.Isolates {
		t.Skip("memory is not limited here")
	}
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := plan(t, e, 2, `srun sh -c 'test $SLURM_PROCID = 1 && exec "$0" hog; exit 0' `+me+"; exit $?")
	for i := range l.Claims {
		l.Claims[i].Take.Memory = 64 * resource.MiB
	}
	r := run(t, e, l)
	if r.Cause != engine.OutOfMemory || !strings.Contains(r.Message, l.Claims[1].Node) {
		t.Errorf("%s, %s: %q\n%s", r.Cause, r.Exit, r.Message, read(t, r.Files[0]))
	}
	if ts := tasks(r, 0); len(ts) != 2 || ts[1].Cause != engine.OutOfMemory || ts[0].Cause == engine.OutOfMemory {
		t.Errorf("tasks %+v", ts)
	}
}

// What a step's tasks leave behind in sessions of their own ends with the step.
func TestStepLeavesNothing(t *testing.T) {
	e := newEngine(t, local.Config{})
	if info, err := e.Info(t.Context()); err != nil || !info.Abilities.Proves {
		t.Skip("no control groups here")
	}
	pid := filepath.Join(t.TempDir(), "pid")
	l := plan(t, e, 1, "srun sh -c 'setsid sh -c \"echo \\$\\$ > "+pid+"; exec sleep 600\" & while ! test -s "+pid+"; do sleep 0.01; done'",
		`kill -0 $(cat `+pid+`) 2>/dev/null && exit 1; exit 0`)
	r := run(t, e, l)
	succeeded(t, r)
}

// A supervisor holds nothing open that the engine's caller has open.
func TestSupervisorInheritsNothing(t *testing.T) {
	e := newEngine(t, local.Config{})
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETFD, 0); err != nil { // as a shell leaves them
		t.Fatal(err)
	}
	l := plan(t, e, 1, "exec sleep 600")
	launch(t, e, l)
	until(t, e, l.Ref, running)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	end := make(chan error, 1)
	go func() { _, err := r.Read(make([]byte, 1)); end <- err }()
	select {
	case <-end:
	case <-time.After(patience):
		t.Error("something that the engine started holds a pipe of its caller open")
	}
}
