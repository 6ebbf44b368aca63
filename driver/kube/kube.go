package kube

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/driver/kube/cluster"
	"github.com/coxswain-sched/coxswain/driver/kube/gang"
	"github.com/coxswain-sched/coxswain/driver/kube/inventory"
	"github.com/coxswain-sched/coxswain/driver/kube/nodefence"
	"github.com/coxswain-sched/coxswain/driver/kube/quota"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/engine/watchcache"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// Config says what an Engine works with. Root and Cluster must be given.
type Config struct {
	Root    string // state directory, absolute; made if it does not exist
	Cluster *cluster.Cluster
	Terms   settings.Terms
	Uploads Uploads // nil: no job has a working directory that comes with it

	Patience time.Duration // for one answer of the cluster; 0: 30 s
	Ready    time.Duration // for all pods of a gang to be there once the first one runs; 0: 10 min
	Pull     time.Duration // for what keeps a container from being made (an image, a Secret) to be mended; 0: 5 min
	Log      *slog.Logger  // nil: none

	// Trial says that the engine is looked at and closed again: nothing is put on nodes.
	Trial bool
}

// Engine runs jobs on a cluster. It is safe for concurrent use.
type Engine struct {
	cfg   Config
	k     *cluster.Cluster
	log   *journal
	cache *watchcache.Cache
	board *kit.EndpointBoard

	*kit.Reports      // answers Inspect, List and Watch from the cache
	*nodefence.Fencer // answers Fence, Unfence and Empty

	ctx    context.Context //nolint:containedctx // ends the engine's own goroutines, not a call
	cancel context.CancelFunc
	wg     sync.WaitGroup
	once   sync.Once
	close  error
	making chan struct{} // attempts of which the objects are being made
	kick   chan struct{} // something is in graves
	buried chan struct{} // graves were looked at
	room   chan struct{} // a namespace has more room
	ships  chan struct{} // working directories that are on their way
	asks   chan struct{} // questions for what jobs have saved

	mu       sync.Mutex
	attempts map[engine.Ref]*attempt
	seated   map[string]int              // pods of attempts that have not ended, by node, where we choose them
	spaces   []string                    // namespaces that are followed: those of the settings, and of attempts from before; never written to
	listed   map[string]bool             // by namespace: all pods were seen since the engine was opened
	hidden   map[string]error            // by namespace: why they were not, when that was tried last
	graves   map[string]*corev1.Pod      // of attempts that have ended or are not known, by namespace and name
	rooted   bool                        // a root is there, maybe, of an attempt that is not known any more
	tenants  map[string]*quota.Namespace // namespaces, by name
	said     map[string]string           // by gangs' objects, of why they wait, by namespace and name
	heard    map[string]bool             // namespaces whose gangs' objects are followed
	served   cluster.Served              // what the API server had when it was asked last
	asked    time.Time                   // when that was
	turns    uint64                      // calls to suspend or resume, since the engine was opened

	calls     *clusterCalls
	reserver  *nodeReserver
	logs      logDir
	secrets   *kit.HeldSecrets     // of attempts whose objects are not all made
	inventory *inventory.Inventory // the pool's nodes, and what is on them
}

// engineName is the name of the engine in errors.
const engineName = "kubernetes"

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.NodeFencer = (*Engine)(nil)
)

// New opens the engine on its state directory and goes on with the attempts in it. One engine
// can use a directory at a time: fault.Conflict. The cluster need not answer.
func New(cfg Config) (*Engine, error) {
	if !filepath.IsAbs(cfg.Root) || cfg.Cluster == nil {
		return nil, fault.New(fault.Invalid, "kubernetes engine: an absolute state directory and a cluster are needed")
	}
	cfg.Patience = cmp.Or(cfg.Patience, 30*time.Second)
	cfg.Ready = cmp.Or(cfg.Ready, 10*time.Minute)
	cfg.Pull = cmp.Or(cfg.Pull, 5*time.Minute)
	cfg.Terms.Namespace = cmp.Or(cfg.Terms.Namespace, cfg.Cluster.Namespace())
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Join(cfg.Root, "logs"), 0o700); err != nil {
		return nil, fmt.Errorf("kubernetes engine: %w", err)
	}
	log, err := openJournal(filepath.Join(cfg.Root, "kube"), strings.ToLower(rand.Text()[:6]))
	if err != nil {
		return nil, fmt.Errorf("kubernetes engine: %w", err)
	}
	fences, err := nodefence.New(cfg.Cluster, filepath.Join(cfg.Root, "nodefences"), log.server, cfg.Patience)
	if err != nil {
		return nil, fmt.Errorf("kubernetes engine: %w", errors.Join(err, log.Close()))
	}
	e := &Engine{
		Fencer: fences,
		logs:   logDir(filepath.Join(cfg.Root, "logs")), secrets: kit.HoldSecrets(filepath.Join(cfg.Root, "secrets")),
		cfg: cfg, k: cfg.Cluster, log: log, cache: watchcache.New(log.Epoch()), board: kit.NewEndpointBoard(log.Epoch() << 32), making: make(chan struct{}, makingAtMost), kick: make(chan struct{}, 1), buried: make(chan struct{}, 1), room: make(chan struct{}, 1), ships: make(chan struct{}, shipsAtMost), asks: make(chan struct{}, asksAtMost),
		inventory: inventory.New(cfg.Cluster, cfg.Terms, log.server),
		attempts:  map[engine.Ref]*attempt{}, seated: map[string]int{}, graves: map[string]*corev1.Pod{}, rooted: true, tenants: map[string]*quota.Namespace{},
		listed: map[string]bool{}, hidden: map[string]error{}, said: map[string]string{}, heard: map[string]bool{},
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.calls = newCalls(e.ctx, cfg.Cluster, log.server, cfg.Patience)
	e.reserver = &nodeReserver{calls: e.calls, terms: &e.cfg.Terms, inventory: e.inventory, log: cfg.Log, due: make(chan struct{}, 1)}
	e.Reports = kit.NewReports(engineName, e.cache, e.ctx.Done())
	e.spaces = cfg.Terms.Spaces()
	for ref, l := range log.Lives() {
		if l.launch != nil {
			e.inventory.RememberDevices(l.launch.Nodes)
		}
		a := e.restoreAttempt(ref, l)
		e.attempts[ref] = a
		e.countPods(a, true)
		e.cache.Publish(a.report)
		if !slices.Contains(e.spaces, a.namespace) {
			e.spaces = append(e.spaces, a.namespace)
		}
	}
	e.secrets.Sweep(e.needSecrets()...)
	for _, ns := range e.spaces {
		e.quotaOf(ns)
	}
	for _, a := range e.attempts {
		if !a.ended {
			e.wg.Go(func() { e.driveAttempt(a) })
		}
	}
	for _, ns := range e.spaces {
		e.wg.Go(func() { e.watchPods(ns) })
	}
	e.wg.Go(e.cleanUpLeftovers)
	if cfg.Terms.Reserve && !cfg.Trial {
		e.wg.Go(e.reserver.runLoop)
	}
	return e, nil
}

// Close stops the engine's goroutines. The pods go on.
func (e *Engine) Close() error {
	e.once.Do(func() {
		e.mu.Lock() // no attempt is added any more
		e.cancel()
		e.mu.Unlock()
		e.wg.Wait()
		e.close = e.log.Close()
	})
	return e.close
}

// Pulse asks the API server whether it can serve.
func (e *Engine) Pulse(ctx context.Context) error { return e.k.Ready(ctx) }

// Info says what the cluster is and can do.
func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	if err := ctx.Err(); err != nil {
		return engine.Info{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	v, err := e.k.Version(ctx)
	if err != nil {
		return engine.Info{}, err
	}
	placed := e.cfg.Terms.Placed
	info := engine.Info{Name: "kubernetes", Version: v.GitVersion, Abilities: engine.Abilities{
		Gang: engine.GangStrict, Placed: placed, Delegated: !placed, Isolates: true, Proves: true, Suspend: true,
	}}
	if placed {
		return info, nil
	}
	g, _, err := e.servedGang(ctx)
	switch {
	case err != nil:
		return engine.Info{}, err
	case g == nil:
		info.Abilities.Gang = engine.GangNone
		info.Notes = append(info.Notes, "the cluster has nothing that begins pods together: jobs of several nodes are refused; it could have one of "+strings.Join(gang.Kinds(), ", ")+", or Coxswain could choose the nodes")
	default:
		info.Abilities.Gang = g.Ability()
	}
	return info, nil
}

// Forget drops an ended attempt: its root is deleted, and the cluster collects the rest.
func (e *Engine) Forget(ctx context.Context, ref engine.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	a := e.attempts[ref]
	if a != nil && !a.ended {
		e.mu.Unlock()
		return fault.New(fault.Conflict, "attempt %s has not ended", ref)
	}
	if err := e.log.Fence(ref); err != nil {
		e.mu.Unlock()
		return journalError(ref, err)
	}
	delete(e.attempts, ref)
	e.cache.Forget(ref)
	e.mu.Unlock()
	if a == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Patience)
	defer cancel()
	if err := e.calls.deleteRoot(ctx, a.namespace, ref); err != nil {
		e.cfg.Log.Warn("kubernetes", "attempt", ref.String(), "error", err)
		e.mu.Lock()
		e.rooted = true
		e.wakeCleanup()
		e.mu.Unlock()
	}
	return nil
}
