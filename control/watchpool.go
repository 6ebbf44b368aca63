package control

import (
	"context"
	"errors"
	"slices"

	"github.com/coxswain-sched/coxswain/control/dispatch"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/reconcile"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/ledger"
	"github.com/coxswain-sched/coxswain/sched"
)

// poolOfClaims is the name of the pool that has all nodes of some claims.
func (l *loop) poolOfClaims(claims []fleet.Claim) string {
	if len(claims) > 0 {
		if k, ok := l.state.Nodes.Find(claims[0].Key()); ok && l.pools.ByName(k.Pool) != nil {
			return k.Pool
		}
	}
	return l.pools.AllPools()[0].Name
}

// callsOf returns the calls to the engine that runs an allocation's attempt.
func (l *loop) callsOf(a ledger.Allocation) *dispatch.Dispatcher {
	return l.pools.ByNameOrFirst(a.Pool).Calls
}

// callsFor returns the calls to the engine that runs a job's present attempt and its additions.
func (l *loop) callsFor(e *state.JobRecord) *dispatch.Dispatcher {
	return l.pools.ByNameOrFirst(e.Last.Pool).Calls
}

// takeNodes takes in what an engine says of its nodes.
func (l *loop) takeNodes(p *pools.Member, nodes []fleet.Node) {
	if p.Delegated {
		if p.TakeRealNodes(nodes, l.coreInstant) {
			l.fleet++ // what was refused may fit now
			l.indexMachines()
		}
		nodes = []fleet.Node{p.AggregateNode(l.state.WhyNotOwned)}
	}
	l.setNodes(p, nodes)
}

// setNodes takes in the nodes of a pool that the core is to know. A node on a machine that another pool owns
// is one of them: jobs that run there by then go on, and no others start.
func (l *loop) setNodes(p *pools.Member, nodes []fleet.Node) {
	s := l.state
	p.Known = true
	seen := make(map[string]bool, len(nodes))
	var changed []fleet.NodeKey
	moved := false // other nodes, or other machines of theirs
	for _, n := range nodes {
		n.Pool = p.Name
		seen[n.Name] = true
		if old, known := s.Nodes.Get(n.Key()); !known || !pools.EqualNodes(&old, &n) {
			s.Nodes.Set(n.Key(), n)
			changed = append(changed, n.Key())
			moved = moved || !known || !slices.Equal(old.Hosts, n.Hosts)
			s.Ports.MarkStale()
		}
	}
	keys := s.Nodes.Keys()
	if moved = moved || slices.ContainsFunc(keys, func(k fleet.NodeKey) bool { return k.Pool == p.Name && !seen[k.Name] }); moved {
		l.indexMachines()
	}
	for _, k := range changed {
		l.tellNode(k)
	}
	for _, k := range keys {
		if k.Pool == p.Name && !seen[k.Name] {
			l.state.Nodes.Delete(k)
			s.Ports.MarkStale()
			l.fleet++
			s.Ledger.RemoveNode(k)
			s.Events = append(s.Events, sched.NodeRemoved{Pool: k.Pool, Name: k.Name})
		}
	}
}

// compareEngines asks each engine, or those of the named pools, for everything it has, apart
// from the loop, and looks into differences from the ledger as it was before.
func (l *loop) compareEngines(of ...*pools.Member) {
	l.extendHandedOver()
	taken := map[*pools.Member][]ledger.Allocation{}
	for _, a := range l.state.Ledger.Live() {
		p := l.pools.ByNameOrFirst(a.Pool)
		if a.Adds == 0 && l.state.Jobs[a.Job].Flags&job.Configuring == 0 || !p.Calls.Busy(reconcile.Ref(a)) {
			taken[p] = append(taken[p], a) // others are still on their way to the engine
		}
	}
	for _, p := range l.pools.AllPools() {
		if len(of) > 0 && !slices.Contains(of, p) {
			continue
		}
		if !p.Asking.CompareAndSwap(false, true) { // it has not answered yet, or with what was before
			if len(of) == 0 {
				continue
			}
			p.AskAgain.Store(true)
			if !p.Asking.CompareAndSwap(false, true) {
				continue
			}
		}
		l.helpers.Go(func() {
			p.AskAgain.Store(false)
			l.askAll(p, taken[p])
			p.Asking.Store(false)
			if p.AskAgain.Load() {
				_ = l.postMessage(l.ctx, message{run: func(l *loop) { l.askAgain(p) }}) // a closed loop hears nothing more
			}
		})
	}
}

// askAgain is compareEngines for a pool that may have been removed meanwhile.
func (l *loop) askAgain(p *pools.Member) {
	if l.pools.ByName(p.Name) == p {
		l.whileLeading(func() { l.compareEngines(p) })
	}
}

// askAll is compareEngines for one pool.
func (l *loop) askAll(p *pools.Member, taken []ledger.Allocation) {
	p.Status.NoteAsked(l.cfg.Clock.Now())
	info, failed := p.Engine.Info(l.ctx)
	if failed != nil {
		p.Status.NoteFailure(failed) // what comes next may hang for longer
	}
	nodes, err := p.Engine.Nodes(l.ctx)
	if err == nil {
		_ = l.postMessage(l.ctx, message{run: func(l *loop) {
			l.state.Lock()
			defer l.state.Unlock()
			if l.pools.ByName(p.Name) == p { // else it was removed while it was asked
				l.takeNodes(p, nodes)
				l.claimMachines(p)
			}
		}})
	}
	failed = errors.Join(failed, err)
	reports, err := p.Engine.List(l.ctx)
	p.Status.NoteAnswer(l.cfg.Clock.Now(), info, errors.Join(failed, err))
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

// askHeartbeats asks engines for a heartbeat, apart from the loop. An engine that has one and
// had not answered before is asked for everything again.
func (l *loop) askHeartbeats() {
	for _, p := range l.pools.AllPools() {
		q, ok := p.Engine.(engine.Pulser)
		if !ok || !p.HeartbeatPending.CompareAndSwap(false, true) {
			continue // the last question waits for its answer
		}
		p.Status.NoteHeartbeatAsked(l.cfg.Clock.Now())
		l.helpers.Go(func() {
			defer p.HeartbeatPending.Store(false)
			ctx, cancel := context.WithTimeout(l.ctx, pools.HeartbeatTimeout)
			defer cancel()
			err := q.Pulse(ctx)
			if p.Status.NoteHeartbeat(l.cfg.Clock.Now(), err) {
				_ = l.postMessage(l.ctx, message{run: func(l *loop) { l.askAgain(p) }}) // a closed loop hears nothing more
			}
		})
	}
}

// startedWithUsage is the payload for the start of an attempt that has not ended, with the usage
// before its start was heard of, which no other record has.
func (l *loop) startedWithUsage(e *state.JobRecord, r *engine.Report) state.Started {
	v := startedOf(e, r)
	if state.IsDelegated(e.Last.Claims) {
		v.At, v.Used = l.core.Late(e.ID, e.Last.ChargedFrom(state.ToNanos(r.Started)), l.keptAt())
	}
	return v
}

// startedOf is the payload for the start of an attempt.
func startedOf(e *state.JobRecord, r *engine.Report) state.Started {
	v := state.Started{Ref: r.Ref, Started: r.Started}
	if state.IsDelegated(e.Last.Claims) {
		v.Nodes = state.NodesIn(r)
	}
	return v
}

// extendHandedOver puts off the expected end of handed-over jobs that have not begun: their
// limits count from the start.
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
