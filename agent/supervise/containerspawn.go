package supervise

import (
	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
)

// boxSpawner starts processes in a container, as those of the attempt: with its mark, in the
// control groups of their steps, and with their end explained as that of any other. It implements
// barrier.Spawner.
type boxSpawner struct {
	c   *containers
	box *container.Box
}

// Spawn implements barrier.Spawner.
func (b *boxSpawner) Spawn(c *barrier.Cmd) (int, <-chan barrier.Exit, error) {
	s := b.c.s.spawner
	own := *c
	own.Env = append(withoutMark(c.Env), s.mark)
	before := s.oomKills()
	pid, ended, err := b.box.Spawn(&own)
	if err != nil {
		return 0, nil, err
	}
	if err := s.adoptProcess(pid, c.Step); err != nil {
		b.c.s.log.Warn("take a process of a container into its step", "process", pid, "err", err)
	}
	exited := make(chan barrier.Exit, 1)
	go func() {
		exited <- s.explainExit(<-ended, before)
		s.wakeLoop()
	}()
	return pid, exited, nil
}

// adoptProcess takes a process of a container into the control group of a step. It is in that of
// the attempt by its birth.
func (s *spawner) adoptProcess(pid, step int) error {
	if s.unified == nil {
		return nil
	}
	if _, err := s.stepGroup(step); err != nil {
		return err
	}
	return s.group.AdoptInStep(step, pid)
}

// wakeLoop has the loop look whether anything is left.
func (s *spawner) wakeLoop() {
	select {
	case s.reaped <- struct{}{}:
	default:
	}
}
