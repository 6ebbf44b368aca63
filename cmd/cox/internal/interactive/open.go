package interactive

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Forward is an open port of this machine that leads to a port of a job.
type Forward struct {
	listener net.Listener
	serving  sync.WaitGroup
}

// OpenForward listens at a local port of 127.0.0.1 (0: any) until Close, or ctx ends, and carries
// connections to a port of the job's first node. A local port that is in use is given up for any
// free one if anyPort is set. What goes wrong later is written to errs.
func OpenForward(ctx context.Context, c *client.Client, job string, local, remote int, anyPort bool, errs io.Writer) (*Forward, error) {
	l, err := listenAt("127.0.0.1", portPair{local, remote})
	if fault.KindOf(err) == fault.Conflict && anyPort {
		l, err = listenAt("127.0.0.1", portPair{0, remote})
	}
	if err != nil {
		return nil, err
	}
	w := &Forward{listener: l}
	f := &forwarder{client: c, place: place{job: job}, port: remote, lines: &lineWriter{w: errs}}
	w.serving.Go(func() { f.serve(ctx, l) })
	return w, nil
}

// Port is the local port.
func (w *Forward) Port() int { return w.listener.Addr().(*net.TCPAddr).Port }

// Close ends the forward. Connections that are open end with their ctx.
func (w *Forward) Close() { _ = w.listener.Close() }
