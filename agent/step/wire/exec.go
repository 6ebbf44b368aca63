package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step"
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

// Execution is the body of MsgExec.
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
	alloc := &step.Alloc{Job: e.Job, Attempt: e.Attempt, Nodes: []step.AllocNode{{Socket: e.Socket}}}
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
