package server

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/health"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/snapshot"
	"github.com/coxswain-sched/coxswain/spec/provenance"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// Plane is what the server needs of a control plane; *control.Control is one.
type Plane interface {
	Jobs
	Fleet
	Changes
	Keys
	Records
	Policies
	Pools
	Stats() control.Stats
}

// Jobs is work.
type Jobs interface {
	Submit(context.Context, control.Submission) (control.Accepted, error)
	Estimate(context.Context, control.Submission) (control.Estimate, error)
	// Fits says why a job could never run in the pool that it names; known is false where
	// nobody knows.
	Fits(context.Context, control.Submission) (known bool, err error)
	Change(ctx context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error)
	Scan(control.Filter, func(*control.View) bool)
	Job(context.Context, job.ID) (control.View, error)
	Find(ctx context.Context, array job.ID, task uint32) (control.View, error)
	// TaskOf is a task of an array that is kept; fault.NotFound: there is none.
	TaskOf(ctx context.Context, array job.ID) (control.View, error)
	Tasks(job.ID) []job.ID
	Why(context.Context, job.ID) (control.Why, error)
}

// Fleet is what work runs on.
type Fleet interface {
	NodeViews(context.Context) ([]control.NodeView, error)
	SetNodes(ctx context.Context, by job.Actor, names []string, drain bool, reason string) error
	Moves(context.Context) (control.Moves, error)
	ApproveMoves(ctx context.Context, by job.Actor, id string) error
}

// Changes are events by number of the journal.
type Changes interface {
	Events(ctx context.Context, after uint64) (evs []control.Event, last uint64, gap bool, err error)
	LastEvent() uint64
}

// Keys are access tokens.
type Keys interface {
	PutToken(context.Context, job.Actor, control.Token) error
	RevokeToken(ctx context.Context, by job.Actor, id string) error
	Tokens(context.Context) ([]control.Token, error)
	TokenByID(id string) (control.Token, bool)
}

// Policies are the site's rules and what they were before.
type Policies interface {
	SetPolicy(context.Context, job.Actor, control.PolicyChange) (control.Policy, error)
	Policy(ctx context.Context, revision uint64) (control.Policy, error)
	Policies(context.Context) ([]control.Policy, error)
	Shares(context.Context) (list []control.Standing, tres []string)
	Quotas(context.Context) []control.Holding
	Reservable(context.Context, *control.ReserveAsk) (nodes []string, way []control.Obstacle, late []control.Promised)
	Priorities(ctx context.Context, ids ...job.ID) []control.Priority
	PriorityOf(context.Context, job.ID) (control.Priority, error)
}

// Records is what was kept.
type Records interface {
	History(context.Context, store.Query, func(*control.View) bool) (next uint64, err error)
	Audit(context.Context, store.RecordQuery, func(store.Record) error) error
	Backup(ctx context.Context, dir string) (seq uint64, err error)
	Flight(context.Context) (*snapshot.File, error)
	WhatIf(context.Context, *control.WhatIf) (*control.WhatIfDone, error)
	Blob(ctx context.Context, hash string) ([]byte, error)
}

// Config are the parts of a server. Plane is needed, the rest has defaults.
type Config struct {
	Plane   Plane
	Rules   *admission.Rules // the site's rules at the door; nil: none
	Pool    string           // of jobs that name none; empty: the advice chooses
	Policy  auth.Policy
	Admins  []string // beside root and the server's own user
	Group   string   // whose members are administrators; empty: none
	Users   *user.Users
	Log     *slog.Logger
	Name    string        // of the cluster
	Version string        // of cox
	Engines []string      // kinds of engine that pools can be added with
	Output  Output        // an engine.Logger; nil: logs are not served
	Exec    engine.Execer // nil: exec is not served

	Idle func(engine.Ref) []health.Idle // nil: nobody watches what running jobs do

	Own string // a folder that nobody but the server reaches, whatever its mode says; empty: none

	Uploads *upload.Store // of directories that come with jobs; nil: they are not taken

	Environment provenance.EnvironmentPolicy // which variables of a submission are kept

	Mail     bool   // somebody sends mail about jobs
	MaxArray uint32 // array indices stay below it; 0: Slurm's own bound

	// Alone says that tasks can only run as the server's own user, so nobody else
	// may submit.
	Alone bool

	Now       func() time.Time // nil: time.Now
	Heartbeat time.Duration    // of a watch; 0: 15 s
	Stall     time.Duration    // how long a reader may not read; 0: 10 s
	Patience  time.Duration    // within which a request's head has to come; 0: 10 s; its body may take three times as long
}

// Server serves the API. It is an http.Handler; Serve runs it on listeners.
type Server struct {
	cfg         Config
	log         *slog.Logger
	mux         *http.ServeMux
	api         huma.API
	routes      []*apiRoute
	intake      *intake.Site
	hub         *hub
	inForce     atomic.Pointer[inForce]
	used        sync.Map // token id → *atomic.Int64, Unix minutes of the last use
	self        auth.Identity
	host        string
	pid         int
	started     time.Time
	boot        string // begins request ids
	serial      atomic.Uint64
	metrics     *metrics
	connLimit   *connLimit
	concurrency *concurrencyLimit
	ending      chan struct{} // closed when the server shuts down: streams end
	once        sync.Once
}

// New makes a server. Close ends its goroutine; Serve does so by itself.
func New(cfg Config) *Server {
	if cfg.Users == nil {
		cfg.Users = &user.Users{}
	}
	if cfg.Rules == nil {
		cfg.Rules = &admission.Rules{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.Stall == 0 {
		cfg.Stall = 10 * time.Second
	}
	if cfg.Patience == 0 {
		cfg.Patience = 10 * time.Second
	}
	s := &Server{cfg: cfg, log: cfg.Log, mux: http.NewServeMux(), started: cfg.Now(), boot: bootID(), ending: make(chan struct{})}
	s.host, _ = os.Hostname() // an unknown name is shown as none
	s.pid = os.Getpid()
	uid := uint32(os.Geteuid())
	s.self = auth.Identity{Name: cfg.Users.ByUID(uid).Name, UID: uid, GID: uint32(os.Getegid())}
	s.hub = newHub(cfg.Plane, s.log)
	s.metrics = newMetrics(s)
	s.connLimit = newConnLimit()
	s.concurrency = newConcurrencyLimit()
	s.intake = &intake.Site{
		Plane: cfg.Plane, Rules: s.rulesInForce, Pool: cfg.Pool, Environment: cfg.Environment, Uploads: cfg.Uploads, Mail: cfg.Mail, MaxArray: cfg.MaxArray, Now: cfg.Now,
	}
	s.registerRoutes()
	return s
}

// Close ends streams and the server's own goroutine.
func (s *Server) Close() {
	s.once.Do(func() { close(s.ending) })
	s.hub.close()
}
