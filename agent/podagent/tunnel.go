package podagent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/step/socket"
	"github.com/coxswain-sched/coxswain/auth/peer"
)

// How long a connection may take to be made, and how long one may be without any sign
// from the other machine.
const (
	dialWithin  = 10 * time.Second
	silentAfter = 15 * time.Second
)

// tunnel leads connections between members. It is safe for concurrent use.
type tunnel struct {
	*memberCert
	index int
	serve func(from int, purpose string, c *tls.Conn) // a connection of another member, closed when it returns
	ctx   context.Context
	stop  context.CancelFunc

	mu        sync.Mutex
	closed    bool
	listeners []net.Listener
	conns     map[net.Conn]bool
	met       map[int]bool // the members that there was a connection to or from
	wg        sync.WaitGroup
}

func newTunnel(b *memberCert, index int) *tunnel {
	t := &tunnel{memberCert: b, index: index, conns: map[net.Conn]bool{}, met: map[int]bool{}}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// listenAddress is where a member listens.
func (m Member) listenAddress() string {
	port := m.Port
	if port == 0 {
		port = Port
	}
	return net.JoinHostPort(m.Host, strconv.Itoa(port))
}

// listenMembers begins to serve other members at an address (empty: at all), and leads to them by sockets below root.
func (t *tunnel) listenMembers(root, address string) error {
	_, port, err := net.SplitHostPort(t.members[t.index].listenAddress())
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, port))
	if err != nil {
		return fmt.Errorf("listen for the other members: %w", err)
	}
	t.acceptLoop(l, t.greetPeer)
	for i := range t.members {
		if i == t.index {
			continue
		}
		at := slotOf(root, i)
		for name, purpose := range map[string]string{at.ControlSocket(): forControl, at.StepSocket(): forStep} {
			l, err := socket.Listen(name)
			if err != nil {
				return err
			}
			t.acceptLoop(l, func(c net.Conn) { t.leadToMember(c, i, purpose) })
		}
	}
	return nil
}

// acceptLoop serves the connections of a listener.
func (t *tunnel) acceptLoop(l net.Listener, serve func(net.Conn)) {
	t.mu.Lock()
	t.listeners = append(t.listeners, l)
	t.mu.Unlock()
	t.wg.Go(func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			} else if err != nil {
				time.Sleep(50 * time.Millisecond) // no descriptors: they come back when others end
				continue
			}
			if !t.keepConn(c) {
				return
			}
			t.wg.Go(func() {
				defer t.dropConn(c)
				serve(c)
			})
		}
	})
}

// keepConn notes a connection, so that close closes it; false if it was called.
func (t *tunnel) keepConn(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		_ = c.Close()
		return false
	}
	t.conns[c] = true
	return true
}

func (t *tunnel) dropConn(c net.Conn) {
	t.mu.Lock()
	delete(t.conns, c)
	t.mu.Unlock()
	_ = c.Close()
}

// close ends everything, and waits for it.
func (t *tunnel) close() {
	t.stop()
	t.mu.Lock()
	t.closed = true
	for _, l := range t.listeners {
		_ = l.Close()
	}
	for c := range t.conns {
		_ = c.Close()
	}
	t.mu.Unlock()
	t.wg.Wait()
}

// greetPeer finds out who connects, and for what.
func (t *tunnel) greetPeer(c net.Conn) {
	setKeepalive(c)
	s := tls.Server(c, t.serverTLS())
	_ = c.SetDeadline(time.Now().Add(dialWithin))
	if s.Handshake() != nil {
		return
	}
	_ = c.SetDeadline(time.Time{})
	state := s.ConnectionState()
	if from, err := t.peerMember(state); err == nil && state.NegotiatedProtocol != "" {
		t.noteMet(from)
		t.serve(from, state.NegotiatedProtocol, s)
	}
	_ = s.Close()
}

// dialMember connects to another member. The caller closes the connection.
func (t *tunnel) dialMember(ctx context.Context, to int, purpose string) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	d := tls.Dialer{Config: t.clientTLS(to, purpose)}
	c, err := d.DialContext(ctx, "tcp", t.members[to].listenAddress())
	if err != nil {
		return nil, err
	}
	s := c.(*tls.Conn)
	setKeepalive(s.NetConn())
	t.noteMet(to)
	return s, nil
}

func (t *tunnel) noteMet(member int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.met[member] = true
}

// hasEnded reports whether err shows that the member has ended: its port refuses the connection, and we
// have talked to the member before.
func (t *tunnel) hasEnded(member int, err error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.met[member] && errors.Is(err, unix.ECONNREFUSED)
}

// leadToMember carries a local connection to another member.
func (t *tunnel) leadToMember(c net.Conn, to int, purpose string) {
	if !peer.IsOurs(c) {
		return
	}
	s, err := t.dialMember(t.ctx, to, purpose)
	if err != nil && (t.ctx.Err() != nil || t.hasEnded(to, err)) {
		return // the attempt has ended on one of the two sides, so nobody waits for the connection
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cox-pod: connect to %s: %v\n", t.members[to].Name, err)
		return
	}
	if t.keepConn(s) {
		defer t.dropConn(s)
		spliceConns(c.(*net.UnixConn), s)
	}
}

// setKeepalive has the kernel end a connection whose other machine is silent.
func setKeepalive(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: silentAfter / 3, Interval: silentAfter / 3, Count: 2})
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silentAfter.Milliseconds()))
		})
	}
}

// duplex is a connection of which one direction can be ended alone.
type duplex interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// spliceConns carries bytes both ways until both directions have ended. A direction that ends
// ends the other side's reading; what is under way in the other direction still arrives.
func spliceConns(a, b duplex) {
	var wg sync.WaitGroup
	carry := func(to, from duplex) {
		if _, err := io.Copy(plain{to}, plain{from}); err != nil {
			// Where from is broken nothing more goes there; where to is, it says so itself.
			var op *net.OpError
			if !errors.As(err, &op) || op.Op == "read" {
				_ = from.Close()
			}
		}
		_ = to.CloseWrite() // where that fails, reading ends too
	}
	wg.Go(func() { carry(a, b) })
	wg.Go(func() { carry(b, a) })
	wg.Wait()
	_ = a.Close()
	_ = b.Close()
}

// silentConn is a connection that ends when its other end says nothing for a while.
type silentConn struct {
	*tls.Conn
	most time.Duration
}

// Read waits no longer than that.
func (q silentConn) Read(p []byte) (int, error) {
	_ = q.SetReadDeadline(time.Now().Add(q.most))
	return q.Conn.Read(p)
}

// plain hides what io.Copy would use in the place of Read and Write.
type plain struct{ io.ReadWriter }
