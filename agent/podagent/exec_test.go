package podagent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/podagent"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// beside runs a command in a member's place, as the driver does.
func (p *pod) beside(ctx context.Context, r engine.ExecRequest) (job.ExitCode, error) {
	return podagent.Converse(ctx, r, func(ctx context.Context, in io.Reader, out io.Writer) error {
		c := p.command("exec")
		c.Env = append(c.Env, podagent.PlanEnv+"="+p.crew.dir+"/secret")
		to, err := c.StdinPipe()
		if err != nil {
			return err
		}
		var said bytes.Buffer
		c.Stdout, c.Stderr = out, &said
		if err := c.Start(); err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, func() { _ = to.Close() }) // as where a connection ends
		defer stop()
		go func() {
			_, _ = io.Copy(to, in)
			_ = to.Close()
		}()
		if err := c.Wait(); err != nil {
			return fmt.Errorf("%w: %s", err, said.String())
		}
		return nil
	})
}

// underWay is an attempt of two members that run a task each until they are told to end.
func underWay(t *testing.T, env ...string) *crewOf {
	t.Helper()
	c := planned(t, 2, `echo up > script.up; srun sh -c 'echo up > up.$SLURM_PROCID; exec sleep 600'`)
	c.env = env
	c.plan.Grace = 1e8
	c.start()
	eventually(t, "both tasks run", func() bool { return c.there("up.0") && c.there("up.1") })
	return c
}

func (c *crewOf) there(name string) bool { _, err := os.Stat(c.work(name)); return err == nil }

func shell(script string) []string { return []string{"/bin/sh", "-c", script} }

// TestBeside: commands run in the place of the script and of a rank, with their input, output
// and exit codes, however long the input is. Seen to fail without the
// rank in the request; without frameTook it hangs.
func TestBeside(t *testing.T) {
	c := underWay(t)
	rank := 1
	long := strings.Repeat("0123456789abcde\n", 1<<17) // 2 MiB, four times what may be on its way
	for _, x := range []struct {
		name      string
		member    int
		r         engine.ExecRequest
		out, errs string
		code      job.ExitCode
	}{
		{"in the script's place", 0, engine.ExecRequest{Command: shell(`echo "$SLURM_JOB_ID|$SLURM_STEP_ID|$GREETING"; pwd`)}, "42||hello\n" + c.work("") + "\n", "", job.ExitCode{}},
		{"in a rank's place", 1, engine.ExecRequest{Command: shell(`echo "$SLURM_PROCID|$SLURMD_NODENAME"`), Rank: &rank}, "1|cox-ab-7-1-1\n", "", job.ExitCode{}},
		{"input, output, code", 1, engine.ExecRequest{Command: shell(`cat; echo err >&2; exit 5`), Stdin: strings.NewReader("in\n")}, "in\n", "err\n", job.ExitCode{Status: 5}},
		{"no input", 0, engine.ExecRequest{Command: shell(`cat`)}, "", "", job.ExitCode{}},
		{"long input", 0, engine.ExecRequest{Command: shell(`cat`), Stdin: strings.NewReader(long)}, long, "", job.ExitCode{}},
		{"input that nobody reads", 0, engine.ExecRequest{Command: shell(`exit 4`), Stdin: strings.NewReader(long)}, "", "", job.ExitCode{Status: 4}},
		{"ended by a signal", 0, engine.ExecRequest{Command: shell(`kill -9 $$`)}, "", "", job.ExitCode{Signal: 9}},
		{"environment", 0, engine.ExecRequest{Command: shell(`echo $MINE`), Env: []string{"MINE=yes"}}, "yes\n", "", job.ExitCode{}},
		{"missing", 0, engine.ExecRequest{Command: []string{"no-such-program"}}, "", "cox: no-such-program: No such file or directory\n", job.ExitCode{Status: 127}},
	} {
		t.Run(x.name, func(t *testing.T) {
			var out, errs bytes.Buffer
			x.r.Stdout, x.r.Stderr = &out, &errs
			code, err := c.members[x.member].beside(t.Context(), x.r)
			if err != nil || out.String() != strings.Replace(x.out, "/\n", "\n", 1) || errs.String() != x.errs || code != x.code {
				t.Errorf("%v, %.200q, %q, %s; want %.200q, %q, %s", err, out.String(), errs.String(), code, x.out, x.errs, x.code)
			}
		})
	}
	nobody := 7
	if _, err := c.members[0].beside(t.Context(), engine.ExecRequest{Command: shell("true"), Rank: &nobody}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a rank that does not run: %v", err)
	}
	for rank, want := range map[int]string{0: "0\n", 1: "1\n"} {
		if out, err := c.members[0].command("ask", fmt.Sprintf(`{"find":{"rank":%d}}`, rank)).CombinedOutput(); err != nil || string(out) != want {
			t.Errorf("rank %d is on %q, %v", rank, out, err)
		}
	}
	if out, err := c.members[0].command("ask", `{"find":{"rank":2}}`).CombinedOutput(); err == nil || !strings.Contains(string(out), "no task 2 that runs") {
		t.Errorf("rank 2 is on %q, %v", out, err)
	}
}

// TestBesideTerminal: a terminal has a size, which changes. Seen to fail without the case of
// frame.Window.
func TestBesideTerminal(t *testing.T) {
	c := underWay(t)
	in, keys := io.Pipe()
	screen := &output{}
	resize := make(chan engine.Window)
	done := make(chan error, 1)
	var code job.ExitCode
	go func() {
		var err error
		code, err = c.members[1].beside(t.Context(), engine.ExecRequest{
			Command: shell(`stty size; test -t 2 && trap 'stty size; exit 3' WINCH; echo ready; while :; do read line && echo "got $line"; done`),
			Stdin:   in, Stdout: screen, TTY: true, Window: engine.Window{Rows: 24, Cols: 80}, Resize: resize,
		})
		done <- err
	}()
	shows := func(want string) {
		t.Helper()
		eventually(t, "the screen shows "+want, func() bool { return strings.Contains(screen.String(), want) })
	}
	shows("24 80\r\nready\r\n")
	_, _ = io.WriteString(keys, "hello\n")
	shows("got hello\r\n")
	resize <- engine.Window{Rows: 50, Cols: 132}
	_, _ = io.WriteString(keys, "again\n") // a shell acts on the signal after its read
	shows("50 132\r\n")
	if err := <-done; err != nil || code.Status != 3 {
		t.Errorf("%v, %s", err, code)
	}
	_ = keys.Close()
}

// TestBesideEnds: a command ends with its job, and with who asked for it: with the end of his
// streams, though it does not read its input, and with his silence. Seen to fail without the
// cancel after input.read (it hangs), and without the timer of silence.
func TestBesideEnds(t *testing.T) {
	const stubborn = `trap '' TERM HUP; sleep 600 & echo "$! $$" > pids.new; mv pids.new pids; while :; do wait; done`
	begun := func(t *testing.T, c *crewOf) (pids []int) {
		t.Helper()
		eventually(t, "the command runs", func() bool { return c.there("pids") })
		text, err := os.ReadFile(c.work("pids"))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(w)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		return pids
	}
	over := func(t *testing.T, pids []int) {
		t.Helper()
		eventually(t, "the command has ended", func() bool {
			for _, pid := range pids {
				if st, err := proc.Read(pid); err == nil && !st.Dead() {
					return false
				}
			}
			return true
		})
	}
	t.Run("caller", func(t *testing.T) {
		t.Parallel()
		c := underWay(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		done := make(chan error, 1)
		endless := readerFunc(func(p []byte) (int, error) { return len(p), nil })
		go func() {
			_, err := c.members[1].beside(ctx, engine.ExecRequest{Command: shell(stubborn), Stdin: endless})
			done <- err
		}()
		pids := begun(t, c)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		over(t, pids)
		select {
		case <-c.members[0].ended:
			t.Error("the job has ended with it")
		default:
		}
	})
	t.Run("silence", func(t *testing.T) {
		t.Parallel()
		c := underWay(t)
		ask := fmt.Sprintf(`{"command":["/bin/sh","-c",%q],"window":{}}`, stubborn)
		for lost := 20 * time.Millisecond; !c.there("pids"); lost *= 2 { // until that is enough to start the command
			if lost > patience {
				t.Fatal("the command is ended before it runs, however long the silence may be")
			}
			x := c.members[0].command("exec")
			x.Env = append(x.Env, podagent.PlanEnv+"="+c.dir+"/secret", podagent.LostEnv+"="+lost.String())
			mute, err := x.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = x.Wait()
			}()
			_, _ = mute.Write(append([]byte{32, 0, 0, byte(len(ask) >> 8), byte(len(ask))}, ask...))
			eventually(t, "the command runs, or has ended before", func() bool {
				select {
				case <-ended:
					return true
				default:
					return c.there("pids")
				}
			})
			if c.there("pids") {
				over(t, begun(t, c))
			}
			<-ended
		}
	})
	t.Run("job", func(t *testing.T) {
		t.Parallel()
		c := underWay(t)
		done := make(chan error, 1)
		go func() {
			code, err := c.members[1].beside(t.Context(), engine.ExecRequest{Command: shell(stubborn)})
			if err == nil && code.Signal == 0 {
				err = fmt.Errorf("it has ended with %s", code)
			}
			done <- err
		}()
		pids := begun(t, c)
		if out, err := c.members[0].command("tell", `{"grace":100000000}`).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		over(t, pids)
		if err := <-done; err != nil && fault.KindOf(err) != fault.Conflict { // nil: that it was killed was said in time
			t.Errorf("%v", err)
		}
	})
}

// readerFunc is a Read.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
