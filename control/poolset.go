package control

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// unopenedEngine is the engine of a pool that could not be opened: whatever it is asked, the
// answer is not known.
type unopenedEngine struct {
	missingEngine
	why error
}

// unopenedPool is a pool whose engine could not be opened. What is known of it is what its
// engine said when it was added.
func unopenedPool(spec state.PoolSpec, why error) Pool {
	return Pool{
		Pool: fleet.Pool{Name: spec.Name, Engine: spec.Engine}, Engine: unopenedEngine{missingEngine{spec.Name}, why},
		Elastic: spec.Elastic, Delegated: spec.Delegated,
	}
}

// openFailure is why the engine could not be opened; nil: it was.
func (p *Pool) openFailure() error {
	if b, ok := p.Engine.(unopenedEngine); ok {
		return b.why
	}
	return nil
}

func (b unopenedEngine) openError() error {
	return fault.New(fault.Unavailable, "pool %s: %w", b.pool, b.why)
}

func (b unopenedEngine) Info(context.Context) (engine.Info, error) {
	return engine.Info{}, b.openError()
}
func (b unopenedEngine) Nodes(context.Context) ([]fleet.Node, error)   { return nil, b.openError() }
func (b unopenedEngine) Launch(context.Context, *engine.Launch) error  { return b.openError() }
func (b unopenedEngine) List(context.Context) ([]engine.Report, error) { return nil, b.openError() }

// openKept opens the pools that the journal has. One that cannot be opened is there all the
// same: what it holds stays held, and who asks is told why.
func (cfg *Config) openKept(ctx context.Context, specs map[string]state.PoolSpec) []Pool {
	var out []Pool
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		p, err := cfg.openPool(ctx, specs[name])
		if err != nil {
			cfg.Log.Error("a pool cannot be opened", "pool", name, "error", err)
			p = unopenedPool(specs[name], err)
		}
		out = append(out, p)
	}
	return out
}

func (cfg *Config) openPool(ctx context.Context, spec state.PoolSpec) (Pool, error) {
	if cfg.OpenPool == nil {
		return Pool{}, fault.New(fault.Unsupported, "this server has the pools that it was started with and no others").
			Advise("start a server whose cox knows other kinds of engine")
	}
	if d := cfg.declaredPool(spec.Name); d != nil && !spec.Trial {
		spec.Settings = d.Settings
	}
	p, err := cfg.OpenPool(ctx, spec)
	p.Name = spec.Name
	return p, err
}

// AddPool opens a pool and takes its nodes in. It is durable when AddPool returns; a pool
// that cannot be opened is not kept. The errors are of Config.OpenPool,
// fault.Conflict for a name that is taken, and fault.Unsupported where the rules suspend jobs
// to make room and the engine cannot.
func (c *Control) AddPool(ctx context.Context, by job.Actor, spec state.PoolSpec) error {
	if err := checkPoolName(spec.Name); err != nil {
		return err
	}
	if c.pools.isNameTaken(spec.Name) {
		return nameTaken(spec.Name)
	}
	opened, err := c.cfg.openPool(ctx, spec)
	if err != nil {
		return err
	}
	if err := c.checkPoolRules(opened.Engine, spec.Name); err != nil {
		_ = opened.Engine.Close()
		return err
	}
	spec.At, spec.By = c.cfg.Clock.Now(), by
	spec.Delegated, spec.Elastic = opened.engineDelegates(), opened.Elastic
	err = c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		if _, known := l.state.Pools[spec.Name]; known {
			l.refuseWhenLeading(answer, nameTaken(spec.Name))
			return
		}
		l.stageFor(&request{answer: answer}, state.KindPool, 0, by, spec, func() { l.takeIn(opened) })
	})
	if err != nil && fault.KindOf(err) != fault.Unavailable { // else it may be in use by now
		_ = opened.Engine.Close()
	}
	return err
}

// checkPoolRules refuses a pool in which the rules of the site cannot be kept.
func (c *Control) checkPoolRules(e engine.Engine, name string) error {
	if suspendFreesRoom(e) {
		return nil
	}
	c.state.RLock()
	defer c.state.RUnlock()
	if p := c.state.Policies.CurrentPolicy(); p != nil {
		return refuseSuspendMode(p.Rules, name)
	}
	return nil
}

// takeIn has an opened pool take the place of one of its name that was there: what an earlier
// server knew, or could not open.
func (l *loop) takeIn(opened Pool) {
	old := l.pools.byName(opened.Name)
	if old != nil {
		l.retirePool(old, false)
	}
	p := l.pools.make(opened)
	p.own = true
	l.pools.add(p)
	l.state.Lock()
	l.state.ElasticPools[opened.Name] = opened.Elastic
	l.state.DelegatedPools = l.pools.delegatedNames()
	l.state.Unlock()
	l.watchPool(p)
	if old != nil { // which has not heard what was asked meanwhile
		l.resumeAttempts(opened.Name)
	}
	l.compareEngines()
}

// Pauses between two attempts to open a pool that could not be opened.
const (
	firstReopen = 5 * time.Second
	lastReopen  = 5 * time.Minute
)

// reopenPool opens a pool that could not be opened when the server began, as soon as that can be
// done. It ends with the loop, and when the pool is taken away.
func (c *Control) reopenPool(ctx context.Context, p *pool, spec state.PoolSpec) {
	for pause := firstReopen; ; pause = min(2*pause, lastReopen) {
		due, stop := c.cfg.Clock.After(pause)
		select {
		case <-due:
		case <-ctx.Done():
			stop()
			return
		}
		if c.pools.byName(p.Name) != p {
			return
		}
		opened, err := c.cfg.openPool(ctx, spec)
		if err != nil {
			c.cfg.Log.Warn("a pool cannot be opened yet", "pool", p.Name, "error", err)
			continue
		}
		var there atomic.Bool
		err = c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
			if l.pools.byName(p.Name) == p && !p.leaving {
				there.Store(true)
				l.takeIn(opened)
			}
			l.refuseWhenLeading(answer, nil)
		})
		if !there.Load() {
			_ = opened.Engine.Close()
		}
		if err == nil || there.Load() {
			return
		}
	}
}

// isNameTaken reports whether a pool of that name is there, and not only for what the ledger
// holds in it.
func (ps *pools) isNameTaken(name string) bool {
	p := ps.byName(name)
	return p != nil && !p.isUnconfigured()
}

func nameTaken(name string) error {
	return fault.New(fault.Conflict, "there is a pool %s already", name).Advise("cox pool list shows it; take another name, or remove it first: cox pool remove %s", name)
}

// RemovePool takes away a pool in which nothing is held and for which nobody waits.
func (c *Control) RemovePool(ctx context.Context, by job.Actor, name string) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		if _, known := l.state.Pools[name]; !known {
			err := fault.New(fault.NotFound, "there is no pool %s that was added", name).Advise("cox pool list shows which there are")
			if l.pools.byName(name) != nil {
				err = fault.New(fault.Invalid, "pool %s is of the server itself", name).Advise("it goes with the server's configuration")
			}
			l.refuseWhenLeading(answer, err)
			return
		}
		err := l.inUse(name)
		if l.cfg.declaredPool(name) != nil {
			err = fault.New(fault.Invalid, "pool %s is of the server's configuration", name).Advise("take it out of pools there and start the server again; then cox pool remove %s", name)
		}
		if err != nil {
			l.refuseWhenLeading(answer, err)
			return
		}
		p := l.pools.byName(name)
		p.leaving = true
		done := func(err error) {
			p.leaving = err == nil
			answer(err)
		}
		l.stageFor(&request{answer: done}, state.KindPoolGone, 0, by, state.PoolGone{Name: name}, func() {
			l.pools.removePool(name)
			l.state.Lock()
			delete(l.state.ElasticPools, name)
			l.state.DelegatedPools = l.pools.delegatedNames()
			l.setNodes(p, nil)
			l.state.Unlock()
			l.retirePool(p, true)
		})
	})
}

// inUse says what keeps a pool from being taken away; nil: nothing.
func (l *loop) inUse(name string) error {
	var jobs []string
	n := 0
	for _, e := range l.state.Jobs {
		if e.State.Final() || e.Shared.Spec.Pool != name && (e.Last == nil || e.Last.Pool != name) {
			continue
		}
		if n++; len(jobs) < 4 {
			jobs = append(jobs, e.Name())
		}
	}
	slices.Sort(jobs)
	for i := range l.batch {
		if v, ok := l.batch[i].val.(*state.AcceptedSubmission); ok && v.Shared.Spec.Pool == name {
			return fault.New(fault.Conflict, "a job for pool %s is being submitted", name).Advise("try again")
		}
		e := l.state.Jobs[job.ID(l.batch[i].rec.Job)]
		if _, ok := l.batch[i].val.(state.Requeue); ok && e != nil && e.Shared.Spec.Pool == name {
			return fault.New(fault.Conflict, "a job for pool %s is about to wait again", name).Advise("try again")
		}
	}
	if n == 0 {
		return nil
	}
	all := "cox cancel " + strings.Join(jobs, " ")
	if n > len(jobs) {
		jobs, all = append(jobs, "…"), "cox cancel JOB…"
	}
	what := "jobs that have"
	if n == 1 {
		what = "job that has"
	}
	return fault.New(fault.Conflict, "pool %s has %d %s not ended: %s", name, n, what, strings.Join(jobs, ", ")).
		Advise("let them end, or %s; cox node drain keeps others from starting", all)
}

// leaveWait bounds what an engine does when its pool is taken away.
const leaveWait = 2 * time.Minute

// retirePool ends what is done for a pool, apart from the loop. For good: the pool is taken away.
func (l *loop) retirePool(p *pool, forGood bool) {
	if p.unwatch != nil {
		p.unwatch()
	}
	l.helpers.Go(func() {
		p.watching.Wait()
		if k, ok := p.Engine.(engine.Leaver); ok && forGood {
			ctx, cancel := context.WithTimeout(l.ctx, leaveWait)
			if err := k.Leave(ctx); err != nil {
				l.cfg.Log.Warn("of a pool that is gone there is something left", "pool", p.Name, "error", err)
			}
			cancel()
		}
		if err := p.close(); err != nil {
			l.cfg.Log.Warn("a pool's engine does not close well", "pool", p.Name, "error", err)
		}
	})
}

// watchPool begins to hear what a pool's engine reports.
func (l *loop) watchPool(p *pool) {
	ctx, cancel := context.WithCancel(l.ctx)
	p.unwatch = cancel
	p.watching.Go(func() {
		reconcile.Follow(ctx, p.Engine, retryWatch, l.cfg.Log.With("pool", p.Name), func(ev engine.Event) {
			_ = l.postMessage(ctx, l.reportMessage(p, ev.Report)) // a closed loop hears nothing more
		})
	})
	if f, ok := p.Engine.(engine.Limiter); ok {
		p.watching.Go(func() { f.Room(ctx, func(jobs ...job.ID) { _ = l.postMessage(ctx, l.capacityMessage(p.Name, jobs)) }) })
	}
}

// isUnconfigured reports whether a pool is there only for what the ledger holds in it.
func (p *pool) isUnconfigured() bool {
	_, gone := p.Engine.(missingEngine)
	return gone
}

func checkPoolName(name string) error {
	ok := len(name) > 0 && len(name) <= 63 && strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.')
	}) < 0 && name[0] != '-' && name[0] != '.'
	if !ok {
		return fault.New(fault.Invalid, "a pool cannot be named %.70q", name).Advise("use letters a to z, digits, - and ., 63 at most, and begin with a letter or digit")
	}
	return nil
}
