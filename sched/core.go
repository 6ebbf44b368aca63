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
	"github.com/coxswain-sched/coxswain/sched/place"
)

// never is the instant at which a job without a time limit is planned to end.
const never Instant = 1<<63 - 1

// Config chooses among policies. The zero value is first come, first served by
// priority with backfill behind the head.
type Config struct {
	// NoBackfill lets nothing start while a job before it waits.
	NoBackfill bool
	// Depth bounds how many kinds of jobs behind the head are tried in one cycle.
	// Kinds that cannot fit what is free are not counted. 0: 500.
	Depth int
}

// Core holds the queue, the fleet and what runs. It is not safe for concurrent
// use: one loop owns it.
//
// A step costs what has changed, not what there is: nodes that are alike are one
// cell (sched/index), jobs that are alike one class, and a class that cannot start
// anything rests until what it rests for has changed.
//
// Invariants (checked by Check):
//   - what is free is the fleet less the claims of what runs, and the cells and
//     what is foretold of each node agree with it;
//   - a job is queued or running, never both;
//   - each class is in queue order and holds exactly the queued jobs of its kind
//     that are not blocked;
//   - what was added to a job ends with it, and is on nodes of its own;
//   - what is reserved for the head is free at the promised instant if every
//     running job uses its whole limit.
type Core struct {
	cfg    Config
	fleet  fleetState
	shapes *class.Interner

	policy       *account.Policy                // nil: none
	policies     map[policyKey]*effectivePolicy // those in use
	priority     priorityState
	limits       limitState
	accrue       accrueLimits
	quotas       *quotas // nil: none
	reservations []*advanceReservation

	queue       jobQueue
	runs        runSet
	constraints constraintTimers // when jobs give up a soft constraint

	plan     headReservation
	promised Promise // what the head was told last
	backfill backfillState

	preempt   preemptState
	elastic   elasticState
	suspended suspendState
	defrag    defragState
	forecast  forecastState

	clock      clockState
	generation uint64 // raised when a search for victims may find more than before
	planDirty  bool   // the plan must be made again
	cycleDue   bool   // a scheduling cycle is due
}

// clockState is the time as the core was told it.
type clockState struct {
	now       Instant // of the last step
	lastCycle Instant // when the last scheduling cycle was made
}

// queuedJob is a queued job.
type queuedJob struct {
	id       job.ID
	spec     *job.Spec
	class    *jobClass
	planned  *plannedStart // nil: nothing is planned for it by name
	priority int64
	at       Instant
	eligible int64          // second since when it may be considered; 0: it may not
	grows    int64          // second since when it grows older, where that is later; 0: it is not
	moved    Instant        // when it was last asked to move; 0: never
	fixed    bool           // the priority is not reckoned
	gate     *reason.Reason // why it is blocked; nil: it is not
	told     *reason.Reason // the first reason that a Wait told, without its Since; nil: none
	since    int64          // when that was told, in Unix seconds
	nominee  *nomination    // what is held for it until others have gone; nil: it stands in its class, or is blocked
	blocked  bool
	gone     bool  // left the queue
	stage    uint8 // of its wishes
	aging    accrueState
}

// New returns a core that knows no node and no job.
func New(cfg Config) *Core {
	return &Core{
		cfg: cfg, shapes: class.NewInterner(), policies: map[policyKey]*effectivePolicy{},
		fleet: fleetState{table: index.NewTable(), dirty: true},
		queue: jobQueue{jobs: map[job.ID]*queuedJob{}, classes: map[classKey]*jobClass{}, byShape: map[*class.Shape]*kind{}},
		runs:  runSet{byJob: map[job.ID]*run{}},
	}
}

// Step applies events in order and returns what is to be done, in a fixed order:
// words about blocked jobs and usage, starts as they were decided, promises, then
// waits by job number. Claims in the
// decisions are shared with the core and must not be written to.
//
// now must not be smaller than in an earlier call.
func (c *Core) Step(now Instant, events ...Event) []Decision {
	c.clock.now = now
	c.advanceLimits(now)
	var out []Decision
	for _, e := range events {
		out = c.applyEvent(now, e, out)
	}
	c.fireTimers(now)
	out = c.tellLearned(c.tellUsed(out))
	if !c.cycleDue {
		return out
	}
	c.cycleDue, c.clock.lastCycle = false, now
	c.rebuildFleet()
	proposed := c.defrag.proposal
	p := schedulingCycle{Core: c, now: now, headMovesLeft: maxMoves}
	p.runCycle()
	c.grantAccrual()
	c.scheduleLimits()
	out = c.tellProposal(proposed, append(out, p.out...))
	out = c.tellPromise(out)
	return append(out, c.tellWaits(now)...)
}

// applyEvent changes the state by one event. The decisions that follow from it are
// made by the cycle, but for the words about blocked jobs.
func (c *Core) applyEvent(now Instant, e Event, out []Decision) []Decision {
	switch e := e.(type) {
	case NodeSet:
		c.setNode(e.Node)
	case NodeRemoved:
		if c.fleet.table.Remove(fleet.NodeKey{Pool: e.Pool, Name: e.Name}) {
			c.nodeChanged(e.Name)
			c.fleetChanged()
		}
	case Submitted:
		c.submitJob(e)
	case PolicySet:
		c.setPolicy(e.Policy)
	case UsageSet:
		c.restoreUsage(e)
	case Taught:
		c.restoreForecast(&e.Seen)
		c.wakeForForecast()
	case Withdrawn:
		c.withdrawJob(e.Job)
	case Blocked:
		out = c.blockJob(now, e, out)
	case Unblocked:
		c.unblockJob(e.Job)
	case Restored:
		c.restoreRun(e)
	case Extended:
		c.extendRun(e)
	case Released:
		c.releaseRun(e.Job, e.Ended)
	case Stopping:
		if r := c.runs.byJob[e.Job]; r != nil && r.pause.asked {
			c.clearSuspending(r) // it goes whole
		}
		c.markStopping(e.Job)
	case Suspended:
		c.suspendRun(e)
	case Saved:
		if r := c.runs.byJob[e.Job]; r != nil {
			c.noteCheckpoint(r, e.At)
		}
	case Approved:
		c.defrag.approved, c.cycleDue = &e, true
	case Begun:
		if r := c.runs.byJob[e.Job]; r != nil && r.isElastic() && r.growth.allowed == e.Not {
			r.growth.allowed, c.cycleDue = !e.Not, true
			c.generation++
		}
	case Added:
		c.restoreAddition(e)
	case Dropped:
		c.dropAddition(e)
	}
	c.grantAccrual()
	return out
}

func (c *Core) setNode(n fleet.Node) {
	if changed, _ := c.fleet.table.Put(n); changed {
		c.nodeChanged(n.Name)
		c.fleetChanged()
	}
}

// fleetChanged notes that the fleet has changed.
func (c *Core) fleetChanged() { c.fleet.dirty, c.cycleDue = true, true }

func (c *Core) submitJob(s Submitted) {
	if r := c.runs.byJob[s.Job]; r != nil && r.nominee == nil {
		return // it holds resources: control tells Released before it queues a job again
	}
	e := &queuedJob{id: s.Job, spec: s.Spec, priority: s.Priority, fixed: s.Fixed, at: s.At, eligible: wholeSecond(s.Eligible), moved: s.Moved}
	if s.Eligible == 0 {
		e.eligible = wholeSecond(c.clock.now)
	}
	was := accrueUnlimited
	old := c.queue.jobs[s.Job]
	if old != nil {
		was = old.aging
		if old.eligible != 0 {
			e.eligible, e.grows = old.eligible, old.grows
		}
		e.told, e.since = old.told, old.since
		c.dropQueued(old)
	}
	var next Instant
	e.stage, next = c.stageOf(e)
	e.class = c.classOf(e)
	if old != nil && c.plan.job == e.id && old.class.key.shape.Key != e.class.key.shape.Key {
		c.plan = headReservation{job: e.id, position: c.plan.position, at: never, version: c.plan.version + 1}
		c.planDirty = true // what was planned for it was for what it asked then
	}
	c.queue.jobs[s.Job] = e
	c.scheduleStage(e, next)
	c.startAccruing(e, was)
	c.enqueueJob(e)
	if old == nil {
		c.learnArrival(c.queue.byShape[e.class.key.shape])
	}
}

func (c *Core) enqueueJob(e *queuedJob) {
	c.insertJob(e)
	c.queue.fresh = append(c.queue.fresh, e)
	c.cycleDue = true
}

func (c *Core) withdrawJob(id job.ID) {
	if e := c.queue.jobs[id]; e != nil {
		c.dropQueued(e)
		c.cycleDue = true
	}
}

// dropQueued takes an entry out of the queue.
func (c *Core) dropQueued(e *queuedJob) {
	delete(c.queue.jobs, e.id)
	c.scheduleStage(e, 0)
	e.gone = true
	switch {
	case e.nominee != nil:
		c.dropNomination(e.nominee)
	case !e.blocked:
		c.removeJob(e)
	}
	c.stopAccruing(e)
	c.leaveClass(e.class)
}

func (c *Core) blockJob(now Instant, b Blocked, out []Decision) []Decision {
	e := c.queue.jobs[b.Job]
	if e == nil {
		return out
	}
	if e.nominee != nil {
		c.dissolveNomination(e.nominee)
	}
	if !e.blocked {
		c.removeJob(e)
		e.blocked, c.cycleDue = true, true
	}
	if stopsAging(b.Why.Code) {
		c.stopAccruing(e)
		e.eligible = 0
		c.moveToStage(e)
	}
	e.gate = c.shareReason(b.Why)
	return c.tellReason(e, now, b.Why, out)
}

func (c *Core) unblockJob(id job.ID) {
	e := c.queue.jobs[id]
	if e == nil || !e.blocked {
		return
	}
	e.blocked, e.gate = false, nil
	if e.eligible == 0 {
		e.eligible = wholeSecond(c.clock.now)
		c.startAccruing(e, accrueUnlimited)
	}
	c.enqueueJob(e)
	c.moveToStage(e)
}

func (c *Core) restoreRun(r Restored) {
	if e := c.queue.jobs[r.Job]; e != nil {
		c.dropQueued(e)
	}
	if c.runs.byJob[r.Job] != nil {
		c.releaseRun(r.Job, 0)
	}
	terms := c.policyWithLicense(r.Spec, r.License)
	c.joinShares(terms)
	x := &run{
		id: r.Job, spec: r.Spec, policy: terms, claims: r.Claims,
		began: r.Began, submitted: r.Submitted, until: orNever(r.Until), flavors: r.Flavors,
		license: r.License, priority: r.Priority, rank: r.Priority, move: runMove{savedAt: r.Saved, askedAt: r.Moved, startsJob: r.GoesFor},
		stopping: r.Stopping, pause: runPause{asked: r.Suspending, givesWay: r.GivesWay, tail: r.Tail, turn: max(r.Turn, r.Began)}, growth: runGrowth{allowed: r.Begun}, waits: r.Waits,
	}
	if r.Parked != nil {
		c.restoreSuspended(x, r.Parked)
	}
	c.holdRun(x)
	if r.Home != nil && !c.decidesAsSlurm() { // where nothing moves, and nobody would give it up
		c.holdTarget(r.Job, r.Spec, r.Flavors, r.Home, c.clock.now, endAfter(c.clock.now, max(r.Spec.TimeLimit, 0)))
	}
	c.planDirty, c.cycleDue = true, true
}

func (c *Core) extendRun(x Extended) {
	if r := c.runs.byJob[x.Job]; r != nil && r.waits && x.Began > 0 {
		c.beginBilling(r, x.Began)
	}
	if r := c.runs.byJob[x.Job]; r != nil && r.nominee == nil && r.pause.suspended == nil && r.until != addTime(orNever(x.Until), r.pause.tail) {
		before := len(c.fleet.freed)
		added := slices.Clone(r.added)
		for _, a := range added {
			c.unholdRun(a)
		}
		c.unholdRun(r)
		next := *r
		next.at, next.until, next.added = nil, addTime(orNever(x.Until), r.pause.tail), nil
		c.holdRun(&next)
		for _, a := range added {
			longer := *a
			longer.at, longer.until, longer.of = nil, next.until, &next
			c.holdRun(&longer)
		}
		c.fleet.freed = c.fleet.freed[:before] // nothing became free
		c.planDirty, c.cycleDue = true, true
	}
}

func (c *Core) releaseRun(id job.ID, ended Instant) {
	if ended == 0 || ended > c.clock.now {
		ended = c.clock.now
	}
	if r := c.runs.byJob[id]; r != nil && r.nominee == nil {
		for _, a := range slices.Clone(r.added) {
			c.billEnd(a, ended)
			c.unholdRun(a)
		}
		c.billEnd(r, ended)
		c.unholdRun(r)
		c.releasePolicy(r.policy)
		c.planDirty, c.cycleDue = true, true
	}
}

// Feasible says what is too large about a specification for an empty fleet with
// every node up; nil if it could start there. A job without a feasible shape
// waits, but never reserves and is in nobody's way.
func (c *Core) Feasible(spec *job.Spec) []reason.Reason {
	return place.Never(c.fleet.table, class.Compile(spec), true)
}

// FitsUp reports whether a job could start if nothing ran on the nodes that are up now.
func (c *Core) FitsUp(spec *job.Spec) bool {
	return place.Never(c.fleet.table, class.Compile(spec), false) == nil
}

// orNever turns the interface's "0: no limit" into an instant that orders last.
func orNever(t Instant) Instant {
	if t == 0 {
		return never
	}
	return t
}

// endAfter is when a job ends that starts now and uses its whole limit.
func endAfter(now Instant, limit time.Duration) Instant {
	if limit <= 0 {
		return never
	}
	return addDuration(now, limit)
}

// addDuration is an instant and a time after it; never where that lies beyond all instants.
func addDuration(at Instant, d time.Duration) Instant {
	if d > 0 && Instant(d) > never-at {
		return never
	}
	return at + Instant(d)
}

// atSecond is the instant at which a second begins; never where that lies beyond all
// instants.
func atSecond(s int64) Instant {
	if s > int64(never)/int64(time.Second) {
		return never
	}
	return Instant(s) * Instant(time.Second)
}
