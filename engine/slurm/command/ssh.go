package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/fault"
)

// SSH runs commands on a login node, by the system's ssh: its configuration, keys and
// agents count. All commands share one connection, which ssh opens with the first, and
// again after it broke. The host's key has to be known: nothing is trusted at first sight,
// and nothing asks for a password.
type SSH struct {
	Login   string   // [user@]host, or a name in ssh's configuration
	Dir     string   // where the connection's socket is; its name must be short
	Env     []string // as Here.Env
	Options []string // more of ssh's: "-p", "2222"
	Program string   // empty: ssh
}

// sshFailed is ssh's exit code for what went wrong with the connection.
const sshFailed = 255

// Run is Runner's. Call.User is refused: the login says who it is.
func (s *SSH) Run(ctx context.Context, c Call) (Result, error) {
	if c.User != "" {
		return Result{}, fault.New(fault.Unsupported, "over SSH, commands run as %s and nobody else", s.Login)
	}
	if strings.HasPrefix(s.Login, "-") {
		return Result{}, fault.New(fault.Invalid, "%q is no login", s.Login)
	}
	args := append(s.shared(), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ClearAllForwardings=yes", "-T")
	args = append(append(args, s.Options...), "--", s.Login, remote(append(c.Env, s.Env...), c.Name, c.Args))
	cmd := exec.CommandContext(ctx, cmp.Or(s.Program, "ssh"), args...)
	cmd.Stdin = bytes.NewReader(c.Stdin)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = afterKill
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // the shared connection, begun by this one, has its standard error
		err = nil
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Result{}, fmt.Errorf("%s on %s did not answer: %w", c.Name, s.Login, context.Cause(ctx))
	case errors.As(err, &exit) && exit.ExitCode() == sshFailed:
		return Result{}, fmt.Errorf("ssh %s: %s", s.Login, oneLine(said.String()))
	case errors.As(err, &exit) && exit.Exited():
		return Result{out.Bytes(), said.Bytes(), exit.ExitCode()}, nil
	case err != nil:
		return Result{}, err
	}
	return Result{out.Bytes(), said.Bytes(), 0}, nil
}

// shared are the options of the one connection.
func (s *SSH) shared() []string {
	return []string{"-o", "ControlMaster=auto", "-o", "ControlPersist=60", "-o", "ControlPath=" + filepath.Join(s.Dir, "%C"), "-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=3"}
}

// remote is a command line for the login's shell, which finds the program by its own PATH:
// the one among the variables is the job's.
func remote(env []string, name string, args []string) string {
	words := []string{"exec", "env", "LC_ALL=C"}
	for _, v := range env {
		words = append(words, quote(v))
	}
	words = append(words, `"$(command -v `+quote(name)+`)"`)
	for _, v := range args {
		words = append(words, quote(v))
	}
	return strings.Join(words, " ")
}

// quote makes one word of a text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Close ends the shared connection.
func (s *SSH) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if found, _ := os.ReadDir(s.Dir); len(found) == 0 {
		return nil
	}
	_ = exec.CommandContext(ctx, cmp.Or(s.Program, "ssh"), append(s.shared(), "-O", "exit", "--", s.Login)...).Run() // it may have ended
	return nil
}
