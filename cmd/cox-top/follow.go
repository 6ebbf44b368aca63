package main

import (
	"bytes"
	"context"
	"errors"
	"io"

	tea "charm.land/bubbletea/v2"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/internal/joboutput"
)

// remoteLog follows the output of a job at a server.
type remoteLog struct {
	c      *client.Client
	ctx    context.Context
	stop   context.CancelFunc
	target string
	stderr bool
	body   io.ReadCloser // nil: not asked for yet
	buf    []byte
}

// openLog returns a reader of a job's output, which asks the server when it is read.
func (r *remote) openLog(target string, stderr bool) logReader {
	ctx, stop := context.WithCancel(r.ctx)
	return &remoteLog{c: r.c, ctx: ctx, stop: stop, target: target, stderr: stderr, buf: make([]byte, 128<<10)}
}

func (l *remoteLog) close() { l.stop() }

func (l *remoteLog) next() tea.Msg {
	if l.body == nil {
		if err := l.askServer(); err != nil {
			return logMsg{from: l, err: errors.New(errorText(err))}
		}
	}
	n, err := l.body.Read(l.buf)
	msg := logMsg{from: l, data: bytes.Clone(l.buf[:n])}
	switch {
	case errors.Is(err, io.EOF):
		msg.ended = true
	case err != nil:
		msg.err = errors.New("the log broke off; r reads it again")
	}
	if err != nil {
		l.body.Close()
	}
	return msg
}

func (l *remoteLog) askServer() error {
	t, err := joboutput.ParseTarget(l.target)
	if err != nil {
		return err
	}
	o := client.LogOptions{Step: t.Step, Rank: t.Rank, Follow: true, Tail: logTail}
	if l.stderr {
		o.Stream = "stderr"
	}
	l.body, err = l.c.Logs(l.ctx, t.Job, o)
	return err
}
