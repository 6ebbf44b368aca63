package server

import (
	"context"
	"io/fs"
	"log/slog"
	"net"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/health"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/server/admin"
	"github.com/coxswain-sched/coxswain/server/console"
	"github.com/coxswain-sched/coxswain/server/jobs"
	"github.com/coxswain-sched/coxswain/server/machines"
	"github.com/coxswain-sched/coxswain/server/reports"
	"github.com/coxswain-sched/coxswain/server/schedules"
	"github.com/coxswain-sched/coxswain/server/secrets"
	"github.com/coxswain-sched/coxswain/server/services"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/spec/provenance"
	"github.com/coxswain-sched/coxswain/spec/route"
	"github.com/coxswain-sched/coxswain/store/secret"
	"github.com/coxswain-sched/coxswain/store/upload"
	"github.com/coxswain-sched/coxswain/web"
)

// Plane is what the server needs of a control plane; *control.Control is one.
type Plane interface {
	admin.Plane
	jobs.Plane
	reports.Plane
}

// Config are the parts of a server. Plane is needed, the rest has defaults.
type Config struct {
	Plane  Plane
	Rules  *admission.Rules // the site's rules at the door; nil: none
	Pool   string           // of jobs that name none; empty: the advice chooses
	Policy auth.Policy
	Admins []string // beside root and the server's own user
	Group  string   // whose members are administrators; empty: none
	Users  *user.Users
	Log    *slog.Logger
	Name   string // of the cluster

	ThrowAway bool // jobs end with the server

	Version string              // of cox
	Engines []string            // kinds of engine that pools can be added with
	Output  jobs.Output         // an engine.Logger; nil: logs are not served
	Exec    engine.Execer       // nil: exec is not served
	Usage   engine.UsageSampler // nil: nobody measures what jobs use while they run

	Idle func(engine.Ref) []health.Idle // nil: nobody watches what running jobs do

	Series jobs.SeriesReader // nil: nobody keeps how jobs used what they hold

	DeviceUse func() map[string]health.DeviceUse // of the devices of them all, by pool; nil: the same

	AllocationIdle time.Duration // ends allocations in which nothing ran for so long; 0: none

	Own string // a folder that nobody but the server reaches, whatever its mode says; empty: none

	Uploads *upload.Store // of directories that come with jobs; nil: they are not taken

	Files      jobs.OwnFiles // of jobs of the server's own pool; nil: they bring none, and none are fetched
	UploadKeep time.Duration // after which directories that came with ended jobs are removed; 0: with the job's record

	Environment provenance.EnvironmentPolicy // which variables of a submission are kept

	Machine  func() *api.System // tells of the server's own machine; nil: nothing is told
	Settings api.Settings       // what the configuration says for all jobs; served, not obeyed

	Mail     bool                   // somebody sends mail about jobs
	Webhook  func(url string) error // says why a job may not have a webhook; nil: nobody sends any
	MaxArray uint32                 // array indices stay below it; 0: Slurm's own bound

	Secrets   *secret.Store             // nil: nobody keeps secrets
	Documents func() []state.Controller // of services and schedules, which need secrets; nil: there are none

	Services   services.Controller           // nil: this server runs no services
	ServiceURL func(api.ServiceRoute) string // where a service is reached; nil: no gateway is known
	Gateways   services.Hub                  // tells gateways routes and takes their load; nil: gateways are refused
	Gateway    func() *api.GatewayInfo       // the one that the server keeps; nil: it keeps none

	Health admin.Health // checks nodes; nil: nobody does

	Schedules schedules.Controller // nil: this server keeps no schedules
	Handovers machines.Controller  // nil: this server hands no machines over

	Console fs.FS // the built web console; nil: the one that is embedded

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
	jobs    *jobs.Service
	reports *reports.Service
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
	if cfg.Console == nil {
		cfg.Console = web.Files()
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
	s := transport.New(transport.Config{
		Tokens: cfg.Plane, Policy: cfg.Policy, Admins: cfg.Admins, Group: cfg.Group, Users: cfg.Users, Log: cfg.Log, Version: cfg.Version,
		Now: cfg.Now, Stall: cfg.Stall, Patience: cfg.Patience,
	})
	out := &Server{Server: s}
	out.registerRoutes(&cfg)
	return out
}

// registerRoutes adds every route.
func (out *Server) registerRoutes(cfg *Config) {
	s := out.Server
	inForce := intake.NewRules(cfg.Rules, cfg.Plane.Policy)
	s.API.OpenAPI().Components.Schemas.RegisterTypeAlias(transport.TypeOf[route.Origin](), transport.TypeOf[string]()) // it writes itself as text
	secrets.Register(s, cfg.Secrets)
	running := services.Register(s, services.Config{
		Controller: cfg.Services, Policy: cfg.Policy, URL: cfg.ServiceURL, Hub: cfg.Gateways, Heartbeat: cfg.Heartbeat, Stall: cfg.Stall,
	})
	timed := schedules.Register(s, schedules.Config{Controller: cfg.Schedules, Policy: cfg.Policy})
	out.reports = reports.Register(s, reports.Config{Plane: cfg.Plane, Policy: cfg.Policy, Now: cfg.Now})
	out.jobs = jobs.Register(s, jobs.Config{
		Plane: cfg.Plane, Rules: cfg.Rules, InForce: inForce, Pool: cfg.Pool, Policy: cfg.Policy, Users: cfg.Users,
		Output: cfg.Output, Exec: cfg.Exec, Usage: cfg.Usage, Idle: cfg.Idle, Series: cfg.Series, Uploads: cfg.Uploads, Environment: cfg.Environment,
		Mail: cfg.Mail, Webhook: cfg.Webhook, MaxArray: cfg.MaxArray, Alone: cfg.Alone, AllocationIdle: cfg.AllocationIdle,
		Files: cfg.Files, UploadKeep: cfg.UploadKeep, SubmitService: running.Submit, SubmitSchedule: timed.Submit, Secrets: secretStore(cfg.Secrets), Documents: cfg.Documents, Budgets: out.reports.Warnings,
		Now: cfg.Now, Heartbeat: cfg.Heartbeat, Stall: cfg.Stall, Patience: cfg.Patience,
	})
	admin.Register(s, admin.Config{
		Plane: cfg.Plane, Rules: cfg.Rules, InForce: inForce, Users: cfg.Users, Name: cfg.Name, ThrowAway: cfg.ThrowAway, Version: cfg.Version,
		Engines: cfg.Engines, Own: cfg.Own, Now: cfg.Now, Settings: cfg.Settings, Machine: cfg.Machine, Secrets: cfg.Secrets, Gateway: cfg.Gateway, Health: cfg.Health,
		Recent:    out.jobs.RecentEvents,
		DeviceUse: cfg.DeviceUse,
	})
	machines.Register(s, cfg.Handovers)
	console.Register(s, console.Config{Files: cfg.Console, Tokens: cfg.Plane, Listen: cfg.Settings.Listen, Now: cfg.Now})
	s.LoosenAnswers()
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
	s.jobs.Close()
	s.reports.Close()
}

// ErrorLine is the line of a failed job's output that matters, see jobs.Service.
func (s *Server) ErrorLine(ctx context.Context, id job.ID) string { return s.jobs.ErrorLine(ctx, id) }

// SweepUploads removes the directories that no job needs any more, now and every hour, until
// ctx ends.
func (s *Server) SweepUploads(ctx context.Context) { s.jobs.SweepUploads(ctx) }

// SweepSecrets removes the values that came with manifests which nothing needs any more, now and every minute,
// until ctx ends.
func (s *Server) SweepSecrets(ctx context.Context) { s.jobs.SweepSecrets(ctx) }

// secretStore is the store of secrets as the routes of jobs use it; nil: nobody keeps any.
func secretStore(s *secret.Store) jobs.SecretStore {
	if s == nil {
		return nil
	}
	return s
}
