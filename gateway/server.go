package gateway

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	servicemodel "github.com/coxswain-sched/coxswain/model/service"
)

// Config are the parts of a gateway. Source is needed, the rest has defaults.
type Config struct {
	Source   Source
	StateDir string // where the routes are kept over a restart; empty: nowhere
	Cert     string // PEM file; empty: no TLS
	Key      string
	Access   string // file of the access log; empty: none
	Limits   Limits
	Log      *slog.Logger // nil: none
}

// Server is a gateway. It is an http.Handler; Serve runs it on listeners. It is safe for concurrent use.
type Server struct {
	cfg         Config
	certificate *certificate
	access      *accessLog
	metrics     *metrics
	proxyLog    *log.Logger
	identity    string

	table     atomic.Pointer[table]
	version   atomic.Uint64 // of the routes that were taken over
	connected atomic.Bool   // the stream of routes is open
	soon      chan struct{} // holds one at most: the load is to be posted
	unkept    chan struct{} // holds one at most: the routes are to be written

	succeeded atomic.Bool   // another gateway has taken over
	over      chan struct{} // closed then

	applying sync.Mutex
	leaving  map[string]*service // services without a route that have requests in flight
}

// New makes a gateway that knows the routes of before, if it has a folder for them.
func New(cfg Config) (*Server, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Limits.fillDefaults()
	g := &Server{
		cfg: cfg, identity: newIdentity(), soon: make(chan struct{}, 1), unkept: make(chan struct{}, 1), over: make(chan struct{}),
		leaving: map[string]*service{}, proxyLog: slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}
	g.metrics = newMetrics(g)
	g.table.Store(&table{})
	var err error
	if g.certificate, err = openCertificate(cfg.Cert, cfg.Key, cfg.Log); err != nil {
		return nil, err
	}
	if g.access, err = openAccessLog(cfg.Access); err != nil {
		return nil, err
	}
	if err := g.loadKept(); err != nil {
		return nil, err
	}
	return g, nil
}

// ServeHTTP answers one request.
func (g *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Host == servicemodel.HealthHost {
		g.writeHealth(w)
		return
	}
	x := g.beginExchange(w, r)
	admitted := false
	defer func() { x.endExchange(admitted) }() // also when the proxy breaks an answer off by a panic
	t := g.table.Load()
	s := t.findService(r)
	switch {
	case !isToken(r.Method):
		x.writePage(noMethod)
		return
	case r.Method == http.MethodConnect:
		x.writePage(noConnect)
		return
	case s == nil && g.version.Load() == 0:
		x.writePage(noRoutes)
		return
	case s == nil:
		x.writePage(noService(t, r))
		return
	}
	x.service, x.settings = s, s.settings.Load()
	g.sendClientAway(w, r)
	if p := x.refuseRequest(); p != nil {
		x.writePage(*p)
		return
	}
	if err := s.admitRequest(); err != nil {
		x.err = err
		x.writePage(pageOf(x, err))
		return
	}
	admitted = true
	x.proxy.ServeHTTP(x, r)
}

// isToken says whether a method is one word (RFC 9110). HTTP/2 carries others, which net/http lets pass:
// written to a replica, one with spaces is a request for a path of its own.
func isToken(method string) bool {
	for _, c := range []byte(method) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return method != ""
}

// refuseRequest checks token and rate; nil: both are fine.
func (x *exchange) refuseRequest() *page {
	set := x.settings
	if set.tokens != nil {
		scheme, token, _ := strings.Cut(x.r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") || token == "" {
			return &tokenMissing
		}
		sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
		if !set.tokens[hex.EncodeToString(sum[:])] {
			return &tokenWrong
		}
		x.r.Header.Del("Authorization") // it is meant for the gateway
	}
	if set.limiter != nil && !set.limiter.Allow() {
		p := tooMany(x.service, set.route.Rate)
		return &p
	}
	if set.route.Sticky {
		if c, err := x.r.Cookie(stickyCookie); err == nil {
			x.cookie = c.Value
		}
	}
	return nil
}

// Metrics serves the gateway's numbers for Prometheus. It is not a part of the gateway itself, so that
// no service can have its path.
func (g *Server) Metrics() http.Handler { return g.metrics.handler() }

// Reopen begins the access log anew, after its file was moved away.
func (g *Server) Reopen() error { return g.access.reopen() }

// HasServices says whether there is a route.
func (g *Server) HasServices() bool { return len(g.table.Load().named) > 0 }

// Connected says whether the server tells routes just now.
func (g *Server) Connected() bool { return g.connected.Load() }

// Serve answers on the listeners until ctx ends or HandOver was called. Then it takes no new
// connections, lets requests in flight end (Limits.Leave at most, or Limits.HandOver), and tells the
// server that it leaves. The listeners are closed.
func (g *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	server := g.httpServer()
	talk, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var own sync.WaitGroup
	defer own.Wait()
	defer stop()
	own.Go(func() { g.postLoads(talk) })
	own.Go(func() { g.followRoutes(talk) })
	if g.cfg.StateDir != "" {
		own.Go(func() { g.keepRoutes(talk) })
	}
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		bounded := &boundedListener{Listener: l, most: int64(g.cfg.Limits.Connections), open: &g.metrics.open, cut: g.metrics.cut}
		own.Go(func() { ended <- g.serveListener(server, bounded) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-ended:
	case <-g.over:
		for _, l := range listeners {
			_ = l.Close() // the other gateway has the socket
		}
		g.awaitClients(ctx)
	}
	most := g.cfg.Limits.Leave
	if g.succeeded.Load() && ctx.Err() == nil {
		most = g.cfg.Limits.HandOver
	}
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	if most != g.cfg.Limits.Leave { // one that is ended meanwhile has no more time than others
		defer context.AfterFunc(ctx, func() { time.AfterFunc(g.cfg.Limits.Leave, cancel) })()
	}
	if server.Shutdown(leave) != nil {
		_ = server.Close() // what is left is cut off
	}
	g.awaitLast(leave) // a WebSocket is no connection of the server's any more
	stop()
	if left := g.load(); left.Gateway != "" {
		bye := api.GatewayLoad{Gateway: g.identity, Routes: left.Routes, Leaving: true, Services: left.Services}
		if posting := g.postLoad(context.WithoutCancel(ctx), bye); posting != nil {
			g.cfg.Log.Info("the server was not told that the gateway leaves", "err", posting)
		}
	}
	g.access.flush()
	if g.cfg.StateDir != "" && g.version.Load() != 0 && !g.succeeded.Load() {
		if keeping := g.writeRoutes(); keeping != nil {
			g.cfg.Log.Warn("the routes could not be written", "err", keeping)
		}
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}

// awaitLast waits until no request is in flight, or ctx ends.
func (g *Server) awaitLast(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for g.inFlight() > 0 && ctx.Err() == nil {
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// inFlight is how many requests are in flight.
func (g *Server) inFlight() (n int) {
	g.applying.Lock()
	defer g.applying.Unlock()
	count := func(s *service) {
		s.mu.Lock()
		defer s.mu.Unlock()
		n += s.inFlight
	}
	for _, s := range g.table.Load().named {
		count(s)
	}
	for _, s := range g.leaving {
		count(s)
	}
	return n
}

// httpServer has the limits of clients.
func (g *Server) httpServer() *http.Server {
	l := &g.cfg.Limits
	server := &http.Server{
		Handler: g, ReadHeaderTimeout: l.Header, MaxHeaderBytes: l.HeaderBytes, IdleTimeout: l.Idle,
		ErrorLog: g.proxyLog, Protocols: new(http.Protocols),
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: l.Streams, SendPingTimeout: l.Stall / 2, PingTimeout: l.Stall / 2, WriteByteTimeout: l.Stall},
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	if g.certificate != nil {
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: g.certificate.current}
	}
	return server
}

func (g *Server) serveListener(server *http.Server, l net.Listener) error {
	if g.certificate != nil {
		return server.ServeTLS(l, "", "")
	}
	return server.Serve(l)
}
