package supervise

import (
	"cmp"
	"errors"
	"os"
	"time"

	"github.com/coxswain-sched/coxswain/agent/container"
)

// removeLimit is how long the removal of what is left of containers may take.
const removeLimit = time.Minute

// noteContainer writes down that a container may be left, for who cleans up after this process.
func (s *supervisor) noteContainer(name string) error {
	f, err := os.OpenFile(s.Containers(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(name + "\n")
	return errors.Join(err, f.Close())
}

// closeIdle has the containers end in which nothing runs any more, when the attempt ends. No more
// are made.
func (c *containers) closeIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.end()
	for _, t := range c.all {
		select {
		case <-t.made:
			if t.box != nil && t.box.Idle() {
				t.box.Close()
			}
		default:
		}
	}
}

// isMaking reports whether somebody still makes a container.
func (c *containers) isMaking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.making > 0
}

// cleaned reports whether nothing is left of the containers, and begins to remove what is.
func (c *containers) cleaned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.removed || len(c.all) == 0 && c.count == 0 {
		return true
	}
	return c.removeLeft()
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
