package sched

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/account/fair"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/sched/index"
	"github.com/coxswain-sched/coxswain/sched/limit"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// fleetState is the nodes and what is free on them.
//
// Invariants: state is the fleet less the claims of runs; cells and the future of each
// node agree with it.
type fleetState struct {
	table   *index.Table
	state   *index.State // what is free now
	empty   *index.State // what would be free if nothing ran
	cells   *index.Cells // of state
	nodes   []node       // by position
	picks   *place.Picks
	version uint64 // raised when the fleet changed
	dirty   bool   // the fleet has changed and rebuildFleet is due

	freed        []int32 // nodes on which something became free since the last cycle
	freedCells   []int32 // scratch of wakeFreed: their cells
	changed      []int32 // nodes that changed, for availability profiles
	changedEpoch uint64  // raised when changed was begun anew
}

// runSet is what holds resources.
//
// Invariants: a job is queued or running, never both, except where a run is only held
// for a nominated job; ends has each run and each addition once.
type runSet struct {
	byJob    map[job.ID]*run // jobs that run, and what is held for nominated jobs and moves
	ends     plannedEnds
	stopping int // runs whose end was asked for
	open     int // that serve and have no end of their own
}

// run is a job that holds resources.
type run struct {
	id      job.ID
	until   Instant     // never: no limit
	nominee *nomination // it is only held for that job; nil: it runs
	began   Instant
	policy  *effectivePolicy

	spec      *job.Spec      // nil: not known
	flavors   []string       // of quotas, in which it was placed; nil: not known
	license   string         // of alternatives that it asked for, the one that it has
	charges   []quota.Charge // to the quota of its policy
	counted   *limit.Hold    // nil: it counts against no limit
	submitted Instant        // 0: not known
	claims    []fleet.Claim
	at        []int32 // position of each claim's node; -1: the table does not know it

	priority int64            // as submitted
	rank     int64            // the number that ordered it when it started; that of before if it is not known
	stopping bool             // its end has been asked for, or that it is suspended
	waits    bool             // it was handed over to its pool's own scheduler, and has not begun: it is charged for nothing
	target   *migrationTarget // it is a place kept for a job that moves; nil: it runs
	of       *run             // what this was added to; nil: it is a job's minimum
	part     int32            // number of the addition; 0: it is none
	added    []*run           // in the order of their numbers

	bill   runBilling
	growth runGrowth
	move   runMove
	pause  runPause
	search runSearch
}

// runBilling is what a run is charged for.
type runBilling struct {
	upTo  int64    // this second it is charged for other claims
	use   fair.Use // what it is charged for, if that is …
	known bool     // … known
}

// runGrowth is how a run grows, if it is elastic.
type runGrowth struct {
	lastPart int32     // the last number of an addition
	allowed  bool      // all of it is there: it may grow
	settled  bool      // it does not grow any more
	triedAt  [2]uint64 // schedulingCycle.growthVersion when it could not grow
}

// runMove is what makes a run movable, and where a move of it has got to.
type runMove struct {
	savedAt   Instant // its last checkpoint; 0: none
	askedAt   Instant // when it was last asked to move; 0: never
	startsJob job.ID  // it is asked to move so that this one starts; 0: it is not
}

// runPause is the suspension of a run for others.
type runPause struct {
	asked     bool        // with run.stopping: it is to be suspended
	givesWay  bool        // with asked: to a suspended job, whose turn it is
	suspended *suspension // nil: it is not
	turn      Instant     // since when it runs without a break
	tail      Instant     // how long those may go on whose place it has, after it
}

// runSearch is what a search for victims knows of a run.
type runSearch struct {
	unit    int32 // noUnit: it is not in one
	lifts   int   // for how many units it is lifted
	devices int64 // held, in thousandths
	weight  int64 // what it holds, for the price of taking it back
}

// isAggregate reports whether it is in a pool as a whole: nobody knows here what it lends, or
// where else it could be.
func (r *run) isAggregate() bool { return len(r.claims) > 0 && aggregate.Is(r.claims[0].Node) }

func (r *run) compareEnds(o *run) int {
	return cmp.Or(cmp.Compare(r.until, o.until), cmp.Compare(r.id, o.id), cmp.Compare(r.part, o.part))
}

// heldClaim is one claim of a run, on the node where it stands.
type heldClaim struct {
	run   *run
	claim int32
}

// futureCell is how a node will be from an instant on if running jobs use their limits.
type futureCell struct {
	from Instant
	cell int32
}

// node is what the core knows of one node beside its description and what is free.
type node struct {
	held     []heldClaim    // by planned end
	future   []futureCell   // after each planned end, those without one left out; see futureCells
	late     bool           // coming is to be worked out when somebody asks: of a pool as a whole, which all its jobs change
	planned  []plannedClaim // for jobs that wait
	timeline *nodeTimeline  // beside what is planned; nil: nothing ever was
}

// rebuildFleet builds what follows from the fleet anew after it changed.
func (c *Core) rebuildFleet() {
	if !c.fleet.dirty {
		if c.fleet.cells.Crowded() {
			c.rebuildCells()
			if e := c.queue.jobs[c.plan.job]; c.plan.profile != nil && e != nil {
				c.plan.profile = c.profileOf(e.class.kind)
				c.plan.profile.settleAt(c.plan.at)
			}
		}
		return
	}
	c.fleet.dirty = false
	c.fleet.empty = c.fleet.table.Empty(false)
	c.fleet.state = c.fleet.empty.Clone()
	c.fleet.nodes = make([]node, c.fleet.table.Len())
	c.fleet.picks = place.NewPicks()
	for _, chunk := range c.runs.ends.chunks {
		for _, r := range chunk {
			c.locateClaims(r)
			for i, pos := range r.at {
				if pos >= 0 {
					c.fleet.state.Change(c.fleet.table, int(pos), &r.claims[i], 1)
					c.fleet.nodes[pos].held = append(c.fleet.nodes[pos].held, heldClaim{r, int32(i)})
				}
			}
		}
	}
	c.rebuildCells()
	c.locateReservations()
	for _, s := range c.backfill.starts {
		if s.onNodes {
			c.addToNodes(s)
		}
	}
	c.fleetMeasured()
	c.scaleLimits()
	c.fleet.freed = c.fleet.freed[:0]
	for _, k := range c.queue.kinds {
		k.full = false
		for _, l := range k.classes {
			l.waiting = toLookAt
			if l.jobs.len() > 0 {
				c.updateHeads(l)
				c.wakeClass(l)
			}
		}
	}
	c.planDirty = true
}

// rebuildCells sorts the nodes into new cells. Of itself it changes no decision.
func (c *Core) rebuildCells() {
	c.recountLimits()
	c.fleet.cells = index.NewCells(c.fleet.table, c.fleet.state)
	for pos := range c.fleet.nodes {
		c.resetFuture(pos)
	}
	c.fleet.version++
	c.generation++
	c.fleet.changed = c.fleet.changed[:0]
	c.fleet.changedEpoch++
	for _, k := range c.queue.kinds {
		k.profile = nil
	}
}

// locateClaims finds the nodes of a run's claims.
func (c *Core) locateClaims(r *run) {
	r.at = slices.Grow(r.at[:0], len(r.claims))[:len(r.claims)]
	for i := range r.claims {
		r.at[i] = int32(c.fleet.table.Find(r.claims[i].Key()))
	}
}

// holdRun adds a running job.
func (c *Core) holdRun(r *run) {
	c.countRun(r)
	c.runs.ends.insertRun(r)
	c.tallyRun(r, 1)
	if c.fleet.dirty {
		return // rebuildFleet takes it
	}
	c.locateClaims(r)
	for i, pos := range r.at {
		if pos < 0 {
			continue
		}
		c.fleet.state.Change(c.fleet.table, int(pos), &r.claims[i], 1)
		n := &c.fleet.nodes[pos]
		at, _ := slices.BinarySearchFunc(n.held, r, func(h heldClaim, r *run) int { return h.run.compareEnds(r) })
		n.held = slices.Insert(n.held, at, heldClaim{r, int32(i)})
	}
	c.updateNodes(r)
}

// countRun lists a run, or an addition with its job, and counts what the job holds.
func (c *Core) countRun(r *run) {
	job := r
	if r.of != nil {
		job = r.of
		c.creditQuota(job)
		c.uncountLimits(job)
		at, _ := slices.BinarySearchFunc(job.added, r, func(a, b *run) int { return cmp.Compare(a.part, b.part) })
		job.added = slices.Insert(job.added, at, r)
	} else {
		c.runs.byJob[r.id] = r
		c.addGrowable(r)
	}
	c.chargeQuota(job)
	c.countLimits(job)
}

// uncountRun is the opposite of countRun.
func (c *Core) uncountRun(r *run) {
	job := r
	if r.of != nil {
		job = r.of
	}
	c.creditQuota(job)
	c.uncountLimits(job)
	if r.of == nil {
		delete(c.runs.byJob, r.id)
		c.removeGrowable(r)
		return
	}
	job.added = slices.DeleteFunc(slices.Clone(job.added), func(a *run) bool { return a == r })
	c.chargeQuota(job)
	c.countLimits(job)
}

// unholdRun takes a running job away.
func (c *Core) unholdRun(r *run) {
	c.uncountRun(r)
	c.runs.ends.remove(r)
	c.tallyRun(r, -1)
	if c.fleet.dirty {
		return
	}
	for i, pos := range r.at {
		if pos < 0 {
			continue
		}
		c.fleet.state.Change(c.fleet.table, int(pos), &r.claims[i], -1)
		n := &c.fleet.nodes[pos]
		n.held = slices.DeleteFunc(n.held, func(h heldClaim) bool { return h.run == r && h.claim == int32(i) })
		c.fleet.freed = append(c.fleet.freed, pos)
	}
	c.updateNodes(r)
}

// updateNodes renews what is known of a run's nodes.
func (c *Core) updateNodes(r *run) {
	for i, pos := range r.at {
		if pos < 0 || i > 0 && pos == r.at[i-1] {
			continue
		}
		c.fleet.cells.Update(int(pos))
		c.resetFuture(int(pos))
		c.fleet.changed = append(c.fleet.changed, pos)
	}
	if len(c.fleet.changed) > maxLog {
		c.fleet.changed = c.fleet.changed[:0]
		c.fleet.changedEpoch++
	}
}

// maxLog bounds how many changes of nodes are remembered for availability profiles that are not
// looked at; one that has missed more is made anew.
const maxLog = 1 << 16

// futureCells is how a node will be after each planned end.
func (c *Core) futureCells(pos int) []futureCell {
	n := &c.fleet.nodes[pos]
	if n.late {
		n.late = false
		c.computeFuture(pos)
	}
	return n.future
}

// resetFuture notes that what is said of a node's future is out of date, and works it out.
func (c *Core) resetFuture(pos int) {
	n := &c.fleet.nodes[pos]
	n.future = n.future[:0]
	if n.timeline != nil {
		n.timeline.known = false
	}
	if n.late = aggregate.Is(c.fleet.table.Node(pos).Name); !n.late {
		c.computeFuture(pos)
	}
}

// computeFuture works out how a node will be after each planned end.
func (c *Core) computeFuture(pos int) {
	n := &c.fleet.nodes[pos]
	if c.fleet.cells.Of(pos) < 0 {
		return
	}
	row := *c.fleet.state.Row(pos)
	desc := c.fleet.table.Node(pos)
	for i, h := range n.held {
		if h.run.until == never {
			return
		}
		row.Change(desc, &h.run.claims[h.claim], -1)
		if i+1 == len(n.held) || n.held[i+1].run.until != h.run.until {
			n.future = append(n.future, futureCell{h.run.until, c.fleet.cells.Intern(pos, &row)})
		}
	}
}

// cellAt is the cell of a node at an instant.
func (c *Core) cellAt(pos int, at Instant) int32 {
	cell := c.fleet.cells.Of(pos)
	for _, a := range c.futureCells(pos) {
		if a.from > at {
			break
		}
		cell = a.cell
	}
	return cell
}

// rowAt is what is free on a node at an instant.
func (c *Core) rowAt(pos int, at Instant) index.Row {
	row := *c.fleet.state.Row(pos)
	for _, h := range c.fleet.nodes[pos].held {
		if h.run.until > at {
			break
		}
		row.Change(c.fleet.table.Node(pos), &h.run.claims[h.claim], -1)
	}
	return row
}
