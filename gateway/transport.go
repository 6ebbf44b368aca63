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

// newTransport makes the connections to the replicas of one service.
func newTransport(l *Limits, h2c bool, timeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: l.Dial, KeepAlive: 15 * time.Second}
	t := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, dialError{err}
			}
			return c, nil
		},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    256,
		ReadBufferSize:         readBuffer,
		WriteBufferSize:        writeBuffer,
		IdleConnTimeout:        idleBackend,
		ResponseHeaderTimeout:  cmp.Or(timeout, l.FirstByte),
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 1 << 20,
	}
	if h2c {
		t.Protocols = new(http.Protocols)
		t.Protocols.SetUnencryptedHTTP2(true)
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second}
	}
	return t
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
