package supervise

import (
	"cmp"
	"errors"
	"os"
	"time"

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

// removeLeft removes containers that their runtimes did not remove, and reports whether there are
// none. The loop calls it, with c.mu held, when nothing of the attempt lives.
func (c *containers) removeLeft() bool {
	if c.removing {
		return false
	}
	var names []string
	for _, t := range c.all {
		if !t.tidy {
			names = append(names, t.name)
		}
	}
	if set := c.s.launch.Containers; len(names) > 0 && set != nil {
		if cmds := set.New().Remove(names); len(cmds) > 0 {
			c.removing = true
			c.s.due.kill = time.Time{} // as of an epilog, nothing of the job is left to be killed
			go c.runRemoval(cmds)
			return false
		}
	}
	c.removed = true
	_ = os.Remove(c.s.Containers()) // nothing is left to be cleaned up
	return true
}

// runRemoval runs commands that remove containers, outside of the job's control group.
func (c *containers) runRemoval(cmds []container.Command) {
	s := c.s
	var err error
	for _, cmd := range cmds { // of several the last one tells
		err = c.runOutside(cmd)
	}
	if err != nil {
		s.log.Warn("remove what is left of containers", "err", err)
	}
	_ = os.Remove(s.Containers()) // who cleans up after us would do no better
	s.events <- c.endRemoval
}

// endRemoval goes on once what was left of the containers is removed. The loop calls it. What the
// runtime leaves behind is killed, as what a hook does.
func (c *containers) endRemoval() {
	c.mu.Lock()
	c.removing, c.removed = false, true
	c.mu.Unlock()
	if !c.s.noProcessLeft() {
		c.s.due.kill = time.Now()
	}
	c.s.spawner.wakeLoop()
}

func (c *containers) runOutside(cmd container.Command) error {
	s := c.s
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	out, err := os.CreateTemp(s.Dir, "runtime-*.log")
	if err != nil {
		return err
	}
	defer out.Close()
	defer os.Remove(out.Name())
	pid, exited, err := s.spawner.spawnProcess(startRequest{
		path: cmd.Words[0], args: cmd.Words, env: append(s.runtimeEnv(), cmd.Env...), dir: "/", user: s.launch.User,
		files: []*os.File{null, out, out}, site: true,
	})
	if err != nil {
		return err
	}
	late := time.AfterFunc(removeLimit, func() { s.killSession(pid) })
	defer late.Stop()
	if e := <-exited; !e.OK() {
		return errors.New(cmp.Or(lastWords(out), exitWords(e)))
	}
	return nil
}
