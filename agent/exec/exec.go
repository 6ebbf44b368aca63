// Package exec runs commands beside the tasks of an attempt: it makes their descriptors, or
// a terminal, hands these to the supervisor of the node (step.Exec), and carries what goes
// through them. The process itself is the supervisor's child. Streams is the part of it for drivers
// that start the process themselves.
package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Run runs the command of r at the socket that x names, as engine.Execer has it; who owns its
// terminal (nil: this process's user). An attempt that has ended, or a command that its
// supervisor refuses, is fault.Conflict; after the end of ctx the error is that of ctx.
func Run(ctx context.Context, x *wire.Exec, r engine.ExecRequest, who *barrier.Identity) (job.ExitCode, error) {
	x.Terminal = r.TTY
	s, err := OpenStreams(r, who)
	if err != nil {
		return job.ExitCode{}, err
	}
	defer s.Close()
	x.Files = s.theirs
	code, why, err := x.Run(ctx, s.StartCopying)
	s.AwaitOutput()
	switch {
	case ctx.Err() != nil:
		return code, ctx.Err()
	case err != nil:
		return code, fault.New(fault.Conflict, "%w", err)
	case why != "" && r.TTY && r.Stdout != nil:
		fmt.Fprintf(r.Stdout, "cox: %s\r\n", why)
	case why != "" && r.Stderr != nil:
		fmt.Fprintf(r.Stderr, "cox: %s\n", why)
	}
	return code, nil
}

// drainAtEnd is how long output is waited for after a command and what it started
// have ended.
const drainAtEnd = time.Second

// Streams are the ends of a command's descriptors. The owner starts the command with Files, calls
// StartCopying once, AwaitOutput after its end, and Close.
type Streams struct {
	r      engine.ExecRequest
	theirs [3]*os.File // for the command
	ours   []*os.File
	in     *os.File // write end of its input, or its terminal; nil: none
	out    sync.WaitGroup
	done   chan struct{} // closed when the command has ended
}

// OpenStreams makes the pipes of a request, or its terminal, which who owns (nil: this process's
// user), and begins to copy its output.
func OpenStreams(r engine.ExecRequest, who *barrier.Identity) (s *Streams, err error) {
	s = &Streams{r: r, done: make(chan struct{})}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if r.TTY {
		return s, s.openTerminal(who)
	}
	if r.Stdin == nil {
		if s.theirs[0], err = os.Open(os.DevNull); err != nil {
			return s, err
		}
	} else {
		if s.theirs[0], s.in, err = os.Pipe(); err != nil {
			return s, err
		}
		s.ours = append(s.ours, s.in)
	}
	for i, to := range []io.Writer{r.Stdout, r.Stderr} {
		from, w, err := os.Pipe()
		if err != nil {
			return s, err
		}
		s.theirs[i+1] = w
		s.ours = append(s.ours, from)
		s.copyOut(to, from)
	}
	return s, nil
}

func (s *Streams) openTerminal(who *barrier.Identity) error {
	blocking, theirs, err := pty.Open()
	if err != nil {
		return fmt.Errorf("a terminal for the command: %w", err)
	}
	s.theirs = [3]*os.File{theirs, theirs, theirs}
	ours, err := pollableFile(blocking)
	if err != nil {
		return err
	}
	s.ours, s.in = []*os.File{ours}, ours
	if who != nil {
		if err := theirs.Chown(int(who.UID), int(who.GID)); err != nil {
			return err
		}
	}
	if err := s.resizeTerminal(s.r.Window); err != nil {
		return err
	}
	s.copyOut(s.r.Stdout, ours)
	return nil
}

func (s *Streams) resizeTerminal(w engine.Window) error {
	if w == (engine.Window{}) {
		return nil
	}
	raw, err := s.in.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: w.Rows, Col: w.Cols})
	})
	return errors.Join(err, failed)
}

// pollableFile is the same file in a form whose Read ends when it is closed.
func pollableFile(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// copyOut carries output on until its end. A terminal ends with an error.
func (s *Streams) copyOut(to io.Writer, from *os.File) {
	if to == nil {
		to = io.Discard
	}
	s.out.Go(func() {
		if _, err := io.Copy(to, from); err != nil && !s.r.TTY {
			_, _ = io.Copy(io.Discard, from) // nobody takes it: the command goes on
		}
	})
}

// Files are standard input, output and error of the command: the same terminal three times, if it
// has one. They are closed by StartCopying.
func (s *Streams) Files() [3]*os.File { return s.theirs }

// StartCopying is called when the command has its descriptors.
func (s *Streams) StartCopying() {
	s.dropTheirs()
	if s.r.Stdin != nil {
		go func() { // ends with the input
			_, _ = io.Copy(s.in, s.r.Stdin)
			if !s.r.TTY {
				_ = s.in.Close()
			}
		}()
	}
	if s.r.TTY && s.r.Resize != nil {
		go func() {
			for {
				select {
				case w, ok := <-s.r.Resize:
					if !ok {
						return
					}
					_ = s.resizeTerminal(w)
				case <-s.done:
					return
				}
			}
		}()
	}
}

func (s *Streams) dropTheirs() {
	for i, f := range s.theirs {
		if f != nil && (i == 0 || f != s.theirs[0]) {
			_ = f.Close()
		}
	}
}

// AwaitOutput waits for the rest of the output, a second at most.
func (s *Streams) AwaitOutput() {
	s.dropTheirs()
	out := make(chan struct{})
	go func() { s.out.Wait(); close(out) }()
	late := time.NewTimer(drainAtEnd)
	defer late.Stop()
	select {
	case <-out:
	case <-late.C:
	}
}

// Close gives the descriptors back, and waits for the end of the copies of output.
func (s *Streams) Close() {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
	s.dropTheirs()
	for _, f := range s.ours {
		_ = f.Close()
	}
	s.out.Wait()
}
