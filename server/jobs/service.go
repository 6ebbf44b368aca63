package jobs

import (
	"context"
	"time"

	"github.com/coxswain-sched/coxswain/api"
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
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/spec/provenance"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// Plane is what these routes need of a control plane; *control.Control is one.
type Plane interface {
	intake.Plane
	Jobs
	Changes
	Records
	Standings
	// Policy returns a revision of the site's rules, for 0 the newest.
	Policy(ctx context.Context, revision uint64) (state.Policy, error)
}

// Jobs finds and changes jobs.
type Jobs interface {
	Change(ctx context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error)
	Scan(query.Filter, func(*state.View) bool)
	Job(context.Context, job.ID) (state.View, error)
	Find(ctx context.Context, array job.ID, task uint32) (state.View, error)
	// TaskOf returns a task of an array that is kept; fault.NotFound: there is none.
	TaskOf(ctx context.Context, array job.ID) (state.View, error)
	Tasks(job.ID) []job.ID
	Why(context.Context, job.ID) (query.Why, error)
	// Fenced lists the nodes of a pool on which failed checks keep something from new work.
	Fenced(pool string) []state.NodeHealth
}

// Changes returns events by their number in the journal.
type Changes interface {
	Events(ctx context.Context, after uint64) (evs []state.Event, last uint64, gap bool, err error)
	LastEvent() uint64
}

// Standings says who is served next, and why.
type Standings interface {
	Shares(context.Context) (list []query.Standing, tres []string)
	Priorities(ctx context.Context, ids ...job.ID) []query.Priority
	PriorityOf(context.Context, job.ID) (query.Priority, error)
}

// Records returns what the store has kept.
type Records interface {
	History(context.Context, store.Query, func(*state.View) bool) (next uint64, err error)
	WhatIf(context.Context, *query.WhatIf) (*query.WhatIfDone, error)
	Blob(ctx context.Context, hash string) ([]byte, error)
}

// Config has the parts that the routes need. All are needed but those with a meaning of nil,
// false or zero.
type Config struct {
	Plane   Plane
	Rules   *admission.Rules // of the configuration
	InForce *intake.Rules    // the same under the policy that is in force
	Pool    string           // of jobs that name none; empty: the advice chooses
	Policy  auth.Policy
	Users   *user.Users
	Output  Output                         // an engine.Logger; nil: logs are not served
	Exec    engine.Execer                  // nil: exec is not served
	Usage   engine.UsageSampler            // nil: nobody measures what jobs use while they run
	Idle    func(engine.Ref) []health.Idle // nil: nobody watches what running jobs do
	Series  SeriesReader                   // nil: nobody keeps how jobs used what they hold
	Uploads *upload.Store                  // of directories that come with jobs; nil: they are not taken

	Files      OwnFiles      // of jobs of the server's own pool; nil: they bring none, and none are fetched
	UploadKeep time.Duration // after which directories that came with ended jobs are removed; 0: with the job's record

	// Budgets tells somebody which budgets that the jobs of an account count for are spent; nil: nobody knows.
	Budgets func(ctx context.Context, id auth.Identity, account string) []api.Warning

	Documents func() []state.Controller // of services and schedules, which need secrets; nil: there are none

	Environment provenance.EnvironmentPolicy // which variables of a submission are kept

	Mail     bool                   // somebody sends mail about jobs
	Webhook  func(url string) error // says why a job may not have a webhook; nil: nobody sends any
	MaxArray uint32                 // array indices stay below it; 0: Slurm's own bound

	Secrets SecretStore // of users; nil: nobody keeps any

	// SubmitService makes a service of a specification that was admitted, or its next revision.
	SubmitService func(context.Context, auth.Identity, *service.Spec) (*api.SubmittedService, error)
	// SubmitSchedule makes a schedule of a specification whose job was admitted, or changes the one of its name.
	SubmitSchedule func(context.Context, auth.Identity, *schedule.Spec) (*api.SubmittedSchedule, error)

	// Alone says that tasks can only run as the server's own user, so nobody else
	// may submit.
	Alone bool

	// AllocationIdle ends allocations in which nothing ran for so long; 0: none.
	AllocationIdle time.Duration

	Now       func() time.Time
	Heartbeat time.Duration // of a watch
	Stall     time.Duration // how long a reader may not read
	Patience  time.Duration // within which a part of an upload has to come, three times over
}

// Service has the routes' handlers and the window of events that watchers share.
type Service struct {
	*transport.Server
	cfg     Config
	intake  *intake.Site
	hub     *hub
	past    *pastPages
	watches *watchLimit
	packs   packLimit
	leases  *leaseKeeper
}

// Register adds the routes to a server. Close ends its goroutines.
func Register(t *transport.Server, cfg Config) *Service {
	s := &Service{Server: t, cfg: cfg, hub: newHub(cfg.Plane, t.Log), past: newPastPages(cfg.Plane), watches: newWatchLimit(), leases: newLeaseKeeper(cfg.Plane, t.Log, cfg.Now, cfg.AllocationIdle)}
	s.intake = &intake.Site{
		Plane: cfg.Plane, Rules: cfg.InForce.Now, Pool: cfg.Pool, Environment: cfg.Environment, Uploads: cfg.Uploads, Mail: cfg.Mail, Webhook: cfg.Webhook, MaxArray: cfg.MaxArray, Now: cfg.Now,
		OwnUploads: cfg.Files != nil && cfg.Files.Receives(),
	}
	s.registerSubmit()
	s.registerUploads()
	s.registerFiles()
	s.registerLists()
	s.registerJob()
	s.registerUsage()
	s.registerSeries()
	s.registerChange()
	s.registerOutput()
	s.registerLease()
	s.registerHistory()
	s.registerAdvise()
	s.registerWatch()
	s.registerOrder()
	s.registerWhatIf()
	return s
}

// Close ends the goroutines that read events and keep leases. The server of the routes is closed
// first.
func (s *Service) Close() {
	s.hub.close()
	s.leases.close()
}

// call is one request that is being answered by a handler of this package.
type call struct {
	*transport.Call
	s *Service
}

// addRoute registers a route whose answer is JSON; a nil answer is 204.
func addRoute[I, O any](s *Service, r transport.Route, h func(c *call, in *I) (*O, error)) {
	transport.AddRoute(s.Server, r, func(c *transport.Call, in *I) (*O, error) { return h(&call{c, s}, in) })
}

// addStreamRoute registers a route that writes its answer itself. An error that it returns
// before it wrote anything is the answer.
func addStreamRoute[I any](s *Service, r transport.Route, h func(c *call, in *I) error) {
	transport.AddStreamRoute(s.Server, r, func(c *transport.Call, in *I) error { return h(&call{c, s}, in) })
}
