package node

import (
	"fmt"
	"os"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

// hasTerminal reports whether a task gets a terminal: the first of a step with --pty does.
func (t *task) hasTerminal() bool { return t.step.prep.Terminal != nil && t.state.Rank == 0 }

// openTerminal makes the terminal of a task, which is all three of its descriptors. What goes
// through it goes the way of standard input and output. The file returned is the task's own end, to
// be closed here once it has it.
func (t *task) openTerminal(h *barrier.Hold) (given []*os.File, err error) {
	ours, theirs, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("a terminal for task %d: %w", t.state.Rank, err)
	}
	given = []*os.File{theirs}
	in, err := pollableCopy(ours)
	if err == nil {
		t.pipes[1], err = pollableCopy(ours)
	}
	_ = ours.Close()
	if err != nil {
		return given, fmt.Errorf("a terminal for task %d: %w", t.state.Rank, err)
	}
	t.terminal = in
	t.in = newFeed(in)
	t.in.terminal = true
	t.step.node.serving.Go(t.in.run)
	if o := t.step.node.cfg.Owner; o != nil {
		if err := theirs.Chown(int(o.UID), int(o.GID)); err != nil {
			return given, fmt.Errorf("a terminal for task %d: %w", t.state.Rank, err)
		}
	}
	h.Files, h.Terminal = [3]*os.File{theirs, theirs, theirs}, true
	t.resize(*t.step.prep.Terminal)
	return given, nil
}

// pollableCopy is another descriptor of a file, in a form whose Read ends when it is closed.
func pollableCopy(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// resize sets the size of a task's terminal, if it has one that is open still.
func (t *task) resize(w wire.Window) {
	if t.terminal == nil || w == (wire.Window{}) {
		return
	}
	raw, err := t.terminal.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // closed: no matter
		_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
	})
}

// resizeTerminal sets the size of the step's terminal.
func (s *nodeStep) resizeTerminal(f wire.Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tasks {
		t.resize(wire.UnpackWindow(f.Number))
	}
}
