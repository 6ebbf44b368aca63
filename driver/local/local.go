// Package local is the engine that runs jobs as processes of this machine, on the
// machine itself or on virtual nodes of it.
//
// The model. For every attempt and node it starts a supervisor (package supervise),
// a process of its own that outlives the engine. A gang (gang.go) is the engine's
// view of one attempt: one goroutine, fed with what its supervisors report. A gang's
// barrier is opened when every supervisor said that it is ready, and after that
// decision is in the engine's log (package attempt). A new Engine on the same root
// adopts what an earlier one left: a supervisor is known again by pid, start time
// and boot.
//
// A supervisor that has nothing to do is kept a while for the next attempt (pool.go):
// starting its process would cost more than the job.
//
// Where the engine runs as root, an attempt's processes run as the job's owner, and
// every file that he names is opened with his rights. Elsewhere it runs its own
// user's work only.
//
// Guarantees: whole or not at all; no process is reported gone without proof (see
// engine.Report.Gone); no exit code is lost while the machine runs.
//
// It does not schedule, and does not check that claims fit its nodes.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/cgroup"
	"github.com/coxswain-sched/coxswain/agent/container"
	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/agent/devicelock"
	"github.com/coxswain-sched/coxswain/agent/nodecheck"
	"github.com/coxswain-sched/coxswain/agent/nodenet"
	"github.com/coxswain-sched/coxswain/agent/proc"
	"github.com/coxswain-sched/coxswain/agent/supervise"
	"github.com/coxswain-sched/coxswain/agent/worktree"
	"github.com/coxswain-sched/coxswain/driver/local/nodefence"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/engine/watchcache"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Naming says how virtual nodes get their host names.
type Naming = attempt.Naming

// The ways to name virtual nodes.
const (
	NamedByRoot = attempt.NamedByRoot
	NamedByUser = attempt.NamedByUser
	NamedByAddr = attempt.NamedByAddr
)

// Network says where the network namespaces of virtual nodes are, which somebody else made (package
// nodenet). It needs NamedByRoot.
type Network struct {
	Prefix  string       // of the names of their files; the name of the node comes after it
	Machine attempt.Host // the machine as nodes reach it
	Notes   []string     // for Info

	Fence  func([]nodenet.Port) error // see nodenet.Network; nil: the ports of services are open to all users
	Fenced bool                       // there are rules of an engine before
}

// Config says what an Engine works with. Root and Nodes must be given.
type Config struct {
	Root  string       // state directory, absolute; made if it does not exist
	Nodes []fleet.Node // the room; see VirtualRoom
	Cox   string       // the binary to start as supervisor, srun …; empty: this process's own

	// GPUHelper is the program that samples the use of GPUs (discover.FindHelper); empty: nobody does.
	GPUHelper string

	Cluster string // name of the control plane, for SLURM_CLUSTER_NAME; empty: cox

	Names []string // more names, beside srun and scontrol, under which jobs find the binary

	Naming   Naming  // as the room was made with; empty: NamedByAddr
	Network  Network // of the room's nodes; zero: the machine's
	NoLimits bool    // use no control groups, even where they can be used

	// Tether is how long work goes on after the engine's process has ended, for a
	// state directory that nobody will open again. 0: to its end.
	Tether time.Duration

	// Prolog and Epilog are programs that run as the server's user on each node of an
	// attempt, before its first process and after its last; empty: none. A prolog
	// that fails makes the launch fail. HookTimeout bounds each; 0: a minute.
	Prolog, Epilog string
	HookTimeout    time.Duration

	// Processes bounds processes and threads of a job on each node, so that one that
	// forks without end leaves the machine to others; 0: unbounded.
	Processes int

	// KeepRanks is how long the copies of ranks' output of forgotten attempts are kept;
	// 0: until Purge.
	KeepRanks time.Duration

	// NUMA is the memory nodes of the machine; fewer than two: attempts are not bound to
	// the CPUs near their devices.
	NUMA []NUMANode

	// Shown says how programs are told of a device; nil: guessed from its description.
	Shown func(fleet.Node, fleet.Device) deviceenv.Device

	// Devices takes the locks of the room's physical devices, so that nobody else of this machine
	// hands them out; its owner's Identity is the engine's to say. nil: no locks are taken. Devices
	// that another owner holds make New fail (fault.Conflict, with ShareAdvice as remedy), unless
	// Share says that they are to be used all the same.
	Devices     *devicelock.Locker
	Share       bool
	ShareAdvice string

	// Checks look at nodes of the room (engine.NodeChecker); nil: there are none.
	Checks *nodecheck.Checker

	// Fit says why a node, or one of the devices of it that an attempt has, may not get work, just before the attempt
	// begins there: the launch is given up then (engine.Unready). Empty: nothing is known against it. It is asked
	// from goroutines of its own, and the barrier of the gang waits for it, up to FitWithin. nil: nobody is asked.
	Fit       func(ctx context.Context, node string, devices []int) (why string)
	FitWithin time.Duration

	// Containers is what the site says of containers; the zero value takes the first runtime that
	// the machine has.
	Containers container.Settings

	// Stuck is how long after SIGKILL a process that still lives counts as one that
	// nothing ends: its attempt is uncertain then, and says so; 0: a minute.
	Stuck time.Duration

	// Uploads has the directories that come with jobs; nil: none do. A job works in its own below
	// a directory of this root's in UploadDir; empty: below Root. One may have UploadRoom bytes when it is unpacked; 0: any number.
	Uploads    worktree.Archives
	UploadDir  string
	UploadRoom int64

	Spare bool          // keep a supervisor ready for the first attempt after a pause
	Pulse time.Duration // how often a supervisor is asked whether it is there; 0: 20 s
	Log   *slog.Logger  // nil: none
	Ready time.Duration // how long a gang may take to get ready; 0: 30 s
	Deaf  time.Duration // after how long a supervisor that does not act on a command counts as hung, and is ended if that was to end; 0: 5 s

	// Overdue is how long after its time limit and the grace an attempt is ended from here,
	// where its supervisor did not do it; 0: a minute.
	Overdue time.Duration
}

// Engine runs jobs on this machine. It is safe for concurrent use.
type Engine struct {
	cfg  Config
	boot string

	identity string // of the root; empty: an older version made it

	lock  *os.File
	notes []string
	base  cgroup.Base
	feed  *watchcache.Cache
	ends  *kit.EndpointBoard
	fence *portFence
	epoch uint64
	log   *attempt.Log

	locker  *devicelock.Locker // of the supervisors; nil: no locks are taken
	devices *devicelock.Set    // the room's, held as long as the engine is open

	trees *worktree.Store // of directories that came with jobs

	*nodefence.Fences // of the room's nodes: answers Fence, Unfence and Empty

	pool    *pool
	gpus    gpuMeter
	users   users
	hosts   hostsSum
	runtime containerRuntime

	ctx    context.Context //nolint:containedctx // ends the engine's own goroutines, not a call
	cancel context.CancelFunc
	wg     sync.WaitGroup

	once     sync.Once
	closeErr error

	killed killedLaunches

	binding sync.Mutex // held from the choice of CPUs until the attempt is in gangs

	mu    sync.Mutex
	gangs map[engine.Ref]*gang
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.NodeFencer = (*Engine)(nil)
)

// SuperviseMain is the hidden command `cox supervise`: it returns an exit code.
func SuperviseMain(args []string) int { return supervise.Main(args) }

// New opens the engine on its state directory and adopts the attempts in it. One
// engine can use a directory at a time: fault.Conflict.
func New(cfg Config) (*Engine, error) {
	if !filepath.IsAbs(cfg.Root) || len(cfg.Nodes) == 0 {
		return nil, fault.New(fault.Invalid, "local engine: an absolute state directory and nodes are needed")
	}
	cfg.Naming = cmp.Or(cfg.Naming, NamedByAddr)
	cfg.Ready = cmp.Or(cfg.Ready, 30*time.Second)
	cfg.Deaf = cmp.Or(cfg.Deaf, 5*time.Second)
	cfg.Overdue = cmp.Or(cfg.Overdue, time.Minute)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Pulse = cmp.Or(cfg.Pulse, 20*time.Second)
	cfg.HookTimeout = cmp.Or(cfg.HookTimeout, time.Minute)
	if err := makeRoot(cfg.Root); err != nil {
		return nil, fmt.Errorf("local engine: %w", err)
	}
	e := &Engine{cfg: cfg, gangs: map[engine.Ref]*gang{}}
	lives, err := e.openEngine()
	if err != nil {
		return nil, fmt.Errorf("local engine: %w", err)
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.pool = newPool(e)
	e.gpus.e = e
	e.adoptAttempts(lives)
	e.sweepSecrets()
	e.wg.Go(e.keepFence)
	if cfg.KeepRanks > 0 {
		e.wg.Go(func() { e.discardOutput(cfg.KeepRanks) })
	}
	return e, nil
}

// makeRoot makes the state directory's parts. As root's, others may pass through it
// to what is theirs.
func makeRoot(root string) error {
	if err := attempt.DrawIdentity(root); err != nil {
		return err
	}
	if err := os.MkdirAll(attempt.SlotsOf(root), 0o700); err != nil {
		return err
	}
	ranks := filepath.Dir(attempt.RanksOf(root, engine.Ref{}))
	if err := os.MkdirAll(ranks, 0o700); err != nil {
		return err
	}
	for _, d := range []string{attempt.CheckpointsOf(root), attempt.GangsOf(root), attempt.SecretsOf(root)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	if os.Geteuid() != 0 {
		return nil
	}
	for _, d := range []string{root, attempt.SlotsOf(root), ranks, attempt.CheckpointsOf(root), attempt.GangsOf(root), attempt.SecretsOf(root)} {
		if err := os.Chmod(d, 0o711); err != nil {
			return err
		}
	}
	return nil
}

// openEngine takes the directory's lock, reads the log and finds out what the machine
// allows.
func (e *Engine) openEngine() (lives map[engine.Ref]*attempt.Life, err error) {
	if e.boot, err = proc.BootID(); err != nil {
		return nil, err
	}
	e.lock, err = os.OpenFile(filepath.Join(e.cfg.Root, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.devices.Release()
			err = errors.Join(err, e.lock.Close())
		}
	}()
	if !lockFile(e.lock) {
		return nil, fault.New(fault.Conflict, "%s is in use by another cox server", e.cfg.Root)
	}
	if e.identity, err = attempt.ReadIdentity(e.cfg.Root); err != nil {
		return nil, err
	}
	if e.Fences, err = nodefence.Open(filepath.Join(e.cfg.Root, "nodefences"), e.cfg.Nodes, &e.mu, e.workOnNode); err != nil {
		return nil, err
	}
	if err = e.openUploadDir(); err != nil {
		return nil, err
	}
	if err = e.lockDevices(); err != nil {
		return nil, err
	}
	if e.epoch, err = attempt.NextEpoch(filepath.Join(e.cfg.Root, "epoch")); err != nil {
		return nil, err
	}
	e.feed = watchcache.New(e.epoch)
	e.ends = kit.NewEndpointBoard(e.epoch << 32)
	e.fence = newPortFence(e.cfg.Network.Fence)
	if e.cfg.NoLimits {
		e.notes = append(e.notes, "control groups are turned off: memory is not limited, and processes are followed as descendants of their supervisor")
	} else {
		var notes []string
		e.base, notes = cgroup.Find()
		e.notes = append(e.notes, notes...)
	}
	if err := e.linkBinaries(); err != nil {
		return nil, err
	}
	if dir := closedTo(e.cfg.Root); dir != "" && os.Geteuid() == 0 && e.cfg.Tether == 0 { // a tethered engine has its owner's jobs alone
		e.notes = append(e.notes, "jobs of other users cannot use srun: they cannot pass through "+dir+", which leads to the state directory; chmod o+x it, or choose another state directory")
	}
	e.log, lives, err = attempt.OpenLog(attempt.LogOf(e.cfg.Root))
	return lives, err
}

// closedTo is the first directory on the way to a file through which not everybody
// may pass; "" if there is none.
func closedTo(name string) string {
	for dir := name; dir != "/"; dir = filepath.Dir(dir) {
		if st, err := os.Stat(dir); err == nil && st.Mode().Perm()&1 == 0 {
			return dir
		}
	}
	return ""
}

// lockFile takes a file's lock. A process that the engine before this one was about to
// start when it was killed holds it for a moment, until it has become its program.
func lockFile(f *os.File) bool {
	for wait := time.Millisecond; wait < time.Second; wait *= 2 {
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			return true
		}
		time.Sleep(wait)
	}
	return false
}

// Close stops the engine's goroutines, and supervisors that have no attempt. The
// others, and what they run, go on.
func (e *Engine) Close() error {
	e.once.Do(func() {
		e.mu.Lock() // no gang is added any more
		e.cancel()
		e.mu.Unlock()
		e.wg.Wait()
		e.pool.close()
		e.devices.Release()
		e.closeErr = errors.Join(e.log.Close(), e.lock.Close())
	})
	return e.closeErr
}

// Info says what the engine can do on this machine.
func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	if err := ctx.Err(); err != nil {
		return engine.Info{}, err
	}
	notes := slices.Concat(e.cfg.Network.Notes, e.notes)
	if e.cfg.Processes > 0 && e.base.PIDs == "" {
		notes = append(notes, "the number of a job's processes is not bounded: the pids controller of control groups cannot be used here")
	}
	if e.cfg.Naming == NamedByAddr && slices.ContainsFunc(e.cfg.Nodes, func(n fleet.Node) bool { return n.Virtual }) {
		notes = append(notes, "virtual nodes have no host names, their addresses serve instead: allow user namespaces or run as root")
	}
	if e.cfg.Naming == NamedByUser {
		notes = append(notes, "virtual nodes are named in user namespaces: sudo and other programs that become another user do not work inside jobs")
	}
	return engine.Info{
		Name: "local", Version: "1",
		Abilities: engine.Abilities{
			Gang: engine.GangStrict, Placed: true, Suspend: true, Elastic: true,
			Isolates: e.base.Memory != "", Proves: e.base.Kills(),
		},
		Notes: notes,
	}, nil
}

// Nodes returns the room, with the fences of its nodes.
func (e *Engine) Nodes(ctx context.Context) ([]fleet.Node, error) {
	nodes := slices.Clone(e.cfg.Nodes)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Mark(nodes)
	return nodes, ctx.Err()
}

// Inspect returns the last report of an attempt.
func (e *Engine) Inspect(ctx context.Context, ref engine.Ref) (engine.Report, error) {
	if err := ctx.Err(); err != nil {
		return engine.Report{}, err
	}
	if r, ok := e.feed.Last(ref); ok {
		return r, nil
	}
	return engine.Report{}, unknownAttempt(ref)
}

func unknownAttempt(ref engine.Ref) error {
	return fault.New(fault.NotFound, "the local engine has no attempt %s", ref)
}

// List returns the last report of every attempt, oldest change first.
func (e *Engine) List(ctx context.Context) ([]engine.Report, error) {
	return e.feed.All(), ctx.Err()
}

// Watch follows changes; see engine.Engine.
func (e *Engine) Watch(ctx context.Context, after string, f func(engine.Event) error) error {
	if err := e.feed.Watch(ctx, e.ctx.Done(), after, f); err != nil {
		return err
	}
	return fault.New(fault.Unavailable, "the local engine is closed")
}

// Stop begins to end an attempt.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref, s engine.Stop) error {
	if s.Signal < 0 || s.Signal > 64 {
		return fault.New(fault.Invalid, "%d is not a signal", s.Signal)
	}
	if err := e.fenceUnknown(ctx, ref); err != nil {
		return err
	}
	return e.askGang(ctx, ref, func(g *gang) error { g.stopGang(s); return nil })
}

// fenceUnknown sees to it that an attempt that is not known never begins.
func (e *Engine) fenceUnknown(ctx context.Context, ref engine.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gangs[ref] != nil || e.log.Fenced(ref) {
		return nil
	}
	if e.ctx.Err() != nil {
		return fault.New(fault.Unavailable, "the local engine is closed")
	}
	return e.recordFence(ref)
}

// recordFence writes down that an attempt is over. Without that nothing is certain.
func (e *Engine) recordFence(ref engine.Ref) error {
	if err := e.log.Append(attempt.Entry{Kind: attempt.EntryForget, Ref: ref}); err != nil {
		return fault.New(fault.Unavailable, "attempt %s cannot be written off: %w", ref, err).
			Advise("make room in the state directory")
	}
	return nil
}

// Signal sends a signal and nothing more.
func (e *Engine) Signal(ctx context.Context, ref engine.Ref, signal int, to engine.Scope) error {
	if signal < 0 || signal > 64 {
		return fault.New(fault.Invalid, "%d is not a signal", signal)
	}
	if !slices.Contains([]engine.Scope{engine.ToTasks, engine.ToBatch, engine.ToAll}, to) {
		return fault.New(fault.Invalid, "%q is not a scope of signals", to)
	}
	return e.askGang(ctx, ref, func(g *gang) error { return g.signalTasks(signal, to) })
}

// askGang runs f on the goroutine of an attempt's gang. One that has ended needs
// nothing.
func (e *Engine) askGang(ctx context.Context, ref engine.Ref, f func(*gang) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	g := e.gangs[ref]
	e.mu.Unlock()
	if g == nil {
		return unknownAttempt(ref)
	}
	done := make(chan error, 1)
	select {
	case g.inbox <- func() { done <- f(g) }:
	case <-g.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.ctx.Done():
		return fault.New(fault.Unavailable, "the local engine is closed")
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-e.ctx.Done():
		return fault.New(fault.Unavailable, "the local engine is closed")
	}
}

// Forget drops an ended attempt. The copies of its ranks' output stay where they
// are: history shows them; see Purge.
func (e *Engine) Forget(ctx context.Context, ref engine.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	g := e.gangs[ref]
	e.mu.Unlock()
	if g == nil {
		return e.fenceUnknown(ctx, ref)
	}
	if r, ok := e.feed.Last(ref); ok && !r.Gone {
		return fault.New(fault.Conflict, "attempt %s has not ended", ref)
	}
	select {
	case <-g.done: // its last report is on record a moment after it was published
	case <-ctx.Done():
		return ctx.Err()
	case <-e.ctx.Done():
		return fault.New(fault.Unavailable, "the local engine is closed")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gangs[ref] == nil {
		return nil
	}
	if err := e.recordFence(ref); err != nil {
		return err
	}
	delete(e.gangs, ref)
	e.feed.Forget(ref)
	e.removeRoster(ref)
	return nil
}
