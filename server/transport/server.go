package transport

import (
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control/state"
)

// Tokens are the access tokens that are kept.
type Tokens interface {
	TokenByID(id string) (state.Token, bool)
}

// Config is what a server needs to know of its callers and of itself. All fields are needed
// but Admins and Group.
type Config struct {
	Tokens   Tokens
	Policy   auth.Policy
	Admins   []string // beside root and the server's own user
	Group    string   // whose members are administrators; empty: none
	Users    *user.Users
	Log      *slog.Logger
	Version  string // of cox
	Now      func() time.Time
	Stall    time.Duration // how long a reader may not read
	Patience time.Duration // within which a request's head has to come; its body may take three times as long
}

// Server serves routes. It is an http.Handler; Serve runs it on listeners.
type Server struct {
	Log     *slog.Logger
	API     huma.API // documents the routes
	Routes  []*Route
	Self    auth.Identity // the server's own user
	Metrics *Metrics

	// Pages answers a path that no route has, for browsers; false: it has no page for it. nil: there
	// are none. It is set before the server serves.
	Pages func(*Call) bool

	cfg         Config
	mux         *http.ServeMux
	used        sync.Map // token id → *atomic.Int64, Unix minutes of the last use
	boot        string   // begins request ids
	serial      atomic.Uint64
	connLimit   *connLimit
	concurrency *concurrencyLimit
	refusals    *refusals
	ending      chan struct{} // closed when the server shuts down: streams end
	once        sync.Once
}

// New makes a server without routes; AddRoute and AddStreamRoute add them.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, Log: cfg.Log, Metrics: newMetrics(), mux: http.NewServeMux(), boot: bootID(), ending: make(chan struct{})}
	uid := uint32(os.Geteuid())
	s.Self = auth.Identity{Name: cfg.Users.ByUID(uid).Name, UID: uid, GID: uint32(os.Getegid())}
	s.connLimit = newConnLimit()
	s.concurrency = newConcurrencyLimit()
	s.refusals = newRefusals(cfg.Now)
	s.API = newAPI(s.mux)
	s.mux.HandleFunc("/", http.HandlerFunc(s.unknownRoute))
	return s
}

// Close ends what lasts: streams, logs, waiting.
func (s *Server) Close() { s.once.Do(func() { close(s.ending) }) }
