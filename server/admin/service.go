package admin

import (
	"context"
	"os"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth/user"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/health"
	"github.com/coxswain-sched/coxswain/control/intake"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/snapshot"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/secret"
)

// Plane is what these routes need of a control plane; *control.Control is one.
type Plane interface {
	Nodes
	NodeHealth
	Pools
	Tokens
	Policies
	Records
	Forecast(context.Context) (query.Forecast, error)
	Scan(query.Filter, func(*state.View) bool)
	Job(context.Context, job.ID) (state.View, error)
	LastEvent() uint64
	Stats() query.Stats
}

// Nodes are what work runs on.
type Nodes interface {
	NodeViews(context.Context) ([]query.NodeView, error)
	MarkedMachines() []query.MarkedMachine
	SetNodes(ctx context.Context, by job.Actor, names []string, drain bool, reason string) error
	Moves(context.Context) (query.Moves, error)
	ApproveMoves(ctx context.Context, by job.Actor, id string) error
}

// Pools are what runs work, each with its engine.
type Pools interface {
	Pools() []pools.View
	AddPool(context.Context, job.Actor, state.PoolSpec) error
	RemovePool(ctx context.Context, by job.Actor, name string, force bool) error
	AddedEngine(pool string) engine.Engine
	// CheckPool looks at a pool that might be added, RecheckPool at one that is there.
	CheckPool(context.Context, state.PoolSpec) (*pools.Check, error)
	RecheckPool(ctx context.Context, name string) (*pools.Check, error)
}

// Tokens are access tokens.
type Tokens interface {
	PutToken(context.Context, job.Actor, state.Token) error
	RevokeToken(ctx context.Context, by job.Actor, id string) error
	Tokens(context.Context) ([]state.Token, error)
	TokenByID(id string) (state.Token, bool)
}

// Policies are the site's rules and what they were before.
type Policies interface {
	SetPolicy(context.Context, job.Actor, control.PolicyChange) (state.Policy, error)
	Policy(ctx context.Context, revision uint64) (state.Policy, error)
	Policies(context.Context) ([]state.Policy, error)
	Quotas(context.Context) []query.Holding
	Reservable(context.Context, *query.ReserveAsk) (nodes []string, way []query.Obstacle, late []query.Promised)
}

// Records is what was kept.
type Records interface {
	Audit(context.Context, store.RecordQuery, func(store.Record) error) error
	Backup(ctx context.Context, dir string) (seq uint64, err error)
	// Damages are the parts of the state that were found damaged.
	Damages() []store.Damage
	Flight(context.Context) (*snapshot.File, error)
}

// Config are the parts that the routes need. All are needed but Engines, Health and Own.
type Config struct {
	Secrets *secret.Store // nil: nobody keeps secrets
	Plane   Plane
	Rules   *admission.Rules // of the configuration
	InForce *intake.Rules    // the same under the policy that is in force
	Users   *user.Users
	Name    string // of the cluster
	Version string // of cox
	// Machine tells of the server's own machine; nil: nothing is told.
	Machine func() *api.System
	Engines []string // kinds of engine that pools can be added with

	// Recent lists what changed last, newest first, as far as a caller may watch it. nil: nothing is told.
	Recent func(c *transport.Call, most int) []api.Event

	Health Health // nil: this server checks no nodes

	DeviceUse func() map[string]health.DeviceUse // of the devices that jobs hold, by pool; nil: nobody watches

	ThrowAway bool // jobs end with the server

	Gateway func() *api.GatewayInfo // the one that the server keeps; nil: it keeps none

	// Settings are what the configuration says for all jobs; the rules' part is added.
	Settings api.Settings
	Own      string // a folder that nobody but the server reaches, whatever its mode says; empty: none
	Now      func() time.Time
}

// service has the routes' handlers.
type service struct {
	*transport.Server
	cfg     Config
	host    string
	pid     int
	started time.Time
	views   *nodeViews
	stats   *keptStats
}

// Register adds the routes to a server.
func Register(t *transport.Server, cfg Config) {
	s := &service{Server: t, cfg: cfg, pid: os.Getpid(), started: cfg.Now()}
	s.host, _ = os.Hostname() // an unknown name is shown as none
	s.registerNodes()
	s.registerMachineRoom()
	s.registerOverview()
	s.registerPlan()
	s.registerNodeChecks()
	s.registerPools()
	s.registerLicenses()
	s.registerDefrag()
	s.registerMetrics()
	s.registerPolicy()
	s.registerQuotas()
	s.registerReservations()
	s.registerSnapshot()
	s.registerInfo()
	s.registerSettings()
}

// call is one request that is being answered by a handler of this package.
type call struct {
	*transport.Call
	s *service
}

func addRoute[I, O any](s *service, r transport.Route, h func(c *call, in *I) (*O, error)) {
	transport.AddRoute(s.Server, r, func(c *transport.Call, in *I) (*O, error) { return h(&call{c, s}, in) })
}

func addStreamRoute[I any](s *service, r transport.Route, h func(c *call, in *I) error) {
	transport.AddStreamRoute(s.Server, r, func(c *transport.Call, in *I) error { return h(&call{c, s}, in) })
}
