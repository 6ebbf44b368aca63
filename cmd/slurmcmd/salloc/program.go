package salloc

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/job"
)

// program is the command that runs in an allocation, in a process group of its own. With a
// terminal that group is in the foreground, so that keys such as Ctrl-C reach the command and not
// salloc.
type program struct {
	pid      int
	terminal *os.File // nil: standard input is none, or salloc is in the background
	exited   chan unix.WaitStatus
}

// startProgram starts a command, or a shell if there is none.
func startProgram(command, environ []string, in io.Reader, out, errs io.Writer) (*program, error) {
	if len(command) == 0 {
		command = []string{cmp.Or(lookUp(environ, "SHELL"), "/bin/sh")}
	}
	cmd := exec.Command(command[0], command[1:]...)
	if cmd.Err != nil && !strings.Contains(command[0], "/") {
		if st, err := os.Stat(command[0]); err == nil && st.Mode()&0o111 != 0 { // as salloc: last, this directory
			cmd = exec.Command("./"+command[0], command[1:]...)
		}
	}
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = environ, in, out, errs
	p := &program{exited: make(chan unix.WaitStatus, 1)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if f, ok := in.(*os.File); ok {
		if front, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err == nil && front == unix.Getpgrp() {
			p.terminal = f
			cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, int(f.Fd())
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, slurmcmd.Textf("Unable to exec command \"%s\": %v", command[0], err)
	}
	p.pid = cmd.Process.Pid
	if p.terminal != nil {
		signal.Ignore(unix.SIGTTOU) // or taking the terminal back would stop this process
	}
	go p.awaitExit(cmd)
	return p, nil
}

// lookUp returns a variable of an environment.
func lookUp(environ []string, name string) (value string) {
	for _, v := range environ {
		if n, val, ok := strings.Cut(v, "="); ok && n == name {
			value = val
		}
	}
	return value
}

// awaitExit waits for the end of the command. When a key stops it, this process stops too, as a
// part of the same job of the shell, and goes on with it.
func (p *program) awaitExit(cmd *exec.Cmd) {
	var status unix.WaitStatus
	for {
		var got unix.WaitStatus
		_, err := unix.Wait4(p.pid, &got, unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
			continue
		case err == nil && got.Stopped():
			p.stopBoth()
			continue
		}
		status = got
		break
	}
	_ = cmd.Wait() // collects copies of output; the process itself was waited for
	if p.terminal != nil {
		_ = unix.IoctlSetPointerInt(int(p.terminal.Fd()), unix.TIOCSPGRP, unix.Getpgrp())
	}
	p.exited <- status
}

// stopBoth stops this process as its command was stopped, and later continues the command.
func (p *program) stopBoth() {
	if p.terminal == nil {
		return
	}
	fd := int(p.terminal.Fd())
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpgrp())
	_ = unix.Kill(0, unix.SIGSTOP)
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, p.pid)
	_ = unix.Kill(-p.pid, unix.SIGCONT)
}

// forwardSignal passes a signal to salloc on to the command.
func (p *program) forwardSignal(sig syscall.Signal) {
	if sig == syscall.SIGINT && p.terminal != nil {
		return // of a key, while the command was not in the foreground yet
	}
	_ = unix.Kill(-p.pid, sig)
}

// revoke tells the command that its nodes are gone; 0: by the signal that suits it.
func (p *program) revoke(sig syscall.Signal) {
	if sig == 0 {
		sig = syscall.SIGTERM
		if p.terminal != nil {
			sig = syscall.SIGHUP
		}
	}
	_ = unix.Kill(-p.pid, unix.SIGCONT)
	_ = unix.Kill(-p.pid, sig)
}

// exitCode is how the allocation ends when its command ended so.
func exitCode(s unix.WaitStatus) job.ExitCode {
	if s.Signaled() {
		return job.ExitCode{Signal: int(s.Signal())}
	}
	return job.ExitCode{Status: s.ExitStatus()}
}

// shellCode is salloc's exit code: the command's; 0 for a command that a user ended by a signal, 1
// for other signals, as in Slurm.
func shellCode(s unix.WaitStatus) int {
	if !s.Signaled() {
		return s.ExitStatus()
	}
	switch s.Signal() {
	case unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGKILL:
		return 0
	}
	return 1
}
