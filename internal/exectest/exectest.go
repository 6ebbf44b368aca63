// Package exectest makes commands for tests that end in any case: a command that hangs becomes a
// failed test that shows its output, instead of a panic of the whole package at go test's timeout.
// It is for tests alone.
package exectest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Limit is how long a command of a test may run. It ends what hangs: no test is meant to come near it,
// also on a machine under load.
const Limit = 4 * time.Minute

// pipeLimit is how long a process that the command left behind may hold the command's output open.
const pipeLimit = 30 * time.Second

// Command makes a command that is killed after Limit, with its process group. The test then fails, with
// the command's output so far where said is not nil. said must be safe for concurrent use.
//
// The command leads a process group of its own. A caller that gives it a session of its own, as with a
// terminal, sets SysProcAttr.Setpgid to false; the group is the same one.
func Command(t testing.TB, said fmt.Stringer, name string, args ...string) *exec.Cmd {
	t.Helper()
	return command(t, Limit, said, name, args...)
}

func command(t testing.TB, limit time.Duration, said fmt.Stringer, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = pipeLimit
	cmd.Cancel = func() error {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			output := ""
			if said != nil {
				output = "; its output:\n" + said.String()
			}
			t.Errorf("%q did not end within %v and was killed%s", cmd.Args, limit, output)
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			return os.ErrProcessDone
		}
		return nil
	}
	return cmd
}
