package transport

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// connLimit keeps one user from taking every descriptor of the server: connections are
// counted by who is at the other end, and all of them together. A connection over TCP is nobody's
// until a token or a session says whose it is.
type connLimit struct {
	user, all int // most connections of one user, and of all but administrators

	mu   sync.Mutex
	of   map[string]int
	n    int
	open map[net.Conn]string // whose it is
}

// Bounds of connections; the number of descriptors that the process may have lowers
// them.
const (
	userConns = 1024
	allConns  = 64 << 10
)

func newConnLimit() *connLimit {
	b := &connLimit{user: userConns, all: allConns, of: map[string]int{}, open: map[net.Conn]string{}}
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil {
		if n := int(min(files.Cur, 1<<20)); n > 0 {
			b.all = min(b.all, n/2)
			b.user = min(b.user, n/4)
		}
	}
	return b
}

// addConn counts a connection. over: it is one too many, and gets an answer that says so;
// far: even for that there are too many.
func (b *connLimit) addConn(c net.Conn, who string, bounded bool) (over, far bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open[c] = who
	b.of[who]++
	b.n++
	if !bounded {
		return false, false
	}
	of := b.of[who]
	return of > b.user || b.n > b.all, of > b.user+b.user/4 || b.n > b.all+b.all/4
}

// moveConn counts a connection for the user who uses it now. If he has one too many, it returns how many
// he may have, else 0.
func (b *connLimit) moveConn(c net.Conn, who string, bounded bool) (most int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was, ok := b.open[c]
	if !ok || was == who { // what is not counted has been closed
		return 0
	}
	b.open[c] = who
	b.of[who]++
	if b.of[was]--; b.of[was] == 0 {
		delete(b.of, was)
	}
	if bounded && b.of[who] > b.user {
		return b.user
	}
	return 0
}

// removeConn counts a connection out, once.
func (b *connLimit) removeConn(c net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	who, ok := b.open[c]
	if !ok {
		return
	}
	delete(b.open, c)
	b.n--
	if b.of[who]--; b.of[who] == 0 {
		delete(b.of, who)
	}
}

// acceptConn is the server's ConnContext: it asks who is at the other end and counts him.
func (s *Server) acceptConn(ctx context.Context, c net.Conn) context.Context {
	ctx = withOrigin(ctx, c)
	o, _ := ctx.Value(originKey{}).(*origin)
	who, bounded := "tcp", true
	if o.socket {
		who, bounded = s.connsOf(o.cred.UID)
		bounded = bounded || o.err != nil
	}
	var far bool
	if o.over, far = s.connLimit.addConn(c, who, bounded); far {
		_ = c.Close()
	}
	return ctx
}

// connsOf is under what the connections of a user are counted; root's and those of the server's own user
// are not bounded.
func (s *Server) connsOf(uid uint32) (who string, bounded bool) {
	return strconv.FormatUint(uint64(uid), 10), uid != 0 && uid != s.Self.UID
}

// countConn counts a connection over TCP for the caller, who is known now.
func (c *Call) countConn() error {
	o, _ := c.Ctx().Value(originKey{}).(*origin)
	if o == nil || o.socket || !c.ID.Known() {
		return nil
	}
	who, bounded := c.s.connsOf(c.ID.UID)
	most := c.s.connLimit.moveConn(o.conn, who, bounded)
	if most == 0 {
		return nil
	}
	c.W.Header()["Connection"] = []string{"close"}
	return fault.New(fault.Unavailable, "user %s has too many connections open: %d are allowed", c.ID.Name, most).
		Advise("close some, and keep one for many requests")
}

// refuseConn answers a request on a connection that is one too many.
func (c *Call) refuseConn() {
	c.W.Header()["Connection"] = []string{"close"}
	c.WriteError(fault.New(fault.Unavailable, "too many connections of one user are open").
		Advise("close some, and keep one for many requests"))
}

// ConnStateChanged is the server's ConnState. What is taken over by exec is counted until it
// is given back there.
func (s *Server) ConnStateChanged(c net.Conn, st http.ConnState) {
	switch st {
	case http.StateNew:
		s.Metrics.Conns.Add(1)
	case http.StateClosed:
		s.Metrics.Conns.Add(-1)
		s.connLimit.removeConn(c)
	}
}
