package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// keepBody is how many bytes of a request's body are remembered, so that a request of which nothing
// was written to a connection can be written to another.
const keepBody = 64 << 10

// errStalled is the error of a client that sends no more of its body.
var errStalled = errors.New("the client sent no more of the request's body")

// keptBody is the body of a request while backends are tried. Close does not close the client's body:
// the connection to a backend that failed does not end the request.
type keptBody struct {
	control *http.ResponseController // nil: no time limit for the client (HTTP/2, where a stream may wait)
	stall   time.Duration

	mu    sync.Mutex
	body  io.ReadCloser
	seen  []byte // read so far, up to keepBody
	read  int64
	again int       // bytes of seen that are to be read again
	late  time.Time // of the client's read

	over    atomic.Bool // the request has ended
	stalled atomic.Bool // the client sent no more in time
}

// Read reads what was read before once more after rewindBody, then from the client.
func (k *keptBody) Read(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.again > 0 {
		n := copy(p, k.seen[len(k.seen)-k.again:])
		k.again -= n
		return n, nil
	}
	k.limitRead()
	n, err := k.body.Read(p)
	if room := keepBody - len(k.seen); room > 0 && k.read == int64(len(k.seen)) {
		k.seen = append(k.seen, p[:min(n, room)]...)
	}
	k.read += int64(n)
	switch {
	case err == nil || k.over.Load() || k.control == nil:
	case errors.Is(err, io.EOF): // what comes behind the body has the server's own time limits
		_ = k.control.SetReadDeadline(time.Time{}) // a connection that has gone has none
	case isTimeout(err):
		k.stalled.Store(true)
		err = errStalled
	}
	return n, err
}

// limitRead gives the client time for its next bytes.
func (k *keptBody) limitRead() {
	if k.control == nil || k.over.Load() {
		return
	}
	if now := time.Now(); k.late.Sub(now) < k.stall*3/4 {
		k.late = now.Add(k.stall)
		_ = k.control.SetReadDeadline(k.late) // a connection that has gone has none
	}
}

// Close does nothing, see keptBody.
func (k *keptBody) Close() error { return nil }

// rewindBody returns the body from its beginning; an error: too much of it was read.
func (k *keptBody) rewindBody() (io.ReadCloser, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.read != int64(len(k.seen)) {
		return nil, errors.New("too much of the request's body was sent")
	}
	k.again = len(k.seen)
	return k, nil
}

// isUntouched says that nothing of the body was read, or all that was can be read again.
func (k *keptBody) isUntouched() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.read == 0
}

// copyBuffers are what bodies of answers are copied with.
var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// streamBuffer is the size of the buffer of an answer that stays open and says little.
const streamBuffer = 512

// isEventStream says whether an answer is server-sent events.
func isEventStream(h http.Header) bool {
	v := h["Content-Type"]
	return len(v) > 0 && bytes.HasPrefix([]byte(v[0]), []byte("text/event-stream"))
}
