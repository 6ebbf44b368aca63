// Package slurm is the engine that runs jobs on a site's own Slurm.
//
// The model. One attempt is one batch job of Slurm's, found by a tag in its comment. A
// launch is in the driver's journal before anything is sent; what got no answer is looked
// up by the tag, in slurmctld and in accounting, before it is sent again. The batch script
// takes a lock on a file system that the nodes share before anything of the user's runs
// (driver/slurm/script), so that a job that Slurm has twice, or finds again, begins once.
// Each attempt has one goroutine (drive.go) that does what is due; one more polls the
// numbers of all live jobs in lists (poll.go).
//
// Guarantees: an attempt is reported gone only for a final state of its own job, with its
// tag, or because its lock was fenced before it began. An error or a time-out is no news.
// What slurmctld has lost after it began is Uncertain, until its own last word, or until its
// nodes say that nothing of it lives (probe.go).
//
// It does not schedule. Where Config.Placed is not set slurmctld chooses the nodes.
// Groups of different kinds are a heterogeneous job of Slurm's. Gangs that grow are refused.
// docs/explanation/design/0008 has the reasons.
package slurm

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/worktree"
	"github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/nodefence"
	"github.com/coxswain-sched/coxswain/driver/slurm/sbatchargs"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/driver/slurm/submitlimiter"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/engine/watchcache"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Config says what an Engine works with. Root, Pool, Site and Room must be given.
type Config struct {
	Root string            // state directory, absolute; made if it does not exist
	Pool string            // name of the pool
	Site site.Site         // the way into the cluster; Close closes it
	Room lockdir.Directory // where the locks are; *room.Nodes: on each node, which needs Placed

	// Placed says that the nodes are chosen by the caller; else slurmctld chooses, and
	// claims say nothing of nodes.
	Placed bool
	// Privileged says that the cluster is reached as root, or as a Slurm operator: jobs may
	// be suspended. See Open.
	Privileged bool
	// Options are sbatch's for every job: --reservation=…, --partition=….
	Options []string
	// Files opens a job's output where it is, if that is not this machine; engine.Logger.
	Files func(ctx context.Context, owner job.Owner, file string) (io.ReadCloser, error)
	// UploadDir is a directory that the nodes and this machine share, in which jobs have the directories
	// that come with them; empty: none come. Uploads has these, and one may have UploadRoom bytes when
	// it is unpacked; 0: any number. What is made there belongs to the job's owner where this process is
	// root's, else to its own user.
	UploadDir  string
	Uploads    worktree.Archives
	UploadRoom int64
	// ServicePorts is the range from which jobs that serve have their ports, both ends included; zero:
	// from FirstServicePort to LastServicePort.
	ServicePorts [2]int
	// Secrets has the values of jobs' secrets beside the locks; nil: no job has any.
	Secrets SecretPlace
	// Containers says how the nodes run images; empty: by pyxis.
	Containers sbatchargs.ContainerRuntime
	// Identity says as whom jobs are handed over.
	Identity Identity

	Patience time.Duration // for one answer of the cluster; 0: 30 s
	Shortest time.Duration // between two polls of jobs of which something was heard; 0: 250 ms
	Longest  time.Duration // … of all; 0: 1 s. An answer that is slow makes both longer
	Hints    time.Duration // between two looks for hints; 0: 50 ms
	Settle   time.Duration // how long slurmctld must not know a job before it is called lost; 0: 10 s
	Senders  int           // submissions at once of one user, and of all together twice as many; 0: 16

	Usage     time.Duration // how long the end of a job waits for what accounting says that it used; 0: a tenth of the time that it ran, 2 s at most
	LiveUsage time.Duration // between two questions for what running jobs use; 0: 30 s. An answer that is slow makes it longer
	Tidy      time.Duration // between two looks for jobs that are over here and live in Slurm; 0: 1 min
	Adopt     time.Duration // how long a job that Slurm put back waits for the next attempt; 0: 2 min
	Sweep     time.Duration // between two looks for old locks; 0: 1 h
	KeepLocks time.Duration // how long locks outlive what was forgotten; 0: 7 days
	Stock     time.Duration // between two questions for partitions, QOS, everybody's jobs …; 0: 5 min. An answer that is slow makes it longer
	Log       *slog.Logger  // nil: none
}

// Engine runs jobs on a cluster. It is safe for concurrent use.
type Engine struct {
	cfg   Config
	log   *journal
	cache *watchcache.Cache
	board *kit.EndpointBoard

	*kit.Reports      // answers Inspect, List and Watch from the cache
	*nodefence.Fencer // answers Fence, Unfence and Empty

	controller *controller
	owners     *owners
	poller     *poller
	gc         *garbageCollector
	locks      *lockQuerier
	usage      usageQuestions
	live       liveUsage
	secrets    *kit.HeldSecrets // of attempts that Slurm does not have
	treesOnce  sync.Once
	trees      *worktree.Store // of uploadTrees

	send    *submitlimiter.Limiter // who hands over
	ends    *submitlimiter.Limiter // who ends what was handed over
	errands chan senderConfig      // to senders that are idle

	portsNamed bool // the pool's settings name service_ports

	blind    bool          // the locks are on the nodes, where only jobs see them (nodelocks.go)
	stocking chan struct{} // who has put something into it takes stock

	estimating chan struct{} // who has put something into it asks when a job would start

	ctx    context.Context //nolint:containedctx // ends the engine's own goroutines, not a call
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
	close  error

	mu       sync.Mutex
	attempts map[engine.Ref]*attempt
	silent   time.Time // until when nobody asks the cluster about a job that is not taken yet
	seen     clusterState
	stock    inventoryState // what it has beside its nodes
}

// Polls says what the polling costs.
type Polls struct {
	Count   uint64
	Jobs    uint64 // asked for, in all
	Errors  uint64
	Latency time.Duration // of the last
}

// engineName is the name of the engine in errors.
const engineName = "slurm"

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.NodeFencer = (*Engine)(nil)
)

// New opens the engine on its state directory and goes on with the attempts in it. One
// engine can use a directory at a time: fault.Conflict. The cluster need not answer.
func New(cfg Config) (*Engine, error) {
	if !filepath.IsAbs(cfg.Root) || cfg.Pool == "" || cfg.Site == nil || cfg.Room == nil {
		return nil, fault.New(fault.Invalid, "slurm engine: an absolute state directory, the name of a pool, a way into the cluster and a directory of locks are needed")
	}
	cfg.Patience = cmp.Or(cfg.Patience, 30*time.Second)
	cfg.Shortest = cmp.Or(cfg.Shortest, 250*time.Millisecond)
	cfg.Longest = cmp.Or(cfg.Longest, time.Second)
	cfg.Hints = cmp.Or(cfg.Hints, 50*time.Millisecond)
	cfg.Settle = cmp.Or(cfg.Settle, 10*time.Second)
	cfg.Senders = cmp.Or(cfg.Senders, 16)
	cfg.LiveUsage = cmp.Or(cfg.LiveUsage, 30*time.Second)
	cfg.Tidy = cmp.Or(cfg.Tidy, time.Minute)
	cfg.Adopt = cmp.Or(cfg.Adopt, 2*time.Minute)
	cfg.Sweep = cmp.Or(cfg.Sweep, time.Hour)
	cfg.KeepLocks = cmp.Or(cfg.KeepLocks, 7*24*time.Hour)
	cfg.Stock = cmp.Or(cfg.Stock, 5*time.Minute)
	portsNamed := cfg.ServicePorts != [2]int{}
	if !portsNamed {
		cfg.ServicePorts = [2]int{FirstServicePort, LastServicePort}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	_, blind := cfg.Room.(*lockdir.Nodes)
	if blind && !cfg.Placed {
		return nil, fault.New(fault.Invalid, "slurm engine: locks on the nodes need a placed pool: Slurm may begin a job again on another node, where nobody has its lock")
	}
	if err := os.MkdirAll(cfg.Root, 0o700); err != nil {
		return nil, fmt.Errorf("slurm engine: %w", err)
	}
	log, err := openJournal(filepath.Join(cfg.Root, "slurm"), randomWord())
	if err != nil {
		return nil, fmt.Errorf("slurm engine: %w", err)
	}
	fences, err := nodefence.New(cfg.Site, filepath.Join(cfg.Root, "nodefences"), log.isOwnComment, cfg.Patience)
	if err != nil {
		return nil, fmt.Errorf("slurm engine: %w", errors.Join(err, log.Close()))
	}
	e := &Engine{
		Fencer: fences,

		cfg: cfg, log: log, secrets: kit.HoldSecrets(filepath.Join(cfg.Root, "secrets")), cache: watchcache.New(log.Epoch()), board: kit.NewEndpointBoard(log.Epoch() << 32), blind: blind, portsNamed: portsNamed, owners: newOwners(&cfg), send: submitlimiter.New(cfg.Senders), ends: submitlimiter.New(cfg.Senders), errands: make(chan senderConfig), stocking: make(chan struct{}, 1), estimating: make(chan struct{}, mostEstimates),
		attempts: map[engine.Ref]*attempt{},
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.Reports = kit.NewReports(engineName, e.cache, e.ctx.Done())
	e.controller = &controller{site: cfg.Site, patience: cfg.Patience, ctx: e.ctx}
	e.poller = &poller{e: e, kick: make(chan struct{}, 1), urged: map[*attempt]bool{}}
	e.gc = &garbageCollector{e: e}
	e.locks = &lockQuerier{cfg: &e.cfg, cluster: log.cluster, controller: e.controller, owners: e.owners}
	for ref, l := range log.Lives() {
		a := e.restoreAttempt(ref, l)
		e.attempts[ref] = a
		e.cache.Publish(a.report)
	}
	e.secrets.Sweep(e.needSecrets()...)
	for _, a := range e.attempts {
		if a.report.Phase != engine.Ended {
			e.wg.Go(func() { e.driveAttempt(a) })
			e.serveIfRunning(a)
		}
	}
	e.wg.Go(e.poller.run)
	e.wg.Go(e.gc.run)
	e.wg.Go(e.runInventory)
	return e, nil
}

// randomWord is a random word that nobody guesses.
func randomWord() string { return rand.Text()[:16] }

// Close stops the engine's goroutines. The jobs go on.
func (e *Engine) Close() error {
	e.once.Do(func() {
		e.mu.Lock() // no attempt is added any more
		e.cancel()
		e.mu.Unlock()
		e.wg.Wait()
		e.close = errors.Join(e.log.Close(), e.cfg.Site.Close())
	})
	return e.close
}

// Info says what the cluster is and can do.
func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	if err := ctx.Err(); err != nil {
		return engine.Info{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	c, err := e.cfg.Site.Cluster(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	var notes []string
	if !c.Tracks {
		notes = append(notes, "the cluster follows a job's processes as descendants (ProctrackType): one that leaves them can outlive its job unseen; proctrack/cgroup would not lose it")
	}
	if !c.Accounts {
		notes = append(notes, "the cluster has no accounting: of a job that is forgotten before it was looked at, the exit code is lost")
	}
	if o := e.Others().String(); o != "" {
		notes = append(notes, "jobs that are not ours hold "+o+" of the cluster")
	}
	notes = append(notes, e.notesOfNodes()...)
	return engine.Info{
		Name: "slurm", Version: c.Version, Notes: notes,
		Abilities: engine.Abilities{
			Gang: engine.GangStrict, Placed: e.cfg.Placed, Delegated: !e.cfg.Placed, Suspend: e.cfg.canSuspend(), Isolates: c.Limits, Proves: c.Tracks,
		},
	}, nil
}

// Forget drops an ended attempt.
func (e *Engine) Forget(ctx context.Context, ref engine.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	a := e.attempts[ref]
	if a != nil && a.report.Phase != engine.Ended {
		e.mu.Unlock()
		return fault.New(fault.Conflict, "attempt %s has not ended", ref)
	}
	if err := e.log.Fence(ref); err != nil {
		e.mu.Unlock()
		return err
	}
	delete(e.attempts, ref)
	e.cache.Forget(ref)
	e.mu.Unlock()
	return nil // the lock stays: Slurm might find the job again and begin it
}

// Polls says what the polling has cost so far.
func (e *Engine) Polls() Polls {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.poller.polls
}
