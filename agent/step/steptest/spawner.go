package steptest

import (
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
)

// Spawner spawns with os/exec.
type Spawner struct {
	fault atomic.Pointer[func(*barrier.Cmd) error]
	wait  sync.WaitGroup
}

// InjectFault has fault asked before each process from now on, by several goroutines. It may put
// another command in place.
func (s *Spawner) InjectFault(fault func(*barrier.Cmd) error) { s.fault.Store(&fault) }

// Spawn implements barrier.Spawner.
func (s *Spawner) Spawn(c *barrier.Cmd) (int, <-chan barrier.Exit, error) {
	if fault := s.fault.Load(); fault != nil {
		if err := (*fault)(c); err != nil {
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
