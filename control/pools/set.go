package pools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control/dispatch"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// Set has the pools of a control plane. It is safe for concurrent use.
type Set struct {
	Make func(Pool) *Member

	mu    sync.RWMutex
	all   []*Member // the first one is where jobs go that name none; never written in place
	named map[string]*Member
}

// NewSet makes a set of the pools of the configuration and of those that were added, whose
// engines the set closes. It also has every pool in which the ledger holds an allocation and
// that is not configured any more: what these hold stays held.
func NewSet(cfg, added []Pool, live []ledger.Allocation, log *slog.Logger, leads func(context.Context) error) (*Set, error) {
	ps := &Set{named: map[string]*Member{}}
	ps.Make = func(p Pool) *Member {
		p.Delegated = p.EngineDelegates()
		return &Member{Pool: p, Calls: dispatch.New(dispatch.Config{Engine: p.Engine, Log: log.With("pool", p.Name), Leads: leads})}
	}
	for i, p := range slices.Concat(cfg, added) {
		if ps.ByName(p.Name) != nil {
			ps.Close()
			return nil, fault.New(fault.Invalid, "two pools are named %s", p.Name)
		}
		w := ps.Make(p)
		w.Own = i >= len(cfg)
		ps.Add(w)
	}
	for _, a := range live {
		if ps.ByName(a.Pool) == nil {
			log.Error("work is held in a pool that is not configured any more; it stays held", "pool", a.Pool, "job", a.Job)
			ps.Add(ps.Make(Pool{Pool: fleet.Pool{Name: a.Pool}, Engine: Missing{a.Pool}}))
		}
		if p := ps.ByName(a.Pool); p.isUnreachable() && state.IsDelegated(a.Claims) { // nobody else says it
			p.Delegated = true
		}
	}
	return ps, nil
}

// EngineDelegates reports whether the engine's own scheduler chooses the nodes: as the engine
// says, or as is known of an engine that is not there.
func (p *Pool) EngineDelegates() bool {
	if d, ok := p.Engine.(engine.Delegator); ok {
		return d.Delegates()
	}
	return p.Delegated
}

// WhyUnreachable is why a job waits for a pool whose engine is not there: the reason of the
// core, that it lacks nodes, says nothing while nobody knows the nodes.
func (ps *Set) WhyUnreachable(pool string, code reason.Code) (reason.Reason, bool) {
	p := ps.ByName(pool)
	switch code {
	case reason.NodeCount, reason.TooLarge, reason.NodeDown, reason.NodeList, reason.Constraint, reason.Resources, reason.Endless:
	default:
		return reason.Reason{}, false
	}
	if p == nil || !p.isUnreachable() {
		return reason.Reason{}, false
	}
	if b, ok := p.Engine.(Unopened); ok {
		return reason.Reason{Code: reason.EngineDown, Want: b.openError().Error()}, true
	}
	return reason.Reason{Code: reason.EngineDown, Want: Missing{p.Name}.notConfigured().Error()}, true
}

// isUnreachable reports whether there is no engine that could say anything.
func (p *Pool) isUnreachable() bool {
	_, unopened := p.Engine.(Unopened)
	_, gone := p.Engine.(Missing)
	return unopened || gone
}

// Add adds a pool, or replaces the one of its name. Whoever lists the pools finds exactly one of
// them at any time.
func (ps *Set) Add(p *Member) {
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

// RemovePool removes a pool and returns it.
func (ps *Set) RemovePool(name string) *Member {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.named[name]
	delete(ps.named, name)
	ps.all = slices.DeleteFunc(slices.Clone(ps.all), func(o *Member) bool { return o == p })
	return p
}

// AllPools lists the pools. The first one is where jobs go that name none.
func (ps *Set) AllPools() []*Member {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	return ps.all
}

// ByName returns the pool of a name, or nil.
func (ps *Set) ByName(name string) *Member {
	ps.mu.RLock()
	defer ps.mu.RUnlock()
	return ps.named[name]
}

// WaitUnwatched waits until all watches of pools have ended.
func (ps *Set) WaitUnwatched() {
	for _, p := range ps.AllPools() {
		p.Watching.Wait()
	}
}

// Close closes all pools.
func (ps *Set) Close() {
	for _, p := range ps.AllPools() {
		_ = p.Close()
	}
}

// Close ends the calls to the engine, and closes an engine that the control plane has opened.
func (p *Member) Close() error {
	p.Calls.Close()
	if p.Own {
		return p.Engine.Close()
	}
	return nil
}

// ByNameOrFirst returns the pool of a name, or else the first one. The ledger holds allocations
// only in pools of the set.
func (ps *Set) ByNameOrFirst(name string) *Member {
	if p := ps.ByName(name); p != nil {
		return p
	}
	return ps.AllPools()[0]
}

// ElasticPoolNames has the pools whose engines can change a gang that runs.
func ElasticPoolNames(cfg []Pool) map[string]bool {
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

// AskNodes asks all engines for their nodes and what they are. An engine that does not answer
// has no nodes until it does. It is an error if none answers.
func (ps *Set) AskNodes(ctx context.Context, clock clock, log *slog.Logger) (map[*Member][]fleet.Node, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		Member *Member
		nodes  []fleet.Node
		err    error
	}
	all := ps.AllPools()
	answers := make(chan answer, len(all))
	for _, p := range all {
		go func() {
			p.Status.NoteAsked(clock.Now())
			nodes, err := p.Engine.Nodes(ctx)
			info, err2 := p.Engine.Info(ctx)
			p.Status.NoteAnswer(clock.Now(), info, errors.Join(err, err2))
			answers <- answer{p, nodes, err}
		}()
	}
	out := map[*Member][]fleet.Node{}
	var errs []error
	var late <-chan time.Time // nil: nothing answered yet
	for n := 0; n < len(all); n++ {
		select {
		case a := <-answers:
			if a.err != nil {
				errs = append(errs, fmt.Errorf("list the nodes of pool %s: %w", a.Member.Name, a.err))
				continue
			}
			out[a.Member] = a.nodes
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

// DelegatedNames has the pools whose engines hand work to a scheduler of their own.
func (ps *Set) DelegatedNames() map[string]bool {
	out := map[string]bool{}
	for _, p := range ps.AllPools() {
		if p.Delegated {
			out[p.Name] = true
		}
	}
	return out
}

// AddressedNames has the pools whose engines give each task a network of its own: two jobs may listen
// on one port there.
func (ps *Set) AddressedNames() map[string]bool {
	out := map[string]bool{}
	for _, p := range ps.AllPools() {
		if a, ok := p.Engine.(engine.Addresser); ok && a.OwnAddresses() {
			out[p.Name] = true
		}
	}
	return out
}

// ForJob returns the pool that a job names, or why it cannot go there.
func (ps *Set) ForJob(spec *job.Spec) (*Member, error) {
	p := ps.ByName(spec.Pool)
	if p != nil && p.Leaving {
		p = nil
	}
	return ps.CheckAble(p, spec)
}

// CheckAble returns the pool that a job names if its engine can run such work at all; nil: there
// is no such pool.
func (ps *Set) CheckAble(p *Member, spec *job.Spec) (*Member, error) {
	if p == nil {
		return nil, fault.New(fault.NotFound, "there is no pool %s", spec.Pool).Advise("name one of %s", strings.Join(ps.ConfiguredNames(), ", "))
	}
	if gone, ok := p.Engine.(Missing); ok {
		return nil, gone.notConfigured()
	}
	if spec.Elastic() && !p.Elastic {
		return nil, fault.New(fault.Unsupported, "the engine of pool %s cannot change a gang that runs", p.Name).
			Advise("leave out elastic: the job then starts with as many nodes as are free, between its limits, and keeps them")
	}
	return p, nil
}

// IsGone reports whether a pool that a job names is not there, or is being taken away.
func (ps *Set) IsGone(name string) bool {
	if name == "" {
		return false
	}
	p := ps.ByName(name)
	return p == nil || p.Leaving || p.IsUnconfigured()
}

// ConfiguredNames lists the pools that are configured.
func (ps *Set) ConfiguredNames() []string {
	var out []string
	for _, p := range ps.AllPools() {
		if _, gone := p.Engine.(Missing); !gone {
			out = append(out, p.Name)
		}
	}
	return out
}

// NameTaken is the error for the name of a pool that there is already.
func NameTaken(name string) error {
	return fault.New(fault.Conflict, "there is a pool %s already", name).Advise("cox pool list shows it; take another name, or remove it first: cox pool remove %s", name)
}

// CheckName refuses what cannot be the name of a pool.
func CheckName(name string) error {
	ok := len(name) > 0 && len(name) <= 63 && strings.IndexFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.')
	}) < 0 && name[0] != '-' && name[0] != '.'
	if name == job.AnyPool {
		return fault.New(fault.Invalid, "a pool cannot be named %s: --pool any is any pool", name).Advise("take another name")
	}
	if !ok {
		return fault.New(fault.Invalid, "a pool cannot be named %.70q", name).Advise("use letters a to z, digits, - and ., 63 at most, and begin with a letter or digit")
	}
	return nil
}

// EngineFor is the engine of a job's pool; nil: there is no such pool.
func (ps *Set) EngineFor(spec *job.Spec) engine.Engine {
	if spec.Pool != "" && ps.ByName(spec.Pool) == nil {
		return nil
	}
	return ps.ByNameOrFirst(spec.Pool).Engine
}

// MaxSleep is how long nothing is to be asked of the engines: until the next heartbeat, if any
// engine has them, or the next comparison.
func (ps *Set) MaxSleep() time.Duration {
	if slices.ContainsFunc(ps.AllPools(), (*Member).HasHeartbeat) {
		return HeartbeatInterval
	}
	return CompareInterval
}
