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
// counted by who is at the other end, and all of them together.
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
		who = strconv.FormatUint(uint64(o.cred.UID), 10)
		bounded = o.err != nil || o.cred.UID != 0 && o.cred.UID != s.Self.UID
	}
	var far bool
	if o.over, far = s.connLimit.addConn(c, who, bounded); far {
		_ = c.Close()
	}
	return ctx
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
