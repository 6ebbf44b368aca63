package sched

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// Estimate says when and where a job would start if it were submitted now and every
// running job used its whole limit; 0 if a job without a limit stands in the way or
// nobody can tell. Of the jobs before it only the head, which has a reservation, is
// reckoned with: behind a long queue it starts later. why lists what keeps it from
// starting now. Nothing is changed.
func (c *Core) Estimate(now Instant, spec *job.Spec, priority int64) (at Instant, claims []fleet.Claim, why []reason.Reason) {
	c.rebuildFleet()
	after := func(waited Instant) *class.Shape {
		return class.CompileAfter(spec, longestWait(c.policy), time.Duration(waited))
	}
	shape := after(0)
	e, release := c.imagine(now, spec, shape, priority)
	defer release()
	ahead := c.aheadReason(e)
	if ahead.Code != reason.None {
		why = append(why, ahead)
	}
	missing := place.Now(c.fleet.table, c.fleet.state, shape)
	if len(missing) == 0 {
		if claims = place.Gang(c.fleet.table, c.fleet.state, shape); claims != nil && (ahead.Code == reason.None || c.plan.job == 0) {
			return now, claims, nil
		}
	}
	why = append(why, missing...)
	p := schedulingCycle{Core: c, now: now}
	ends := c.runs.ends.allRuns()
	for _, n := range endSteps(ends) {
		free, end := p.freeAfter(ends[:n]), ends[n-1].until
		if c.plan.job != 0 && end >= c.plan.at {
			free.Take(c.fleet.table, p.reservedClaims())
		}
		if claims = place.Gang(c.fleet.table, free, after(max(end-now, 0))); claims != nil && end != never {
			return max(end, now), claims, why
		}
	}
	return 0, nil, why
}

// imagine is a job that is not in the queue, as it would be there. The caller calls release when
// it is done with it.
func (c *Core) imagine(now Instant, spec *job.Spec, shape *class.Shape, priority int64) (e *queuedJob, release func()) {
	terms := c.policyOf(spec)
	e = &queuedJob{spec: spec, priority: priority, fixed: spec.Priority != 0, at: now, eligible: wholeSecond(now), id: 1<<63 - 1}
	key := classKey{shape: shape, policy: terms, own: ownOf(e, terms)}
	key.setTimes(spec)
	e.class = &jobClass{key: key, kind: &kind{shape: shape}, limit: key.limit}
	c.computeSize(e.class)
	return e, func() { c.releasePolicy(terms) }
}

// assumedRun is how long a job without a time limit is taken to run.
const assumedRun = Instant(time.Hour)

// ExpectedStart is when a job for one pool is expected to start there: when what runs in the
// pool has left it enough room, plus the time that the pool needs for the jobs that wait there
// before it. Jobs are taken to use their whole limits; one without a limit to run for an hour, or
// as long again as it has run. spec names the pool. id is the job's number if it is in the queue of
// that pool already; 0: it would be submitted now. ok is false where the pool never has enough
// room. Its cost is linear in the nodes and in what runs and waits. Nothing is changed.
func (c *Core) ExpectedStart(now Instant, spec *job.Spec, priority int64, id job.ID) (at Instant, ok bool) {
	c.rebuildFleet()
	shape := class.CompileAfter(spec, longestWait(c.policy), 0)
	e := c.queue.jobs[id]
	if e == nil {
		var release func()
		e, release = c.imagine(now, spec, shape, priority)
		defer release()
	}
	ahead := c.workAhead(e, spec.Pool)
	runs := c.runsIn(spec.Pool, now)
	if c.plan.job != 0 && c.plan.job != e.id { // beside what is reserved for the head of the queue
		p := schedulingCycle{Core: c, now: now}
		if n, fits := c.firstFit(shape, runs, p.reservedClaims()); fits {
			return startAfter(now, runs[:n], ahead), true
		}
		now = max(now, min(c.plan.at, now+assumedRun)) // after it, which is among those ahead
	}
	n, fits := c.firstFit(shape, runs, nil)
	if !fits {
		return 0, false
	}
	return startAfter(now, runs[:n], ahead), true
}

// startAfter is when a job starts that fits once some runs have ended. One that fits at once may
// pass those that wait for more.
func startAfter(now Instant, ended []plannedRun, ahead Instant) Instant {
	if len(ended) == 0 {
		return now
	}
	return max(now, ended[len(ended)-1].until) + ahead
}

// firstFit is after how many of the runs a shape fits beside what is kept for others; false: not
// after all of them.
func (c *Core) firstFit(shape *class.Shape, runs []plannedRun, kept []fleet.Claim) (int, bool) {
	free := c.fleet.state.Clone()
	free.Take(c.fleet.table, kept)
	at := 0
	fitsAfter := func(n int) bool {
		for ; at < n; at++ {
			free.Release(c.fleet.table, runs[at].claims)
		}
		for ; at > n; at-- {
			free.Take(c.fleet.table, runs[at-1].claims)
		}
		return place.Gang(c.fleet.table, free, shape) != nil
	}
	if fitsAfter(0) {
		return 0, true
	}
	if len(runs) == 0 || !fitsAfter(len(runs)) {
		return 0, false
	}
	return sort.Search(len(runs), fitsAfter), true
}

// plannedRun is what a job holds until it is taken to have ended.
type plannedRun struct {
	until  Instant
	claims []fleet.Claim
}

// runsIn are the runs in a pool by their ends.
func (c *Core) runsIn(pool string, now Instant) (out []plannedRun) {
	for _, chunk := range c.runs.ends.chunks {
		for _, r := range chunk {
			if len(r.claims) == 0 || r.claims[0].Pool != pool {
				continue
			}
			until := r.until
			if until == never {
				until = now + max(assumedRun, now-r.began)
			}
			out = append(out, plannedRun{until, r.claims})
		}
	}
	slices.SortStableFunc(out, func(a, b plannedRun) int { return cmp.Compare(a.until, b.until) })
	return out
}

// workAhead is how long a pool is busy with the jobs before a job that wait there, if it can use
// all that it has: by CPUs, memory and devices, whichever takes longest.
func (c *Core) workAhead(e *queuedJob, pool string) Instant {
	var work, has workload
	for _, l := range c.queue.classes {
		if l.jobs.len() == 0 || !slices.Contains(l.key.shape.Pools, pool) {
			continue
		}
		n := l.jobs.countAhead(e)
		if n == 0 {
			continue
		}
		limit := Instant(l.limit)
		if limit <= 0 {
			limit = assumedRun
		}
		for i := range l.key.shape.Groups {
			g := &l.key.shape.Groups[i]
			work.add(&g.All, g.AllDevices, float64(n)*float64(limit))
		}
	}
	if work == (workload{}) {
		return 0
	}
	for i := range c.fleet.table.Len() {
		if node := c.fleet.table.Node(i); node.Pool == pool && node.State == fleet.Up {
			has.add(&node.Capacity, node.Usable.Len(), 1)
		}
	}
	longest := 0.0
	for i := range work {
		if has[i] > 0 {
			longest = max(longest, work[i]/has[i])
		}
	}
	return Instant(min(longest, float64(maxForeseen)))
}

// maxForeseen bounds how far a start is foreseen.
const maxForeseen = Instant(10 * 365 * 24 * time.Hour)

// workload is CPUs, memory and devices, of which those of a pool as a whole are counts
// (sched/aggregate).
type workload [3]float64

func (w *workload) add(v *resource.Vector, devices int, times float64) {
	w[0] += float64(v.CPU) * times
	w[1] += float64(v.Memory) * times
	w[2] += (float64(devices) + float64(v.Get(aggregate.Device("gpu")))) * times
}
