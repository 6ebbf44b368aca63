package sched

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// jobQueue is the queued jobs by class.
//
// Invariants: each class is in queue order and holds exactly the queued jobs of its kind
// that are not blocked or nominated.
type jobQueue struct {
	jobs    map[job.ID]*queuedJob
	classes map[classKey]*jobClass
	kinds   []*kind
	byShape map[*class.Shape]*kind
	heads   heads // classes with jobs that the fleet could take

	woken   []*jobClass  // to be looked at
	forPlan []*jobClass  // that wait for the plan
	touched []*jobClass  // whose first job may have another reason
	fresh   []*queuedJob // that have not been told a reason

	sharedReasons [8]*reason.Reason // told last: jobs that wait for the same share one
}

// jobClass is the queue of jobs that are alike to the core: same shape, same limit.
// Only its first job is ever looked at; those behind it cannot do better.
//
// A class that could not start anything rests. It is looked at again when its first
// job changes or when what it rests for has changed: room, the plan, the fleet.
type jobClass struct {
	jobs          fifo         // without blocked ones
	base          float64      // of the priority of each of its jobs, where that is reckoned, as of …
	weighed       uint64       // … multifactor.reckoned; see basePriority
	multifactor   *multifactor // nil: the jobs' own priorities
	members       int          // queued jobs of this kind, blocked ones too
	tier          int32        // of its partition
	rank          queueRank    // of its first job; see there
	waiting       waitState
	awake         bool // listed in jobQueue.woken
	touched       bool // listed in jobQueue.touched
	noted         bool // listed while classes are gathered (elastic_shrink.go)
	waitsForHead  bool // it rests for what the head may have, not for nodes
	exceededQuota bool // where its job was placed last, it took more than its quota had
	key           classKey

	kind        *kind
	limit       time.Duration
	size        jobSize // of each of its jobs, where priorities are reckoned
	behindIndex int     // in schedulingCycle.order or quotaQueue.order; -1: it is not there
	headsIndex  int     // in jobQueue.heads; -1: no job, or none that the fleet could take

	why         reason.Reason // why the first one waits, if the class rests
	leader      *queuedJob    // whom that was told
	quotaDemand *quotaDemand  // what its jobs ask of a quota; nil: there is none

	classLimits

	searched        uint64     // Core.generation when a search for victims found nothing …
	searcher        *queuedJob // … for this job
	fitsWithLeavers bool       // … as it fits once those have gone who go anyway
}

type classKey struct {
	shape  *class.Shape
	limit  time.Duration
	least  time.Duration // its limit may be shortened to this; 0: not at all
	open   bool          // it serves, and has no end of its own (time_min.go)
	policy *effectivePolicy
	own    ownPriority // zero where jobs' own priorities order the queue
}

// waitState is what a class rests for.
type waitState uint8

const (
	toLookAt       waitState = iota // it has not been looked at since something changed for it
	forNodes                        // it does not fit what is free
	forPlan                         // it would delay the head
	forFleet                        // not even the empty fleet takes it
	forQuota                        // its account's quota does not reach
	forQueueOrder                   // it stands behind another class of a strict queue
	forLimit                        // a limit or a licence does not allow it
	forReservation                  // the reservation that it is to run in does not hold
	forFairShare                    // the fair share is below the threshold of its QOS
)

// kind is what is known of a shape.
type kind struct {
	shape   *class.Shape
	classes []*jobClass          // that are placed as it
	uses    int                  // classes whose jobs are of it, or may be placed as it
	index   int                  // in jobQueue.kinds
	quick   *place.Quick         // nil: the shape is not regular
	since   uint64               // fleetState.version for which quick was made
	profile *availabilityProfile // nil: never the head's

	roused   uint64 // planWatch.cycles in which verdicts were found
	verdicts []wakeVerdict

	arrivals []arrivalClass // what its jobs count as when they arrive, if that …
	counted  bool           // … has been worked out

	failed failedStarts // see placeNowOnce

	full          bool   // does not fit what is free; stays so until something fitting is freed
	blockedPlan   uint64 // version of the plan for which it did not fit beside the head
	feasibleFleet uint64 // fleetState.version at which impossible was found
	impossible    bool   // not even the empty fleet takes it
}

// classOf returns the class that a job belongs to and counts one more member.
func (c *Core) classOf(e *queuedJob) *jobClass {
	shape := c.shapeOf(e)
	key := classKey{shape: shape, policy: c.policyOf(e.spec)}
	key.setTimes(e.spec)
	c.joinShares(key.policy)
	key.own = ownOf(e, key.policy)
	l := c.queue.classes[key]
	if l == nil {
		l = &jobClass{key: key, kind: c.kindOf(shape), limit: key.limit, headsIndex: -1, behindIndex: -1, quotaDemand: c.quotaDemandOf(key.policy, shape)}
		l.kind.classes = append(l.kind.classes, l)
		l.kind.uses++
		if l.quotaDemand != nil {
			l.quotaDemand.queue.classes = append(l.quotaDemand.queue.classes, l)
			l.quotaDemand.queue.cuts += min(l.quotaDemand.cuttable, 1)
		}
		c.queue.classes[key] = l
		c.computeSize(l)
		c.computeNeeds(l)
		if c.preempt.rules != nil && l.quotaDemand == nil && c.preempt.rules.mayPreempt(key.policy.preemption) {
			c.preempt.eager = append(c.preempt.eager, l)
		}
	} else {
		c.releasePolicy(key.policy) // a class uses its policy once
	}
	l.members++
	return l
}

func (c *Core) kindOf(shape *class.Shape) *kind {
	k, ok := c.queue.byShape[shape]
	if !ok {
		k = &kind{shape: shape, index: len(c.queue.kinds)}
		c.queue.byShape[shape] = k
		c.queue.kinds = append(c.queue.kinds, k)
	}
	return k
}

// leaveClass counts one member less and forgets what nobody needs any longer.
func (c *Core) leaveClass(l *jobClass) {
	l.members--
	if l.members > 0 {
		return
	}
	c.removeFromHeads(l)
	delete(c.queue.classes, l.key)
	if i := slices.Index(c.preempt.eager, l); i >= 0 {
		c.preempt.eager = slices.Delete(c.preempt.eager, i, i+1)
	}
	c.releasePolicy(l.key.policy)
	i := slices.Index(l.kind.classes, l)
	l.kind.classes = slices.Delete(l.kind.classes, i, i+1)
	if s := l.quotaDemand; s != nil {
		i := slices.Index(s.queue.classes, l)
		s.queue.classes = slices.Delete(s.queue.classes, i, i+1)
		s.queue.cuts -= min(s.cuttable, 1)
		s.queue.releaseDemand(s.demand)
		for _, x := range s.kinds {
			c.releaseKind(x.kind)
		}
	}
	c.releaseKind(c.queue.byShape[l.key.shape])
}

// releaseKind counts one use of a kind less.
func (c *Core) releaseKind(k *kind) {
	if k == nil {
		return
	}
	if k.uses--; k.uses == 0 {
		last := c.queue.kinds[len(c.queue.kinds)-1]
		c.queue.kinds[k.index], last.index = last, k.index
		c.queue.kinds = c.queue.kinds[:len(c.queue.kinds)-1]
		delete(c.queue.byShape, k.shape)
		c.shapes.Forget(k.shape)
	}
}

// goesBefore is the order of classes by their first jobs.
func (l *jobClass) goesBefore(o *jobClass) bool {
	return l.firstRank().isBefore(o.firstRank())
}

// insertJob adds a job to its class. A first one is looked at, unless its kind is known
// not to fit.
func (c *Core) insertJob(e *queuedJob) {
	l := e.class
	l.jobs.insertSorted(e)
	if l.jobs.firstJob() == e {
		c.firstJobChanged(l)
	}
}

// removeJob takes a job out of its class.
func (c *Core) removeJob(e *queuedJob) {
	c.dropPlannedStart(e)
	l := e.class
	first := l.jobs.firstJob() == e
	l.jobs.remove(e)
	if first {
		c.firstJobChanged(l)
	}
}

// firstJobChanged notes that a class has another first job.
func (c *Core) firstJobChanged(l *jobClass) {
	l.rank.of = nil
	if !l.waiting.isBarred() || l.headsIndex >= 0 {
		c.updateHeads(l)
	}
	c.touchClass(l)
	l.updateBest()
	if l.waiting != forNodes && !l.waiting.isBarred() {
		c.wakeClass(l)
	}
	if l.quotaDemand != nil {
		c.wakeStrictQueue(l.quotaDemand.queue)
	}
}

// wakeClass has a class looked at in the next cycle.
func (c *Core) wakeClass(l *jobClass) {
	l.waiting = toLookAt
	if !l.awake {
		l.awake = true
		c.queue.woken = append(c.queue.woken, l)
	}
}

// touchClass has the class's first job told its reason if that is another one.
func (c *Core) touchClass(l *jobClass) {
	if !l.touched {
		l.touched = true
		c.queue.touched = append(c.queue.touched, l)
	}
}

// quickPlacement returns the placement of a kind on cells, or nil if it has none.
func (c *Core) quickPlacement(k *kind) *place.Quick {
	if k.since != c.fleet.version {
		k.since, k.quick = c.fleet.version, nil
		if place.Regular(k.shape) {
			k.quick = place.NewQuick(c.fleet.table, c.fleet.state, c.fleet.cells, k.shape, c.fleet.picks)
		}
	}
	if k.quick != nil {
		k.quick.Prefer(c.expectedArrivals())
	}
	return k.quick
}

// placeFree places a shape on what is free now.
func (c *Core) placeFree(k *kind) []fleet.Claim {
	if k.full {
		return nil
	}
	if q := c.quickPlacement(k); q != nil {
		claims, sure := q.Place(nil)
		if sure {
			k.full = claims == nil
			return claims
		}
	}
	claims := place.Gang(c.fleet.table, c.fleet.state, k.shape)
	k.full = claims == nil
	return claims
}

// fitsFleet reports whether the empty fleet, as it is up now, takes a shape.
func (c *Core) fitsFleet(k *kind) bool {
	if k.feasibleFleet != c.fleet.version {
		k.feasibleFleet = c.fleet.version
		k.impossible = !place.Fits(c.fleet.table, c.fleet.empty, k.shape)
	}
	return !k.impossible
}
