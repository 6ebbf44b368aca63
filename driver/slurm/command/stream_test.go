package command_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/engine"
)

// become stands for sudo: words behind which another user's command runs.
var become = []string{"env", "AS=%u"}

// TestStreamAsAnother: what a command of another user reads begins with its own text, which neither
// its streams nor its terminal show.
//
// Seen to fail with: a terminal that is not made plain before it is written to.
func TestStreamAsAnother(t *testing.T) {
	h := &command.Here{Become: become}
	long := strings.Repeat("x", 10_000) // more than a terminal takes as one line
	for _, tty := range []bool{false, true} {
		var out, errs bytes.Buffer
		c := command.Call{Name: "sh", Args: []string{"-c", `echo "$AS ${#LONG}"; read -r line; echo "$line"; exit 4`}, Env: []string{"LONG=" + long}, User: "anna"}
		code, err := h.Stream(t.Context(), c, engine.ExecRequest{Stdin: strings.NewReader("typed\n"), Stdout: &out, Stderr: &errs, TTY: tty})
		if got := strings.ReplaceAll(out.String(), "\r", ""); err != nil || code != 4 || got != "anna 10000\ntyped\n" {
			t.Errorf("terminal %v: %d, %v, %q, %q", tty, code, err, got, errs.String())
		}
	}
}

// TestStreamThatNeverBegins: what stands in the way says so on the terminal.
func TestStreamThatNeverBegins(t *testing.T) {
	h := &command.Here{Become: []string{"sh", "-c", "echo a password is required; exit 1"}}
	var out bytes.Buffer
	code, err := h.Stream(t.Context(), command.Call{Name: "true", User: "anna"}, engine.ExecRequest{Stdin: strings.NewReader(""), Stdout: &out, TTY: true})
	if err != nil || code != 1 || !strings.Contains(out.String(), "a password is required") {
		t.Errorf("%d, %v, %q", code, err, out.String())
	}
	if _, err := h.Stream(t.Context(), command.Call{Name: "no-such-command"}, engine.ExecRequest{}); err == nil {
		t.Error("a command that is not there runs")
	}
}

// TestStreamEndsWithItsCaller: and what it started too.
func TestStreamEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	lock := filepath.Join(t.TempDir(), "lock")
	out := told(func(p []byte) { cancel() })
	c := command.Call{Name: "sh", Args: []string{"-c", `sh -c 'trap "" TERM; exec 9>"$0"; flock 9; echo begun; sleep 600; :' "$0"; true`, lock}}
	if _, err := (&command.Here{}).Stream(ctx, c, engine.ExecRequest{Stdout: out}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	f, err := os.OpenFile(lock, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	free := make(chan error, 1)
	go func() { free <- unix.Flock(int(f.Fd()), unix.LOCK_EX) }() // free once nobody of them lives
	select {
	case err := <-free:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("what it started lives")
	}
}

type told func([]byte)

func (f told) Write(p []byte) (int, error) { f(p); return len(p), nil }
