package control

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
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
	if !p.Delegated {
		return nodes
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
		p.real.core.Step(l.coreInstant(), events...)
		l.fleet++ // what was refused may fit now
	}
	p.real.nodes = all
	return []fleet.Node{fold.Node(p.Name, l.unsharedNodes(p, all))}
}

// unsharedNodes are those of a pool's nodes that no other pool has: the others count there.
func (l *loop) unsharedNodes(p *pool, nodes []fleet.Node) []fleet.Node {
	m := machinesBut(p.Name, l.state.nodes, nodes)
	return slices.DeleteFunc(slices.Clone(nodes), func(n fleet.Node) bool {
		_, twin := m.otherPoolNode(&n)
		return twin != nil
	})
}

// coreSpec is what the core is told that a job asks for. The caller holds the lock.
func (s *state) coreSpec(f *sharedSpec) *job.Spec {
	if !s.delegatedPools[f.spec.Pool] {
		return &f.spec
	}
	if f.folded == nil {
		f.folded = fold.Spec(&f.spec)
	}
	return f.folded
}

// aggregateSpec is what the core is asked about for a job that is not kept. The caller holds the lock.
func (c *Control) aggregateSpec(spec *job.Spec) *job.Spec {
	if c.state.delegatedPools[c.poolOf(spec)] {
		return fold.Spec(spec)
	}
	return spec
}

// whatIfSpec is takes for a specification of the caller's own, whose pool is filled in.
func (c *Control) whatIfSpec(spec *job.Spec) *job.Spec {
	c.state.RLock()
	defer c.state.RUnlock()
	spec.Pool = c.poolOf(spec)
	return c.aggregateSpec(spec)
}

// poolOf is the pool of a job.
func (c *Control) poolOf(spec *job.Spec) string {
	return cmp.Or(spec.Pool, c.pools.allPools()[0].Name)
}

// whyInfeasible says what keeps a job from ever running where it is to run; nil: nothing.
func (c *Control) whyInfeasible(spec *job.Spec) []reason.Reason {
	p := c.pools.byName(c.poolOf(spec))
	if p == nil || !p.Delegated {
		return c.core.Feasible(spec)
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

// isDelegated reports whether claims are on a pool as a whole.
func isDelegated(claims []fleet.Claim) bool { return len(claims) > 0 && fold.Is(claims[0].Node) }

// noteNodes notes on which nodes an attempt is, where its claims do not say it.
func (a *attempt) noteNodes(nodes []string) {
	if len(nodes) > 0 && isDelegated(a.claims) {
		a.seen = fold.Seen(a.claims, nodes)
	}
}

// chargedFrom is from when on an attempt is charged that started on a pool as a whole: not
// from before it was handed over, whatever the clock there says.
func (a *attempt) chargedFrom(started int64) sched.Instant {
	return sched.Instant(max(started, a.handed))
}

// nodesIn are the nodes of a report.
func nodesIn(r *engine.Report) []string {
	out := make([]string, len(r.Nodes))
	for i := range r.Nodes {
		out[i] = r.Nodes[i].Node
	}
	return out
}

// startedWithUsage is the record of a start, of an attempt that has not ended: what it used before its
// start was heard of is in no record of usage.
func (l *loop) startedWithUsage(e *jobRecord, r *engine.Report) started {
	v := startedOf(e, r)
	if isDelegated(e.last.claims) {
		v.At, v.Used = l.core.Late(e.id, e.last.chargedFrom(toNanos(r.Started)), l.keptAt())
	}
	return v
}

// startedOf is the record of a start.
func startedOf(e *jobRecord, r *engine.Report) started {
	v := started{Ref: r.Ref, Started: r.Started}
	if isDelegated(e.last.claims) {
		v.Nodes = nodesIn(r)
	}
	return v
}

// waitsInPool reports whether a job was handed over and has no nodes yet: it waits in the
// queue of its pool's own scheduler.
func (e *jobRecord) waitsInPool() bool {
	return e.state == job.Running && e.flags&job.Configuring != 0 && e.last.handed != 0 && e.lastReport().Phase < engine.Ready
}

// poolWaitReason is the reason why it waits, in that scheduler's words.
func (e *jobRecord) poolWaitReason() reason.Reason {
	r := e.lastReport()
	word, _, _ := strings.Cut(strings.Trim(r.Message, "()"), ",")
	if strings.ContainsAny(word, " \t\n") { // it is no word of a scheduler's
		word = ""
	}
	at := e.last.handed / int64(time.Second)
	return reason.Reason{Code: reason.Elsewhere(word), Holder: e.last.pool, Resource: r.Native, Want: r.Message, Until: at, Since: at}
}

// statusText is a job's state in messages that refuse something.
func (e *jobRecord) statusText() string {
	if e.waitsInPool() {
		return "handed over to pool " + e.last.pool
	}
	return e.state.String()
}

// refuseHandedOver refuses what cannot be changed of a job that stands in another scheduler's queue.
func (e *jobRecord) refuseHandedOver(what string) error {
	return fault.New(fault.Conflict, "the %s of job %s cannot change now: it stands in the queue of pool %s, as it was handed over", what, e.Name(), e.last.pool).
		Advise("take it back and change it: cox hold %s, then the change, then cox release %s", e.Name(), e.Name())
}

// extendHandedOver puts off when handed-over jobs are to end that ought to have ended by now and have not
// begun: their limits count from the start.
func (l *loop) extendHandedOver() {
	if len(l.state.delegatedPools) == 0 {
		return
	}
	now := toNanos(l.cfg.Clock.Now())
	for _, a := range l.state.ledger.Live() {
		e := l.state.jobs[a.Job]
		if e == nil || e.last == nil || e.last.handed == 0 || e.flags&job.Configuring == 0 {
			continue
		}
		limit := int64(e.timeLimit())
		if limit == 0 || now < max(e.last.handed, e.last.renewed)+limit {
			continue
		}
		e.last.renewed = now
		l.state.events = append(l.state.events, sched.Extended{Job: e.id, Until: sched.Instant(now + limit)})
	}
}
