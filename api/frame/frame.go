// Package frame is what goes over a connection once it was upgraded for exec: a
// byte for the type, a length, the payload. The server and api/client share it.
//
// A frame is written in one call; a Writer may be used by several goroutines.
package frame

import (
	"encoding/binary"
	"io"
	"sync"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Protocol is the word of the Upgrade header; Header carries the request as JSON
// in base64, because the body of an upgrade belongs to the new protocol.
const (
	Protocol = "cox-exec"
	Header   = "Cox-Exec"
)

// Type says what a frame holds.
type Type byte

// The types of frames.
const (
	Stdin  Type = 0 // client: bytes
	Stdout Type = 1 // server: bytes
	Stderr Type = 2 // server: bytes
	Window Type = 3 // client: rows and columns, two big-endian uint16
	EOF    Type = 4 // client: no more stdin
	Exit   Type = 5 // server, last: JSON of job.ExitCode
	Error  Type = 6 // server, last: JSON of api.Error
)

// Max is the largest payload in bytes; more is a broken peer.
const Max = 1 << 20

// Writer writes frames.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one frame, or several where the payload is longer than Max.
func (w *Writer) Write(t Type, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for first := true; first || len(payload) > 0; first = false {
		part := payload[:min(len(payload), Max)]
		payload = payload[len(part):]
		w.buf = binary.BigEndian.AppendUint32(append(w.buf[:0], byte(t)), uint32(len(part)))
		w.buf = append(w.buf, part...)
		if _, err := w.w.Write(w.buf); err != nil {
			return err
		}
	}
	return nil
}

// Stream is an io.Writer whose bytes become frames of one type.
func (w *Writer) Stream(t Type) io.Writer { return stream{w, t} }

type stream struct {
	w *Writer
	t Type
}

func (s stream) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if err := s.w.Write(s.t, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Read reads one frame into buf, which it may enlarge; the payload is valid until
// buf is used again.
func Read(r io.Reader, buf []byte) (t Type, payload, grown []byte, err error) {
	var head [5]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return 0, nil, buf, err
	}
	n := int(binary.BigEndian.Uint32(head[1:]))
	if n > Max {
		return 0, nil, buf, fault.New(fault.Invalid, "a frame of %d bytes: this is not %s", n, Protocol)
	}
	if n > cap(buf) {
		buf = make([]byte, n)
	}
	payload = buf[:n]
	if _, err = io.ReadFull(r, payload); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, buf, err
	}
	return Type(head[0]), payload, buf, nil
}

// PutWindow is the payload of a Window frame.
func PutWindow(rows, cols uint16) []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, rows), cols)
}

// GetWindow reads the payload of a Window frame.
func GetWindow(b []byte) (rows, cols uint16, ok bool) {
	if len(b) != 4 {
		return 0, 0, false
	}
	return binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:]), true
}
