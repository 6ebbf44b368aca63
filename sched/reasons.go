package sched

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// Reasons lists every gate that holds a queued job, the first blocker first; nil
// if the job is not queued. It evaluates the present state and changes nothing.
func (c *Core) Reasons(now Instant, id job.ID) []reason.Reason {
	e := c.queue.jobs[id]
	if e == nil {
		return nil
	}
	var out []reason.Reason
	if e.nominee != nil {
		why := e.nominee.waitReason()
		why.Since = e.since
		return []reason.Reason{why}
	}
	if e.blocked {
		out = append(out, *e.gate)
	}
	ahead := c.aheadReason(e)
	leads := !e.blocked && e.class.jobs.firstJob() == e
	if !leads && ahead.Code != reason.None {
		out = append(out, ahead)
	}
	if why := c.overQuota(e.class); why.Code != reason.None {
		out = append(out, why)
	}
	if for_, why := c.thresholdGate(e.class); for_ != toLookAt {
		if out = append(out, why); !e.blocked {
			out[0], out[len(out)-1] = why, out[0]
		}
	}
	if limits := c.limitReasons(e.class); len(limits) > 0 {
		if len(out) > 0 && !e.blocked && e.class.waiting == forLimit {
			out = append(limits, out...) // those before it in line wait for the same
		} else {
			out = append(out, limits...)
		}
	}
	if _, why := (&schedulingCycle{Core: c, now: now}).reservationGate(e.class); why.Code != reason.None {
		out = append(out, why)
	}
	insists := c.insistReason(e)
	if !c.fitsFleet(e.class.kind) {
		if insists.Code != reason.None {
			out = append(out, insists)
			insists = reason.Reason{}
		}
		out = append(out, place.Never(c.fleet.table, e.class.kind.shape, false)...)
	} else if missing := c.missingNow(e.class.kind); len(missing) > 0 {
		if leads && e.class.waiting == forNodes && e.class.why.Code == reason.Endless {
			out = append(out, e.class.why)
		}
		for _, why := range missing {
			out = append(out, c.nameHolder(why))
		}
	} else if p := (&schedulingCycle{Core: c, now: now}); c.backfill.wasOn {
		if why, kept := p.excludingReservation(e.class); kept {
			out = append(out, why)
		} else {
			out = append(out, p.planConflict(e))
		}
	} else if c.plan.job != 0 && c.plan.job != id {
		out = append(out, reason.Reason{Code: reason.Reserved, Job: uint64(c.plan.job)})
	}
	if insists.Code != reason.None {
		out = append(out, insists)
	}
	if leads && ahead.Code != reason.None {
		out = append(out, ahead)
	}
	if len(out) == 0 && e.class.waiting != toLookAt && e.class.why.Code != reason.None {
		out = append(out, e.class.why) // what it was told: a plan that is not kept (compat)
	}
	if len(out) > 0 {
		out[0].Since = floorSeconds(now)
		if e.told != nil && sameGate(out[0], *e.told) {
			out[0].Since = e.since
		}
	}
	return out
}

// missingNow is what is missing for a kind to start on what is free, or nil (place.Now).
func (c *Core) missingNow(k *kind) []reason.Reason {
	q := c.quickPlacement(k)
	if q == nil || !q.Countable() {
		return place.Now(c.fleet.table, c.fleet.state, k.shape)
	}
	if fits, sure := q.Fits(nil); !sure {
		return place.Now(c.fleet.table, c.fleet.state, k.shape)
	} else if fits {
		return nil
	}
	why := q.Missing()
	why.Nodes = q.Takers()
	return []reason.Reason{why}
}

// manyLines is how many classes there are at most for jobs to be counted that are before
// one of them each time that is asked.
const manyLines = 512

// aheadReason counts the jobs before an entry that may be considered. Of very many classes it
// does not: Ahead is 0 then, and Job the first of the queue.
func (c *Core) aheadReason(e *queuedJob) reason.Reason {
	if len(c.queue.classes) > manyLines {
		r := c.behindReason(e)
		if r.Code != reason.None && len(c.queue.heads) > 0 {
			r.Job = uint64(c.queue.heads[0].jobs.firstJob().id)
		}
		return r
	}
	r := reason.Reason{Code: reason.Priority}
	var first *queuedJob
	for _, l := range c.queue.classes {
		if l.jobs.len() == 0 {
			continue
		}
		i := l.jobs.countAhead(e)
		r.Ahead += i
		if i > 0 && (first == nil || l.jobs.firstJob().compareOrder(first) < 0) {
			first = l.jobs.firstJob()
		}
	}
	if first == nil {
		return reason.Reason{}
	}
	r.Job = uint64(first.id)
	return r
}

// behindReason is Priority for an entry that has others before it. How many, and who, is for
// Reasons to say: it changes all the time.
func (c *Core) behindReason(e *queuedJob) reason.Reason {
	first := e.class.jobs.firstJob()
	is := first != nil && first != e && first.compareOrder(e) < 0 || len(c.queue.heads) > 0 && c.queue.heads[0].jobs.firstJob().compareOrder(e) < 0
	for _, l := range c.queue.classes {
		if is {
			return reason.Reason{Code: reason.Priority}
		}
		is = l.jobs.len() > 0 && l.jobs.firstJob().compareOrder(e) < 0
	}
	if is {
		return reason.Reason{Code: reason.Priority}
	}
	return reason.Reason{}
}

// Standing says of each job in the queue that may be considered how many such jobs
// are before it.
func (c *Core) Standing() map[job.ID]int {
	all := make([]*queuedJob, 0, len(c.queue.jobs))
	for _, l := range c.queue.classes {
		all = append(all, l.jobs.allJobs()...)
	}
	slices.SortFunc(all, (*queuedJob).compareOrder)
	out := make(map[job.ID]int, len(all))
	for i, e := range all {
		out[e.id] = i
	}
	return out
}

// tellWaits tells the first reasons that changed, by job number.
func (c *Core) tellWaits(now Instant) []Decision {
	var out []Decision
	for _, l := range c.queue.touched {
		l.touched = false
		first := l.jobs.firstJob()
		if old := l.leader; old != nil && old != first && old.class == l && !old.gone && !old.blocked && old.nominee == nil {
			out = c.tellReason(old, now, c.behindReason(old), out)
		}
		l.leader = first
		switch {
		case first == nil:
		case l.waiting != toLookAt && l.why.Code != reason.None:
			out = c.tellReason(first, now, l.why, out)
		default:
			out = c.tellReason(first, now, c.behindReason(first), out)
		}
	}
	c.queue.touched = c.queue.touched[:0]
	for _, e := range c.queue.fresh {
		if !e.gone && !e.blocked && e.nominee == nil && e.class.leader != e {
			out = c.tellReason(e, now, c.behindReason(e), out)
		}
	}
	c.queue.fresh = c.queue.fresh[:0]
	for _, e := range c.preempt.newNominees {
		if e.nominee != nil {
			out = c.tellReason(e, now, e.nominee.waitReason(), out)
		}
	}
	c.preempt.newNominees = c.preempt.newNominees[:0]
	slices.SortStableFunc(out, func(a, b Decision) int { return cmp.Compare(a.(Wait).Job, b.(Wait).Job) })
	return out
}

// tellReason appends a Wait if the job's first reason is another one than it was told.
func (c *Core) tellReason(e *queuedJob, now Instant, why reason.Reason, out []Decision) []Decision {
	if e.told != nil && sameGate(*e.told, why) || e.told == nil && why.Code == reason.None {
		return out
	}
	why.Since = floorSeconds(now)
	told := why
	if why.Code == reason.Priority { // who is ahead, and how many, is no part of what was told
		told.Ahead, told.Job = 0, 0
	}
	e.told, e.since = c.shareReason(told), why.Since
	return append(out, Wait{Job: e.id, Why: why})
}

// shareReason keeps one copy of a reason that many jobs are told in a row.
func (c *Core) shareReason(why reason.Reason) *reason.Reason {
	why.Since = 0
	for i, r := range c.queue.sharedReasons {
		if r != nil && *r == why {
			return r
		}
		if r == nil || i == len(c.queue.sharedReasons)-1 {
			copy(c.queue.sharedReasons[1:i+1], c.queue.sharedReasons[:i])
			break
		}
	}
	c.queue.sharedReasons[0] = &why
	return c.queue.sharedReasons[0]
}

// sameGate reports whether two reasons are the same gate. How much is missing, and
// how many jobs are before it, changes all the time and is no new reason. How many nodes are
// needed is part of the gate where the pool has too few: it is one group's number, or that of all.
func sameGate(a, b reason.Reason) bool {
	return (a.Need == b.Need || a.Code != reason.NodeCount) && a.Code == b.Code && a.Resource == b.Resource && a.Want == b.Want && a.Holder == b.Holder && a.Until == b.Until &&
		(a.Job == b.Job || a.Code == reason.Priority)
}

// tellPromise tells the head what is reserved for it, if that changed, and the job
// before it that it has lost its promise.
func (c *Core) tellPromise(out []Decision) []Decision {
	if c.backfill.wasOn || len(c.backfill.retracted) > 0 {
		return c.promisePlannedStarts(out)
	}
	next := Promise{Job: c.plan.job}
	if c.plan.at != never {
		next.At = c.plan.at
	}
	next.Nodes = c.plannedNodes()
	old := c.promised
	if old.Job == next.Job && old.At == next.At && slices.Equal(old.Nodes, next.Nodes) {
		return out
	}
	c.promised = next
	if old.Job != 0 && old.Job != next.Job && c.queue.jobs[old.Job] != nil {
		out = append(out, Promise{Job: old.Job})
	}
	if next.Job != 0 {
		out = append(out, next)
	}
	return out
}

// plannedNodes names the nodes of the reservation, each once.
func (c *Core) plannedNodes() (names []string) {
	if c.plan.profile != nil {
		p := schedulingCycle{Core: c}
		told, nodes := c.promised.Nodes, p.toldNodes()
		same := len(told) == len(nodes)
		for i := 0; same && i < len(nodes); i++ {
			same = c.fleet.table.Node(int(nodes[i])).Name == told[i]
		}
		if same {
			return told
		}
		names = make([]string, len(nodes))
		for i, pos := range nodes {
			names[i] = c.fleet.table.Node(int(pos)).Name
		}
		return names
	}
	return nodesOf(c.plan.claims)
}

// nodesOf names the nodes of claims, each once.
func nodesOf(claims []fleet.Claim) (names []string) {
	for i := range claims {
		if !slices.Contains(names, claims[i].Node) {
			names = append(names, claims[i].Node)
		}
	}
	return names
}

func floorSeconds(t Instant) int64 { return int64(t) / int64(time.Second) }

// fullSeconds is how many seconds a time takes, the last one if only in part.
func fullSeconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}
