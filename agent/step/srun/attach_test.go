package srun

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/steptest"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// heard is what an attachment printed so far.
type heard struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.Write(b)
}

func (h *heard) has(text string) func() bool {
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return strings.Contains(h.all.String(), text)
	}
}

// TestAttach: who attaches sees what comes from then on, may type, and has the exit code. The
// step does not need him, nor does his end end it.
func TestAttach(t *testing.T) {
	c := launch(t, steptest.Uniform(2, 1, 4, 0))
	cmd := c.command(`srun -n2 sh -c 'echo before; until [ -e go ]; do sleep 0.01; done; echo task $SLURM_PROCID; read x; echo $SLURM_PROCID got $x; exit $((SLURM_PROCID*3))' 2>said`)
	in, keep, err := os.Pipe() // of srun: stays open, so that its end is not the tasks'
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin = in
	var own heard
	cmd.Stdout = &own
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer keep.Close()
	waitFor(t, "the step", func() bool { return own.has("before\nbefore")() })

	typed, keyboard, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer keyboard.Close()
	var all, second heard
	var left sync.WaitGroup
	var code int
	left.Go(func() {
		a := Attachment{Alloc: c.alloc, Stdio: step.Stdio{In: typed, Out: &all, Err: &all}, Label: true, Input: AllTasks, Output: AllTasks, Error: AllTasks}
		var err error
		if code, err = a.Run(); err != nil {
			t.Errorf("attached: %v", err)
		}
	})
	left.Go(func() {
		a := Attachment{Alloc: c.alloc, Stdio: step.Stdio{Out: &second, Err: &second}, Input: AllTasks, Output: 1, Error: AllTasks}
		if _, err := a.Run(); err != nil {
			t.Errorf("attached to one task: %v", err)
		}
	})
	waitFor(t, "both to be attached", func() bool { return c.nodes[0].Watchers(0) == 2 })
	gone, err := wire.Dial(c.alloc, 0) // a third one, which does not stay
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Send(wire.Frame{Kind: wire.MsgAttach}); err != nil {
		t.Fatal(err)
	}
	if f, err := gone.Receive(); err != nil || f.Kind != wire.MsgCreated {
		t.Fatalf("attach: %v %v", f, err)
	}
	gone.Close()
	if err := os.WriteFile(c.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the output", func() bool { return all.has("0: task 0\n")() && all.has("1: task 1\n")() })
	if _, err := io.WriteString(keyboard, "hello\n"); err != nil {
		t.Fatal(err)
	}
	left.Wait()
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("srun ended with %v, want 3", err)
	}
	if code != 3 {
		t.Errorf("sattach ended with %d, want 3", code)
	}
	if s := all.all.String(); !strings.Contains(s, "0: 0 got hello\n") || !strings.Contains(s, "1: 1 got hello\n") || strings.Contains(s, "before") {
		t.Errorf("attached, printed\n%s", s)
	}
	if s := second.all.String(); s != "task 1\n1 got hello\n" {
		t.Errorf("attached to task 1, printed\n%s", s)
	}
	a := Attachment{Alloc: c.alloc, Step: 0}
	if _, err := a.Run(); err == nil || err.Error() != "step 1.0 does not run" {
		t.Errorf("a step that is over: %v", err)
	}
}

// TestWatcherThatDoesNotRead: it is cut off, and the step goes on.
func TestWatcherThatDoesNotRead(t *testing.T) {
	c := launch(t, steptest.Uniform(1, 1, 4, 0))
	cmd := c.command(`srun sh -c 'until [ -e go ]; do sleep 0.01; done; head -c 100000000 /dev/zero' | wc -c`)
	var own heard
	cmd.Stdout = &own
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var idle *wire.Link
	waitFor(t, "the step to be attached to", func() bool {
		l, err := wire.Dial(c.alloc, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Send(wire.Frame{Kind: wire.MsgAttach}); err != nil {
			t.Fatal(err)
		}
		if f, err := l.Receive(); err == nil && f.Kind == wire.MsgCreated {
			idle = l
			return true
		}
		l.Close()
		return false
	})
	defer idle.Close()
	if err := os.WriteFile(c.dir+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || strings.TrimSpace(own.all.String()) != "100000000" {
		t.Errorf("the step wrote %s: %v", own.all.String(), err)
	}
	for {
		f, err := idle.Receive()
		if err != nil || f.Kind == wire.MsgRefused { // told, where the words got through in time
			break
		}
		if f.Kind == wire.MsgOver {
			t.Fatal("the watcher was not cut off")
		}
	}
}
