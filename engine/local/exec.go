package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/step"
)

var _ engine.Execer = (*Engine)(nil)

// Exec runs a command beside the tasks of an attempt; see engine.Execer. Its process
// is a child of the node's supervisor, in the attempt's control group.
func (e *Engine) Exec(ctx context.Context, ref engine.Ref, r engine.ExecRequest) (job.ExitCode, error) {
	if len(r.Command) == 0 || r.Command[0] == "" {
		return job.ExitCode{}, fault.New(fault.Invalid, "no command is given")
	}
	x := &step.Exec{Args: r.Command, Env: r.Env, Step: r.Step, Rank: r.Rank, Terminal: r.TTY}
	var who *step.Identity
	ran := false
	err := e.ask(ctx, ref, func(g *gang) error {
		ran = true
		who = g.launch.User
		return g.place(x, r)
	})
	if err == nil && !ran {
		err = fault.New(fault.Conflict, "attempt %s has ended", ref)
	}
	if err != nil {
		return job.ExitCode{}, err
	}
	s, err := newStreams(r, who)
	if err != nil {
		return job.ExitCode{}, err
	}
	defer s.close()
	x.Files = s.theirs
	code, why, err := x.Run(ctx, s.begin)
	s.end()
	switch {
	case ctx.Err() != nil:
		return code, ctx.Err()
	case err != nil:
		return code, fault.New(fault.Conflict, "command in attempt %s: %w", ref, err)
	case why != "" && r.TTY && r.Stdout != nil:
		fmt.Fprintf(r.Stdout, "cox: %s\r\n", why)
	case why != "" && r.Stderr != nil:
		fmt.Fprintf(r.Stderr, "cox: %s\n", why)
	}
	return code, nil
}

// place finds the node of a command, on the gang's goroutine.
func (g *gang) place(x *step.Exec, r engine.ExecRequest) error {
	if g.decided != attempt.EntryGo || g.phase != engine.Running {
		return fault.New(fault.Conflict, "attempt %s does not run", g.launch.Ref)
	}
	node := r.Node
	if node == "" {
		node = g.parts[0].node.Name
		if r.Rank != nil {
			node = g.nodeOf(r)
		}
	}
	i := slices.IndexFunc(g.parts, func(p *part) bool { return p.node.Name == node })
	switch {
	case node == "":
		return fault.New(fault.NotFound, "attempt %s has no task %d that runs", g.launch.Ref, *r.Rank)
	case i < 0:
		return fault.New(fault.NotFound, "attempt %s has no node %s", g.launch.Ref, node)
	}
	x.Socket, x.Job, x.Attempt = g.parts[i].at.StepSocket(), g.launch.Job.ID, max(g.launch.Ref.Attempt, 1)
	return nil
}

// nodeOf is where a rank runs, in the last step in which it does; "" if nowhere.
func (g *gang) nodeOf(r engine.ExecRequest) string {
	node, last := "", engine.BatchStep
	for _, p := range g.parts {
		for _, t := range p.state.Tasks {
			if t.Running && t.Rank == *r.Rank && t.Step > last && (r.Step == nil || t.Step == *r.Step) {
				node, last = p.node.Name, t.Step
			}
		}
	}
	return node
}

// drainAtEnd is how long output is waited for after a command and what it started
// have ended.
const drainAtEnd = time.Second

// streams are the ends of a command's descriptors.
type streams struct {
	r      engine.ExecRequest
	theirs [3]*os.File // for the command
	ours   []*os.File
	in     *os.File // write end of its input, or its terminal; nil: none
	out    sync.WaitGroup
	done   chan struct{} // closed when the command has ended
}

// newStreams makes pipes or a terminal, and begins to copy.
func newStreams(r engine.ExecRequest, who *step.Identity) (s *streams, err error) {
	s = &streams{r: r, done: make(chan struct{})}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if r.TTY {
		return s, s.terminal(who)
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

func (s *streams) terminal(who *step.Identity) error {
	blocking, theirs, err := pty.Open()
	if err != nil {
		return fmt.Errorf("a terminal for the command: %w", err)
	}
	s.theirs = [3]*os.File{theirs, theirs, theirs}
	ours, err := pollable(blocking)
	if err != nil {
		return err
	}
	s.ours, s.in = []*os.File{ours}, ours
	if who != nil {
		if err := theirs.Chown(int(who.UID), int(who.GID)); err != nil {
			return err
		}
	}
	if err := s.resize(s.r.Window); err != nil {
		return err
	}
	s.copyOut(s.r.Stdout, ours)
	return nil
}

func (s *streams) resize(w engine.Window) error {
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

// pollable is the same file in a form whose Read ends when it is closed.
func pollable(f *os.File) (*os.File, error) {
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
func (s *streams) copyOut(to io.Writer, from *os.File) {
	if to == nil {
		to = io.Discard
	}
	s.out.Go(func() {
		if _, err := io.Copy(to, from); err != nil && !s.r.TTY {
			_, _ = io.Copy(io.Discard, from) // nobody takes it: the command goes on
		}
	})
}

// begin is called when the command has its descriptors.
func (s *streams) begin() {
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
					_ = s.resize(w)
				case <-s.done:
					return
				}
			}
		}()
	}
}

func (s *streams) dropTheirs() {
	for i, f := range s.theirs {
		if f != nil && (i == 0 || f != s.theirs[0]) {
			_ = f.Close()
		}
	}
}

// end waits for the rest of the output.
func (s *streams) end() {
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

func (s *streams) close() {
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
