package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// execute runs a command beside a job.
func execute(t *testing.T, e *local.Engine, ref engine.Ref, r engine.ExecRequest) (out, errs string, code job.ExitCode) {
	t.Helper()
	var o, x bytes.Buffer
	r.Stdout, r.Stderr = &o, &x
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	code, err := e.Exec(ctx, ref, r)
	if err != nil {
		t.Fatalf("%q: %v; %s%s", r.Command, err, o.String(), x.String())
	}
	return o.String(), x.String(), code
}

func sh(script string) []string { return []string{"sh", "-c", script} }

func number(n int) *int { return &n }

func TestExec(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 3, "srun sh -c 'exec sleep 600'")
	for i := range l.Claims {
		l.Claims[i].Take.CPU = resource.OneCPU
	}
	launch(t, e, l)
	until(t, e, l.Ref, func(r engine.Report) bool { return len(tasks(r, 0)) == 3 && tasks(r, 0)[2].Running })
	for _, c := range []struct {
		name      string
		r         engine.ExecRequest
		out, errs string
		code      job.ExitCode
	}{
		{"in the batch script's place", engine.ExecRequest{Command: sh(`echo "$SLURM_JOB_ID|$SLURM_STEP_ID|$SLURMD_NODENAME"; pwd`)}, "7||" + l.Claims[0].Node + "\n" + l.Job.Spec.WorkDir + "\n", "", job.ExitCode{}},
		{"in a rank's place", engine.ExecRequest{Command: sh(`echo "$SLURM_PROCID|$SLURMD_NODENAME"`), Rank: number(2)}, "2|" + l.Claims[2].Node + "\n", "", job.ExitCode{}},
		{"on a node", engine.ExecRequest{Command: sh(`echo "$SLURMD_NODENAME"`), Node: l.Claims[1].Node}, l.Claims[1].Node + "\n", "", job.ExitCode{}},
		{"input, output, code", engine.ExecRequest{Command: sh(`cat; echo err >&2; exit 5`), Stdin: strings.NewReader("in\n")}, "in\n", "err\n", job.ExitCode{Status: 5}},
		{"no input", engine.ExecRequest{Command: sh(`cat`)}, "", "", job.ExitCode{}},
		{"ended by a signal", engine.ExecRequest{Command: sh(`kill -9 $$`)}, "", "", job.ExitCode{Signal: 9}},
		{"environment", engine.ExecRequest{Command: sh(`echo $MINE`), Env: []string{"MINE=yes"}}, "yes\n", "", job.ExitCode{}},
		{"missing", engine.ExecRequest{Command: []string{"no-such-program"}}, "", "cox: no-such-program: No such file or directory\n", job.ExitCode{Status: 127}},
		{"not executable", engine.ExecRequest{Command: []string{"/etc/passwd"}}, "", "cox: /etc/passwd: Permission denied\n", job.ExitCode{Status: 126}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, errs, code := execute(t, e, l.Ref, c.r)
			if out != c.out || errs != c.errs || code != c.code {
				t.Errorf("%q, %q, %s; want %q, %q, %s", out, errs, code, c.out, c.errs, c.code)
			}
		})
	}
	for name, c := range map[string]struct {
		ref  engine.Ref
		r    engine.ExecRequest
		kind fault.Kind
	}{
		"an unknown attempt": {engine.Ref{Allocation: 99, Attempt: 1}, engine.ExecRequest{Command: sh("true")}, fault.NotFound},
		"a rank":             {l.Ref, engine.ExecRequest{Command: sh("true"), Rank: number(7)}, fault.NotFound},
		"a step":             {l.Ref, engine.ExecRequest{Command: sh("true"), Rank: number(0), Step: number(4)}, fault.NotFound},
		"a node":             {l.Ref, engine.ExecRequest{Command: sh("true"), Node: "no-such-node"}, fault.NotFound},
		"no command":         {l.Ref, engine.ExecRequest{}, fault.Invalid},
	} {
		if _, err := e.Exec(t.Context(), c.ref, c.r); fault.KindOf(err) != c.kind || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Run("many at once", func(t *testing.T) {
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				var out bytes.Buffer
				code, err := e.Exec(t.Context(), l.Ref, engine.ExecRequest{Command: sh(fmt.Sprintf("echo %d; exit %d", i, i)), Stdout: &out, Node: l.Claims[i%3].Node})
				if err != nil || code.Status != i || out.String() != fmt.Sprintln(i) {
					t.Errorf("%d: %v, %s, %q", i, err, code, out.String())
				}
			})
		}
		all.Wait()
	})
	t.Run("much output", func(t *testing.T) {
		out, _, _ := execute(t, e, l.Ref, engine.ExecRequest{Command: sh("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")})
		if !strings.HasSuffix(out, "line 19999\n") || strings.Count(out, "\n") != 20000 {
			t.Errorf("%d bytes", len(out))
		}
	})
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	until(t, e, l.Ref, gone)
	if _, err := e.Exec(t.Context(), l.Ref, engine.ExecRequest{Command: sh("true")}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("after the end: %v", err)
	}
}

// A terminal is one: it has a size, which changes, and an end of its input.
func TestExecTerminal(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 1, "exec sleep 600")
	launch(t, e, l)
	until(t, e, l.Ref, running)
	in, keys := io.Pipe()
	screen := &screen{more: make(chan struct{}, 1)}
	resize := make(chan engine.Window)
	done := make(chan error, 1)
	var code job.ExitCode
	go func() {
		var err error
		code, err = e.Exec(t.Context(), l.Ref, engine.ExecRequest{
			Command: sh(`stty size; test -t 2 && trap 'stty size; exit 3' WINCH; echo ready; while :; do read line && echo "got $line"; done`),
			Stdin:   in, Stdout: screen, TTY: true, Window: engine.Window{Rows: 24, Cols: 80}, Resize: resize,
		})
		done <- err
	}()
	screen.until(t, "24 80\r\nready\r\n")
	if _, err := keys.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	screen.until(t, "got hello\r\n")
	resize <- engine.Window{Rows: 50, Cols: 132}
	if _, err := keys.Write([]byte("again\n")); err != nil { // a shell acts on the signal after its read
		t.Fatal(err)
	}
	screen.until(t, "50 132\r\n")
	if err := <-done; err != nil || code.Status != 3 {
		t.Errorf("%v, %s", err, code)
	}
	_ = keys.Close()
}

// screen collects what is written to a terminal.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	return s.text.Write(b)
}

func (s *screen) until(t *testing.T, want string) {
	t.Helper()
	late := time.After(patience)
	for {
		s.mu.Lock()
		text := s.text.String()
		s.mu.Unlock()
		if strings.Contains(text, want) {
			return
		}
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("the screen shows %q, not %q", text, want)
		}
	}
}

// A command ends with its job, with what it started, and with who asked for it.
func TestExecEnds(t *testing.T) {
	e := newEngine(t, local.Config{})
	pids := func(t *testing.T, dir string, ended <-chan error) (found []int) {
		eventually(t, "the command runs", func() bool {
			select {
			case err := <-ended:
				t.Fatalf("it has ended: %v", err)
			default:
			}
			b, err := os.ReadFile(filepath.Join(dir, "pids"))
			if err != nil || strings.Count(string(b), "\n") != 2 {
				return false
			}
			var a, c int
			_, err = fmt.Sscan(string(b), &a, &c)
			found = []int{a, c}
			return err == nil
		})
		return found
	}
	lives := func(pid int) bool { st, err := proc.Read(pid); return err == nil && !st.Dead() }
	const stubborn = `trap '' TERM HUP; sleep 600 & echo $! > pids.new; echo $$ >> pids.new; mv pids.new pids; while :; do wait; done`
	for i, how := range []string{"job", "caller"} {
		t.Run(how, func(t *testing.T) {
			l := plan(t, e, 1, "exec sleep 600")
			l.Ref.Allocation, l.Grace = uint64(i+1), 100*time.Millisecond
			launch(t, e, l)
			until(t, e, l.Ref, running)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				var out bytes.Buffer
				_, err := e.Exec(ctx, l.Ref, engine.ExecRequest{Command: sh(stubborn), Stderr: &out})
				if out.Len() > 0 {
					t.Errorf("it says %s", out.String())
				}
				done <- err
			}()
			running := pids(t, l.Job.Spec.WorkDir, done)
			if how == "job" {
				if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: 100 * time.Millisecond}); err != nil {
					t.Fatal(err)
				}
				until(t, e, l.Ref, gone)
				<-done
			} else {
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
				eventually(t, "the command has ended", func() bool { return !lives(running[0]) && !lives(running[1]) })
				if r, err := e.Inspect(t.Context(), l.Ref); err != nil || r.Phase != engine.Running {
					t.Errorf("the job: %s, %v", r.Phase, err)
				}
			}
			for _, pid := range running {
				if lives(pid) {
					t.Errorf("process %d lives", pid)
				}
			}
		})
	}
}

// A command runs as the job's owner, and its terminal is his.
func TestExecAsOwner(t *testing.T) {
	e := userEngine(t, local.Config{})
	l := planFor(t, e, anna, 1, "exec sleep 600")
	launch(t, e, l)
	until(t, e, l.Ref, running)
	if out, _, _ := execute(t, e, l.Ref, engine.ExecRequest{Command: sh("id -u; id -G; grep -c . /etc/shadow || echo no")}); out != "61001\n61001\nno\n" {
		t.Errorf("%q", out)
	}
	out, _, code := execute(t, e, l.Ref, engine.ExecRequest{Command: sh("stat -c %u $(tty); exec < /dev/tty"), TTY: true})
	if out != "61001\r\n" || !code.OK() {
		t.Errorf("%q, %s", out, code)
	}
}

func TestSuspend(t *testing.T) {
	e := newEngine(t, local.Config{})
	l := plan(t, e, 2, `srun sh -c 'i=0; while :; do i=$((i+1)); echo $i > count.$SLURM_PROCID; sleep 0.005; done'`)
	l.Job.Spec.TimeLimit = 2 * time.Second
	launch(t, e, l)
	r := until(t, e, l.Ref, func(r engine.Report) bool { return len(tasks(r, 0)) == 2 && tasks(r, 0)[1].Running })
	eventually(t, "both ranks count", func() bool {
		found, _ := filepath.Glob(filepath.Join(l.Job.Spec.WorkDir, "count.*"))
		return len(found) == 2
	})
	if err := e.Suspend(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	r = until(t, e, l.Ref, func(r engine.Report) bool { return r.Suspended })
	held := func() bool {
		for _, task := range r.Tasks {
			if st, err := proc.Read(task.PID); err != nil || st.State == 'R' {
				return false
			}
		}
		return true
	}
	eventually(t, "everything is held", held)
	count := func() string {
		return read(t, filepath.Join(l.Job.Spec.WorkDir, "count.0")) + read(t, filepath.Join(l.Job.Spec.WorkDir, "count.1"))
	}
	before := count()
	for began := time.Now(); time.Since(began) < 2200*time.Millisecond; { // longer than the time limit
		if now := count(); now != before {
			t.Fatalf("it goes on: %q, %q", before, now)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err := errors.Join(e.Suspend(t.Context(), l.Ref), e.Resume(t.Context(), l.Ref), e.Resume(t.Context(), l.Ref)); err != nil {
		t.Fatal(err)
	}
	until(t, e, l.Ref, func(r engine.Report) bool { return !r.Suspended && r.Phase == engine.Running })
	eventually(t, "it goes on", func() bool { return count() != before })
	// It was held for longer than its limit, and got the whole of that besides.
	if r := until(t, e, l.Ref, gone); r.Cause != engine.TimedOut || r.Ended.Sub(r.Started) < 2*l.Job.Spec.TimeLimit {
		t.Errorf("%s after %s", r.Cause, r.Ended.Sub(r.Started))
	}
	// What is suspended can be ended.
	l = plan(t, e, 1, "exec sleep 600")
	l.Ref.Allocation = 2
	launch(t, e, l)
	until(t, e, l.Ref, running)
	if err := e.Suspend(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	until(t, e, l.Ref, func(r engine.Report) bool { return r.Suspended })
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{Grace: patience}); err != nil {
		t.Fatal(err)
	}
	if r := until(t, e, l.Ref, gone); r.Cause != engine.Stopped || r.Exit.Signal != 15 {
		t.Errorf("%s, %s", r.Cause, r.Exit)
	}
}
