package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/control/dispatch"
	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
)

// Pool is a set of nodes and the engine that runs what is placed on them.
//
// Pools depend on each other in nothing: each has calls, a watch and comparisons of its
// own, so that one whose engine does not answer delays none of the others. The nodes of
// all of them are one fleet, in which a node is known by its pool and its name.
type Pool struct {
	fleet.Pool
	Engine engine.Engine
	// Elastic says that the engine can change a gang that runs (engine.Abilities).
	Elastic bool
	// Delegated says that the engine's own scheduler chooses the nodes (engine.Delegator).
	// It is found out; nobody has to set it.
	Delegated bool
}

// pool is a Pool at work.
type pool struct {
	Pool
	calls *dispatch.Dispatcher

	status           engineStatus
	asking           atomic.Bool // the engine is being asked for all that it has
	heartbeatPending atomic.Bool // … for a sign of life
	known            bool        // it has said which nodes it has; guarded by the state
	leaving          bool        // it is being taken away; for the loop alone
	own              bool        // the engine was opened by the control plane, which closes it
	real             realNodes   // its nodes, where it is one node to the core; guarded by the state

	unwatch  context.CancelFunc // ends the watch
	watching sync.WaitGroup
}

// pools are those of a control plane. It is safe for concurrent use.
type pools struct {
	make func(Pool) *pool

	mu    sync.RWMutex
	all   []*pool // the first one is where jobs go that name none; never written in place
	named map[string]*pool
}

// newPools makes the calls of pools ready: of those of the configuration, and of those that
// were added, whose engines are its own. Pools in which the ledger holds something and
// that are configured no longer are there too: what they hold stays held.
func newPools(cfg, added []Pool, live []ledger.Allocation, log *slog.Logger, leads func(context.Context) error) (*pools, error) {
	ps := &pools{named: map[string]*pool{}}
	ps.make = func(p Pool) *pool {
		p.Delegated = p.engineDelegates()
		return &pool{Pool: p, calls: dispatch.New(dispatch.Config{Engine: p.Engine, Log: log.With("pool", p.Name), Leads: leads})}
	}
	for i, p := range slices.Concat(cfg, added) {
		if ps.byName(p.Name) != nil {
			ps.close()
			return nil, fault.New(fault.Invalid, "two pools are named %s", p.Name)
		}
		w := ps.make(p)
		w.own = i >= len(cfg)
		ps.add(w)
	}
	for _, a := range live {
		if ps.byName(a.Pool) == nil {
			log.Error("work is held in a pool that is not configured any more; it stays held", "pool", a.Pool, "job", a.Job)
			ps.add(ps.make(Pool{Pool: fleet.Pool{Name: a.Pool}, Engine: missingEngine{a.Pool}}))
		}
		if p := ps.byName(a.Pool); p.isUnreachable() && state.IsDelegated(a.Claims) { // nobody else says it
			p.Delegated = true
		}
	}
	return ps, nil
}

// engineDelegates reports whether the engine's own scheduler chooses the nodes: as the engine says,
// or as it is known of one that is not there.
func (p *Pool) engineDelegates() bool {
	if d, ok := p.Engine.(engine.Delegator); ok {
		return d.Delegates()
	}
	return p.Delegated
}

// whyUnreachable is why a job waits for a pool whose engine is not there: what it lacks of nodes of
// which nobody knows says nothing.
func (ps *pools) whyUnreachable(pool string, code reason.Code) (reason.Reason, bool) {
	p := ps.byName(pool)
	switch code {
	case reason.NodeCount, reason.TooLarge, reason.NodeDown, reason.NodeList, reason.Constraint, reason.Resources:
	default:
		return reason.Reason{}, false
	}
	if p == nil || !p.isUnreachable() {
		return reason.Reason{}, false
	}
	if b, ok := p.Engine.(unopenedEngine); ok {
		return reason.Reason{Code: reason.EngineDown, Want: b.openError().Error()}, true
	}
	return reason.Reason{Code: reason.EngineDown, Want: missingEngine{p.Name}.notConfigured().Error()}, true
}

// isUnreachable reports whether there is no engine that could say anything.
func (p *Pool) isUnreachable() bool {
	_, unopened := p.Engine.(unopenedEngine)
	_, gone := p.Engine.(missingEngine)
	return unopened || gone
}

// add takes a pool in. It takes the place of one of its name: whoever lists the pools finds
// one of them at any time.
func (ps *pools) add(p *pool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	all := slices.Clone(ps.all)
	if i := slices.Index(all, ps.named[p.Name]); i >= 0 {
		all[i] = p
	} else {
		all = append(all, p)
	}
	ps.all, ps.named[p.Name] = all, p
}

// removePool takes a pool out and returns it.
func (ps *pools) removePool(name string) *pool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.named[name]
	delete(ps.named, name)
	ps.all = slices.DeleteFunc(slices.Clone(ps.all), func(o *pool) bool { return o == p })
	return p
}

// allPools lists the pools.
func (ps *pools) allPools() []*pool {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	return ps.all
}

// byName returns the pool of a name, or nil.
func (ps *pools) byName(name string) *pool {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	return ps.named[name]
}

// waitUnwatched waits until no pool is watched any more.
func (ps *pools) waitUnwatched() {
	for _, p := range ps.allPools() {
		p.watching.Wait()
	}
}

func (ps *pools) close() {
	for _, p := range ps.allPools() {
		_ = p.close()
	}
}

func (p *pool) close() error {
	p.calls.Close()
	if p.own {
		return p.Engine.Close()
	}
	return nil
}

// byNameOrFirst returns the pool of a name. The ledger holds nothing in others than these.
func (ps *pools) byNameOrFirst(name string) *pool {
	if p := ps.byName(name); p != nil {
		return p
	}
	return ps.allPools()[0]
}

// poolOfClaims is the name of the pool that has all nodes of some claims.
func (l *loop) poolOfClaims(claims []fleet.Claim) string {
	if len(claims) > 0 {
		if k, ok := l.state.Nodes.Find(claims[0].Key()); ok && l.pools.byName(k.Pool) != nil {
			return k.Pool
		}
	}
	return l.pools.allPools()[0].Name
}

// callsOf is who calls the engine that an allocation's attempt runs on.
func (l *loop) callsOf(a ledger.Allocation) *dispatch.Dispatcher {
	return l.pools.byNameOrFirst(a.Pool).calls
}

// callsFor is callsOf for the present attempt of a job, and what was added to it.
func (l *loop) callsFor(e *state.JobRecord) *dispatch.Dispatcher {
	return l.pools.byNameOrFirst(e.Last.Pool).calls
}

// elasticPoolNames are the pools whose engines can change gangs that run.
func elasticPoolNames(cfg []Pool) map[string]bool {
	out := map[string]bool{}
	for _, p := range cfg {
		out[p.Name] = p.Elastic
	}
	return out
}

// clock is where time comes from.
type clock interface {
	Now() time.Time
	After(d time.Duration) (c <-chan time.Time, stop func())
}

// openWait is how long the opening waits for a pool, once another one has answered.
const openWait = 10 * time.Second

// askNodes asks all engines for their nodes, and what they are. One that does not answer
// has none, until it does; that none answers is an error.
func (ps *pools) askNodes(ctx context.Context, clock clock, log *slog.Logger) (map[*pool][]fleet.Node, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		pool  *pool
		nodes []fleet.Node
		err   error
	}
	all := ps.allPools()
	answers := make(chan answer, len(all))
	for _, p := range all {
		go func() {
			p.status.noteAsked(clock.Now())
			nodes, err := p.Engine.Nodes(ctx)
			info, err2 := p.Engine.Info(ctx)
			p.status.noteAnswer(clock.Now(), info, errors.Join(err, err2))
			answers <- answer{p, nodes, err}
		}()
	}
	out := map[*pool][]fleet.Node{}
	var errs []error
	var late <-chan time.Time // nil: nothing answered yet
	for n := 0; n < len(all); n++ {
		select {
		case a := <-answers:
			if a.err != nil {
				errs = append(errs, fmt.Errorf("list the nodes of pool %s: %w", a.pool.Name, a.err))
				continue
			}
			out[a.pool] = a.nodes
			if late == nil {
				c, stop := clock.After(openWait)
				defer stop()
				late = c
			}
		case <-late:
			errs = append(errs, fmt.Errorf("%d pools have not answered for %s", len(all)-n, openWait))
			n = len(all)
		}
	}
	if len(out) == 0 {
		return nil, errors.Join(errs...)
	}
	for _, err := range errs {
		log.Error("a pool does not answer; its nodes are not there until it does", "error", err)
	}
	return out, nil
}

// delegatedNames are the pools whose engines hand work to a scheduler of their own.
func (ps *pools) delegatedNames() map[string]bool {
	out := map[string]bool{}
	for _, p := range ps.allPools() {
		if p.Delegated {
			out[p.Name] = true
		}
	}
	return out
}

// forJob is the pool that a job names.
func (ps *pools) forJob(spec *job.Spec) (*pool, error) {
	p := ps.byName(spec.Pool)
	if p != nil && p.leaving {
		p = nil
	}
	return ps.checkAble(p, spec)
}

// checkAble returns the pool that a job names if that can run such work at all; nil: there is none.
func (ps *pools) checkAble(p *pool, spec *job.Spec) (*pool, error) {
	if p == nil {
		return nil, fault.New(fault.NotFound, "there is no pool %s", spec.Pool).Advise("name one of %s", strings.Join(ps.configuredNames(), ", "))
	}
	if gone, ok := p.Engine.(missingEngine); ok {
		return nil, gone.notConfigured()
	}
	if spec.Elastic() && !p.Elastic {
		return nil, fault.New(fault.Unsupported, "the engine of pool %s cannot change a gang that runs", p.Name).
			Advise("leave out elastic: the job then starts with as many nodes as are free, between its limits, and keeps them")
	}
	return p, nil
}

// isGone reports whether a pool that a job names is not there, or is being taken away.
func (ps *pools) isGone(name string) bool {
	if name == "" {
		return false
	}
	p := ps.byName(name)
	return p == nil || p.leaving || p.isUnconfigured()
}

// configuredNames lists the pools that are configured.
func (ps *pools) configuredNames() []string {
	var out []string
	for _, p := range ps.allPools() {
		if _, gone := p.Engine.(missingEngine); !gone {
			out = append(out, p.Name)
		}
	}
	return out
}

// setNodes takes in what a pool's engine says of its nodes. One on a machine that another pool
// has already is left to that one: work that is there by then goes on, and no other begins.
func (l *loop) setNodes(p *pool, nodes []fleet.Node) {
	s := l.state
	p.known = true
	others := machinesBut(p.Name, l.state.Nodes, nodes)
	seen := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		n.Pool = p.Name
		host, o := others.otherPoolNode(&n)
		switch {
		case o == nil:
		case o.Name == n.Name:
			l.cfg.Log.Error("two pools have a node of the same name; the second one's is not used", "node", n.Name, "first", o.Pool, "second", p.Name)
			continue
		default:
			l.cfg.Log.Error("two pools have the same machine; the second one's node is not used", "node", n.Name, "pool", p.Name, "machine", host, "first", o.Name, "of", o.Pool)
			if used, devices := s.Ledger.Used(n.Key()); used.IsZero() && len(devices) == 0 {
				continue
			}
			n.State, n.Why = fleet.Draining, whoseMachine(host, o)
		}
		if old, known := l.state.Nodes.Get(n.Key()); !known || !equalNodes(&old, &n) {
			l.state.Nodes.Set(n.Key(), n)
			l.tellNode(n.Key())
		}
		seen[n.Name] = true
	}
	for _, k := range l.state.Nodes.Keys() {
		if k.Pool == p.Name && !seen[k.Name] {
			l.state.Nodes.Delete(k)
			l.fleet++
			s.Ledger.RemoveNode(k)
			s.Events = append(s.Events, sched.NodeRemoved{Pool: k.Pool, Name: k.Name})
		}
	}
}

// compareEngines asks each engine, or those of the pools that are named, for everything it has, apart
// from the loop, and looks into what disagrees with the ledger as it was before.
func (l *loop) compareEngines(of ...*pool) {
	l.extendHandedOver()
	taken := map[*pool][]ledger.Allocation{}
	for _, a := range l.state.Ledger.Live() {
		p := l.pools.byNameOrFirst(a.Pool)
		if a.Adds == 0 && l.state.Jobs[a.Job].Flags&job.Configuring == 0 || !p.calls.Busy(reconcile.Ref(a)) {
			taken[p] = append(taken[p], a) // others are still on their way to the engine
		}
	}
	for _, p := range l.pools.allPools() {
		if len(of) > 0 && !slices.Contains(of, p) {
			continue
		}
		if !p.asking.CompareAndSwap(false, true) {
			continue // it has not answered yet
		}
		l.helpers.Go(func() {
			defer p.asking.Store(false)
			l.askAll(p, taken[p])
		})
	}
}

// askAll is compare for one pool.
func (l *loop) askAll(p *pool, taken []ledger.Allocation) {
	p.status.noteAsked(l.cfg.Clock.Now())
	info, failed := p.Engine.Info(l.ctx)
	if failed != nil {
		p.status.noteFailure(failed) // what comes next may hang for longer
	}
	nodes, err := p.Engine.Nodes(l.ctx)
	if err == nil {
		_ = l.postMessage(l.ctx, message{run: func(l *loop) {
			l.state.Lock()
			defer l.state.Unlock()
			if l.pools.byName(p.Name) == p { // else it was removed while it was asked
				l.setNodes(p, l.aggregateNodes(p, nodes))
			}
		}})
	}
	failed = errors.Join(failed, err)
	reports, err := p.Engine.List(l.ctx)
	p.status.noteAnswer(l.cfg.Clock.Now(), info, errors.Join(failed, err))
	if err != nil {
		l.cfg.Log.Warn("the engine's list cannot be had", "pool", p.Name, "error", err)
		return
	}
	for _, f := range reconcile.Compare(taken, reports) {
		if f.Kind != reconcile.Missing {
			continue
		}
		if _, err := p.Engine.Inspect(l.ctx, f.Ref); fault.KindOf(err) == fault.NotFound {
			_ = l.postMessage(l.ctx, l.missingMessage(f.Alloc)) // a closed loop hears nothing more
		}
	}
}
