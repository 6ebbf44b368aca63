package sshserver

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/creack/pty"
	"github.com/gliderlabs/ssh"
)

// serveSession runs a shell, or a command in one, and ends the session with its exit code.
func serveSession(s ssh.Session) {
	cmd := sessionCommand(s)
	var err error
	if p, sizes, ok := s.Pty(); ok {
		err = runOnTerminal(s, cmd, p, sizes)
	} else {
		err = runOnPipes(s, cmd)
	}
	code := 0
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = shellCode(exit)
	case err != nil:
		fmt.Fprintf(s.Stderr(), "%s: %v\r\n", Name, err)
		code = 127
	}
	_ = s.Exit(code)
}

// sessionCommand is the user's shell, as one that reads commands or with the command that was asked
// for, in the environment of the job.
func sessionCommand(s ssh.Session) *exec.Cmd {
	shell := cmp.Or(os.Getenv("SHELL"), "/bin/sh")
	if _, err := os.Stat(shell); err != nil {
		shell = "/bin/sh" // the job's image may lack the shell of the submission
	}
	var args []string
	if text := s.RawCommand(); text != "" {
		args = []string{"-c", text}
	}
	cmd := exec.CommandContext(s.Context(), shell, args...)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGHUP) }
	cmd.Env = os.Environ()
	for _, v := range s.Environ() {
		if name, _, ok := strings.Cut(v, "="); ok && mayBeSent(name) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	return cmd
}

// mayBeSent reports whether a client may set a variable: what is about languages and terminals, as
// Debian's sshd has it, and what editors send.
func mayBeSent(name string) bool {
	return name == "LANG" || name == "COLORTERM" || strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "VSCODE_")
}

// runOnTerminal runs a command on a terminal of its own.
func runOnTerminal(s ssh.Session, cmd *exec.Cmd, p ssh.Pty, sizes <-chan ssh.Window) error {
	if p.Term != "" {
		cmd.Env = append(cmd.Env, "TERM="+p.Term)
	}
	size := func(w ssh.Window) *pty.Winsize { return &pty.Winsize{Rows: uint16(w.Height), Cols: uint16(w.Width)} } //nolint:gosec // sizes of a terminal
	tty, err := pty.StartWithSize(cmd, size(p.Window))
	if err != nil {
		return err
	}
	defer tty.Close()
	go func() { // ends with the session
		for w := range sizes {
			_ = pty.Setsize(tty, size(w))
		}
	}()
	go func() { _, _ = io.Copy(tty, s) }() // ends with the session
	out, drained := &terminalOutput{to: s}, make(chan struct{})
	go func() { // ends with the last process that has the terminal, which may outlive the session
		defer close(drained)
		_, _ = io.Copy(out, tty) // a terminal ends with an error
	}()
	err = cmd.Wait()
	out.waitDrained(drained)
	return err
}

// How long a session waits for output after the end of its command, where another process still has
// the terminal: until none came for drainPause, mostDrains times at most.
const (
	drainPause = 100 * time.Millisecond
	mostDrains = 20
)

// terminalOutput counts the beginnings and ends of writes: an odd number while one lasts.
type terminalOutput struct {
	to    io.Writer
	count atomic.Int64
}

func (o *terminalOutput) Write(b []byte) (int, error) {
	o.count.Add(1)
	defer o.count.Add(1)
	return o.to.Write(b)
}

// waitDrained waits until the terminal has ended, or gave nothing for a moment.
func (o *terminalOutput) waitDrained(ended <-chan struct{}) {
	for range mostDrains {
		before := o.count.Load()
		select {
		case <-ended:
			return
		case <-time.After(drainPause):
		}
		if before%2 == 0 && o.count.Load() == before {
			return
		}
	}
}

// runOnPipes runs a command without a terminal.
func runOnPipes(s ssh.Session, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = s, s.Stderr()
	in, err := cmd.StdinPipe() // not cmd.Stdin: Wait would wait for the end of the client's input
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { // ends with the session
		_, _ = io.Copy(in, s)
		_ = in.Close()
	}()
	return cmd.Wait()
}

// shellCode is an exit code as a shell has it.
func shellCode(e *exec.ExitError) int {
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return e.ExitCode()
}
