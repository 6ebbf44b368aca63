package supervise

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
)

// control serves the connections of the engine and of peers: commands come in,
// records go out, the whole state first.
type control struct {
	listener net.Listener
	conns    map[*conn]bool // the loop's
}

// conn is one connection. Its queue is closed by the loop only.
type conn struct {
	net.Conn
	queue chan attempt.Record
	wrote sync.WaitGroup
}

// queueLength is how many records a connection may be behind before it is
// dropped; the engine connects again and gets the whole state.
const queueLength = 1024

func writeLine(w io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}

// listen opens the control socket and takes over the connection that the engine
// left at ControlFD, if there is one.
func (s *supervisor) listen() error {
	s.control = &control{conns: map[*conn]bool{}}
	if f := os.NewFile(ControlFD, "control"); f != nil {
		if c, err := net.FileConn(f); err == nil {
			s.accept(c)
		}
		_ = f.Close()
	}
	name := s.launch.ControlSocket(s.index)
	_ = os.Remove(name) // of a supervisor that died before the start
	l, err := net.Listen("unix", name)
	if err != nil {
		return err
	}
	s.control.listener = l
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if !ours(c) {
				_ = c.Close()
				continue
			}
			s.events <- func() { s.accept(c) }
		}
	}()
	return nil
}

// ours reports whether the other end is the same user or root.
func ours(c net.Conn) bool {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return false
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return false
	}
	allowed := false
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		allowed = err == nil && (cred.Uid == 0 || int(cred.Uid) == os.Getuid())
	})
	return err == nil && allowed
}

// accept begins to serve a connection.
func (s *supervisor) accept(nc net.Conn) {
	c := &conn{Conn: nc, queue: make(chan attempt.Record, queueLength)}
	s.control.conns[c] = true
	s.due.orphan, s.due.tether = time.Time{}, time.Time{}
	c.queue <- attempt.Record{Kind: attempt.KindState, Time: time.Now(), State: s.state.Clone(), Unsaved: s.state.Unsaved}
	c.wrote.Go(c.write)
	go func() {
		in := json.NewDecoder(bufio.NewReader(c))
		for {
			var cmd attempt.Command
			if err := in.Decode(&cmd); err != nil {
				if !errors.Is(err, io.EOF) {
					_ = c.Close()
				}
				s.events <- func() { s.drop(c) }
				return
			}
			s.events <- func() { s.obey(cmd) }
		}
	}()
}

// write sends what is queued until the queue is closed, and closes the connection.
// Not before, even if the other end is gone: a command of his may still be unread.
func (c *conn) write() {
	var err error
	for r := range c.queue {
		if err != nil {
			continue
		}
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if err = writeLine(c, r); errors.Is(err, os.ErrDeadlineExceeded) {
			_ = c.Close() // he does not read: the reader sees the end, and drops it
		}
	}
	_ = c.Close()
}

// drop forgets a connection. It may have been the server's.
func (s *supervisor) drop(c *conn) {
	if !s.control.conns[c] {
		return
	}
	delete(s.control.conns, c)
	close(c.queue)
	switch {
	case len(s.control.conns) > 0:
	case s.state.Started.IsZero():
		s.due.orphan = time.Now().Add(s.launch.Orphan)
	case s.launch.Tether > 0:
		s.due.tether = time.Now().Add(s.launch.Tether)
	}
}

// send queues a record for every connection.
func (c *control) send(r attempt.Record) {
	if c == nil {
		return
	}
	for conn := range c.conns {
		select {
		case conn.queue <- r:
		default:
			_ = conn.Conn.Close() // its reader sees that and drops it
		}
	}
}

// close ends every connection after what is queued was written.
func (c *control) close() {
	if c == nil {
		return
	}
	if c.listener != nil {
		_ = c.listener.Close()
	}
	for conn := range c.conns {
		close(conn.queue)
		conn.wrote.Wait()
	}
}

// obey carries out a command.
func (s *supervisor) obey(c attempt.Command) {
	switch c.Op {
	case attempt.OpGo:
		s.run(c.Time)
	case attempt.OpAbort:
		s.abort(cmp.Or(c.Cause, engine.LaunchFailed), c.Text)
	case attempt.OpStop:
		sig := unix.Signal(c.Signal)
		if sig == 0 {
			sig = unix.SIGTERM
		}
		s.end(ending{signal: sig, grace: c.Grace, cause: c.Cause, text: c.Text})
	case attempt.OpSignal:
		s.signal(unix.Signal(c.Signal), c.Scope)
	}
}
