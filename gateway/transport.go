package gateway

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// idleBackend is how long an unused connection to a replica is kept. It is shorter than the shortest
// time after which usual servers close such a connection (2 s): a request with a body that meets the
// close cannot be sent again.
const idleBackend = 1500 * time.Millisecond

// Sizes of the buffers of a connection to a replica. An idle stream holds them; larger parts of bodies
// are read and written without them.
const (
	readBuffer  = 2 << 10
	writeBuffer = 1 << 10
)

// dialError marks an error of a connection that was not made: nothing was sent.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

// transport has the connections to the replicas of one service: of its own for requests without a body,
// those of net/http for bodies and HTTP/2.
type transport struct {
	direct *directPool // nil: replicas are asked by HTTP/2
	full   *http.Transport
}

func newTransport(l *Limits, h2c bool, timeout time.Duration) *transport {
	dialer := &net.Dialer{Timeout: l.Dial, KeepAlive: 15 * time.Second}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, dialError{err}
		}
		return c, nil
	}
	first := cmp.Or(timeout, l.FirstByte)
	t := &transport{full: &http.Transport{
		DialContext:            dial,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    mostIdle,
		ReadBufferSize:         readBuffer,
		WriteBufferSize:        writeBuffer,
		IdleConnTimeout:        idleBackend,
		ResponseHeaderTimeout:  first,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: mostHead,
	}}
	if h2c {
		t.full.Protocols = new(http.Protocols)
		t.full.Protocols.SetUnencryptedHTTP2(true)
		t.full.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}
	} else {
		t.direct = &directPool{dial: dial, timeout: first}
	}
	return t
}

// RoundTrip sends a request once. net/http would send some a second time by itself; it gets none of
// these: requests without a body go another way, those with one cannot be read again (keepRequestBody),
// and HTTP/2 repeats only what the replica said that it has not looked at.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.direct != nil && (r.Body == nil || r.Body == http.NoBody) {
		return t.direct.RoundTrip(r)
	}
	return t.full.RoundTrip(r)
}

// dispose closes the connections that are idle. Requests in flight go on.
func (t *transport) dispose() {
	t.full.CloseIdleConnections()
	if t.direct != nil {
		t.direct.dispose()
	}
}

// isRefused says whether an error is that of a connection that was not made.
func isRefused(err error) bool {
	var d dialError
	return errors.As(err, &d)
}

// isTimeout says whether no answer came in time.
func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
