package supervise

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/auth/peer"
)

// control serves the connections of the engine and of peers: commands come in,
// records go out, the whole state first.
type control struct {
	listener net.Listener
	conns    map[*conn]bool // the loop's
	sent     int            // records so far
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

// appendLine appends a value of a type that always can be encoded, and the line's end.
func appendLine(to []byte, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("control: " + err.Error())
	}
	return append(append(to, b...), '\n')
}

// listenControl opens the sockets and takes over the connection that the engine left at
// ControlFD, if there is one.
func (h *supervisorSlot) listenControl() error {
	h.control = &control{conns: map[*conn]bool{}}
	if f := os.NewFile(ControlFD, "control"); f != nil {
		if c, err := net.FileConn(f); err == nil {
			h.acceptControl(c)
		}
		_ = f.Close()
	}
	l, err := socket.Listen(h.ControlSocket())
	if err != nil {
		return err
	}
	h.control.listener = l
	go func() {
		for {
			c, err := l.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil:
				time.Sleep(retryAccept) // of descriptors, none may be left
				continue
			}
			if !peer.IsOurs(c) {
				_ = c.Close()
				continue
			}
			h.events <- func() { h.acceptControl(c) }
		}
	}()
	h.stepListener, err = newStepListener(h.StepSocket())
	return err
}

// acceptControl begins to serve a connection.
func (h *supervisorSlot) acceptControl(nc net.Conn) {
	c := &conn{Conn: nc, queue: make(chan attempt.Record, queueLength)}
	h.control.conns[c] = true
	if h.now != nil {
		h.now.due.orphan, h.now.due.tether = time.Time{}, time.Time{}
		c.queue <- h.now.wholeState()
	}
	c.wrote.Go(c.writeQueue)
	go func() {
		in := json.NewDecoder(bufio.NewReaderSize(c, 16<<10))
		for {
			var cmd attempt.Command
			if err := in.Decode(&cmd); err != nil {
				if !errors.Is(err, io.EOF) {
					_ = c.Close()
				}
				h.events <- func() { h.dropConn(c) }
				return
			}
			h.events <- func() {
				if cmd.Op == attempt.OpUsage {
					h.answerUsage(c, cmd)
					return
				}
				h.runCommand(cmd)
			}
		}
	}()
}

// writeQueue sends what is queued until the queue is closed, and closes the connection.
// Not before, even if the other end is gone: a command of his may still be unread.
func (c *conn) writeQueue() {
	var err error
	var lines []byte
	for r := range c.queue {
		lines = appendLine(lines[:0], r)
		for more := true; more; { // what is there already goes with it
			select {
			case r, ok := <-c.queue:
				if more = ok; ok {
					lines = appendLine(lines, r)
				}
			default:
				more = false
			}
		}
		if err != nil {
			continue
		}
		_ = c.SetWriteDeadline(time.Now().Add(10 * time.Second))
		if _, err = c.Write(lines); errors.Is(err, os.ErrDeadlineExceeded) {
			_ = c.Close() // he does not read: the reader sees the end, and drops it
		}
	}
	_ = c.Close()
}

// dropConn forgets a connection. It may have been the server's.
func (h *supervisorSlot) dropConn(c *conn) {
	if !h.control.conns[c] {
		return
	}
	delete(h.control.conns, c)
	close(c.queue)
	s := h.now
	switch {
	case len(h.control.conns) > 0 || s == nil || h.resting:
	case s.state.Started.IsZero():
		s.due.orphan = time.Now().Add(s.launch.Orphan)
	case s.launch.Tether > 0:
		s.due.tether = time.Now().Add(s.launch.Tether)
	}
}

// queueRecord queues a record for every connection.
func (c *control) queueRecord(r attempt.Record) {
	if c == nil {
		return
	}
	c.sent++
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
