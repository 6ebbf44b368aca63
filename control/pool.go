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

	said    said
	asking  atomic.Bool // the engine is being asked for all that it has
	pulsing atomic.Bool // … for a sign of life
	known   bool        // it has said which nodes it has; guarded by state.mu
	leaving bool        // it is being taken away; for the loop alone
	own     bool        // the engine was opened by the control plane, which closes it
	real    real        // its nodes, where it is one node to the core; guarded by state.mu

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
		p.Delegated = p.delegates()
		return &pool{Pool: p, calls: dispatch.New(dispatch.Config{Engine: p.Engine, Log: log.With("pool", p.Name), Leads: leads})}
	}
	for i, p := range slices.Concat(cfg, added) {
		if ps.find(p.Name) != nil {
			ps.close()
			return nil, fault.New(fault.Invalid, "two pools are named %s", p.Name)
		}
		w := ps.make(p)
		w.own = i >= len(cfg)
		ps.add(w)
	}
	for _, a := range live {
		if ps.find(a.Pool) == nil {
			log.Error("work is held in a pool that is not configured any more; it stays held", "pool", a.Pool, "job", a.Job)
			ps.add(ps.make(Pool{Pool: fleet.Pool{Name: a.Pool}, Engine: absent{a.Pool}}))
		}
		if p := ps.find(a.Pool); p.away() && delegated(a.Claims) { // nobody else says it
			p.Delegated = true
		}
	}
	return ps, nil
}

// delegates reports whether the engine's own scheduler chooses the nodes: as the engine says,
// or as it is known of one that is not there.
func (p *Pool) delegates() bool {
	if d, ok := p.Engine.(engine.Delegator); ok {
		return d.Delegates()
	}
	return p.Delegated
}

// unreached is why a job waits for a pool whose engine is not there: what it lacks of nodes of
// which nobody knows says nothing.
func (c *Control) unreached(e *entry, code reason.Code) (reason.Reason, bool) {
	p := c.pools.find(e.form.spec.Pool)
	switch code {
	case reason.NodeCount, reason.TooLarge, reason.NodeDown, reason.NodeList, reason.Constraint, reason.Resources:
	default:
		return reason.Reason{}, false
	}
	if p == nil || !p.away() {
		return reason.Reason{}, false
	}
	if b, ok := p.Engine.(broken); ok {
		return reason.Reason{Code: reason.EngineDown, Want: b.fail().Error()}, true
	}
	return reason.Reason{Code: reason.EngineDown, Want: absent{p.Name}.err().Error()}, true
}

// away reports whether there is no engine that could say anything.
func (p *Pool) away() bool {
	_, unopened := p.Engine.(broken)
	_, gone := p.Engine.(absent)
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

// drop takes a pool out and returns it.
func (ps *pools) drop(name string) *pool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.named[name]
	delete(ps.named, name)
	ps.all = slices.DeleteFunc(slices.Clone(ps.all), func(o *pool) bool { return o == p })
	return p
}

// each lists the pools.
func (ps *pools) each() []*pool {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	return ps.all
}

// find returns the pool of a name, or nil.
func (ps *pools) find(name string) *pool {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	return ps.named[name]
}

// unwatched waits until no pool is watched any more.
func (ps *pools) unwatched() {
	for _, p := range ps.each() {
		p.watching.Wait()
	}
}

func (ps *pools) close() {
	for _, p := range ps.each() {
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

// of returns the pool of a name. The ledger holds nothing in others than these.
func (ps *pools) of(name string) *pool {
	if p := ps.find(name); p != nil {
		return p
	}
	return ps.each()[0]
}

// pooled is the name of the pool that has all nodes of some claims.
func (c *Control) pooled(claims []fleet.Claim) string {
	if len(claims) > 0 {
		if k, ok := c.nodes.Find(claims[0].Key()); ok && c.pools.find(k.Pool) != nil {
			return k.Pool
		}
	}
	return c.pools.each()[0].Name
}

// callsOf is who calls the engine that an allocation's attempt runs on.
func (l *loop) callsOf(a ledger.Allocation) *dispatch.Dispatcher { return l.pools.of(a.Pool).calls }

// callsFor is callsOf for the present attempt of a job, and what was added to it.
func (l *loop) callsFor(e *entry) *dispatch.Dispatcher { return l.pools.of(e.last.pool).calls }

// elastic reports whether the engine of a job's pool can change its gang while it runs.
func (s *state) elastic(e *entry) bool {
	return e.form.spec.Elastic() && e.last != nil && s.changing[e.last.pool]
}

// changing are the pools whose engines can change gangs that run.
func changing(cfg []Pool) map[string]bool {
	out := map[string]bool{}
	for _, p := range cfg {
		out[p.Name] = p.Elastic
	}
	return out
}

// openWait is how long the opening waits for a pool, once another one has answered.
const openWait = 10 * time.Second

// inventory asks all engines for their nodes, and what they are. One that does not answer
// has none, until it does; that none answers is an error.
func (ps *pools) inventory(ctx context.Context, cfg *Config) (map[*pool][]fleet.Node, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		pool  *pool
		nodes []fleet.Node
		err   error
	}
	all := ps.each()
	answers := make(chan answer, len(all))
	for _, p := range all {
		go func() {
			p.said.ask(cfg.Clock.Now())
			nodes, err := p.Engine.Nodes(ctx)
			info, err2 := p.Engine.Info(ctx)
			p.said.hear(cfg.Clock.Now(), info, errors.Join(err, err2))
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
				c, stop := cfg.Clock.After(openWait)
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
		cfg.Log.Error("a pool does not answer; its nodes are not there until it does", "error", err)
	}
	return out, nil
}

// delegating are the pools whose engines hand work to a scheduler of their own.
func (ps *pools) delegating() map[string]bool {
	out := map[string]bool{}
	for _, p := range ps.each() {
		if p.Delegated {
			out[p.Name] = true
		}
	}
	return out
}

// forJob is the pool that a job names.
func (ps *pools) forJob(spec *job.Spec) (*pool, error) {
	p := ps.find(spec.Pool)
	if p != nil && p.leaving {
		p = nil
	}
	return ps.able(p, spec)
}

// able returns the pool that a job names if that can run such work at all; nil: there is none.
func (ps *pools) able(p *pool, spec *job.Spec) (*pool, error) {
	if p == nil {
		return nil, fault.New(fault.NotFound, "there is no pool %s", spec.Pool).Advise("name one of %s", strings.Join(ps.names(), ", "))
	}
	if gone, ok := p.Engine.(absent); ok {
		return nil, gone.err()
	}
	if spec.Elastic() && !p.Elastic {
		return nil, fault.New(fault.Unsupported, "the engine of pool %s cannot change a gang that runs", p.Name).
			Advise("leave out elastic: the job then starts with as many nodes as are free, between its limits, and keeps them")
	}
	return p, nil
}

// left reports whether a pool that a job names is not there, or is being taken away.
func (ps *pools) left(name string) bool {
	if name == "" {
		return false
	}
	p := ps.find(name)
	return p == nil || p.leaving || p.ended()
}

// names lists the pools that are configured.
func (ps *pools) names() []string {
	var out []string
	for _, p := range ps.each() {
		if _, gone := p.Engine.(absent); !gone {
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
	others := l.machinesBut(p.Name, nodes)
	seen := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		n.Pool = p.Name
		host, o := others.twin(&n)
		switch {
		case o == nil:
		case o.Name == n.Name:
			l.cfg.Log.Error("two pools have a node of the same name; the second one's is not used", "node", n.Name, "first", o.Pool, "second", p.Name)
			continue
		default:
			l.cfg.Log.Error("two pools have the same machine; the second one's node is not used", "node", n.Name, "pool", p.Name, "machine", host, "first", o.Name, "of", o.Pool)
			if used, devices := s.led.Used(n.Key()); used.IsZero() && len(devices) == 0 {
				continue
			}
			n.State, n.Why = fleet.Draining, whoseMachine(host, o)
		}
		if old, known := l.nodes.Get(n.Key()); !known || !equalNodes(&old, &n) {
			l.nodes.Set(n.Key(), n)
			l.tellNode(n.Key())
		}
		seen[n.Name] = true
	}
	for _, k := range l.nodes.Keys() {
		if k.Pool == p.Name && !seen[k.Name] {
			l.nodes.Delete(k)
			l.fleet++
			s.led.RemoveNode(k)
			s.events = append(s.events, sched.NodeRemoved{Pool: k.Pool, Name: k.Name})
		}
	}
}

// compare asks each engine, or those of the pools that are named, for everything it has, apart
// from the loop, and looks into what disagrees with the ledger as it was before.
func (l *loop) compare(of ...*pool) {
	l.renew()
	taken := map[*pool][]ledger.Allocation{}
	for _, a := range l.state.led.Live() {
		p := l.pools.of(a.Pool)
		if a.Adds == 0 && l.state.jobs[a.Job].flags&job.Configuring == 0 || !p.calls.Busy(reconcile.Ref(a)) {
			taken[p] = append(taken[p], a) // others are still on their way to the engine
		}
	}
	for _, p := range l.pools.each() {
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
	p.said.ask(l.cfg.Clock.Now())
	info, failed := p.Engine.Info(l.ctx)
	if failed != nil {
		p.said.fail(failed) // what comes next may hang for longer
	}
	nodes, err := p.Engine.Nodes(l.ctx)
	if err == nil {
		_ = l.post(l.ctx, message{run: func(l *loop) {
			l.state.mu.Lock()
			defer l.state.mu.Unlock()
			if l.pools.find(p.Name) == p { // else it was removed while it was asked
				l.setNodes(p, l.folded(p, nodes))
			}
		}})
	}
	failed = errors.Join(failed, err)
	reports, err := p.Engine.List(l.ctx)
	p.said.hear(l.cfg.Clock.Now(), info, errors.Join(failed, err))
	if err != nil {
		l.cfg.Log.Warn("the engine's list cannot be had", "pool", p.Name, "error", err)
		return
	}
	for _, f := range reconcile.Compare(taken, reports) {
		if f.Kind != reconcile.Missing {
			continue
		}
		if _, err := p.Engine.Inspect(l.ctx, f.Ref); fault.KindOf(err) == fault.NotFound {
			_ = l.post(l.ctx, l.missing(f.Alloc)) // a closed loop hears nothing more
		}
	}
}
