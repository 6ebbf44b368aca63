package sched

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// This file moves running jobs so that the head of the queue fits, where enough is
// free and lies in pieces (account.Preemption.Defrag). A job moves only if it saves
// what it does (it has reported a checkpoint since it began, may be requeued, and is not elastic), and
// only to a place of its own that is found, and kept for it, before it is asked to stop
// (migration_target.go): it is stopped as a victim in mode checkpoint, waits again, and starts
// there. Which jobs move is for defrag_search.go and sched/defrag to say.
//
// What moves lose has to be less than what they gain: what the head asks for, for as
// long as it would wait otherwise. A job that was moved is left alone for a time, and
// while moves are under way no others are begun, so that nothing goes round.
//
// Not done where starts are planned node by node, while jobs are suspended (suspended.go), and for
// the head of the queue alone.
//
// Source: KAI's action consolidation; docs/explanation/defrag.md.

// defragState is the running jobs that move.
//
// Invariants: targets are in order of job, and each job that has one runs or is being
// stopped; savers and movers count what runs.
type defragState struct {
	rules   *defragRules       // nil: nothing is moved
	targets []*migrationTarget // by job
	savers  int                // runs that go on from what they saved
	movers  int                // runs that were asked to move

	proposal   *Proposal // nil: none
	approved   *Approved // in this step; nil: nothing
	tried      moveAttempt
	searchedAt Instant // when moves were looked for last
	searchAt   Instant // when they are to be looked for again; 0: when something has changed
}

// defragRules is what the rules say of moves.
type defragRules struct {
	automatic bool
	rest      Instant       // a job that was moved is left alone for so long
	grace     time.Duration // 0: the caller's own
	most      time.Duration // that a job may have instead
}

// defaultMoveRest is how long a job is left alone where the rules say nothing, and moveSearchEvery
// the time between two searches.
const (
	defaultMoveRest = Instant(time.Hour)
	moveSearchEvery = Instant(time.Second)
)

// newDefragRules compiles the rules; nil: nothing is moved.
func newDefragRules(p *account.Policy) *defragRules {
	if p == nil || p.Compat != "" || p.Preemption.Defrag != account.DefragAsk && p.Preemption.Defrag != account.DefragAutomatic {
		return nil
	}
	return &defragRules{
		automatic: p.Preemption.Defrag == account.DefragAutomatic,
		rest:      cmp.Or(Instant(p.Preemption.DefragRest), defaultMoveRest),
		grace:     time.Duration(p.Preemption.Grace), most: time.Duration(max(p.Preemption.Grace, p.Preemption.MaxGrace)),
	}
}

// isNeverMoved reports whether jobs of one policy are left alone by the rules: they run in
// a reservation, or their QOS or partition has the preemption mode off.
func (c *Core) isNeverMoved(t *effectivePolicy) bool {
	off := t.key.reservation != ""
	for i := range c.policy.QOS {
		off = off || c.policy.QOS[i].Name == t.key.qos && c.policy.QOS[i].PreemptMode == account.PreemptOff
	}
	for i := range c.policy.Partitions {
		off = off || c.policy.Partitions[i].Name == t.key.partition && c.policy.Partitions[i].PreemptMode == account.PreemptOff
	}
	return off
}

// resumesFromSave reports whether a run goes on from what it saved if it is started again.
func (r *run) resumesFromSave() bool {
	return r.nominee == nil && r.target == nil && !r.mayChangeSize() && !r.isAggregate() && r.spec != nil && r.spec.Requeue && r.move.savedAt > r.began
}

// noteCheckpoint counts a checkpoint that a running job reported.
func (c *Core) noteCheckpoint(r *run, at Instant) {
	before := r.resumesFromSave()
	r.move.savedAt = max(r.move.savedAt, at)
	if r.resumesFromSave() && !before {
		c.defrag.savers++
	}
	if c.defrag.rules != nil {
		c.generation++
		c.cycleDue = true
	}
}

// isMovable reports whether a run may be moved now.
func (p *schedulingCycle) isMovable(r *run) bool {
	if !r.resumesFromSave() || r.stopping || r.pause.suspended != nil || r.policy.neverMoved {
		return false
	}
	if r.spec.Wishful() { // it got what it wished for, or waited for it: elsewhere it might have to again
		return false
	}
	if since := addDuration(r.move.askedAt, time.Duration(p.defrag.rules.rest)); r.move.askedAt > 0 && since > p.now {
		if p.preempt.exemptUntil == 0 || since < p.preempt.exemptUntil {
			p.Core.preempt.exemptUntil = since
		}
		return false
	}
	return true
}

// moveAttempt says that a search was made for a job, and that nothing has changed since.
type moveAttempt struct {
	job             job.ID
	generation      uint64
	fitsWithLeavers bool // it fits once those have gone who go anyway
}

// isOutdated reports whether nothing moved for a job because those were enough who go anyway,
// and others have started or ended since.
func (t *moveAttempt) isOutdated(id job.ID, stirs uint64) bool {
	return t.fitsWithLeavers && t.job == id && t.generation != stirs
}

// defragFor has running jobs move so that the head of the queue starts, which does
// not fit, or proposes that. It reports whether they do.
func (p *schedulingCycle) defragFor(e *queuedJob) bool {
	if !e.mayReserve() { // what is proposed is for one behind it
		return false
	}
	if p.defrag.rules == nil || p.defrag.savers == 0 || len(p.defrag.targets) > 0 || len(p.suspended.jobs) > 0 || p.isConservative() {
		p.Core.defrag.proposal = nil
		return false
	}
	approved := p.defrag.approved != nil && p.defrag.approved.For == e.id
	if p.defrag.tried.job != e.id || p.defrag.tried.generation != p.generation {
		if p.now < p.defrag.searchedAt+moveSearchEvery && !approved {
			p.Core.defrag.searchAt = p.defrag.searchedAt + moveSearchEvery
			return false
		}
		p.Core.defrag.searchedAt, p.Core.defrag.proposal = p.now, nil
		m, anyway := p.findMoves(e)
		if m != nil && p.defrag.rules.automatic {
			return p.startMoves(e, m)
		} else if m != nil {
			p.Core.defrag.proposal = m
		}
		p.Core.defrag.tried = moveAttempt{e.id, p.generation, anyway}
	}
	return approved && p.defrag.proposal.approvedBy(p.defrag.approved) && p.startMoves(e, p.defrag.proposal)
}

// Move is one running job that moves.
type Move struct {
	Job  job.ID
	Home []fleet.Claim // where to
	Lost int64         // seconds of what it did that it does again, and those to start it
}

// approvedBy reports whether these are the very moves that somebody has approved, to the
// same places.
func (x *Proposal) approvedBy(a *Approved) bool {
	return x != nil && x.sameMoves(&Proposal{For: a.For, Claims: a.Claims, Moves: a.Moves})
}

// sameMoves reports whether two proposals are of the same moves. What these lose grows all
// the time.
func (x *Proposal) sameMoves(o *Proposal) bool {
	if x == nil || o == nil {
		return x == o
	}
	claim := func(a, b fleet.Claim) bool { // claims that were read may lack the pool
		return a.Node == b.Node && (a.Pool == b.Pool || a.Pool == "" || b.Pool == "") && a.Group == b.Group && a.Tasks == b.Tasks && slices.Equal(a.Devices, b.Devices)
	}
	return x.For == o.For && slices.EqualFunc(x.Claims, o.Claims, claim) && slices.EqualFunc(x.Moves, o.Moves, func(a, b Move) bool {
		return a.Job == b.Job && slices.EqualFunc(a.Home, b.Home, claim)
	})
}

// startMoves carries moves out: everybody's new place is held from here on. It reports
// whether the job is looked after: nominated, or at rest for a limit.
func (p *schedulingCycle) startMoves(e *queuedJob, m *Proposal) bool {
	if !p.quotaCovers(e.class, m.Claims) || !p.limitsPermit(e.class, m.Claims) {
		return true
	}
	grace := time.Duration(0)
	for _, x := range m.Moves {
		r := p.runs.byJob[x.Job]
		s := cmp.Or(r.policy.preemption, &preemptionRank{grace: p.defrag.rules.grace, most: p.defrag.rules.most})
		d := Preempt{Job: r.id, For: e.id, Mode: account.PreemptCheckpoint, Grace: s.graceOf(r.spec), Home: x.Home}
		grace = max(grace, d.Grace)
		p.markStopping(r.id)
		if r.move.startsJob == 0 {
			p.Core.defrag.movers++
		}
		r.move.startsJob = e.id
		p.holdTarget(r.id, r.spec, r.flavors, x.Home, p.now, endAfter(addDuration(p.now, d.Grace), max(r.spec.TimeLimit, 0)))
		p.out = append(p.out, d)
	}
	p.Core.defrag.proposal = nil
	p.planDirty = true
	n := &nomination{entry: e}
	n.await, n.additions = p.leavingFrom(m.Claims)
	p.nominateJob(n, m.Claims, grace)
	p.wakeFreed()
	return true
}

// renominateMoved nominates jobs anew for which others are stopping still: after a restart, or
// when a node was lost on which they were to start.
func (p *schedulingCycle) renominateMoved() {
	if p.defrag.movers == 0 || p.isConservative() {
		return
	}
	var ids []job.ID
	for _, chunk := range p.runs.ends.chunks {
		for _, r := range chunk {
			if r.move.startsJob != 0 && r.stopping && !slices.Contains(ids, r.move.startsJob) {
				ids = append(ids, r.move.startsJob)
			}
		}
	}
	for _, id := range ids {
		e := p.queue.jobs[id]
		if e == nil || e.blocked || e.nominee != nil || !p.passesGates(e.class) || e.class.jobs.firstJob() != e {
			continue
		}
		if m := p.placeAfterMoves(e); m != nil {
			p.startMoves(e, m)
		}
	}
}

// tellProposal tells of a proposal that has changed; told is what was told last.
func (c *Core) tellProposal(told *Proposal, out []Decision) []Decision {
	x := c.defrag.proposal
	if x != nil && (c.defrag.rules == nil || x.For != c.plan.job) {
		x = nil
	}
	switch {
	case x.sameMoves(told):
		x = told // as it was told, with what it lost then
	case x == nil:
		out = append(out, Proposal{})
	default:
		out = append(out, *x)
	}
	c.defrag.proposal, c.defrag.approved = x, nil
	return out
}
