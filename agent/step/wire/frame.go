package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/socket"
)

// The wire between srun and a Node is a stream of frames over a unix socket, in
// both directions: kind (1 byte), rank and number (4 bytes each, signed), length
// of the body (4 bytes), all big-endian, then the body. Bodies are JSON for what
// is said once and raw bytes for input and output.

// Kind says what a frame means.
type Kind uint8

// What srun says.
const (
	MsgHello    Kind = iota + 1 // body: hello; first on every connection
	MsgCreate                   // body: request; to the allocator
	MsgDone                     // the step of this connection is over on every node; to the allocator
	MsgPrepare                  // body: preparation
	MsgGo                       // open the barrier
	MsgStdin                    // rank (-1: all), body: input; empty: its end
	MsgSignal                   // number: signal for all tasks of the step
	MsgKill                     // end all tasks of the step; number 1: at once; body: why, an engine.Why
	MsgWaitGone                 // number: step; answered by MsgGone once nothing of it lives
	MsgExec                     // body: execution; the command's descriptors follow once MsgHeld was said
	MsgResize                   // number: a Window, packed: the new size of the step's terminal
	MsgAttach                   // number: step; answered by MsgCreated, then by what its srun says of it (see MsgWatch)
)

// What a Node says.
const (
	MsgCreated  Kind = iota + 64 // body: Info
	MsgBusy                      // body: why the step waits; MsgCreated or MsgRefused follows
	MsgRefused                   // body: why not, for people
	MsgHeld                      // body: pids by rank
	MsgOutput                    // rank, number: descriptor, body: bytes
	MsgStdinAck                  // number: bytes that were taken or are no longer wanted
	MsgExit                      // rank, body: ending
	MsgOver                      // every task ended, all output was sent, nothing is left
	MsgGone                      // answer to MsgWaitGone
	MsgTrouble                   // body: something that the user should know; the step goes on
	MsgPMI                       // rank, body: a command of the process management interface; number: PMI2, or 0 for a line of PMI-1. An answer: bytes
	MsgNotice                    // body: a line for standard error, as it is
	MsgPMIx                      // body: a part of a message of package pmix; number 1: more of it follows; in both directions
	MsgWatch                     // number: 1 somebody watches the step, 0 nobody does any more; srun repeats output and ends of tasks on this connection meanwhile
)

// InputWindow is how much input may be on its way to one node.
const InputWindow = 256 << 10

// maxBody bounds a frame; argument lists and environments are the largest.
const maxBody = 64 << 20

// Frame is one message.
type Frame struct {
	Kind   Kind
	Rank   int
	Number int
	Body   []byte
}

// Decode reads a JSON body.
func (f Frame) Decode(into any) error {
	if err := checkObjects(f.Body); err != nil {
		return err
	}
	if err := json.Unmarshal(f.Body, into); err != nil {
		return fmt.Errorf("message %d: %w", f.Kind, err)
	}
	return nil
}

// Link is one end of a connection. Reading is for one goroutine, writing for any.
type Link struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex // guards writing

	budget  *Budget // of the Node that serves it; nil: srun's end
	charged int     // what it took of the purse, which guards it
}

// NewLink wraps a connection.
func NewLink(c net.Conn) *Link { return &Link{conn: c, in: bufio.NewReaderSize(c, 16<<10)} }

// NewServerLink wraps a connection of which the messages count against a budget.
func NewServerLink(c net.Conn, b *Budget) *Link {
	l := NewLink(c)
	l.budget = b
	return l
}

// Send writes one frame, whole.
func (l *Link) Send(f Frame) error {
	if len(f.Body) > maxBody {
		return fmt.Errorf("message of %d bytes is too long", len(f.Body))
	}
	buf := make([]byte, 13, 13+len(f.Body))
	buf[0] = byte(f.Kind)
	binary.BigEndian.PutUint32(buf[1:], uint32(int32(f.Rank)))
	binary.BigEndian.PutUint32(buf[5:], uint32(int32(f.Number)))
	binary.BigEndian.PutUint32(buf[9:], uint32(len(f.Body)))
	buf = append(buf, f.Body...)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.conn.Write(buf)
	return err
}

// SendJSON writes a frame with a JSON body.
func (l *Link) SendJSON(k Kind, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("message %d: %w", k, err)
	}
	return l.Send(Frame{Kind: k, Body: text})
}

// Receive reads one frame; io.EOF if the other side closed between two frames.
func (l *Link) Receive() (Frame, error) {
	var head [13]byte
	if _, err := io.ReadFull(l.in, head[:]); err != nil {
		return Frame{}, err
	}
	f := Frame{
		Kind:   Kind(head[0]),
		Rank:   int(int32(binary.BigEndian.Uint32(head[1:]))),
		Number: int(int32(binary.BigEndian.Uint32(head[5:]))),
	}
	size := binary.BigEndian.Uint32(head[9:])
	if err := l.checkSize(f.Kind, int(size)); err != nil {
		return Frame{}, err
	}
	f.Body = make([]byte, size)
	if _, err := io.ReadFull(l.in, f.Body); err != nil {
		return Frame{}, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return f, nil
}

// LimitWrites makes writes fail that have not ended in time, also one that waits already.
func (l *Link) LimitWrites(within time.Duration) { _ = l.conn.SetWriteDeadline(time.Now().Add(within)) }

// Close ends the connection; a blocked receive returns.
func (l *Link) Close() { _ = l.conn.Close() }

// Dial connects to the Node of one of an allocation's nodes and says hello.
func Dial(a *step.Alloc, node int) (*Link, error) {
	c, err := socket.Dial(a.Nodes[node].Socket, 0)
	if err != nil {
		return nil, err
	}
	l := NewLink(c)
	if err := l.SendJSON(MsgHello, Hello{Version: Protocol, Job: a.Job, Attempt: a.Attempt}); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}
