package steptest

import (
	"os/exec"
	"sync"
	"syscall"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
)

// Spawner spawns with os/exec.
type Spawner struct {
	Fault func(*barrier.Cmd) error // is asked first, and may put another command in place; nil: none

	wait sync.WaitGroup
}

// Spawn implements barrier.Spawner.
func (s *Spawner) Spawn(c *barrier.Cmd) (int, <-chan barrier.Exit, error) {
	if s.Fault != nil {
		if err := s.Fault(c); err != nil {
			return 0, nil, err
		}
	}
	cmd := &exec.Cmd{Path: c.Path, Args: c.Args, Env: c.Env, SysProcAttr: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Files[0], c.Files[1], c.Files[2]
	cmd.ExtraFiles = c.Files[3:]
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	done := make(chan barrier.Exit, 1)
	s.wait.Go(func() {
		_ = cmd.Wait()
		ws := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if ws.Signaled() {
			done <- barrier.Exit{Signal: int(ws.Signal())}
			return
		}
		done <- barrier.Exit{Status: ws.ExitStatus()}
	})
	return cmd.Process.Pid, done, nil
}

// Wait waits until every process that was spawned has ended.
func (s *Spawner) Wait() { s.wait.Wait() }
