package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/discover"
	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/auth"
	"github.com/coxswain-sched/coxswain/auth/fileperm"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/admission"
	"github.com/coxswain-sched/coxswain/control/health"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	httpserver "github.com/coxswain-sched/coxswain/server"
	"github.com/coxswain-sched/coxswain/server/config"
	"github.com/coxswain-sched/coxswain/server/series"
	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/service/nodehealth"
	"github.com/coxswain-sched/coxswain/spec/provenance"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/secret"
	"github.com/coxswain-sched/coxswain/store/sqlite"
	"github.com/coxswain-sched/coxswain/store/upload"
	"github.com/coxswain-sched/coxswain/web"
)

// Options are what a server needs from outside.
type Options struct {
	Config  config.Config
	Cox     string // binary to start supervisors, srun … from; empty: this process's own
	Version string
	Log     *slog.Logger
	Ready   func(Info) // called once the server answers

	// Caller is who starts the server: a state directory that somebody else used last is refused
	// (CheckInvocation). nil: whoever it is, the directory was named, and is recorded as his.
	Caller *Invocation
	// Gateway is the binary of cox, which the gateway of services is started from; empty: the server
	// keeps no gateway.
	Gateway string

	// ThrowAway ends the jobs with the server: nobody will open the state directory again.
	ThrowAway bool

	// Share hands out the machine's devices even where another server or run has them.
	Share bool
	// Look finds out what the machine has; nil: discover.Look.
	Look func(context.Context, discover.Options) (discover.Machine, []discover.Note, error)

	// Engine and Store put something between the control plane and its engine or its
	// store: what measures them, or makes them fail. nil: nothing. An engine keeps its
	// optional abilities for the control plane only if the wrapper has them too.
	Engine func(engine.Engine) engine.Engine
	Store  func(store.Store) store.Store

	// SeriesEach is how often the recorder of series looks at running jobs; 0: series.DefaultEach.
	SeriesEach time.Duration

	// Engines are kinds of engine with which pools can be added, beside those that are
	// built in.
	Engines map[string]Opener
}

// Info is what a server says when it is ready.
type Info struct {
	Config *config.Config
	TCP    string // address; empty: none
	Nodes  []fleet.Node
	Notes  []string
	Token  string // file with the administrator's token; empty: none

	Gateway    *api.GatewayInfo // nil: the server keeps none
	HasConsole bool             // the program has the web console, at TCP
}

// Run serves until ctx ends or the server cannot go on. Work goes on without it.
func Run(ctx context.Context, opt Options) (err error) {
	cfg := &opt.Config
	if err := MakeState(cfg.State); err != nil {
		return err
	}
	unlock, err := sqlite.Lock(cfg.State.Dir, "cox up")
	if err != nil {
		return err
	}
	defer unlock()
	if opt.Caller != nil {
		if err := CheckInvocation(cfg.State.Dir, *opt.Caller); err != nil {
			return err
		}
	}
	if err := recordInvocation(cfg.State.Dir, ThisInvocation()); err != nil {
		return fault.New(fault.KindOf(err), "state directory: %w", err).Advise("make room in %s, or name another folder with --state-dir", cfg.State.Dir)
	}
	tuneCollector()
	s := &server{opt: &opt, cfg: cfg}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	return s.serve(ctx)
}

// garbage is by how many hundredths the heap may grow before the collector runs. With Go's own
// 100 the memory of a server is twice what is in use; driver/kube's benchmark sets the same.
const garbage = 50

// tuneCollector has the collector run that often, unless GOGC says how often it is to run: a control
// plane stays for weeks, and its CPU is idle for most of them.
func tuneCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// MakeState makes a state directory, or looks whether one that is there is safe from
// other users: who can exchange what is in it is root where root serves. One that is said
// to be the server's alone is not looked at.
func MakeState(state config.State) error {
	dir := state.Dir
	if err := os.MkdirAll(dir, stateMode()); err != nil {
		return fault.New(fault.KindOf(err), "state directory: %w", err).Advise("set state.dir or --state-dir to a folder that you may write to")
	}
	if state.Mine {
		return nil
	}
	for _, check := range []func(string) error{fileperm.Folder, fileperm.Way} {
		if err := check(dir); err != nil {
			return fault.New(fault.KindOf(err), "state directory: %w", err).Advise("%s", fault.Remedy(err))
		}
	}
	return nil
}

// ownStateDir is the state directory, where it is said to be the server's alone.
func ownStateDir(state config.State) string {
	if !state.Mine {
		return ""
	}
	return state.Dir
}

// stateMode lets users pass through root's state directory to the socket of their
// own job's supervisor, and see nothing on the way.
func stateMode() os.FileMode {
	if os.Getuid() == 0 {
		return 0o711
	}
	return 0o700
}

// server is a server with its parts open.
type server struct {
	opt     *Options
	cfg     *config.Config
	room    room
	rules   admission.Rules
	store   *sqlite.Store
	engine  engine.Engine
	control *control.Control
	service *services
	notify  notifiers
	http    *httpserver.Server

	health health.Watch
	idle   func(engine.Ref) []health.Idle // nil: nothing is watched
	nodes  *nodehealth.Monitor
	series *series.Recorder

	gateway *gatewayKeeper // nil: none

	listeners []net.Listener
	tcp       string
}

func (s *server) open(ctx context.Context) error {
	var err error
	// The socket comes first: who is told that a server answers already need not
	// wait for anything.
	if err = s.listen(); err != nil {
		return err
	}
	if s.room, err = findRoom(ctx, s.opt); err != nil {
		return err
	}
	if s.rules, err = rulesOf(s.cfg, s.room.nodes); err != nil {
		return err
	}
	if s.notify, err = newNotifiers(s.opt, s.cfg, func(ctx context.Context, j *job.Job) string { return s.http.ErrorLine(ctx, j.ID) }); err != nil {
		return err
	}
	if s.store, err = sqlite.Open(s.cfg.State.Dir); err != nil {
		return err
	}
	uploads := upload.NewStore(filepath.Join(s.cfg.State.Dir, "uploads"), int64(s.cfg.Jobs.Upload), int64(s.cfg.Jobs.Uploads))
	kept := secret.NewStore(filepath.Join(s.cfg.State.Dir, "secrets"))
	monitored := make(chan struct{}) // s.nodes is there
	e, err := local.New(local.Config{
		Fit: fitBefore(s.cfg, monitored, func() *nodehealth.Monitor { return s.nodes }), FitWithin: time.Duration(s.cfg.Health.Before),
		Uploads: uploads, UploadDir: s.cfg.Jobs.UploadDir, UploadRoom: int64(s.cfg.Jobs.UploadRoom),
		Root: engineDir(s.cfg.State.Dir), Nodes: s.room.nodes, Cox: s.opt.Cox, Naming: s.room.naming, Network: s.room.network,
		Cluster: s.cfg.Name, Names: slurmNames(s.opt.Cox), NoLimits: s.cfg.Room.NoLimits, Log: s.opt.Log.With("part", "engine"), Spare: true, Shown: discover.Shown(s.room.shown), NUMA: s.room.numa,
		GPUHelper: discover.FindHelper(),
		Prolog:    s.cfg.Hooks.Prolog, Epilog: s.cfg.Hooks.Epilog, HookTimeout: time.Duration(s.cfg.Hooks.Timeout),
		Stuck:      time.Duration(s.cfg.Jobs.Unkillable),
		Containers: containerSettings(&s.cfg.Containers),
		KeepRanks:  time.Duration(s.cfg.State.Ranks), Processes: processLimit(s.cfg.Jobs.Processes),
		Tether:  s.tether(),
		Checks:  nodeChecks(s.cfg),
		Devices: deviceLocker(s.cfg), Share: s.opt.Share, ShareAdvice: shareAdvice,
	})
	if err != nil {
		return err
	}
	s.engine = e
	info, err := e.Info(ctx)
	if err != nil {
		return err
	}
	s.room.notes = append(s.room.notes, info.Notes...)
	var between engine.Engine = e
	if s.opt.Engine != nil {
		between = s.opt.Engine(e)
	}
	var journal store.Store = s.store
	if s.opt.Store != nil {
		journal = s.opt.Store(s.store)
	}
	kinds := &engines{uploads: uploads, room: int64(s.cfg.Jobs.UploadRoom), kinds: engineKinds(s.opt.Engines), state: s.cfg.State.Dir, log: s.opt.Log.With("part", "engine")}
	if err := kinds.sweepTrials(); err != nil {
		return err
	}
	declared, err := declaredPools(s.cfg.Pools)
	if err != nil {
		return err
	}
	s.control, err = control.Open(ctx, control.Config{
		Store: journal, Pools: []pools.Pool{{Pool: fleet.Pool{Name: poolName, Engine: "local"}, Engine: between, Elastic: info.Abilities.Elastic}},
		OpenPool: kinds.openPool, Declared: declared, SameSite: sameSite,
		Log: s.opt.Log.With("part", "control"), Who: fmt.Sprintf("cox up, process %d", os.Getpid()),
		Grace: time.Duration(s.cfg.Jobs.Grace), Keep: time.Duration(s.cfg.State.Memory),
		JournalKeep: time.Duration(s.cfg.State.Journal), HistoryKeep: time.Duration(s.cfg.State.History),
		KillIfNever: s.cfg.Jobs.KillOnInvalidDep, Foretell: 30 * time.Second, Secret: kept.Read,
	})
	if err != nil {
		return err
	}
	if err := s.control.Declare(ctx, job.Actor{Name: "cox up", UID: uint32(os.Getuid())}); err != nil { //nolint:gosec // a user's number
		return err
	}
	s.nodes = newMonitor(s.cfg, s.control, e, s.opt.Log.With("part", "health"))
	close(monitored)
	s.service = newServices(s.control, s.engine, s.nodes, kept, func(o job.Owner) bool { return s.http.IsAdmin(o.User, o.UID) }, &s.rules, s.opt.Log.With("part", "services"))
	if s.gateway, err = openGateway(s.opt.Gateway, s.opt.Version, s.cfg, s.service.hub, s.opt.Log.With("part", "gateway")); err != nil {
		return err
	}
	if s.gateway != nil {
		s.gateway.tether = s.opt.ThrowAway
	}
	var deviceUse func() map[string]health.DeviceUse // nil: nothing is watched
	if least := time.Duration(s.cfg.Jobs.Idle); least > 0 {
		s.idle = func(ref engine.Ref) []health.Idle { return s.health.Of(ref, time.Now(), least) }
		deviceUse = func() map[string]health.DeviceUse {
			all := health.Census{}
			s.watchDevices(all, s.health.All(time.Now(), least))
			s.series.WatchDevices(all, least)
			return all.ByPool()
		}
	}
	s.series = newRecorder(s.cfg, s.control, e, s.opt.SeriesEach, s.opt.Log.With("part", "series"))
	s.http = httpserver.New(httpserver.Config{
		Series: s.series,
		Idle:   s.idle, DeviceUse: deviceUse, AllocationIdle: time.Duration(s.cfg.Jobs.AllocationIdle), ThrowAway: s.opt.ThrowAway,
		Plane: s.control, Rules: &s.rules, Pool: s.cfg.Jobs.Pool, Policy: auth.Policy{Private: s.cfg.Auth.Private},
		Admins: s.cfg.Auth.Admins, Group: s.cfg.Auth.AdminGroup, Log: s.opt.Log.With("part", "api"),
		Output: e, Exec: e, Usage: e, Name: s.cfg.Name, Version: s.opt.Version, Mail: s.notify.mail != nil, Webhook: s.notify.policy.Check, MaxArray: uint32(s.cfg.Jobs.MaxArray),
		Schedules: s.service.schedules, Handovers: s.service.handovers, Services: s.service.controller, ServiceURL: s.gateway.urlOf, Gateways: s.service.hub, Gateway: s.gateway.info,
		Files: e, UploadKeep: time.Duration(s.cfg.Jobs.UploadKeep),
		Alone: os.Geteuid() != 0, Environment: environmentPolicy(s.cfg.Jobs.Environment),
		Engines: kinds.kindNames(), Uploads: uploads, Secrets: kept, Documents: s.documents, Own: ownStateDir(s.cfg.State), Settings: s.settings(), Machine: describeMachine, Health: s.nodes,
	})
	return nil
}

// containerSettings are what the site says of containers.
func containerSettings(c *config.Containers) container.Settings {
	return container.Settings{Runtime: container.Kind(c.Runtime), Program: c.Program, Args: c.Args, Mounts: c.Mounts, Pull: time.Duration(c.Pull)}
}

// describeMachine tells of this machine as clients may see it.
func describeMachine() *api.System {
	m := discover.ReadSystem()
	return &api.System{Arch: m.Arch, OS: m.OS, Booted: m.Booted, Load: m.Load}
}

// settings are what the configuration says for all jobs, as clients may see it.
func (s *server) settings() api.Settings {
	c := s.cfg
	seconds := func(d config.Duration) float64 { return time.Duration(d).Seconds() }
	return api.Settings{
		StateDir: c.State.Dir, Listen: s.tcp, UID: os.Geteuid(),
		Memory: seconds(c.State.Memory), Grace: seconds(c.Jobs.Grace), Unkillable: seconds(c.Jobs.Unkillable),
		MaxArray: uint32(c.Jobs.MaxArray), KillOnInvalidDep: c.Jobs.KillOnInvalidDep, Private: c.Auth.Private,
		Prolog: c.Hooks.Prolog, Epilog: c.Hooks.Epilog, HookTimeout: seconds(c.Hooks.Timeout), MailDomain: c.Notify.Domain,
	}
}

func environmentPolicy(e config.Environ) provenance.EnvironmentPolicy {
	p := provenance.EnvironmentPolicy{Filter: e.Filter, Keep: e.Keep}
	if len(e.Drop) > 0 {
		p.Drop = e.Drop
	}
	return p
}

// slurmNames are the commands that jobs find beside srun and scontrol. Only the small binary
// answers to them.
func slurmNames(cox string) []string {
	if cox == "" {
		return nil
	}
	return slurmfmt.Commands
}

// firstPort is where the server listens on loopback if nobody says otherwise.
const firstPort = "127.0.0.1:7461"

func (s *server) listen() error {
	l, err := transport.ListenSocket(s.cfg.Listen.Socket)
	if err != nil {
		return err
	}
	s.listeners = append(s.listeners, l)
	switch addr := s.cfg.Listen.TCP; addr {
	case "none":
		return nil
	case "auto":
		if l, err = transport.ListenTCP(firstPort); err != nil {
			l, err = transport.ListenTCP("127.0.0.1:0")
		}
	default:
		l, err = transport.ListenTCP(addr)
	}
	if err != nil {
		return err
	}
	s.listeners = append(s.listeners, l)
	s.tcp = l.Addr().String()
	return nil
}

// serve answers until ctx ends or the control loop does.
func (s *server) serve(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var token string
	if s.tcp != "" {
		var err error
		if token, err = keepToken(ctx, s.control, s.cfg.State.Dir); err != nil {
			return err
		}
	}
	var helpers sync.WaitGroup
	defer helpers.Wait()
	helpers.Go(func() {
		select {
		case <-s.control.Done():
			stop(fault.New(fault.Unavailable, "the control loop has ended"))
		case <-ctx.Done():
		}
	})
	if m, ok := s.engine.(engine.Meter); ok && s.idle != nil {
		helpers.Go(func() { s.health.Run(ctx, m, pauseOf(time.Duration(s.cfg.Jobs.Idle)), s.runningOnDevices) })
	}
	helpers.Go(func() { s.http.SweepUploads(ctx) })
	helpers.Go(func() { s.http.SweepSecrets(ctx) })
	helpers.Go(func() { s.nodes.Run(ctx) })
	helpers.Go(func() { s.series.Run(ctx) })
	helpers.Go(func() { watchState(ctx, s.store, s.opt.Log.With("part", "state")) })
	follower := newFollower(s.control, &s.notify) // before anybody may submit
	helpers.Go(func() { follower.followJobs(ctx, s.opt.Log) })
	serving, endServices := context.WithCancel(ctx)
	defer endServices()
	servicesEnded := make(chan struct{})
	helpers.Go(func() { defer close(servicesEnded); s.service.run(serving) })
	helpers.Go(func() { s.gateway.run(serving) })
	if s.opt.Ready != nil {
		s.opt.Ready(Info{Config: s.cfg, TCP: s.tcp, Nodes: s.room.nodes, Notes: s.room.notes, Token: token, Gateway: s.gateway.info(), HasConsole: web.Built(web.Files())})
	}
	if err := notifySystemd("READY=1"); err != nil {
		s.opt.Log.Warn("systemd was not told", "error", err)
	}
	listeners := s.listeners
	s.listeners = nil // Serve closes them
	err := s.http.Serve(ctx, listeners...)
	if s.opt.ThrowAway {
		endServices() // else they would begin replicas anew
		<-servicesEnded
		s.endJobs()
		s.gateway.end()
	}
	stop(nil)
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// pauseOf is how long health waits between two looks, if what is idle for so long is to
// be shown.
func pauseOf(idle time.Duration) time.Duration {
	return min(max(idle/10, 50*time.Millisecond), time.Minute)
}

// runningOnDevices lists the attempts that run on this machine and hold devices.
func (s *server) runningOnDevices() (refs []engine.Ref) {
	s.control.Scan(query.Filter{Live: true}, func(v *state.View) bool {
		holds := slices.ContainsFunc(v.Claims, func(c fleet.Claim) bool { return len(c.Devices) > 0 })
		if holds && v.Pool == poolName && v.Job.State == job.Running && !v.Job.Started.IsZero() {
			refs = append(refs, v.Ref)
		}
		return true
	})
	return refs
}

// watchDevices adds the devices of this machine to a census, of attempts that were measured.
func (s *server) watchDevices(all health.Census, seen map[engine.Ref]map[string]bool) {
	if len(seen) == 0 {
		return
	}
	s.control.Scan(query.Filter{Live: true}, func(v *state.View) bool {
		for i := range v.Claims {
			c := &v.Claims[i]
			idle, measured := seen[v.Ref][c.Node]
			if !measured {
				continue
			}
			for _, d := range c.Devices {
				all.Add(health.Device{Pool: v.Pool, Node: c.Node, Index: d.Index}, idle)
			}
		}
		return true
	})
}

func (s *server) close() error {
	var errs []error
	if s.http != nil {
		s.http.Close()
	}
	s.gateway.release()
	for _, l := range s.listeners {
		errs = append(errs, l.Close())
	}
	if s.control != nil {
		errs = append(errs, s.control.Close())
	}
	if s.engine != nil {
		errs = append(errs, s.engine.Close())
	}
	if s.room.leave != nil {
		errs = append(errs, s.room.leave()) // after the engine: its idle supervisors have ended
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	errs = append(errs, s.notify.close(ctx))
	return errors.Join(errs...)
}
