package step

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Exec is a command beside the tasks of an attempt, on one node.
type Exec struct {
	Socket  string // of the node
	Job     job.ID
	Attempt uint32

	Args     []string
	Env      []string // NAME=VALUE, added last
	Step     *int     // with Rank: its step; nil: the last one in which it runs
	Rank     *int     // in the environment of this task; nil: in the batch script's
	Terminal bool     // the first file is to be its terminal
	Files    [3]*os.File
}

// Execution is the body of mExec.
type Execution struct {
	Args     []string `json:"args"`
	Env      []string `json:"env,omitempty"`
	Step     *int     `json:"step,omitempty"`
	Rank     *int     `json:"rank,omitempty"`
	Terminal bool     `json:"terminal,omitempty"`
}

// Run runs the command and returns its exit code, and why its program could not be
// started, if so. When ctx ends the command is ended. The files are handed over by
// then, but still the caller's to close.
func (e *Exec) Run(ctx context.Context, handed func()) (code job.ExitCode, why string, err error) {
	alloc := &Alloc{Job: e.Job, Attempt: e.Attempt, Nodes: []AllocNode{{Socket: e.Socket}}}
	l, err := Dial(alloc, 0)
	if err != nil {
		return code, "", fmt.Errorf("the supervisor does not answer: %w", err)
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, l.Close)
	defer stop()
	if err := l.SendJSON(MsgExec, Execution{e.Args, e.Env, e.Step, e.Rank, e.Terminal}); err != nil {
		return code, "", err
	}
	for {
		f, err := l.Receive()
		switch {
		case ctx.Err() != nil:
			return code, "", ctx.Err()
		case err != nil:
			return code, "", errors.New("the job has ended")
		case f.Kind == MsgRefused:
			return code, "", errors.New(string(f.Body))
		case f.Kind == MsgHeld:
			if err := l.sendFiles(e.Files[:]); err != nil {
				return code, "", err
			}
			handed()
		case f.Kind == MsgExit:
			var end Ending
			err := f.Decode(&end)
			return end.Exit, end.Text, err
		}
	}
}

// sendFiles hands open files to the other end, which must be waiting for them.
func (l *Link) sendFiles(files []*os.File) error {
	u, ok := l.conn.(*net.UnixConn)
	if !ok {
		return errors.New("files go over unix sockets only")
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	_, _, err := u.WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil)
	return err
}

// ReceiveFiles takes open files. Nothing else may be on its way.
func (l *Link) ReceiveFiles(n int) ([]*os.File, error) {
	u, ok := l.conn.(*net.UnixConn)
	if !ok || l.in.Buffered() > 0 {
		return nil, errors.New("files were expected")
	}
	oob := make([]byte, unix.CmsgSpace(4*n))
	_, size, _, _, err := u.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:size])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return nil, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "handed over"))
		}
	}
	if len(files) != n {
		for _, f := range files {
			_ = f.Close()
		}
		return nil, fmt.Errorf("%d files were handed over, not %d", len(files), n)
	}
	return files, nil
}

// serveExec runs a command beside the tasks, until it ends or who asked for it goes.
func (n *Node) serveExec(l *Link, f Frame) {
	refuse := func(err error) { _ = l.Send(Frame{Kind: MsgRefused, Body: []byte(err.Error())}) }
	var e Execution
	if err := f.Decode(&e); err != nil {
		refuse(err)
		return
	}
	h, err := n.planExec(&e)
	if err != nil {
		refuse(err)
		return
	}
	if err := l.Send(Frame{Kind: MsgHeld}); err != nil {
		return
	}
	files, err := l.ReceiveFiles(len(h.Files))
	if err != nil {
		refuse(err)
		return
	}
	copy(h.Files[:], files)
	held, err := h.Start(n.cfg.Spawner, n.cfg.TaskInit)
	for _, f := range files {
		_ = f.Close()
	}
	if err == nil {
		err = held.Ready()
	}
	if err == nil {
		err = held.Go()
	}
	if err != nil {
		if held != nil && held.Exited != nil {
			held.Close()
			<-held.Exited
		}
		refuse(err)
		return
	}
	why := make(chan error, 1)
	go func() { why <- held.Executed() }()
	end := Ending{}
	x := n.awaitExec(l, held)
	end.Exit = job.ExitCode{Status: x.Status, Signal: x.Signal}
	if err := <-why; err != nil {
		end.Text = strings.TrimPrefix(err.Error(), "execve(): ")
	}
	n.sweepExec(h.Step, held.PID)
	_ = l.Send(Frame{Kind: MsgExit, Body: MustJSON(end)})
}

// planExec describes the process of a command.
func (n *Node) planExec(e *Execution) (*Hold, error) {
	if len(e.Args) == 0 {
		return nil, errors.New("no command is given")
	}
	a := n.cfg.Alloc
	h := &Hold{Args: e.Args, Umask: -1, Dir: a.WorkDir, Terminal: e.Terminal}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errEnding
	}
	n.execs++
	h.Step = BatchStep - n.execs // a control group of its own
	if e.Rank == nil {
		h.Env = Batch(a, n.cfg.Env, n.cfg.Node)
	} else {
		env, dir, err := n.taskPlace(e)
		if err != nil {
			return nil, err
		}
		h.Env, h.Dir = env, dir
	}
	env := newEnviron(h.Env)
	for _, v := range e.Env {
		name, value, _ := strings.Cut(v, "=")
		env.set(name, value)
	}
	h.Env = env.pairs()
	return h, nil
}

// taskPlace is the environment and the directory of a task that runs here, in the
// last step that has it. The caller holds n.mu.
func (n *Node) taskPlace(e *Execution) (env []string, dir string, err error) {
	var found *nodeStep
	part, local := 0, 0
	for id, s := range n.steps {
		if e.Step != nil && id != *e.Step || found != nil && id < found.prep.Info.Step {
			continue
		}
		for i, p := range s.prep.Info.Parts {
			for k, rank := range p.Ranks {
				if p.Node == n.cfg.Node && rank == *e.Rank {
					found, part, local = s, i, k
				}
			}
		}
	}
	if found == nil {
		return nil, "", fmt.Errorf("task %d does not run here", *e.Rank)
	}
	p := found.prep.Info.Parts[part]
	return Task(n.cfg.Alloc, &found.prep, part, local, n.cfg.Own), found.prep.Programs[p.Component].Dir, nil
}

// awaitExec waits for the end of a command. When who asked for it goes, it is told
// as by a terminal that hangs up, and killed after the grace.
func (n *Node) awaitExec(l *Link, held *Held) Exit {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			if _, err := l.Receive(); err != nil {
				return
			}
		}
	}()
	select {
	case x := <-held.Exited:
		return x
	case <-gone:
	}
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGCONT} {
		_ = syscall.Kill(-held.PID, sig) // it may have ended meanwhile
	}
	late := time.NewTimer(n.cfg.Grace)
	defer late.Stop()
	select {
	case x := <-held.Exited:
		return x
	case <-late.C:
		_ = syscall.Kill(-held.PID, syscall.SIGKILL)
		return <-held.Exited
	}
}

// sweepExec ends what a command left behind.
func (n *Node) sweepExec(step, leader int) {
	if e, ok := n.cfg.Spawner.(StepEnder); ok && e.EndStep(step) == nil {
		return
	}
	killSessions(map[int]bool{leader: true})
}
