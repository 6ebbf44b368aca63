package sched

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// This file is about jobs that make room by being suspended. A suspended job keeps memory,
// and what else it has that nobody took; CPUs and devices go to those that had the right
// to take its place, and to nobody else: whatever of its own becomes free it takes back
// first. When it has all of it again it goes on. So it is held up by those that took its
// place, and never by others. Of several suspended jobs that wait for the same, the one that
// outranks the other goes first, then the one that was suspended first.
//
// What a job has in a device's memory stays there while it is suspended: that is for the
// site to know which sets the mode.
//
// Source: Slurm's PreemptMode=SUSPEND (preempt.html).

// suspendState is the jobs that made room by being suspended, and whose turn it is.
type suspendState struct {
	jobs     []job.ID // may have some that are no longer suspended
	turnEnds Instant  // when the next of those who take turns gives way; 0: nobody does
}

// suspension is a job that was suspended to make room.
type suspension struct {
	full []fleet.Claim // what it holds when it goes on; run.claims is what it has of that
	at   Instant       // since when
	left Instant       // of its time limit; never: it has none
}

// Parked says, of a run, what a core cannot know from other events.
type Parked struct {
	At    Instant       `json:"at"`
	Left  Instant       `json:"left,omitempty"`  // of its time limit; 0: it has none
	Keeps []fleet.Claim `json:"keeps,omitempty"` // of its claims; nil: what is free of them
}

// yieldsSuspended reports whether a run makes room by being suspended, or was.
func (r *run) yieldsSuspended() bool {
	return r.pause.suspended != nil || r.pause.asked || !r.stopping && r.nominee == nil && !r.mayChangeSize() && !r.isAggregate() && r.policy.preemption != nil && r.policy.preemption.mode == account.PreemptSuspend
}

// retainedClaim is what a suspended job keeps of a claim whatever happens.
func retainedClaim(c *fleet.Claim) fleet.Claim {
	out := *c
	out.Take.CPU, out.Devices, out.Whole = 0, nil, false
	return out
}

// entitledClaims is what a run has a right to: what it holds, and lends. Limits count all of that, as
// in Slurm, so that nobody exceeds one when it goes on; quotas what it holds.
func (r *run) entitledClaims() []fleet.Claim {
	if r.pause.suspended != nil {
		return r.pause.suspended.full
	}
	return r.allClaims()
}

// timeLeft is how long a run may hold what it holds from now on.
func (r *run) timeLeft(now Instant) Instant {
	switch {
	case r.pause.suspended != nil:
		return addTime(r.pause.suspended.left, r.pause.tail)
	case r.until == never:
		return never
	}
	return max(r.until-now, 0)
}

// addTime adds a time to an instant.
func addTime(at, by Instant) Instant {
	if at == never || by >= never-at {
		return never
	}
	return at + by
}

// suspendRun notes that a job is suspended, to make room.
func (c *Core) suspendRun(e Suspended) {
	r := c.runs.byJob[e.Job]
	if r == nil || r.nominee != nil || r.pause.suspended != nil {
		return
	}
	p := &suspension{full: r.claims, at: c.clock.now, left: r.timeLeft(c.clock.now)}
	if p.left != never {
		p.left = max(p.left-r.pause.tail, 0)
	}
	if r.pause.asked {
		c.clearSuspending(r)
	}
	c.suspended.jobs = append(c.suspended.jobs, e.Job)
	c.replaceClaims(r, retainedClaims(r.claims), p, never)
	c.planDirty, c.cycleDue = true, true
	c.generation++
}

// restoreSuspended restores that a run is suspended.
func (c *Core) restoreSuspended(r *run, p *Parked) {
	r.pause.suspended = &suspension{full: r.claims, at: p.At, left: p.Left}
	if p.Left == 0 {
		r.pause.suspended.left = never
	}
	r.until, r.claims = never, p.Keeps
	if p.Keeps == nil {
		r.claims = retainedClaims(r.pause.suspended.full)
	}
	c.suspended.jobs = append(c.suspended.jobs, r.id)
}

// clearSuspending notes that a run is no longer being suspended.
func (c *Core) clearSuspending(r *run) {
	r.pause.asked, r.pause.givesWay, r.stopping = false, false, false
	c.runs.stopping--
}

func retainedClaims(claims []fleet.Claim) []fleet.Claim {
	out := make([]fleet.Claim, len(claims))
	for i := range claims {
		out[i] = retainedClaim(&claims[i])
	}
	return out
}

// replaceClaims gives a run other claims.
func (c *Core) replaceClaims(r *run, claims []fleet.Claim, p *suspension, until Instant) *run {
	c.billRun(r, wholeSecond(c.clock.now))
	c.unholdRun(r)
	next := *r
	next.at, next.bill.known, next.bill.upTo = nil, false, wholeSecond(c.clock.now)
	next.claims, next.pause.suspended, next.until = claims, p, until
	c.holdRun(&next)
	return &next
}

// suspendedRuns lists the suspended jobs in the order in which they take back.
func (c *Core) suspendedRuns() []*run {
	var list, out []*run
	kept := c.suspended.jobs[:0]
	for _, id := range c.suspended.jobs {
		if r := c.runs.byJob[id]; r != nil && r.pause.suspended != nil {
			kept = append(kept, id)
			list = append(list, r)
		}
	}
	c.suspended.jobs = kept
	slices.SortStableFunc(list, func(a, b *run) int {
		return cmp.Or(cmp.Compare(a.pause.suspended.at, b.pause.suspended.at), cmp.Compare(a.id, b.id))
	})
	for len(list) > 0 {
		next := slices.IndexFunc(list, func(r *run) bool {
			return !slices.ContainsFunc(list, func(o *run) bool { return c.runOutranks(o, r) })
		})
		next = max(next, 0)
		out = append(out, list[next])
		list = slices.Delete(list, next, next+1)
	}
	return out
}

func (c *Core) runOutranks(a, b *run) bool {
	return a != b && c.preempt.rules != nil && c.preempt.rules.mayTakeFrom(a.policy.preemption, a.priority, b.policy.preemption, b.priority)
}

// resumeSuspended has suspended jobs take back what is free of theirs, and go on if that is all: each
// in its turn, and one whose turn is later gives back what one before it lacks, so that no
// two wait for each other. One that a waiting job outranks and would take the place of at
// once stays suspended. It reports whether anything changed.
func (p *schedulingCycle) resumeSuspended() (changed bool) {
	if len(p.suspended.jobs) == 0 {
		return false
	}
	runs := slices.DeleteFunc(p.suspendedRuns(), func(r *run) bool { return r.stopping })
	shares := p.sharesOf(runs)
	for i, r := range runs {
		if shares[i].whole && p.outbidSuspended(r) {
			p.resumeSuspended()
			return true
		}
	}
	for i, r := range runs {
		if shares[i].mustGiveBack(r) {
			runs[i] = p.replaceClaims(r, retainedClaims(r.pause.suspended.full), r.pause.suspended, never)
			p.planDirty, changed = true, true
		}
	}
	for i, r := range runs {
		switch x := shares[i]; {
		case x.whole:
			r.pause.tail, r.pause.turn = max(r.pause.tail, p.tailOf(r)), p.now
			p.replaceClaims(r, r.pause.suspended.full, nil, addTime(addTime(p.now, r.pause.suspended.left), r.pause.tail))
			p.out = append(p.out, Resume{Job: r.id})
			p.planDirty, changed = true, true
		case !slices.EqualFunc(x.claims, r.claims, sameClaim):
			p.replaceClaims(r, x.claims, r.pause.suspended, never)
			p.planDirty, changed = true, true
		}
	}
	return changed
}

func sameClaim(a, b fleet.Claim) bool {
	return a.Take.CPU == b.Take.CPU && a.Whole == b.Whole && slices.Equal(a.Devices, b.Devices)
}

// resumeShare is what a suspended job can have of its claims, and whether that is all.
type resumeShare struct {
	claims []fleet.Claim
	whole  bool
}

// mustGiveBack reports whether a job has something that it is to give back.
func (x *resumeShare) mustGiveBack(r *run) bool {
	for i := range r.claims {
		has, gets := &r.claims[i], &x.claims[i]
		if has.Take.CPU > gets.Take.CPU || has.Whole && !gets.Whole || slices.ContainsFunc(has.Devices, func(d fleet.DeviceClaim) bool { return !slices.Contains(gets.Devices, d) }) {
			return true
		}
	}
	return false
}

// sharesOf is what each of some suspended jobs can have now, those before it served.
func (c *Core) sharesOf(runs []*run) []resumeShare {
	rows := map[int32]*index.Row{} // read by key only
	for _, r := range runs {
		for i, pos := range r.at {
			if pos < 0 {
				continue
			}
			if rows[pos] == nil {
				row := *c.fleet.state.Row(int(pos))
				rows[pos] = &row
			}
			rows[pos].Change(c.fleet.table.Node(int(pos)), &r.claims[i], -1)
			b := retainedClaim(&r.pause.suspended.full[i])
			rows[pos].Change(c.fleet.table.Node(int(pos)), &b, 1)
		}
	}
	out := make([]resumeShare, len(runs))
	var last []int // those who cannot go on whatever they take
	for i, r := range runs {
		c.changeRetained(r, rows, -1)
		stuck := c.cannotResume(r, rows)
		c.changeRetained(r, rows, 1)
		if stuck {
			last = append(last, i)
		} else {
			out[i] = c.shareOf(r, rows)
		}
	}
	for _, i := range last {
		out[i] = c.shareOf(runs[i], rows)
	}
	return out
}

// changeRetained takes what a suspended job keeps off some rows, or puts it back.
func (c *Core) changeRetained(r *run, rows map[int32]*index.Row, sign int) {
	for i, pos := range r.at {
		if pos >= 0 {
			b := retainedClaim(&r.pause.suspended.full[i])
			rows[pos].Change(c.fleet.table.Node(int(pos)), &b, sign)
		}
	}
}

// cannotResume reports whether one of a job's nodes has left, or somebody else is on one that it
// has whole.
func (c *Core) cannotResume(r *run, rows map[int32]*index.Row) bool {
	for i, pos := range r.at {
		if pos < 0 || r.pause.suspended.full[i].Whole && rows[pos].Holds > 0 {
			return true
		}
	}
	return false
}

// shareOf has one job take from what is free.
func (c *Core) shareOf(r *run, rows map[int32]*index.Row) resumeShare {
	c.changeRetained(r, rows, -1)
	out := resumeShare{whole: true}
	for i, pos := range r.at {
		if pos < 0 { // nobody knows what is free there until the node is back
			out.claims, out.whole = append(out.claims, r.claims[i]), false
			continue
		}
		want, row, desc := &r.pause.suspended.full[i], rows[pos], c.fleet.table.Node(int(pos))
		got := retainedClaim(want)
		got.Take.CPU = min(want.Take.CPU, max(row.Free.CPU, 0))
		for _, d := range want.Devices {
			if row.Room(desc, d) {
				got.Devices = append(got.Devices, d)
			}
		}
		out.whole = out.whole && got.Take.CPU == want.Take.CPU && len(got.Devices) == len(want.Devices)
		if want.Whole {
			got.Whole = row.Holds == 0
			out.whole = out.whole && got.Whole
		}
		out.claims = append(out.claims, got)
		row.Change(desc, &got, 1)
	}
	return out
}

// outbidSuspended has the first waiting job that outranks a suspended one take its place, if it cannot
// start beside it, and reports whether there was one.
func (p *schedulingCycle) outbidSuspended(r *run) bool {
	var lines []*jobClass
	for _, l := range p.preempt.eager {
		if e := l.jobs.firstJob(); e != nil && l.headsIndex >= 0 && p.mayFindVictims(l, e) && p.preempt.rules.mayTakeFrom(l.key.policy.preemption, e.priority, r.policy.preemption, r.priority) {
			lines = append(lines, l)
		}
	}
	slices.SortFunc(lines, func(a, b *jobClass) int { return a.jobs.firstJob().compareOrder(b.jobs.firstJob()) })
	for _, l := range lines {
		if p.passesGates(l) && p.placeUnreserved(l) == nil && p.preemptFor(l.jobs.firstJob()) {
			return true
		}
	}
	return false
}

// retainOnly takes from a suspended job what it has beside what it keeps.
func (p *schedulingCycle) retainOnly(r *run) {
	p.replaceClaims(r, retainedClaims(r.pause.suspended.full), r.pause.suspended, never)
}
