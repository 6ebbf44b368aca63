package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// A supervisor that cannot write its journal keeps the exit code in memory, says
// that it is uncertain, and loses nothing once there is room.
func TestFullDiskLosesNoExitCode(t *testing.T) {
	disk := smallDisk(t, "8k") // a page for the journal, one for the filler
	fill(t, disk)
	if err := os.Truncate(filepath.Join(disk, "filler"), 4096); err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1, "read line < $GATE", "exit 5")
	gate := gate(t, l)
	// Names so long that what is known at the start fits the page, and the end does not.
	l.Job.Spec.WorkDir = filepath.Join(l.Job.Spec.WorkDir, strings.Repeat(strings.Repeat("d", 199)+"/", 8))
	if err := os.MkdirAll(l.Job.Spec.WorkDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(e.Root(), "journal."+l.Claims[0].Node), []byte(filepath.Join(disk, "journal")), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, e, l)
	if r := until(t, e, l.Ref, running); r.Uncertain {
		t.Fatal("the page was full too early")
	}
	gate()
	r := until(t, e, l.Ref, func(r engine.Report) bool { return r.Uncertain && r.Exit.Status == 5 })
	if r.Gone || !strings.Contains(r.Message, "make room") {
		t.Errorf("gone %t, %q", r.Gone, r.Message)
	}
	if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
		t.Fatal(err)
	}
	r = until(t, e, l.Ref, gone)
	if r.Cause != engine.Exited || r.Exit.Status != 5 || r.Uncertain {
		t.Errorf("%s, %s, uncertain %t", r.Cause, r.Exit, r.Uncertain)
	}
}

// A launch for whose journal there is no room is undone, and is not the job's failure;
// its supervisor takes the next one.
func TestFullDiskIsNotTheJobsFailure(t *testing.T) {
	disk := smallDisk(t, "8k")
	journal := filepath.Join(disk, "journal")
	if err := os.WriteFile(journal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fill(t, disk)
	e := newEngine(t, local.Config{})
	l := plan(t, e, 2, "exit 5")
	if err := os.WriteFile(filepath.Join(e.Root(), "journal."+l.Claims[1].Node), []byte(journal), 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, e, l)
	r := until(t, e, l.Ref, gone)
	if r.Cause != engine.Unready || !r.Started.IsZero() || !strings.Contains(r.Message, "make room") {
		t.Errorf("%s, started %s: %q", r.Cause, r.Started, r.Message)
	}
	if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
		t.Fatal(err)
	}
	l.Ref.Attempt++
	launch(t, e, l)
	if r := until(t, e, l.Ref, gone); r.Cause != engine.Exited || r.Exit.Status != 5 {
		t.Errorf("with room again: %s, %s: %q", r.Cause, r.Exit, r.Message)
	}
}

// TestALaunchThatCannotBeWrittenDown is made again by who called, and runs then: that the disk of the
// state directory fails for a moment is not the job's failure.
//
// Seen to fail with: an error of the log, and one of the checkpoints' folder, that are fault.Internal.
func TestALaunchThatCannotBeWrittenDown(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1, "exit 5")
	later := func(what string) {
		t.Helper()
		if err := e.Launch(t.Context(), l); fault.KindOf(err) != fault.Unavailable || fault.Remedy(err) == "" {
			t.Errorf("%s: %v, %v; %q", what, fault.KindOf(err), err, fault.Remedy(err))
		}
	}
	folder := attempt.CheckpointsOf(e.Root())
	if err := os.Rename(folder, folder+".away"); err != nil {
		t.Fatal(err)
	}
	later("no folder of checkpoints")
	if err := os.Rename(folder+".away", folder); err != nil {
		t.Fatal(err)
	}
	broken, _, err := attempt.OpenLog(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
	whole := e.SwapLog(broken)
	later("no log")
	e.SwapLog(whole)
	launch(t, e, l)
	if r := until(t, e, l.Ref, gone); r.Cause != engine.Exited || r.Exit.Status != 5 {
		t.Errorf("%s, %s: %q", r.Cause, r.Exit, r.Message)
	}
}

// A disk that fills up while a job runs does no harm: a journal has room of its own.
func TestJournalHasRoomOfItsOwn(t *testing.T) {
	disk := smallDisk(t, "64m") // holds a copy of the binary
	e := newEngine(t, local.Config{Root: filepath.Join(disk, "root")})
	l := plan(t, e, 2, "read line < $GATE", "exit 5")
	gate := gate(t, l)
	launch(t, e, l)
	until(t, e, l.Ref, running)
	fill(t, disk)
	gate()
	r := until(t, e, l.Ref, func(r engine.Report) bool { return r.Gone || r.Uncertain })
	if r.Cause != engine.Exited || r.Exit.Status != 5 || r.Uncertain {
		t.Errorf("%s, %s, uncertain %t", r.Cause, r.Exit, r.Uncertain)
	}
}

// gate gives a script a file $GATE from which it reads a line, when the returned
// function is called.
func gate(t *testing.T, l *engine.Launch) func() {
	t.Helper()
	name := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Env = append(l.Env, "GATE="+name)
	return func() {
		t.Helper()
		if err := os.WriteFile(name, []byte("go\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A supervisor that does not answer is ended, and what it watched over with it. The
// attempt was stopped then, whichever supervisor is found dead first.
func TestDeafSupervisor(t *testing.T) {
	for _, nodes := range []int{1, 2} {
		e := newEngine(t, local.Config{Deaf: 2 * time.Second})
		l := plan(t, e, nodes, "trap '' TERM; sleep 600 & echo ready; while :; do sleep 1; done")
		launch(t, e, l)
		r := until(t, e, l.Ref, everywhere)
		script := r.Tasks[0].PID
		for _, n := range r.Nodes {
			if err := unix.Kill(n.PID, unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it has stopped", func() bool {
				st, err := proc.Read(n.PID)
				return err != nil || st.State == 'T'
			})
		}
		if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: time.Hour}); err != nil {
			t.Fatal(err)
		}
		r = until(t, e, l.Ref, gone)
		if r.Cause != engine.Stopped || r.Exit.OK() {
			t.Errorf("%d nodes: %s, %s", nodes, r.Cause, r.Exit)
		}
		if st, err := proc.Read(script); err == nil && !st.Dead() {
			t.Errorf("%d nodes: the script lives: %+v", nodes, st)
		}
	}
}

// A gang of which a node is never ready is undone.
func TestNeverReady(t *testing.T) {
	e := newEngine(t, local.Config{Ready: 2 * time.Second, Deaf: 2 * time.Second})
	l := plan(t, e, 3, "exit 0")
	hang := filepath.Join(e.Root(), "hang."+l.Claims[1].Node)
	if err := os.WriteFile(hang, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, e, l)
	if r.Cause != engine.Unready || !strings.Contains(r.Message, l.Claims[1].Node) || !r.Started.IsZero() {
		t.Errorf("%s: %q", r.Cause, r.Message)
	}
}

// A child that has hidden its environment, its session and its parent is found
// by its control group after the supervisor was killed.
func TestHiddenChildOfDeadSupervisor(t *testing.T) {
	e := newEngine(t, local.Config{})
	if info, err := e.Info(t.Context()); err != nil || !info.Abilities.Proves {
		t.Skip("no control groups here")
	}
	pidFile := filepath.Join(t.TempDir(), "pid")
	l := plan(t, e, 1, "env -i /bin/sh -c 'setsid /bin/sh -c \"echo \\$\\$ > "+pidFile+".new; /bin/mv "+pidFile+".new "+pidFile+"; exec /bin/sleep 600\" &'", "exec sleep 600")
	launch(t, e, l)
	r := until(t, e, l.Ref, running)
	var pid int
	eventually(t, "the hidden child is there", func() bool {
		b, err := os.ReadFile(pidFile)
		if err != nil {
			return false
		}
		for _, c := range strings.TrimSpace(string(b)) {
			pid = pid*10 + int(c-'0')
		}
		return true
	})
	if err := unix.Kill(r.Nodes[0].PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r = until(t, e, l.Ref, gone)
	if r.Cause != engine.NodeLost {
		t.Errorf("%s", r.Cause)
	}
	if st, err := proc.Read(pid); err == nil && !st.Dead() {
		t.Errorf("it lives: %+v", st)
	}
}

// A reused pid is not taken for the supervisor.
func TestReusedPIDIsNotAdopted(t *testing.T) {
	e := newEngine(t, local.Config{})
	root, nodes := e.Root(), e.Room()
	l := plan(t, e, 1, "exec sleep 600")
	launch(t, e, l)
	r := until(t, e, l.Ref, running)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	id := identity(t, root, l.Ref, l.Claims[0].Node)
	if err := unix.Kill(r.Nodes[0].PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	id.PID, id.Start = os.Getpid(), id.Start+1 // the number now names another process: this one
	rewrite(t, root, l.Ref, l.Claims[0].Node, id)
	again := newEngine(t, local.Config{Root: root, Nodes: nodes})
	if r := until(t, again, l.Ref, gone); r.Cause != engine.NodeLost {
		t.Errorf("%s", r.Cause)
	}
}

// Work that is tethered to its engine ends when that is gone.
func TestTether(t *testing.T) {
	root := t.TempDir()
	e := newEngine(t, local.Config{Root: root, Tether: 100 * time.Millisecond})
	l := plan(t, e, 2, "exec sleep 600")
	launch(t, e, l)
	r := until(t, e, l.Ref, running)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "every supervisor has ended", func() bool {
		for _, n := range r.Nodes {
			if st, err := proc.Read(n.PID); err == nil && !st.Dead() {
				return false
			}
		}
		return true
	})
	again := newEngine(t, local.Config{Root: root, Nodes: e.Room()})
	r = until(t, again, l.Ref, gone)
	if r.Cause != engine.Stopped || r.Message == "" {
		t.Errorf("%s: %q", r.Cause, r.Message)
	}
}

// After a restart of the machine nothing lives, whatever the numbers say.
func TestMachineWasRestarted(t *testing.T) {
	root := t.TempDir()
	e := newEngine(t, local.Config{Root: root})
	l := plan(t, e, 1, "exec sleep 600")
	launch(t, e, l)
	r := until(t, e, l.Ref, running)
	id := identity(t, root, l.Ref, l.Claims[0].Node)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	other := id
	other.BootID = "of another run"
	rewrite(t, root, l.Ref, l.Claims[0].Node, other)
	again := newEngine(t, local.Config{Root: root, Nodes: e.Room()})
	r = until(t, again, l.Ref, gone)
	if r.Cause != engine.NodeLost || !strings.Contains(r.Message, "machine was restarted") {
		t.Errorf("%s: %q", r.Cause, r.Message)
	}
	if !proc.Alive(id.PID, id.Start) {
		t.Error("a process of this run was taken for one of the other")
	}
	if err := unix.Kill(id.PID, unix.SIGTERM); err != nil { // it ends what it watches over, and then itself
		t.Fatal(err)
	}
	eventually(t, "the supervisor has ended", func() bool { return !proc.Alive(id.PID, id.Start) })
}

// A gang that loses a node while no engine looks was lost, not failed: its script ends
// with an error, because its srun does.
func TestGangThatLostANodeUnseen(t *testing.T) {
	root := t.TempDir()
	e := newEngine(t, local.Config{Root: root})
	l := plan(t, e, 2, "srun sleep 600")
	l.Grace = time.Second
	launch(t, e, l)
	r := until(t, e, l.Ref, func(r engine.Report) bool {
		n := 0
		for _, task := range r.Tasks {
			if task.Step == 0 && task.Running {
				n++
			}
		}
		return n == 2
	})
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(r.Nodes[1].PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the script has ended", func() bool {
		st, err := proc.Read(r.Tasks[0].PID)
		return err != nil || st.Dead()
	})
	again := newEngine(t, local.Config{Root: root, Nodes: e.Room()})
	r = until(t, again, l.Ref, gone)
	if r.Cause != engine.NodeLost || !strings.Contains(r.Message, r.Nodes[1].Node) || r.Exit.OK() {
		t.Errorf("%s, %s: %q", r.Cause, r.Exit, r.Message)
	}
}

// TestASupervisorKilledBeforeTheBarrier is no failure of the job, whichever node's it is: nothing of
// the program has run, nothing lives, and the next attempt runs.
//
// Seen to fail with: failureCause that calls it a failed launch.
func TestASupervisorKilledBeforeTheBarrier(t *testing.T) {
	for _, node := range []int{0, 1} {
		began, open := filepath.Join(passable(t), "began"), filepath.Join(passable(t), "open")
		// The prologs wait until the test lets them end, so that the barrier stays shut.
		e := newEngine(t, local.Config{Prolog: hook(t, "echo >> "+began+"; while [ ! -e "+open+" ]; do sleep 0.01; done")})
		l := plan(t, e, 2, "touch ran", "exit 5")
		launch(t, e, l)
		r := until(t, e, l.Ref, func(r engine.Report) bool { return r.Nodes[0].PID != 0 && r.Nodes[1].PID != 0 })
		eventually(t, "both prologs run", func() bool { b, _ := os.ReadFile(began); return strings.Count(string(b), "\n") == 2 })
		if err := unix.Kill(r.Nodes[node].PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r = until(t, e, l.Ref, gone)
		if r.Cause != engine.Unready || !r.Started.IsZero() || !strings.Contains(r.Message, "the supervisor on "+l.Claims[node].Node) {
			t.Errorf("node %d: %s, started %s: %q", node, r.Cause, r.Started, r.Message)
		}
		if _, err := os.Stat(filepath.Join(l.Job.Spec.WorkDir, "ran")); err == nil {
			t.Errorf("node %d: the program ran", node)
		}
		if n := living(t, e, e.Root(), l.Ref); n != 0 {
			t.Errorf("node %d: %d processes live", node, n)
		}
		if err := os.WriteFile(open, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		l.Ref.Attempt++
		launch(t, e, l)
		if r := until(t, e, l.Ref, gone); r.Cause != engine.Exited || r.Exit.Status != 5 {
			t.Errorf("node %d, again: %s, %s: %q", node, r.Cause, r.Exit, r.Message)
		}
	}
}

// TestASupervisorKilledAtEveryLaunch is launched again for nothing a few times only: then the launch
// counts as failed, which the control plane bounds, and says what to look for. A job that began is
// counted anew.
//
// Seen to fail with: no count; a count that a start does not end.
func TestASupervisorKilledAtEveryLaunch(t *testing.T) {
	began, open := filepath.Join(passable(t), "began"), filepath.Join(passable(t), "open")
	e := newEngine(t, local.Config{Prolog: hook(t, "echo >> "+began+"; while [ ! -e "+open+" ]; do sleep 0.01; done")})
	l := plan(t, e, 1, "exit 5")
	killed := func() engine.Report {
		l.Ref.Attempt++
		if err := os.WriteFile(began, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		launch(t, e, l)
		r := until(t, e, l.Ref, func(r engine.Report) bool { return r.Nodes[0].PID != 0 })
		eventually(t, "the prolog runs", func() bool { b, _ := os.ReadFile(began); return len(b) > 0 })
		if err := unix.Kill(r.Nodes[0].PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return until(t, e, l.Ref, gone)
	}
	for i := range 5 {
		want := engine.Unready
		if i >= 3 {
			want = engine.LaunchFailed
		}
		r := killed()
		if r.Cause != want || i >= 3 && !strings.Contains(r.Message, "kernel's log (dmesg)") || i < 3 && strings.Contains(r.Message, "dmesg") {
			t.Errorf("launch %d: %s: %q", i+1, r.Cause, r.Message)
		}
	}
	if err := os.WriteFile(open, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l.Ref.Attempt++
	launch(t, e, l)
	until(t, e, l.Ref, gone)
	if err := os.Remove(open); err != nil {
		t.Fatal(err)
	}
	if r := killed(); r.Cause != engine.Unready {
		t.Errorf("after a start: %s: %q", r.Cause, r.Message)
	}
}
