package discover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Runner starts a program and gives its standard output, beside an error too.
// A program that is not there gives exec.ErrNotFound or fs.ErrNotExist. It
// returns when ctx ends, whatever the program does.
type Runner func(ctx context.Context, name string, args ...string) ([]byte, error)

// maxOutput bounds what is kept of a program's output.
const maxOutput = 4 << 20

// Exec is the Runner for this machine. The program gets the environment of
// this process with plain messages (LC_ALL=C), and is killed when ctx ends. A
// program stuck in a driver cannot be killed: Exec then returns all the same
// and leaves one goroutine waiting for it.
func Exec(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = 100 * time.Millisecond
	stdout, stderr := &head{limit: maxOutput}, &head{limit: 4 << 10}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done: // killed, output complete
		case <-time.After(4 * cmd.WaitDelay):
			return nil, fmt.Errorf("%w, and it cannot be killed", context.Cause(ctx))
		}
	}
	if line := firstLine(stderr.kept); err != nil && line != "" {
		err = fmt.Errorf("%w: %s", err, line)
	}
	return stdout.kept, err
}

// head keeps the first limit bytes written and takes the rest in silence.
type head struct {
	kept  []byte
	limit int
}

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(h.limit-len(h.kept), len(p))]...)
	return len(p), nil
}

func firstLine(b []byte) string {
	for line := range bytes.Lines(b) {
		if t := strings.TrimSpace(string(line)); t != "" {
			return t
		}
	}
	return ""
}

// isNotInstalled tells that a program is not installed.
func isNotInstalled(err error) bool {
	return errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)
}

// failureText makes one line of a failed run: the tool's own first words where it has
// some on standard output, and the error.
func failureText(out []byte, err error) string {
	if isNotInstalled(err) {
		return "not in PATH"
	}
	if line := firstLine(out); line != "" && !errors.Is(err, errSilent) {
		return fmt.Sprintf("%s (%v)", line, err)
	}
	return strings.ReplaceAll(err.Error(), "\n", ": ")
}
