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
	"github.com/coxswain-sched/coxswain/sched/share"
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
	table  *index.Table
	state  *index.State // what is free now
	empty  *index.State // what would be free if nothing ran
	cells  *index.Cells // of state
	nodes  []node       // by position
	picks  *place.Picks
	shapes *class.Interner

	policy  *account.Policy // nil: none
	ranks   *multifactor    // nil: the policy says nothing of order and usage
	limits  limitState
	accrual accrueLimits
	terms   map[policyKey]*effectivePolicy
	quotas  *quotas // nil: none

	queued  map[job.ID]*queuedJob
	lines   map[classKey]*jobClass
	kinds   []*kind
	byShape map[*class.Shape]*kind
	heads   heads           // classes with jobs that the fleet could take
	running map[job.ID]*run // those that hold, and what is held for nominated jobs
	ends    plannedEnds

	patience constraintTimers // who gives up a wish, and when

	seen      *share.Memory    // what has arrived; nil: nobody learns from it
	foresight *place.Foresight // what is expected of that …
	foreseen  uint64           // … for this state of the fleet
	learned   bool             // more was learned in this step

	now        Instant          // of the last step
	preemption *preemptionRules // nil: nobody takes anything
	elastic    []*run           // running jobs that may grow
	pinched    Instant          // a limit keeps one from growing, until then at least; never: time alone does not lift it; 0: none does
	lent       int              // additions that nobody has asked back
	nominees   []*nomination    // in the order in which they were made
	eager      []*jobClass      // whose jobs may take from others, those with quotas left out: these go when it is their turn
	stopping   int              // runs whose end was asked for
	stirs      uint64           // raised when a search for victims may find more than before
	turnEnds   Instant          // when the next of those who take turns is to give way; 0: nobody is
	parked     []job.ID         // may have some that are no longer
	awaiting   []*queuedJob     // nominated in this step
	lifted     []savedRow       // what a search for victims changed
	exempted   Instant          // when somebody who was passed over may be taken; 0: nobody was

	moving    *defragRules       // nil: nothing is moved
	savers    int                // runs that go on from what they saved
	movers    int                // runs that were asked to move
	homes     []*migrationTarget // by job
	proposal  *Proposal          // nil: none
	approved  *Approved          // in this step; nil: nothing
	moveTried moveAttempt
	searched  Instant // when moves were looked for last
	searching Instant // when they are to be looked for again; 0: when something has changed

	plan     headReservation
	promised Promise // what the head was told last

	advances  []*advanceReservation // reservations in advance
	slots     []*plannedStart       // planned node by node, in queue order
	passed    Instant               // when the last cycle was made
	sweeps    uint64                // of the plan
	restood   []int32               // nodes on which something else is planned, for plan caches
	replanned uint64                // raised when that was begun anew
	idle      []*planCache
	watch     planWatch
	first     queueFront
	others    []*plannedStart // memory for planned starts
	sketch    nodeTimeline
	wasNamed  bool      // the last cycle planned node by node
	retracted []Promise // to jobs whose planned starts were taken away

	fleet    uint64      // raised when the fleet changed
	refitted bool        // the fleet has changed and settle is due
	freed    []int32     // nodes on which something became free since the last cycle
	log      []int32     // nodes that changed, for availability profiles
	logged   uint64      // raised when the log was begun anew
	shaken   bool        // the plan must be made again
	dirty    bool        // a cycle is due
	ticked   bool        // usage was brought up to date
	unranked bool        // somebody new has a share; classes are to be reckoned anew
	woken    []*jobClass // to be looked at
	planned  []*jobClass // that rest for the plan
	touched  []*jobClass // whose first job may have another reason
	fresh    []*queuedJob
	planScratch
	shared [8]*reason.Reason // reasons that were told last: jobs that wait for the same share one
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
		cfg: cfg, table: index.NewTable(), shapes: class.NewInterner(),
		terms: map[policyKey]*effectivePolicy{}, queued: map[job.ID]*queuedJob{}, lines: map[classKey]*jobClass{}, byShape: map[*class.Shape]*kind{}, running: map[job.ID]*run{},
		refitted: true,
	}
}

// Step applies events in order and returns what is to be done, in a fixed order:
// words about blocked jobs and usage, starts as they were decided, promises, then
// waits by job number. Claims in the
// decisions are shared with the core and must not be written to.
//
// now must not be smaller than in an earlier call.
func (c *Core) Step(now Instant, events ...Event) []Decision {
	c.now = now
	c.advanceLimits(now)
	var out []Decision
	for _, e := range events {
		out = c.applyEvent(now, e, out)
	}
	c.fireTimers(now)
	out = c.tellLearned(c.tellUsed(out))
	if !c.dirty {
		return out
	}
	c.dirty, c.passed = false, now
	c.rebuildFleet()
	proposed := c.proposal
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
		if c.table.Remove(fleet.NodeKey{Pool: e.Pool, Name: e.Name}) {
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
		if r := c.running[e.Job]; r != nil && r.suspending {
			c.clearSuspending(r) // it goes whole
		}
		c.markStopping(e.Job)
	case Suspended:
		c.suspendRun(e)
	case Saved:
		if r := c.running[e.Job]; r != nil {
			c.noteCheckpoint(r, e.At)
		}
	case Approved:
		c.approved, c.dirty = &e, true
	case Begun:
		if r := c.running[e.Job]; r != nil && r.isElastic() && r.begun == e.Not {
			r.begun, c.dirty = !e.Not, true
			c.stirs++
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
	if changed, _ := c.table.Put(n); changed {
		c.nodeChanged(n.Name)
		c.fleetChanged()
	}
}

// fleetChanged notes that the fleet has changed.
func (c *Core) fleetChanged() { c.refitted, c.dirty = true, true }

func (c *Core) submitJob(s Submitted) {
	if r := c.running[s.Job]; r != nil && r.nominee == nil {
		return // it holds resources: control tells Released before it queues a job again
	}
	e := &queuedJob{id: s.Job, spec: s.Spec, priority: s.Priority, fixed: s.Fixed, at: s.At, eligible: wholeSecond(s.Eligible), moved: s.Moved}
	if s.Eligible == 0 {
		e.eligible = wholeSecond(c.now)
	}
	was := accrueUnlimited
	old := c.queued[s.Job]
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
		c.shaken = true // what was planned for it was for what it asked then
	}
	c.queued[s.Job] = e
	c.scheduleStage(e, next)
	c.startAccruing(e, was)
	c.enqueueJob(e)
	if old == nil {
		c.learnArrival(c.byShape[e.class.key.shape])
	}
}

func (c *Core) enqueueJob(e *queuedJob) {
	c.insertJob(e)
	c.fresh = append(c.fresh, e)
	c.dirty = true
}

func (c *Core) withdrawJob(id job.ID) {
	if e := c.queued[id]; e != nil {
		c.dropQueued(e)
		c.dirty = true
	}
}

// dropQueued takes an entry out of the queue.
func (c *Core) dropQueued(e *queuedJob) {
	delete(c.queued, e.id)
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
	e := c.queued[b.Job]
	if e == nil {
		return out
	}
	if e.nominee != nil {
		c.dissolveNomination(e.nominee)
	}
	if !e.blocked {
		c.removeJob(e)
		e.blocked, c.dirty = true, true
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
	e := c.queued[id]
	if e == nil || !e.blocked {
		return
	}
	e.blocked, e.gate = false, nil
	if e.eligible == 0 {
		e.eligible = wholeSecond(c.now)
		c.startAccruing(e, accrueUnlimited)
	}
	c.enqueueJob(e)
	c.moveToStage(e)
}

func (c *Core) restoreRun(r Restored) {
	if e := c.queued[r.Job]; e != nil {
		c.dropQueued(e)
	}
	if c.running[r.Job] != nil {
		c.releaseRun(r.Job, 0)
	}
	terms := c.policyWithLicense(r.Spec, r.License)
	c.joinShares(terms)
	x := &run{id: r.Job, spec: r.Spec, policy: terms, claims: r.Claims, began: r.Began, submitted: r.Submitted, until: orNever(r.Until), flavors: r.Flavors, license: r.License, priority: r.Priority, rank: r.Priority, savedAt: r.Saved, stopping: r.Stopping, suspending: r.Suspending, givesWay: r.GivesWay, tail: r.Tail, turn: max(r.Turn, r.Began), moved: r.Moved, goesFor: r.GoesFor, begun: r.Begun, waits: r.Waits}
	if r.Parked != nil {
		c.restoreSuspended(x, r.Parked)
	}
	c.holdRun(x)
	if r.Home != nil && !c.decidesAsSlurm() { // where nothing moves, and nobody would give it up
		c.holdTarget(r.Job, r.Spec, r.Flavors, r.Home, c.now, endAfter(c.now, max(r.Spec.TimeLimit, 0)))
	}
	c.shaken, c.dirty = true, true
}

func (c *Core) extendRun(x Extended) {
	if r := c.running[x.Job]; r != nil && r.waits && x.Began > 0 {
		c.beginBilling(r, x.Began)
	}
	if r := c.running[x.Job]; r != nil && r.nominee == nil && r.suspension == nil && r.until != addTime(orNever(x.Until), r.tail) {
		before := len(c.freed)
		added := slices.Clone(r.added)
		for _, a := range added {
			c.unholdRun(a)
		}
		c.unholdRun(r)
		next := *r
		next.at, next.until, next.added = nil, addTime(orNever(x.Until), r.tail), nil
		c.holdRun(&next)
		for _, a := range added {
			longer := *a
			longer.at, longer.until, longer.of = nil, next.until, &next
			c.holdRun(&longer)
		}
		c.freed = c.freed[:before] // nothing became free
		c.shaken, c.dirty = true, true
	}
}

func (c *Core) releaseRun(id job.ID, ended Instant) {
	if ended == 0 || ended > c.now {
		ended = c.now
	}
	if r := c.running[id]; r != nil && r.nominee == nil {
		for _, a := range slices.Clone(r.added) {
			c.billEnd(a, ended)
			c.unholdRun(a)
		}
		c.billEnd(r, ended)
		c.unholdRun(r)
		c.releasePolicy(r.policy)
		c.shaken, c.dirty = true, true
	}
}

// Feasible says what is too large about a specification for an empty fleet with
// every node up; nil if it could start there. A job without a feasible shape
// waits, but never reserves and is in nobody's way.
func (c *Core) Feasible(spec *job.Spec) []reason.Reason {
	return place.Never(c.table, class.Compile(spec), true)
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
