package control

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/fold"
)

// This file is about pools whose engine hands work to a scheduler of its own. To the core
// such a pool is one node, and a job for it one claim on that (sched/fold): it decides
// whether and in which order jobs are handed over. Whether a job can ever run is asked of
// the real nodes.

// realNodes is what a pool that is one node to the core has in truth.
type realNodes struct {
	nodes []fleet.Node // by name; never written in place
	core  *sched.Core  // knows these nodes and nothing else; nil: none were told
}

// aggregateNodes takes in the nodes of a pool, and returns those that the core is to know.
func (l *loop) aggregateNodes(p *pool, nodes []fleet.Node) []fleet.Node {
	known, changed := p.aggregateNodes(nodes, l.state.Nodes, l.coreInstant)
	if changed {
		l.fleet++ // what was refused may fit now
	}
	return known
}

// aggregateNodes takes in the nodes of a pool, and returns those that the core is to know: one
// that stands for all of them where the engine's own scheduler chooses. others are the nodes
// of all pools. changed says that the real nodes are others than before.
func (p *pool) aggregateNodes(nodes []fleet.Node, others *fleet.ByNode[fleet.Node], now func() sched.Instant) (known []fleet.Node, changed bool) {
	if !p.Delegated {
		return nodes, false
	}
	if p.real.core == nil {
		p.real.core = sched.New(sched.Config{})
	}
	all := slices.Clone(nodes)
	slices.SortFunc(all, func(a, b fleet.Node) int { return cmp.Compare(a.Name, b.Name) })
	all = slices.CompactFunc(all, func(a, b fleet.Node) bool { return a.Name == b.Name })
	was := make(map[string]*fleet.Node, len(p.real.nodes))
	for i := range p.real.nodes {
		was[p.real.nodes[i].Name] = &p.real.nodes[i]
	}
	var events []sched.Event
	for i := range all {
		n := &all[i]
		n.Pool = p.Name
		if old := was[n.Name]; old == nil || !equalNodes(old, n) {
			events = append(events, sched.NodeSet{Node: *n})
		}
		delete(was, n.Name)
	}
	for name := range was {
		events = append(events, sched.NodeRemoved{Pool: p.Name, Name: name})
	}
	if len(events) > 0 {
		p.real.core.Step(now(), events...)
	}
	p.real.nodes = all
	return []fleet.Node{fold.Node(p.Name, p.unsharedNodes(all, others))}, len(events) > 0
}

// unsharedNodes are those of a pool's nodes that no other pool has: the others count there.
func (p *pool) unsharedNodes(nodes []fleet.Node, others *fleet.ByNode[fleet.Node]) []fleet.Node {
	m := machinesBut(p.Name, others, nodes)
	return slices.DeleteFunc(slices.Clone(nodes), func(n fleet.Node) bool {
		_, twin := m.otherPoolNode(&n)
		return twin != nil
	})
}

// aggregateSpec is what the core is asked about for a job that is not kept. The caller holds the lock.
func (c *Control) aggregateSpec(spec *job.Spec) *job.Spec {
	if c.state.DelegatedPools[c.pools.nameOf(spec)] {
		return fold.Spec(spec)
	}
	return spec
}

// whatIfSpec is takes for a specification of the caller's own, whose pool is filled in.
func (c *Control) whatIfSpec(spec *job.Spec) *job.Spec {
	c.state.RLock()
	defer c.state.RUnlock()
	spec.Pool = c.pools.nameOf(spec)
	return c.aggregateSpec(spec)
}

// nameOf is the pool of a job.
func (ps *pools) nameOf(spec *job.Spec) string {
	return cmp.Or(spec.Pool, ps.allPools()[0].Name)
}

// whyInfeasible says what keeps a job from ever running where it is to run; nil: nothing. core
// knows the nodes of all pools, those of a delegated pool as one.
func (ps *pools) whyInfeasible(core *sched.Core, spec *job.Spec) []reason.Reason {
	p := ps.byName(ps.nameOf(spec))
	if p == nil || !p.Delegated {
		return core.Feasible(spec)
	}
	if p.real.core == nil {
		return nil // nobody knows
	}
	return p.real.core.Feasible(spec)
}

// Seen lists the real nodes of a pool that is one node to the core, by name, as its engine
// last said; false: it is not such a pool. They are not to be written to.
func (c *Control) Seen(pool string) ([]fleet.Node, bool) {
	c.state.RLock()
	defer c.state.RUnlock()
	p := c.pools.byName(pool)
	if p == nil || !p.Delegated {
		return nil, false
	}
	return p.real.nodes, true
}

// startedWithUsage is the record of a start, of an attempt that has not ended: what it used before its
// start was heard of is in no record of usage.
func (l *loop) startedWithUsage(e *state.JobRecord, r *engine.Report) state.Started {
	v := startedOf(e, r)
	if state.IsDelegated(e.Last.Claims) {
		v.At, v.Used = l.core.Late(e.ID, e.Last.ChargedFrom(state.ToNanos(r.Started)), l.keptAt())
	}
	return v
}

// startedOf is the record of a start.
func startedOf(e *state.JobRecord, r *engine.Report) state.Started {
	v := state.Started{Ref: r.Ref, Started: r.Started}
	if state.IsDelegated(e.Last.Claims) {
		v.Nodes = state.NodesIn(r)
	}
	return v
}

// extendHandedOver puts off when handed-over jobs are to end that ought to have ended by now and have not
// begun: their limits count from the start.
func (l *loop) extendHandedOver() {
	if len(l.state.DelegatedPools) == 0 {
		return
	}
	now := state.ToNanos(l.cfg.Clock.Now())
	for _, a := range l.state.Ledger.Live() {
		e := l.state.Jobs[a.Job]
		if e == nil || e.Last == nil || e.Last.Handed == 0 || e.Flags&job.Configuring == 0 {
			continue
		}
		limit := int64(e.TimeLimit())
		if limit == 0 || now < max(e.Last.Handed, e.Last.Renewed)+limit {
			continue
		}
		e.Last.Renewed = now
		l.state.Events = append(l.state.Events, sched.Extended{Job: e.ID, Until: sched.Instant(now + limit)})
	}
}
