package control

import (
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
)

// This file is about pools whose engine hands work to a scheduler of its own. To the core
// such a pool is one node, and a job for it one claim on that (sched/fold): it decides
// whether and in which order jobs are handed over. Whether a job can ever run is asked of
// the real nodes.

// aggregateNodes takes in the nodes of a pool, and returns those that the core is to know.
func (l *loop) aggregateNodes(p *pools.Member, nodes []fleet.Node) []fleet.Node {
	known, changed := p.AggregateNodes(nodes, l.state.Nodes, l.coreInstant)
	if changed {
		l.fleet++ // what was refused may fit now
	}
	return known
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
