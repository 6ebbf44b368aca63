package control

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// openKept opens the pools that the journal has. A pool that cannot be opened is in the list
// too: what it holds stays held, and its engine answers why.
func (cfg *Config) openKept(ctx context.Context, specs map[string]state.PoolSpec) []pools.Pool {
	var out []pools.Pool
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		p, err := cfg.openPool(ctx, specs[name])
		if err != nil {
			cfg.Log.Error("a pool cannot be opened", "pool", name, "error", err)
			p = pools.NewUnopened(specs[name], err)
		}
		out = append(out, p)
	}
	return out
}

func (cfg *Config) openPool(ctx context.Context, spec state.PoolSpec) (pools.Pool, error) {
	if cfg.OpenPool == nil {
		return pools.Pool{}, fault.New(fault.Unsupported, "this server has the pools that it was started with and no others").
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
	if err := pools.CheckName(spec.Name); err != nil {
		return err
	}
	if c.pools.IsNameTaken(spec.Name) {
		return pools.NameTaken(spec.Name)
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
	spec.Delegated, spec.Elastic = opened.EngineDelegates(), opened.Elastic
	err = c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		if _, known := l.state.Pools[spec.Name]; known {
			l.refuseWhenLeading(answer, pools.NameTaken(spec.Name))
			return
		}
		l.stageFor(&request{answer: answer}, state.KindPool, 0, by, spec, func() { l.takeIn(opened) })
	})
	if err != nil && fault.KindOf(err) != fault.Unavailable { // else it may be in use by now
		_ = opened.Engine.Close()
	}
	return err
}

// checkPoolRules refuses a pool in which the site's rules cannot be kept.
func (c *Control) checkPoolRules(e engine.Engine, name string) error {
	if pools.SuspendFreesRoom(e) {
		return nil
	}
	c.state.RLock()
	defer c.state.RUnlock()
	if p := c.state.Policies.CurrentPolicy(); p != nil {
		return pools.RefuseSuspendMode(p.Rules, name)
	}
	return nil
}

// takeIn adds an opened pool, in place of one of its name that an earlier server knew or could
// not open.
func (l *loop) takeIn(opened pools.Pool) {
	old := l.pools.ByName(opened.Name)
	if old != nil {
		l.retirePool(old, false)
	}
	p := l.pools.Make(opened)
	p.Own = true
	l.pools.Add(p)
	l.state.Lock()
	l.state.ElasticPools[opened.Name] = opened.Elastic
	l.notePools()
	l.claimMachines(l.pools.AllPools()...)
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

// reopenPool opens a pool that could not be opened when the server began, as soon as possible.
// It ends with the loop, or when the pool is removed.
func (c *Control) reopenPool(ctx context.Context, p *pools.Member, spec state.PoolSpec) {
	for pause := firstReopen; ; pause = min(2*pause, lastReopen) {
		due, stop := c.cfg.Clock.After(pause)
		select {
		case <-due:
		case <-ctx.Done():
			stop()
			return
		}
		if c.pools.ByName(p.Name) != p {
			return
		}
		opened, err := c.cfg.openPool(ctx, spec)
		if err != nil {
			c.cfg.Log.Warn("a pool cannot be opened yet", "pool", p.Name, "error", err)
			continue
		}
		var there atomic.Bool
		err = c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
			if l.pools.ByName(p.Name) == p && !p.Leaving {
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

// RemovePool removes a pool that holds nothing and for which no job waits. It is refused, fault.Conflict, while
// the pool owns machines that another pool has nodes on, or our fence. force gives those machines away as they
// are, and also those of a pool that is not configured any more: nobody has seen then that its engine starts
// nothing there.
func (c *Control) RemovePool(ctx context.Context, by job.Actor, name string, force bool) error {
	return c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		if force && l.pools.ByName(name) == nil && len(l.claiming) == 0 {
			if v := l.ownersWithout(name); len(v.Owners)+len(v.Freed) > 0 {
				l.giveAway(name, by, v, answer)
				return
			}
		}
		if _, known := l.state.Pools[name]; !known {
			err := fault.New(fault.NotFound, "there is no pool %s that was added", name).Advise("cox pool list shows which there are")
			if l.pools.ByName(name) != nil {
				err = fault.New(fault.Invalid, "pool %s is the server's own", name).Advise("remove it from pools in cox.yaml, if it is there, and restart the server")
			}
			l.refuseWhenLeading(answer, err)
			return
		}
		err := l.inUse(name)
		if l.cfg.declaredPool(name) != nil {
			err = fault.New(fault.Invalid, "pool %s is of the server's configuration", name).Advise("take it out of pools there and start the server again; then cox pool remove %s", name)
		}
		if err == nil {
			err = l.handsOver(name)
		}
		if err == nil && !force {
			err = l.leavesOpen(name)
		}
		if err != nil {
			l.refuseWhenLeading(answer, err)
			return
		}
		p := l.pools.ByName(name)
		p.Leaving = true
		done := func(err error) {
			p.Leaving = err == nil
			answer(err)
		}
		req := &request{answer: done}
		l.stageFor(req, state.KindPoolGone, 0, by, state.PoolGone{Name: name}, func() {
			l.pools.RemovePool(name)
			l.state.Lock()
			delete(l.state.ElasticPools, name)
			l.notePools()
			l.setNodes(p, nil)
			l.state.Unlock()
			l.retirePool(p, true)
		})
		l.stageOwners(l.ownersWithout(name), req)
	})
}

// giveAway gives the machines of a pool that is not configured any more to others.
func (l *loop) giveAway(pool string, by job.Actor, v state.OwnersSet, answer func(error)) {
	if err := l.handsOver(pool); err != nil {
		l.refuseWhenLeading(answer, err)
		return
	}
	for i := range v.Owners {
		v.Owners[i].By = by.Name
	}
	l.stageOwners(v, &request{answer: answer})
}

// inUse says what keeps a pool from being removed; nil: nothing.
func (l *loop) inUse(name string) error {
	var jobs []string
	n := 0
	for _, e := range l.state.Jobs {
		m := e.ExtraOrZero().PoolMoves.Under
		if e.State.Final() || e.Shared.Spec.Pool != name && (e.Last == nil || e.Last.Pool != name) && (m == nil || m.To != name) {
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
		if v, ok := l.batch[i].val.(state.PoolMove); ok && v.To == name {
			return fault.New(fault.Conflict, "a job is about to move to pool %s", name).Advise("try again")
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

// retirePool ends the watch and the calls of a pool, apart from the loop. forGood says that the
// pool is removed.
func (l *loop) retirePool(p *pools.Member, forGood bool) {
	if p.Unwatch != nil {
		p.Unwatch()
	}
	l.helpers.Go(func() {
		p.Watching.Wait()
		if k, ok := p.Engine.(engine.Leaver); ok && forGood {
			ctx, cancel := context.WithTimeout(l.ctx, leaveWait)
			if err := k.Leave(ctx); err != nil {
				l.cfg.Log.Warn("of a pool that is gone there is something left", "pool", p.Name, "error", err)
			}
			cancel()
		}
		if err := p.Close(); err != nil {
			l.cfg.Log.Warn("a pool's engine does not close well", "pool", p.Name, "error", err)
		}
	})
}

// watchPool starts to receive the reports of a pool's engine.
func (l *loop) watchPool(p *pools.Member) {
	ctx, cancel := context.WithCancel(l.ctx)
	p.Unwatch = cancel
	p.Watching.Go(func() {
		reconcile.Follow(ctx, p.Engine, retryWatch, l.cfg.Log.With("pool", p.Name), func(ev engine.Event) {
			_ = l.postMessage(ctx, l.reportMessage(p, ev.Report)) // a closed loop hears nothing more
		})
	})
	if f, ok := p.Engine.(engine.CapacityNotifier); ok {
		p.Watching.Go(func() {
			f.WatchCapacity(ctx, func(jobs ...job.ID) { _ = l.postMessage(ctx, l.capacityMessage(p.Name, jobs)) })
		})
	}
}

// declaredPool is the pool of a name in the configuration; nil: it has none.
func (cfg *Config) declaredPool(name string) *state.PoolSpec {
	i := slices.IndexFunc(cfg.Declared, func(d state.PoolSpec) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &cfg.Declared[i]
}

// checkDeclared refuses a configuration that gives a pool of the journal another kind of engine,
// or another site while it has jobs: they would be looked for in the wrong place.
func (cfg *Config) checkDeclared(s *state.State) error {
	for _, d := range cfg.Declared {
		k, ok := s.Pools[d.Name]
		if !ok {
			continue
		}
		if k.Engine != d.Engine {
			return fault.New(fault.Conflict, "pools: %s: there is a pool of that name with engine %s, not %s", d.Name, k.Engine, d.Engine).
				Advise("give the new one another name, or take it out, start the server, cox pool remove %s, and put it in again", d.Name)
		}
		same := sameSettings(k.Settings, d.Settings) || cfg.SameSite != nil && cfg.SameSite(k, d)
		if n := s.InPool(d.Name); n > 0 && !same {
			return fault.New(fault.Conflict, "pools: %s: its settings lead elsewhere than before, and %d jobs of it have not ended", d.Name, n).
				Advise("put back what says where it is until they have; or give the new settings a pool of another name")
		}
	}
	return nil
}

// Declare adds the pools of the configuration that the journal lacks, and records the settings
// with which the others were opened. It returns at the first pool that cannot be opened; the
// pools declared before that are durable.
func (c *Control) Declare(ctx context.Context, by job.Actor) error {
	for _, d := range c.cfg.Declared {
		if err := c.declarePool(ctx, by, d); err != nil {
			return fault.New(fault.KindOf(err), "pools: %s: %w", d.Name, err).Advise("%s", fault.Remedy(err))
		}
	}
	return nil
}

func (c *Control) declarePool(ctx context.Context, by job.Actor, d state.PoolSpec) error {
	add := false
	err := c.askLoop(ctx, message{}, func(l *loop, answer func(error)) {
		known, ok := l.state.Pools[d.Name]
		switch {
		case !ok:
			add = true
			l.refuseWhenLeading(answer, nil)
		case sameSettings(known.Settings, d.Settings):
			l.refuseWhenLeading(answer, nil)
		default:
			known.Settings, known.At, known.By = d.Settings, c.cfg.Clock.Now(), by
			l.stageFor(&request{answer: answer}, state.KindPool, 0, by, known, func() {})
		}
	})
	if err != nil || !add {
		return err
	}
	return c.AddPool(ctx, by, d)
}

// sameSettings compares settings by what they say, not by how they are written. No settings are
// an empty object.
func sameSettings(a, b json.RawMessage) bool {
	return reflect.DeepEqual(decodeSettings(a), decodeSettings(b))
}

func decodeSettings(settings json.RawMessage) map[string]any {
	out := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(settings))
	d.UseNumber()
	_ = d.Decode(&out) // what is none says nothing
	return out
}

// CheckPool checks a pool that might be added: its engine is opened for the check alone. What is
// wrong with the pool is a finding; the errors are those of AddPool.
func (c *Control) CheckPool(ctx context.Context, spec state.PoolSpec) (*pools.Check, error) {
	if err := pools.CheckName(spec.Name); err != nil {
		return nil, err
	}
	if c.pools.IsNameTaken(spec.Name) {
		return nil, pools.NameTaken(spec.Name)
	}
	spec.Trial = true
	p, err := c.cfg.openPool(ctx, spec)
	if err != nil {
		return nil, err
	}
	out := pools.CheckEngine(ctx, spec.Name, p.Engine, c.findShared)
	if err := p.Engine.Close(); err != nil {
		c.cfg.Log.Warn("a pool's engine does not close well", "pool", spec.Name, "error", err)
	}
	return out, nil
}

// RecheckPool checks a pool of the control plane.
func (c *Control) RecheckPool(ctx context.Context, name string) (*pools.Check, error) {
	p := c.pools.ByName(name)
	if p == nil {
		return nil, c.pools.NoSuchPool(name)
	}
	return pools.CheckEngine(ctx, name, p.Engine, c.findShared), nil
}

// findShared looks for nodes of a pool on machines that other pools own, and for what seems to be one machine under
// two names.
func (c *Control) findShared(pool string, nodes []fleet.Node) []engine.Finding {
	c.state.RLock()
	defer c.state.RUnlock()
	var others []fleet.Node
	for k, n := range c.state.Nodes.All() {
		if n.Pool = k.Pool; k.Pool != pool {
			others = append(others, n)
		}
	}
	for _, p := range c.pools.AllPools() {
		for _, n := range p.Real.Nodes {
			if n.Pool = p.Name; p.Name != pool {
				others = append(others, n)
			}
		}
	}
	return append(pools.SharedMachines(pool, c.state, nodes), pools.SuspectTwins(pool, nodes, others)...)
}
