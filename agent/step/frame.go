package step

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/coxswain-sched/coxswain/agent/step/socket"
)

// The wire between srun and a Node is a stream of frames over a unix socket, in
// both directions: kind (1 byte), rank and number (4 bytes each, signed), length
// of the body (4 bytes), all big-endian, then the body. Bodies are JSON for what
// is said once and raw bytes for input and output.

// kind says what a frame means.
type kind uint8

// What srun says.
const (
	mHello    kind = iota + 1 // body: hello; first on every connection
	mCreate                   // body: request; to the arbiter
	mDone                     // the step of this connection is over on every node; to the arbiter
	mPrepare                  // body: preparation
	mGo                       // open the barrier
	mStdin                    // rank (-1: all), body: input; empty: its end
	mSignal                   // number: signal for all tasks of the step
	mKill                     // end all tasks of the step; number 1: at once
	mWaitGone                 // number: step; answered by mGone once nothing of it lives
	mExec                     // body: execution; the command's descriptors follow once mHeld was said
)

// What a Node says.
const (
	mCreated  kind = iota + 64 // body: Info
	mBusy                      // body: why the step waits; mCreated or mRefused follows
	mRefused                   // body: why not, for people
	mHeld                      // body: pids by rank
	mOutput                    // rank, number: descriptor, body: bytes
	mStdinAck                  // number: bytes that were taken or are no longer wanted
	mExit                      // rank, body: ending
	mOver                      // every task ended, all output was sent, nothing is left
	mGone                      // answer to mWaitGone
	mTrouble                   // body: something that the user should know; the step goes on
	mPMI                       // rank, body: a line of the process management interface, in both directions
)

// maxBody bounds a frame; argument lists and environments are the largest.
const maxBody = 64 << 20

// frame is one message.
type frame struct {
	kind   kind
	rank   int
	number int
	body   []byte
}

// decode reads a JSON body.
func (f frame) decode(into any) error {
	if err := objects(f.body); err != nil {
		return err
	}
	if err := json.Unmarshal(f.body, into); err != nil {
		return fmt.Errorf("message %d: %w", f.kind, err)
	}
	return nil
}

// link is one end of a connection. Reading is for one goroutine, writing for any.
type link struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex // guards writing

	purse *purse // of the Node that serves it; nil: srun's end
	kept  int    // what it took of the purse, which guards it
}

// newLink wraps a connection.
func newLink(c net.Conn) *link { return &link{conn: c, in: bufio.NewReaderSize(c, 16<<10)} }

// send writes one frame, whole.
func (l *link) send(f frame) error {
	if len(f.body) > maxBody {
		return fmt.Errorf("message of %d bytes is too long", len(f.body))
	}
	buf := make([]byte, 13, 13+len(f.body))
	buf[0] = byte(f.kind)
	binary.BigEndian.PutUint32(buf[1:], uint32(int32(f.rank)))
	binary.BigEndian.PutUint32(buf[5:], uint32(int32(f.number)))
	binary.BigEndian.PutUint32(buf[9:], uint32(len(f.body)))
	buf = append(buf, f.body...)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.conn.Write(buf)
	return err
}

// sendJSON writes a frame with a JSON body.
func (l *link) sendJSON(k kind, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("message %d: %w", k, err)
	}
	return l.send(frame{kind: k, body: text})
}

// receive reads one frame; io.EOF if the other side closed between two frames.
func (l *link) receive() (frame, error) {
	var head [13]byte
	if _, err := io.ReadFull(l.in, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{
		kind:   kind(head[0]),
		rank:   int(int32(binary.BigEndian.Uint32(head[1:]))),
		number: int(int32(binary.BigEndian.Uint32(head[5:]))),
	}
	size := binary.BigEndian.Uint32(head[9:])
	if err := l.afford(f.kind, int(size)); err != nil {
		return frame{}, err
	}
	f.body = make([]byte, size)
	if _, err := io.ReadFull(l.in, f.body); err != nil {
		return frame{}, errors.Join(io.ErrUnexpectedEOF, err)
	}
	return f, nil
}

// close ends the connection; a blocked receive returns.
func (l *link) close() { _ = l.conn.Close() }

// dial connects to the Node of one of an allocation's nodes and says hello.
func dial(a *Alloc, node int) (*link, error) {
	c, err := socket.Dial(a.Nodes[node].Socket, 0)
	if err != nil {
		return nil, err
	}
	l := newLink(c)
	if err := l.sendJSON(mHello, hello{Version: protocol, Job: a.Job, Attempt: a.Attempt}); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}
