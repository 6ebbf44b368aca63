package sched

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// This file lets a job that cannot start take the place of running ones. It refuses
// before it evicts: the job is placed, whole, on what would be free, and only then
// somebody is asked to go. What is freed is held for it from that instant on (it is
// nominated), so nothing else can slip in, and it starts when the last of them is
// proved gone. What a job of lower order was nominated for goes to one of higher
// order that cannot start otherwise.

// preemptState is who may take whose place, and who has taken one.
//
// Invariant: nobody is nominated who waits for nobody, and lifted is empty between two
// searches.
type preemptState struct {
	rules       *preemptionRules // nil: nobody takes anything
	eager       []*jobClass      // whose jobs may take from others; those with quotas are not listed, as they go in their turn
	nominees    []*nomination    // in the order in which they were made
	newNominees []*queuedJob     // nominated in this step
	lifted      []savedRow       // what a search for victims changed
	exemptUntil Instant          // when somebody who was passed over may be taken; 0: nobody was
}

// nomination is what is held for a job until those whose place it takes are gone.
// Its claims are held by a run of its own, beside theirs.
type nomination struct {
	entry     *queuedJob
	run       *run
	await     []job.ID         // that are being ended
	tail      Instant          // how long those may go on that it has suspended, after it
	additions []Member         // additions to others that are being ended
	stale     bool             // one of its nodes has changed: it has to be looked for anew
	target    *migrationTarget // that was kept for it because it moves; nil: it takes others' place
}

// tallyRun counts a run among those of its preemption rank, or no longer.
func (c *Core) tallyRun(r *run, n int) {
	c.generation++
	if n > 0 {
		r.search.unit = noUnit
		r.search.devices, r.search.weight = claimWeight(r)
	}
	if r.stopping {
		c.runs.stopping += n
	}
	if r.spec.Endless() {
		c.runs.open += n
	}
	if r.resumesFromSave() {
		c.defrag.savers += n
	}
	if r.move.startsJob != 0 {
		c.defrag.movers += n
	}
	c.countLent(r, n)
	c.countStanding(r, n)
}

// countStanding counts a run in the counters of its preemption rank.
func (c *Core) countStanding(r *run, n int) {
	if s := r.policy.preemption; s != nil && r.nominee == nil {
		s.runs += n
		s.held += int64(n) * r.search.devices
	}
}

// markStopping notes that the end of a running job has been asked for.
func (c *Core) markStopping(id job.ID) {
	if r := c.runs.byJob[id]; r != nil && r.nominee == nil {
		c.markRun(r)
		for _, a := range r.added {
			c.markRun(a)
		}
	}
}

func (c *Core) markRun(r *run) {
	if r.stopping {
		return
	}
	c.countLent(r, -1)
	r.stopping = true
	c.runs.stopping++
	c.generation++
	c.cycleDue = c.cycleDue || c.preempt.rules != nil || c.defrag.rules != nil || c.elastic.lent > 0 || r.spec != nil && r.spec.Elastic() // with what goes anyway, others may have to give less
}

// mayFindVictims reports whether a search for the first job of a class could find more than
// the last one did.
func (c *Core) mayFindVictims(l *jobClass, e *queuedJob) bool {
	return (c.elastic.lent > 0 || c.preempt.rules != nil && (c.preempt.rules.mayPreempt(l.key.policy.preemption) || len(c.preempt.nominees) > 0)) &&
		(l.searched != c.generation || l.searcher != e)
}

// preemptFor makes room for a job that does not fit, if it may take enough of what
// runs. It reports whether the job is looked after: nominated, or at rest for a limit.
func (p *schedulingCycle) preemptFor(e *queuedJob) bool {
	if !p.mayFindVictims(e.class, e) {
		return false
	}
	s := victimSearch{schedulingCycle: p, entry: e, kind: e.class.kind}
	claims := s.findVictims()
	if claims == nil {
		e.class.searched, e.class.searcher, e.class.fitsWithLeavers = p.generation, e, s.fitsWithLeavers
		return false
	}
	if p.preempt.rules == nil && p.isConservative() && !p.clearsOtherPlans(e, claims) {
		return false // until the plan is another one
	}
	if p.quotaCovers(e.class, claims) && p.limitsPermit(e.class, claims) {
		p.preemptChosen(e, claims, s.chosen)
	}
	return true // or it rests for what these claims would exceed
}

// preemptChosen carries out what a search found.
func (p *schedulingCycle) preemptChosen(e *queuedJob, claims []fleet.Claim, chosen []*run) {
	n := &nomination{entry: e}
	grace, tail := time.Duration(0), Instant(0)
	for _, r := range chosen {
		switch {
		case r.nominee != nil:
			r.nominee.target = nil // it is taken over
			p.dissolveNomination(r.nominee)
			continue
		case r.pause.suspended != nil:
			tail = never // others have its place too, and it goes on when the last of them is gone
			p.retainOnly(r)
			continue
		case r.of != nil:
			p.askAdditionBack(n, r, chosen, &grace)
			continue
		case !r.stopping:
			p.markStopping(r.id)
			d := p.Core.preemptDecision(r, e.id)
			grace = max(grace, d.Grace)
			p.out = append(p.out, d)
			r.pause.asked = d.Mode == account.PreemptSuspend
		}
		if r.pause.asked {
			tail = max(tail, r.timeLeft(p.now))
		}
		n.await = append(n.await, r.id)
		for _, a := range r.added {
			if !slices.Contains(chosen, a) {
				n.additions = append(n.additions, a.asMember())
			}
		}
	}
	p.planDirty = true
	n.tail = tail
	if len(n.await)+len(n.additions) == 0 {
		p.startBefore(e, claims, e.class.latestEnd(p.now), tail)
	} else {
		p.nominateJob(n, claims, grace)
	}
	p.wakeFreed()
}

// askAdditionBack asks for an addition back, if its job is not to go as a whole.
func (p *schedulingCycle) askAdditionBack(n *nomination, a *run, chosen []*run, grace *time.Duration) {
	if !a.stopping && !slices.Contains(chosen, a.of) {
		p.markRun(a)
		d := p.shrinkDecision(a, n.entry.id)
		*grace = max(*grace, d.Grace)
		p.out = append(p.out, d)
	}
	n.additions = append(n.additions, a.asMember())
}

// preemptDecision says how a job is taken back for another one.
func (c *Core) preemptDecision(r *run, by job.ID) Preempt {
	s := r.policy.preemption
	d := Preempt{Job: r.id, For: by, Mode: s.mode, Grace: s.grace}
	if r.spec != nil && !r.spec.Requeue && d.Mode != account.PreemptSuspend {
		d.Mode = account.PreemptCancel
	}
	if d.Mode == account.PreemptCheckpoint {
		d.Grace = s.graceOf(r.spec)
	}
	return d
}

// nominateJob holds claims for a job beside those who have them still.
func (p *schedulingCycle) nominateJob(n *nomination, claims []fleet.Claim, grace time.Duration) {
	e := n.entry
	if e.id == p.plan.job {
		p.dropReservation()
	}
	slices.Sort(n.await)
	n.run = &run{
		id: e.id, spec: e.spec, policy: p.policyWithLicense(e.spec, e.class.chosenLicense()), license: e.class.chosenLicense(),
		claims: claims, began: p.now, priority: e.priority, submitted: e.at,
		nominee: n, until: addTime(e.class.latestEnd(addDuration(p.now, grace)), n.tail), pause: runPause{tail: n.tail},
	}
	n.run.flavors = p.flavorsFor(e)
	if n.target != nil {
		n.run.flavors = n.target.flavors
	}
	p.dropPlannedStart(e)
	p.removeJob(e)
	e.nominee = n
	p.Core.preempt.nominees = append(p.preempt.nominees, n)
	p.holdRun(n.run)
	p.extra.takeStarted(p, claims, n.run.until)
	p.Core.preempt.newNominees = append(p.preempt.newNominees, e)
}

// dropNomination gives back what is held for a job.
func (c *Core) dropNomination(n *nomination) {
	c.unholdRun(n.run)
	c.releasePolicy(n.run.policy)
	n.entry.nominee = nil
	c.preempt.nominees = slices.DeleteFunc(c.preempt.nominees, func(o *nomination) bool { return o == n })
	c.planDirty = true
}

// dissolveNomination lets a nominated job wait like all others.
func (c *Core) dissolveNomination(n *nomination) {
	c.dropNomination(n)
	c.insertJob(n.entry)
	c.queue.fresh = append(c.queue.fresh, n.entry)
	if h := n.target; h != nil && !n.stale {
		c.holdTarget(h.job, n.entry.spec, h.flavors, h.run.claims, n.run.began, n.run.until)
	}
}

// startNominated starts nominated jobs whose victims are gone, and dissolves nominations on
// nodes that have changed: first, as those for whom others stop still are nominated anew.
func (p *schedulingCycle) startNominated() {
	p.nominateMoved()
	for _, n := range slices.Clone(p.preempt.nominees) {
		if n.stale {
			p.dissolveNomination(n)
		}
	}
	p.renominateMoved()
	for _, n := range slices.Clone(p.preempt.nominees) {
		switch {
		case slices.ContainsFunc(n.await, p.isLeaving), slices.ContainsFunc(n.additions, p.isShedding):
		case p.claimsReserved(n.entry.class, n.run.claims): // a reservation holds now, or will before it ends
			n.target = nil
			p.dissolveNomination(n)
		default:
			p.startBefore(n.entry, n.run.claims, n.entry.class.latestEnd(p.now), n.run.pause.tail)
		}
	}
}

// isLeaving reports whether a job holds something still that it was asked to give back.
func (p *schedulingCycle) isLeaving(id job.ID) bool {
	r := p.runs.byJob[id]
	return r != nil && r.stopping
}

// isShedding reports whether an addition that was asked back is held still.
func (c *Core) isShedding(m Member) bool {
	if r := c.runs.byJob[m.Job]; r != nil {
		a := r.additionOn(m.Node)
		return a != nil && a.stopping
	}
	return false
}

// Member is an addition to a job, by its first node.
type Member struct {
	Job  job.ID `json:"job"`
	Node string `json:"node"`
}

func (r *run) asMember() Member { return Member{r.id, r.claims[0].Node} }

// nodeChanged notes that a node has changed: what is held there for nominated jobs, or planned,
// may not be what they asked for any longer. Of jobs on adjoining nodes any change may be
// one, and so may one of another node of that name.
func (c *Core) nodeChanged(node string) {
	touches := func(e *queuedJob, claims []fleet.Claim) bool {
		return slices.ContainsFunc(claims, func(x fleet.Claim) bool { return x.Node == node }) ||
			slices.ContainsFunc(e.class.kind.shape.Groups, func(g class.Group) bool { return g.Adjoint })
	}
	for _, n := range c.preempt.nominees {
		n.stale = n.stale || touches(n.entry, n.run.claims)
	}
	for _, s := range c.backfill.starts {
		s.stale = s.stale || touches(s.e, s.claims)
	}
	if e := c.queue.jobs[c.plan.job]; e != nil && !c.backfill.wasOn && c.plan.profile == nil && touches(e, c.plan.claims) {
		c.plan = headReservation{version: c.plan.version + 1}
	}
	for _, h := range c.defrag.targets {
		h.stale = h.stale || slices.ContainsFunc(h.run.claims, func(x fleet.Claim) bool { return x.Node == node })
	}
}

// liftRun takes a run off the state of the moment, or puts it back. Nothing else is
// told of it: that is undone before anybody looks.
func (c *Core) liftRun(r *run, sign int) {
	for i, pos := range r.at {
		if pos >= 0 {
			c.preempt.lifted = append(c.preempt.lifted, savedRow{pos, *c.fleet.state.Row(int(pos))})
			c.fleet.state.Change(c.fleet.table, int(pos), &r.claims[i], sign)
			if r.yieldsSuspended() {
				b := retainedClaim(&r.claims[i])
				c.fleet.state.Change(c.fleet.table, int(pos), &b, -sign)
			}
			c.fleet.cells.Update(int(pos))
		}
	}
}

// savedRow is a row as it stood before something was lifted off it.
type savedRow struct {
	pos int32
	row index.Row
}

// undoLifts puts everything back as it was.
func (c *Core) undoLifts() { c.undoLiftsTo(0) }

// undoLiftsTo puts back what was changed since there were so many changes.
func (c *Core) undoLiftsTo(mark int) {
	for _, w := range slices.Backward(c.preempt.lifted[mark:]) {
		c.fleet.state.Put(int(w.pos), &w.row)
		c.fleet.cells.Update(int(w.pos))
	}
	clear(c.preempt.lifted[mark:])
	c.preempt.lifted = c.preempt.lifted[:mark]
}

// startOutranking has jobs behind the head take what they may: each that outranks the head,
// so that it could take the head's place if that ran already; and where starts are
// planned node by node, everybody before it for whom one is.
func (p *schedulingCycle) startOutranking(head *queuedJob) bool {
	if p.preempt.rules == nil {
		return false
	}
	var lines []*jobClass
	for _, l := range p.preempt.eager {
		if e := l.jobs.firstJob(); e != nil && e != head && l.headsIndex >= 0 && p.mayFindVictims(l, e) && p.jobOutranks(e, head) && p.outranksPlanned(e) {
			lines = append(lines, l)
		}
	}
	slices.SortFunc(lines, func(a, b *jobClass) int { return a.jobs.firstJob().compareOrder(b.jobs.firstJob()) })
	for _, l := range lines {
		if !p.passesGates(l) {
			continue
		}
		e := l.jobs.firstJob()
		if claims := p.placeUnreserved(l); claims != nil {
			if p.quotaCovers(l, claims) && p.limitsPermit(l, claims) {
				p.startJob(e, claims)
				p.planDirty = true
				return true
			}
			continue
		}
		if p.preemptFor(e) {
			return true
		}
	}
	return false
}

// yieldToOutranking starts a job that outranks a waiting one and would take its place as soon as
// that ran, if it fits as well: so that nobody is started to be ended at once. It
// reports whether there was one.
func (p *schedulingCycle) yieldToOutranking(e *queuedJob) bool {
	if p.preempt.rules == nil || len(p.preempt.eager) == 0 || e.class.key.policy.preemption.exempt > 0 {
		return false
	}
	var best *queuedJob
	for _, l := range p.preempt.eager {
		o := l.jobs.firstJob()
		if o != nil && o != e && l.headsIndex >= 0 && !l.kind.full && p.jobOutranks(o, e) && (best == nil || o.compareOrder(best) < 0) && p.passesGates(l) && p.outranksPlanned(o) && p.placeUnreserved(l) != nil {
			best = o
		}
	}
	if best == nil {
		return false
	}
	claims := p.placeUnreserved(best.class)
	if p.quotaCovers(best.class, claims) && p.limitsPermit(best.class, claims) {
		p.startJob(best, claims)
		p.planDirty = true
	}
	return true // if not, it rests and is not found again
}

// jobOutranks reports whether a waiting job outranks another one.
func (p *schedulingCycle) jobOutranks(e, o *queuedJob) bool {
	return p.preempt.rules != nil && p.preempt.rules.mayTakeFrom(e.class.key.policy.preemption, e.priority, o.class.key.policy.preemption, o.priority)
}

// waitReason is what a nominated job waits for.
func (n *nomination) waitReason() reason.Reason {
	who := slices.Clone(n.await)
	for _, m := range n.additions {
		who = append(who, m.Job)
	}
	slices.Sort(who)
	who = slices.Compact(who)
	return reason.Reason{Code: reason.Preempting, Job: uint64(who[0]), Ahead: len(who) - 1}
}
