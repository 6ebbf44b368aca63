package gateway

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// directPool exchanges requests without a body with the replicas of one service, each on the goroutine
// of its caller. http.Transport has two goroutines for each connection, which cost as much as the rest
// of the gateway does for a small answer. No request is sent twice here. It is safe for concurrent use.
type directPool struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	timeout time.Duration // until the head of an answer is here

	mu       sync.Mutex
	idle     map[string][]*directConn // by address; the one that was used last is the last
	reaping  bool
	disposed bool // connections are not kept any more
}

// directConn is a connection to a replica.
type directConn struct {
	net.Conn
	pool    *directPool
	address string
	reader  *bufio.Reader
	raw     syscall.RawConn // nil: it cannot be looked at
	room    int64           // bytes of the head of an answer that may still come; negative: no bound
	close   func()
	since   time.Time // that it is idle

	poll  [1]unix.PollFd
	look  func(fd uintptr) bool
	alive bool
}

// Errors of answers that cannot be passed on.
var (
	errLongHead = errors.New("the head of the replica's answer is longer than 1 MiB")
	errSwitched = errors.New("the replica changes the protocol, which was not asked for")
)

// badAnswer marks an error of an answer: the replica has worked on the request.
type badAnswer struct{ error }

func (e badAnswer) Unwrap() error { return e.error }

// isBadAnswer says whether a replica has answered with what cannot be passed on.
func isBadAnswer(err error) bool {
	var b badAnswer
	return errors.As(err, &b)
}

// isBroken says whether an error is that of a connection, not of what came on it.
func isBroken(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// Bounds of a pool.
const (
	mostHead = 1 << 20 // bytes of the head of an answer
	mostIdle = 256     // idle connections to one replica
)

// requestWriters are what heads of requests are written with, in one piece.
var requestWriters = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 4<<10) }}

// RoundTrip sends a request and reads the head of its answer. The connection is free again when the
// body of the answer was read to its end, and closed when the body is closed before.
func (p *directPool) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	c := p.takeIdle(r.URL.Host)
	if c == nil {
		var err error
		if c, err = p.openConn(ctx, r.URL.Host); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, c.close)
	resp, err := c.exchangeHeads(r)
	if err != nil {
		stop()
		c.close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	body := &directBody{conn: c, stop: stop, body: resp.Body, keep: !resp.Close}
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		resp.Body = switchedConn{c, stop}
	case resp.Body == http.NoBody:
		body.finish(true)
	default:
		resp.Body = body
	}
	return resp, nil
}

// openConn makes a connection.
func (p *directPool) openConn(ctx context.Context, address string) (*directConn, error) {
	conn, err := p.dial(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &directConn{Conn: conn, pool: p, address: address, room: -1}
	c.reader = bufio.NewReaderSize(c, readBuffer)
	c.close = func() { _ = conn.Close() } // what was sent is sent
	if s, ok := conn.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn() // without, it is not looked at
	}
	c.look = func(fd uintptr) bool {
		c.poll[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN} //nolint:gosec // a file descriptor
		n, err := unix.Poll(c.poll[:], 0)
		c.alive = n == 0 && err == nil
		return true
	}
	return c, nil
}

// isAlive says whether the replica has neither closed an idle connection nor sent something on it.
func (c *directConn) isAlive() bool {
	if c.raw == nil {
		return true
	}
	c.alive = false
	return c.raw.Read(c.look) == nil && c.alive
}

// takeIdle returns a connection that was used before; nil: there is none.
func (p *directPool) takeIdle(address string) *directConn {
	for {
		p.mu.Lock()
		list := p.idle[address]
		if len(list) == 0 {
			p.mu.Unlock()
			return nil
		}
		c := list[len(list)-1]
		list[len(list)-1] = nil
		p.idle[address] = list[:len(list)-1]
		p.mu.Unlock()
		if time.Since(c.since) < idleBackend && c.isAlive() {
			return c
		}
		c.close()
	}
}

// keepConn keeps a connection for the next request, if there is room.
func (p *directPool) keepConn(c *directConn) {
	c.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.idle[c.address]
	if p.disposed || len(list) >= mostIdle {
		c.close()
		return
	}
	if p.idle == nil {
		p.idle = map[string][]*directConn{}
	}
	p.idle[c.address] = append(list, c)
	if !p.reaping {
		p.reaping = true
		time.AfterFunc(idleBackend, p.reapIdle)
	}
}

// reapIdle closes the connections that have been idle for too long, and comes back while there are others.
func (p *directPool) reapIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := time.Now().Add(-idleBackend)
	for address, list := range p.idle {
		n := 0
		for n < len(list) && list[n].since.Before(old) {
			list[n].close()
			n++
		}
		if n == len(list) {
			delete(p.idle, address)
		} else if n > 0 {
			p.idle[address] = append([]*directConn(nil), list[n:]...)
		}
	}
	if p.reaping = len(p.idle) > 0; p.reaping {
		time.AfterFunc(idleBackend/4, p.reapIdle)
	}
}

// dispose closes what is idle, and from now on what becomes idle.
func (p *directPool) dispose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.disposed = true
	for _, list := range p.idle {
		for _, c := range list {
			c.close()
		}
	}
	p.idle = nil
}

// Read reads from the connection; the head of an answer only as far as its bound.
func (c *directConn) Read(b []byte) (int, error) {
	if c.room == 0 {
		return 0, errLongHead
	}
	if c.room > 0 && int64(len(b)) > c.room {
		b = b[:c.room]
	}
	n, err := c.Conn.Read(b)
	if c.room > 0 {
		c.room -= int64(n)
	}
	return n, err
}

// exchangeHeads writes the request and reads the head of its answer, passing on those that come before.
func (c *directConn) exchangeHeads(r *http.Request) (*http.Response, error) {
	if err := c.SetDeadline(time.Now().Add(c.pool.timeout)); err != nil {
		return nil, err
	}
	w := requestWriters.Get().(*bufio.Writer)
	w.Reset(c.Conn)
	err := r.Write(w)
	if err == nil {
		err = w.Flush()
	}
	w.Reset(nil)
	requestWriters.Put(w)
	if err != nil {
		return nil, err
	}
	c.room = mostHead
	for {
		resp, err := http.ReadResponse(c.reader, r)
		switch {
		case err != nil && isBroken(err):
			return nil, err
		case err != nil:
			return nil, badAnswer{err}
		case resp.StatusCode == http.StatusSwitchingProtocols && r.Header.Get("Upgrade") == "":
			return nil, badAnswer{errSwitched}
		case resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols:
			c.room = -1
			return resp, c.SetDeadline(time.Time{})
		}
		if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return nil, err
			}
		}
	}
}

// directBody is the body of an answer.
type directBody struct {
	conn *directConn
	stop func() bool
	body io.ReadCloser
	keep bool // the replica leaves the connection open
	over bool
}

// Read reads the body. Its end frees the connection.
func (b *directBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if err != nil {
		b.finish(errors.Is(err, io.EOF))
	}
	return n, err
}

// Close closes the connection if the body was not read to its end.
func (b *directBody) Close() error {
	b.finish(false)
	return nil
}

// finish frees or closes the connection.
func (b *directBody) finish(whole bool) {
	if b.over {
		return
	}
	b.over = true
	if b.stop() && whole && b.keep && b.conn.reader.Buffered() == 0 {
		b.conn.pool.keepConn(b.conn)
		return
	}
	b.conn.close()
}

// switchedConn is a connection that speaks another protocol, as WebSocket.
type switchedConn struct {
	*directConn
	stop func() bool
}

// Read reads what came with the head of the answer first.
func (s switchedConn) Read(p []byte) (int, error) { return s.reader.Read(p) }

// CloseWrite ends what is sent to the replica.
func (s switchedConn) CloseWrite() error {
	if c, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close closes the connection.
func (s switchedConn) Close() error {
	s.stop()
	return s.Conn.Close()
}
