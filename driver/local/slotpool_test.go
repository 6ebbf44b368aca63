package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// again is the same job as another attempt's.
func again(l *engine.Launch, n int) *engine.Launch {
	next := *l
	j := *l.Job
	next.Ref.Allocation, next.Job = uint64(n), &j
	j.ID += 1
	return &next
}

// A supervisor takes one attempt after the other, however they end, and nothing of
// one is left for the next.
func TestSupervisorsAreUsedAgain(t *testing.T) {
	for _, naming := range namings(t) {
		t.Run(string(naming), func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, local.Config{Naming: naming})
			pids := map[int]bool{}
			n := 0
			check := func(t *testing.T, r engine.Report) {
				t.Helper()
				for _, node := range r.Nodes {
					if pids[node.PID] = true; len(pids) > 2 {
						t.Errorf("%s: process %d is a new one", node.Node, node.PID)
					}
				}
				if n := living(t, e, e.Root(), r.Ref); n != 0 {
					t.Errorf("%d processes live", n)
				}
			}
			fine := func(t *testing.T) {
				n++
				l := again(plan(t, e, 2, "srun -l hostname", `echo "$SLURM_JOB_ID|$OTHER"`), n)
				r := run(t, e, l)
				succeeded(t, r)
				check(t, r)
				got := read(t, r.Files[0])
				if !strings.HasSuffix(got, l.Job.ID.String()+"|\n") || len(tasks(r, 0)) != 2 || tasks(r, 0)[0].Node != l.Claims[0].Node {
					t.Errorf("%q, %+v", got, r.Tasks)
				}
				if naming != local.NamedByAddr && (!strings.Contains(got, "0: v1\n") || !strings.Contains(got, "1: v2\n")) {
					t.Errorf("%q", got)
				}
			}
			fine(t)
			for name, c := range map[string]struct {
				script string
				grace  time.Duration
				stop   bool
			}{
				"killed":         {"trap '' TERM; sleep 600 & echo; while :; do sleep 600; done", 50 * time.Millisecond, true},
				"stopped":        {"exec sleep 600", patience, true},
				"fails":          {"export OTHER=x; exit 3", time.Second, false},
				"leaves":         {"setsid sh -c 'trap \"\" TERM; while :; do sleep 600; done' &", 50 * time.Millisecond, false},
				"steps go on":    {"srun sleep 600 & srun --overlap true; exit 4", 100 * time.Millisecond, false},
				"cannot start":   {"exit 0", time.Second, false},
				"memory":         {"exit 0", time.Second, false},
				"another limits": {"exit 0", time.Second, false},
			} {
				t.Run(name, func(t *testing.T) {
					n++
					l := again(plan(t, e, 2, c.script), n)
					l.Grace = c.grace
					switch name {
					case "cannot start":
						l.Job.Spec.WorkDir = "/no/such/dir"
					case "memory":
						l.Claims[0].Take.Memory = 64 * resource.MiB
					case "another limits":
						l.Claims[0].Take.CPU = 2 * resource.OneCPU
					}
					launch(t, e, l)
					if c.stop {
						until(t, e, l.Ref, running)
						if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: c.grace}); err != nil {
							t.Fatal(err)
						}
					}
					check(t, until(t, e, l.Ref, gone))
					fine(t)
				})
			}
		})
	}
}

// What an attempt has opened is closed when it is gone, however it ended.
func TestNothingIsLeftOpen(t *testing.T) {
	e := newEngine(t, local.Config{})
	n := 0
	open := func(r engine.Report) int {
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.Nodes[0].PID))
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	round := func() (last engine.Report) {
		for i := range 6 {
			n++
			l := again(plan(t, e, 1, "srun true; exit 0"), n)
			switch i {
			case 0:
				l.Job.Spec.Output.Stderr = "/no/such/dir/err"
			case 1:
				l.Job.Spec.Output.Stderr = "err"
			case 2:
				l.Script = []byte("no interpreter\n")
			case 3:
				l.Script = []byte("#!/etc/passwd\n")
			case 4:
				l = again(plan(t, e, 1, "exec sleep 600"), n)
			}
			launch(t, e, l)
			if i == 4 {
				if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil { // at any moment
					t.Fatal(err)
				}
			}
			last = until(t, e, l.Ref, gone)
		}
		return last
	}
	r := round()
	before := open(r)
	for range 5 {
		if now := round(); now.Nodes[0].PID != r.Nodes[0].PID {
			t.Fatal("another supervisor")
		}
	}
	eventually(t, "everything is closed", func() bool { return open(r) <= before+1 }) // connections that end
}

// A supervisor without work ends with its engine, and leaves nothing.
func TestIdleSupervisorEndsWithItsEngine(t *testing.T) {
	e := newEngine(t, local.Config{})
	r := run(t, e, plan(t, e, 3, "exit 0"))
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range r.Nodes {
		if st, err := proc.Read(n.PID); err == nil {
			t.Errorf("%+v", st)
		}
	}
	if left, err := os.ReadDir(filepath.Join(e.Root(), "s")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// One that dies without work is not missed.
func TestIdleSupervisorDies(t *testing.T) {
	e := newEngine(t, local.Config{})
	r := run(t, e, plan(t, e, 2, "exit 0"))
	for i := range 3 {
		for _, n := range r.Nodes {
			if err := unix.Kill(n.PID, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		l := again(plan(t, e, 2, "srun true"), i+2) // whether the engine has noticed or not
		r = run(t, e, l)
		succeeded(t, r)
	}
}

// A spare supervisor waits before there is any work, and is the one that is used.
func TestSpare(t *testing.T) {
	for _, naming := range namings(t) {
		e := newEngine(t, local.Config{Spare: true, Naming: naming})
		eventually(t, "a spare supervisor waits", func() bool { return len(e.Idle()) == 1 })
		pid := e.Idle()[0]
		l := plan(t, e, 1, "hostname")
		r := run(t, e, l)
		succeeded(t, r)
		if r.Nodes[0].PID != pid {
			t.Errorf("process %d, the spare is %d", r.Nodes[0].PID, pid)
		}
		if naming != local.NamedByAddr && read(t, r.Files[0]) != l.Claims[0].Node+"\n" {
			t.Errorf("it is called %q", read(t, r.Files[0]))
		}
	}
}

// A supervisor that hangs is seen although nobody tells it anything, and is not
// taken for dead.
func TestHungSupervisorIsSeen(t *testing.T) {
	e := newEngine(t, local.Config{Pulse: 50 * time.Millisecond, Deaf: 2 * time.Second})
	l := plan(t, e, 2, "srun true", "exec sleep 600")
	launch(t, e, l)
	// A step there has told that it acted upon the start.
	r := until(t, e, l.Ref, func(r engine.Report) bool { return everywhere(r) && len(tasks(r, 0)) == 2 })
	pid := r.Nodes[1].PID
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	r = until(t, e, l.Ref, func(r engine.Report) bool { return r.Uncertain })
	if !strings.Contains(r.Nodes[1].Message, "does not answer") || r.Phase != engine.Running {
		t.Errorf("%s: %+v", r.Phase, r.Nodes)
	}
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r = until(t, e, l.Ref, func(r engine.Report) bool { return !r.Uncertain && r.Nodes[1].Message == "" })
	if r.Phase != engine.Running {
		t.Errorf("%s", r.Phase)
	}
}

// A supervisor that does not act on a command other than one to end counts as hung, and what it watches over
// lives. Seen to fail with: SIGKILL for every command that is not acted on.
func TestHungSupervisorIsSpared(t *testing.T) {
	e := newEngine(t, local.Config{Pulse: 100 * time.Millisecond, Deaf: 500 * time.Millisecond})
	l := plan(t, e, 1, "srun true", "exec sleep 600")
	launch(t, e, l)
	r := until(t, e, l.Ref, func(r engine.Report) bool { return everywhere(r) && len(tasks(r, 0)) == 1 })
	pid := r.Nodes[0].PID
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := e.Suspend(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	until(t, e, l.Ref, func(r engine.Report) bool { return r.Uncertain })
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r = until(t, e, l.Ref, func(r engine.Report) bool { return r.Gone || r.Suspended && !r.Uncertain })
	if r.Phase != engine.Running {
		t.Errorf("%s: %s", r.Phase, r.Message)
	}
}

// A second word to end does no harm to a supervisor that is ending its work.
func TestStopTwice(t *testing.T) {
	e := newEngine(t, local.Config{Deaf: 2 * time.Second})
	l := plan(t, e, 1, "trap 'sleep 3; exit 7' TERM", "echo; while :; do sleep 0.01; done")
	launch(t, e, l)
	r := until(t, e, l.Ref, running)
	eventually(t, "the script has begun", func() bool { return read(t, r.Files[0]) != "" })
	for range 2 {
		if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: patience}); err != nil {
			t.Fatal(err)
		}
	}
	if r := until(t, e, l.Ref, gone); r.Cause != engine.Stopped || r.Exit.Status != 7 {
		t.Errorf("%s, %s, %s", r.Cause, r.Exit, r.Message)
	}
}
