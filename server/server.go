package server

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/health"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/admin"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/spec/provenance"
	"github.com/coxswain-sched/coxswain/spec/route"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// Plane is what the server needs of a control plane; *control.Control is one.
type Plane interface {
	admin.Plane
	Jobs
	Changes
	Records
	Standings
}

// Jobs is work.
type Jobs interface {
	Submit(context.Context, control.Submission) (control.Accepted, error)
	Estimate(context.Context, control.Submission) (control.Estimate, error)
	// Fits says why a job could never run in the pool that it names; known is false where
	// nobody knows.
	Fits(context.Context, control.Submission) (known bool, err error)
	Change(ctx context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error)
	Scan(query.Filter, func(*state.View) bool)
	Job(context.Context, job.ID) (state.View, error)
	Find(ctx context.Context, array job.ID, task uint32) (state.View, error)
	// TaskOf is a task of an array that is kept; fault.NotFound: there is none.
	TaskOf(ctx context.Context, array job.ID) (state.View, error)
	Tasks(job.ID) []job.ID
	Why(context.Context, job.ID) (query.Why, error)
}

// Changes are events by number of the journal.
type Changes interface {
	Events(ctx context.Context, after uint64) (evs []state.Event, last uint64, gap bool, err error)
	LastEvent() uint64
}

// Standings are who is served next, and why.
type Standings interface {
	Shares(context.Context) (list []query.Standing, tres []string)
	Priorities(ctx context.Context, ids ...job.ID) []query.Priority
	PriorityOf(context.Context, job.ID) (query.Priority, error)
}

// Records is what was kept.
type Records interface {
	History(context.Context, store.Query, func(*state.View) bool) (next uint64, err error)
	WhatIf(context.Context, *query.WhatIf) (*query.WhatIfDone, error)
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
	*transport.Server
	cfg    Config
	intake *intake.Site
	hub    *hub
	rules  *intake.Rules // of the site, under the policy that is in force
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
	s := &Server{cfg: cfg, rules: intake.NewRules(cfg.Rules, cfg.Plane.Policy)}
	s.Server = transport.New(transport.Config{
		Tokens: cfg.Plane, Policy: cfg.Policy, Admins: cfg.Admins, Group: cfg.Group, Users: cfg.Users, Log: cfg.Log, Version: cfg.Version,
		Now: cfg.Now, Stall: cfg.Stall, Patience: cfg.Patience,
	})
	s.hub = newHub(cfg.Plane, s.Log)
	s.intake = &intake.Site{
		Plane: cfg.Plane, Rules: s.rules.Now, Pool: cfg.Pool, Environment: cfg.Environment, Uploads: cfg.Uploads, Mail: cfg.Mail, MaxArray: cfg.MaxArray, Now: cfg.Now,
	}
	s.registerRoutes()
	return s
}

// Serve answers on the listeners until ctx ends: then no new request is taken, streams end, and
// running requests have some seconds. The listeners are closed.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	defer s.Close()
	return s.Server.Serve(ctx, listeners...)
}

// Close ends streams and the server's own goroutine.
func (s *Server) Close() {
	s.Server.Close()
	s.hub.close()
}

// registerRoutes makes every route.
func (s *Server) registerRoutes() {
	s.API.OpenAPI().Components.Schemas.RegisterTypeAlias(transport.TypeOf[route.Origin](), transport.TypeOf[string]()) // it writes itself as text
	s.registerSubmit()
	s.registerUploads()
	s.registerLists()
	s.registerJob()
	s.registerChange()
	s.registerOutput()
	s.registerHistory()
	s.registerAdvise()
	s.registerWatch()
	s.registerOrder()
	s.registerWhatIf()
	admin.Register(s.Server, admin.Config{
		Plane: s.cfg.Plane, Rules: s.cfg.Rules, InForce: s.rules, Users: s.cfg.Users, Name: s.cfg.Name, Version: s.cfg.Version,
		Engines: s.cfg.Engines, Own: s.cfg.Own, Now: s.cfg.Now,
	})
	s.LoosenAnswers()
}
