package command

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	streams "github.com/coxswain-sched/coxswain/agent/exec"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Streamer is an optional ability of a Runner: commands that talk with their caller while they run.
type Streamer interface {
	// Stream runs a command with the streams of r, or with a terminal, and returns its exit code.
	// It is told to end with ctx. An error means that nobody knows whether it ran.
	Stream(ctx context.Context, c Call, r engine.ExecRequest) (code int, err error)
}

var (
	_ Streamer = (*Here)(nil)
	_ Streamer = (*SSH)(nil)
)

// endPatience is how long a command may take to end when it is told to.
const endPatience = 3 * time.Second

// Stream is Streamer's.
func (h *Here) Stream(ctx context.Context, c Call, r engine.ExecRequest) (int, error) {
	name, path := h.findCommand(c.Name)
	words, env := append(append(slices.Clone(h.Before), name), c.Args...), append(slices.Clone(c.Env), h.Env...)
	var g *gate
	if c.User != "" && len(h.Become) > 0 {
		line, letter := remoteCommand(h.Commands, h.Env, &c)
		line, g = sendLetter(line, letter, &r)
		words, env = append(append(slices.Clone(h.Before), substituteUser(h.Become, c.User)...), "sh", "-c", line), nil
	}
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append([]string{"PATH=" + path, "HOME=" + os.Getenv("HOME"), "LC_ALL=C"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if c.User != "" && len(h.Become) == 0 {
		if err := runAs(cmd, c.User); err != nil {
			return 0, err
		}
	}
	return runStreams(ctx, cmd, r, g)
}

// Stream is Streamer's. The shared connection is made sure of first: what ssh says while it opens one
// would be among what the command prints.
func (s *SSH) Stream(ctx context.Context, c Call, r engine.ExecRequest) (int, error) {
	if _, err := s.Run(ctx, Call{Name: "true", User: c.User}); err != nil {
		return 0, noAnswerError("ssh", err)
	}
	line, letter := remoteCommand(s.Commands, s.Env, &c)
	line, g := sendLetter(line, letter, &r)
	login, args, err := s.sshWords(&c, line, r.TTY)
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, cmp.Or(s.Program, "ssh"), args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	code, err := runStreams(ctx, cmd, r, g)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("ssh %s: %w", login, err)
	}
	return code, err
}

// runStreams runs a command with the streams of a request, or its terminal.
func runStreams(ctx context.Context, cmd *exec.Cmd, r engine.ExecRequest, g *gate) (int, error) {
	s, err := streams.OpenStreams(r, nil)
	if err != nil {
		return 0, err
	}
	defer g.end()
	defer s.Close()
	files := s.Files()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[1], files[2]
	attr := cmd.SysProcAttr
	attr.Setsid, attr.Setctty = r.TTY, r.TTY
	attr.Setpgid = !r.TTY
	if c := attr.Credential; c != nil && r.TTY {
		if err := files[0].Chown(int(c.Uid), int(c.Gid)); err != nil {
			return 0, err
		}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endPatience
	if err := cmd.Start(); err != nil {
		return 0, fault.New(fault.Unavailable, "%w", err)
	}
	s.StartCopying()
	err = cmd.Wait()
	if ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it started and left
		return 0, context.Cause(ctx)
	}
	s.AwaitOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), nil
	case err != nil:
		return 0, fault.New(fault.Unavailable, "%w", err)
	}
	return 0, nil
}

// sendLetter puts the letter of a command elsewhere before what the command reads. A terminal would
// change it and print it: the line then makes the terminal plain first, and says when it has.
func sendLetter(line string, letter []byte, r *engine.ExecRequest) (string, *gate) {
	if !r.TTY {
		in := io.Reader(bytes.NewReader(letter))
		if r.Stdin != nil {
			in = io.MultiReader(in, r.Stdin)
		}
		r.Stdin = in
		return line, nil
	}
	g := &gate{out: r.Stdout, in: r.Stdin, letter: bytes.NewReader(letter), open: make(chan struct{})}
	if g.out == nil {
		g.out = io.Discard
	}
	r.Stdin, r.Stdout = gateReader{g}, g
	return "stty raw -echo; printf '\\005cox\\005'; " + line, g
}

// plainNow is what the line of a letter prints once its terminal is plain.
const plainNow = "\x05cox\x05"

// gate holds a letter back until the other side is ready for it, and what was printed before.
type gate struct {
	out    io.Writer
	in     io.Reader
	letter *bytes.Reader
	open   chan struct{}

	mu     sync.Mutex
	before strings.Builder
	isOpen bool
}

// gateReader reads the letter, and then what the command reads.
type gateReader struct{ g *gate }

// Read is io.Reader's.
func (r gateReader) Read(p []byte) (int, error) {
	<-r.g.open
	if r.g.letter.Len() > 0 {
		return r.g.letter.Read(p)
	}
	if r.g.in == nil {
		return 0, io.EOF
	}
	return r.g.in.Read(p)
}

// Write is io.Writer's.
func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen {
		return g.out.Write(p)
	}
	g.before.Write(p)
	_, rest, ready := strings.Cut(g.before.String(), plainNow)
	if !ready {
		return len(p), nil
	}
	g.isOpen = true
	close(g.open)
	if rest != "" {
		if _, err := io.WriteString(g.out, rest); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// end lets everybody through, and passes on what was printed where the letter was never read: why.
func (g *gate) end() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen {
		return
	}
	g.isOpen = true
	g.letter, g.in = bytes.NewReader(nil), nil
	close(g.open)
	_, _ = io.WriteString(g.out, g.before.String())
}
