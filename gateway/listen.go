package gateway

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// boundedListener refuses connections beyond a number: with an answer, so that nobody waits.
type boundedListener struct {
	net.Listener
	most int64
	open *atomic.Int64
	cut  prometheus.Counter
}

// boundedConn counts itself out when it is closed.
type boundedConn struct {
	net.Conn
	once sync.Once
	open *atomic.Int64
}

// Accept returns the next connection that may be.
func (l *boundedListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &boundedConn{Conn: c, open: l.open}, nil
		}
		l.open.Add(-1)
		l.cut.Inc()
		_, _ = c.Write([]byte("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")) // one who has gone is no matter
		_ = c.Close()
	}
}

// Close closes the connection.
func (c *boundedConn) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}
