package srun

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
)

// waitFor polls for something that has no event.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited two minutes for %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func exists(path string) func() bool {
	return func() bool { _, err := os.Stat(path); return err == nil }
}

// both steps run at once only if each sees the other's mark.
const meet = `sh -c 'touch in.$SLURM_STEP_ID; until [ -e in.0 ] && [ -e in.1 ]; do sleep 0.01; done; echo $CUDA_VISIBLE_DEVICES'`

func TestStepsSideBySide(t *testing.T) {
	for name, tc := range map[string]struct {
		alloc   func() *step.Alloc
		options string
		out     string
	}{
		"exact":              {func() *step.Alloc { return steptest.Uniform(1, 4, 4, 0) }, "-n1 --exact", "\n"},
		"CPUs asked":         {func() *step.Alloc { return steptest.Uniform(1, 4, 4, 0) }, "-n1 -c2", "\n"},
		"exclusive":          {func() *step.Alloc { return steptest.Uniform(1, 4, 4, 0) }, "-n1 --exclusive", "\n"},
		"with a GPU each":    {oneNode, "-n1 --exact --gpus=1", "0\n1"},
		"with a GPU a task":  {oneNode, "-n1 --gpus-per-task=1", "0\n1"},
		"without GPUs":       {oneNode, "-n1 --exact --gres=none", "\n"},
		"overlapping":        {oneNode, "-n1 --overlap", "0,1\n0,1"},
		"on different nodes": {func() *step.Alloc { return steptest.Uniform(2, 1, 1, 0) }, "-n1 -N1", "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := launch(t, tc.alloc()).run(`srun -Q ` + tc.options + " " + meet + ` & srun -Q ` + tc.options + " " + meet + ` & wait`)
			if strings.TrimSpace(lines(got.out)) != strings.TrimSpace(tc.out) || got.err != "" {
				t.Errorf("printed\n%s\nsaid\n%s", lines(got.out), got.err)
			}
		})
	}
}

func TestStepWaitsForAnother(t *testing.T) {
	for name, options := range map[string]string{
		"whole nodes":                 "-n1",
		"all GPUs":                    "-n1 --exact",
		"more CPUs than the rest has": "-n1 -c3 --gres=none",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := launch(t, oneNode())
			got := c.run(`mkfifo go
				srun ` + options + ` sh -c 'read x < go; echo first' &
				until grep -qs . ` + c.logs + `/none || [ -e ` + c.logs + `/0.0.log ]; do sleep 0.01; done
				(srun ` + options + ` echo second 2>said) &
				until grep -qs disabled said; do sleep 0.01; done
				echo > go; wait; cat said >&2`)
			if got.out != "first\nsecond\n" {
				t.Errorf("printed\n%s", got.out)
			}
			want := "srun: Job 1 step creation temporarily disabled, retrying (Requested nodes are busy)\nsrun: Step created for StepId=1.1\n"
			if got.err != want {
				t.Errorf("said\n%s\nwant\n%s", got.err, want)
			}
		})
	}
}

func TestImmediateStepDoesNotWait(t *testing.T) {
	c := launch(t, oneNode())
	got := c.run(`srun -n1 sleep 600 & until [ -e ` + c.logs + `/0.0.log ]; do sleep 0.01; done
		srun -I -n1 true; code=$?; kill $!; wait; exit $code`)
	if got.code != 1 || !strings.Contains(got.err, "Unable to create step for job 1: Requested nodes are busy") {
		t.Errorf("exit %d, said\n%s", got.code, got.err)
	}
}

// TestKilledSrun kills srun itself: its tasks end, and only then the next step gets
// what it held.
func TestKilledSrun(t *testing.T) {
	c := launch(t, steptest.Uniform(2, 1, 1, 0))
	cmd := c.command(`srun sh -c 'trap "" TERM; touch up.$SLURM_PROCID; echo $$ > pid.$SLURM_PROCID; while true; do sleep 0.05; done' & echo $!; wait`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"up.0", "up.1"} {
		waitFor(t, f, exists(filepath.Join(c.dir, f)))
	}
	if err := syscall.Kill(pidOf(t, line), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	got := c.run(`srun sh -c 'kill -0 $(cat pid.$SLURM_PROCID) 2>/dev/null && echo alive || echo gone'`)
	if got.out != "gone\ngone\n" {
		t.Errorf("the next step began while the first lived: %q %q", got.out, got.err)
	}
	_ = cmd.Wait()
	for _, s := range c.nodes[0].Tasks() {
		if s.Step == 0 && s.Exit.Signal != int(syscall.SIGKILL) {
			t.Errorf("task ended as %v", s.Exit)
		}
	}
}

func pidOf(t *testing.T, line string) int {
	t.Helper()
	var pid int
	for _, r := range strings.TrimSpace(line) {
		pid = pid*10 + int(r-'0')
	}
	if pid < 2 {
		t.Fatalf("%q is not a process number", line)
	}
	return pid
}

func TestWaitingSrunIsForgotten(t *testing.T) {
	c := launch(t, oneNode())
	got := c.run(`mkfifo go
		srun -n1 sh -c 'read x < go' & first=$!
		until [ -e ` + c.logs + `/0.0.log ]; do sleep 0.01; done
		srun -n1 echo never 2>said & second=$!
		until grep -qs disabled said; do sleep 0.01; done
		kill -9 $second; wait $second 2>/dev/null
		echo > go; wait $first; srun -n1 sh -c 'echo step $SLURM_STEP_ID'`)
	if got.out != "step 1\n" {
		t.Errorf("printed %q, said %q", got.out, got.err)
	}
}

func TestSignals(t *testing.T) {
	for name, tc := range map[string]struct{ script, out, err string }{
		"forwarded": {`kill -USR1 $pid; wait $pid; echo $?`, "got\n0\n", ""},
		"one interrupt is not enough": {
			`kill -INT $pid; until grep -qs running said; do sleep 0.01; done; kill -USR1 $pid; wait $pid; echo $?; cat said >&2`,
			"got\n0\n", "srun: interrupt (one more within 1 sec to abort)\nsrun: StepId=1.0 task 0: running\n",
		},
		"two interrupt the tasks": {
			`kill -INT $pid; until grep -qs running said; do sleep 0.01; done; kill -INT $pid; wait $pid; echo $?; cat said >&2`,
			"int\n7\n", "srun: interrupt (one more within 1 sec to abort)\nsrun: StepId=1.0 task 0: running\nsrun: sending Ctrl-C to StepId=1.0\nsrun: error: v1: task 0: Exited with exit code 7\n",
		},
		"end": {
			`kill -TERM $pid; wait $pid; echo $?; cat said >&2`,
			"143\n", "srun: forcing job termination\nsrun: error: v1: task 0: Terminated\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := launch(t, oneNode())
			got := c.run(`set -m; srun -n1 bash -c 'trap "echo got; exit 0" USR1; trap "echo int; exit 7" INT; touch up; while true; do sleep 0.01; done' 2>said & pid=$!
				until [ -e up ]; do sleep 0.01; done; ` + tc.script)
			said := ""
			for line := range strings.Lines(got.err) {
				if strings.HasPrefix(line, "srun:") { // bash also tells of its children
					said += line
				}
			}
			if got.out != tc.out || said != tc.err {
				t.Errorf("printed %q, want %q\nsaid\n%s\nwant\n%s", got.out, tc.out, said, tc.err)
			}
		})
	}
}
