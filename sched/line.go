package sched

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// line is the queue of jobs that are alike to the core: same shape, same limit.
// Only its first job is ever looked at; those behind it cannot do better.
//
// A line that could not start anything rests. It is looked at again when its first
// job changes or when what it rests for has changed: room, the plan, the fleet.
type line struct {
	jobs    fifo    // without blocked ones
	base    float64 // of the priority of each of its jobs, where that is reckoned, as of …
	weighed uint64  // … ranks.reckoned; see basis
	ranks   *ranks  // nil: the jobs' own priorities
	members int     // queued jobs of this kind, blocked ones too
	tier    int32   // of its partition
	stands  rung    // of its first job; see there
	rest    rest
	awake   bool // listed in Core.woken
	touched bool // listed in Core.touched
	noted   bool // listed while lines are gathered (recall.go)
	heeds   bool // it rests for what the head may have, not for nodes
	over    bool // where its job was placed last, it took more than its quota had
	key     lineKey

	kind  *kind
	limit time.Duration
	size  size // of each of its jobs, where priorities are reckoned
	spot  int  // in pass.order or queue.order; -1: it is not there
	place int  // in Core.heads; -1: no job, or none that the fleet could take

	why    reason.Reason // why the first one waits, if the line rests
	leader *entry        // whom that was told
	stake  *stake        // what its jobs ask of a quota; nil: there is none

	allowance

	searched uint64 // Core.stirs when a search for victims found nothing …
	searcher *entry // … for this job
	anyway   bool   // … as it fits once those have gone who go anyway
}

type lineKey struct {
	shape *class.Shape
	limit time.Duration
	least time.Duration // its limit may be shortened to this; 0: not at all
	terms *terms
	own   own // zero where jobs' own priorities order the queue
}

// rest is what a line rests for.
type rest uint8

const (
	active   rest = iota // it has not been looked at since something changed for it
	forRoom              // it does not fit what is free
	forPlan              // it would delay the head
	forFleet             // not even the empty fleet takes it
	forQuota             // its account's quota does not reach
	forTurn              // it stands behind another line of a strict queue
	forLimit             // a limit or a licence does not allow it
	forTime              // the reservation that it is to run in does not hold
	forShare             // the fair share is below the threshold of its QOS
)

// kind is what is known of a shape.
type kind struct {
	shape *class.Shape
	lines []*line      // that are placed as it
	uses  int          // lines whose jobs are of it, or may be placed as it
	index int          // in Core.kinds
	quick *place.Quick // nil: the shape is not regular
	since uint64       // Core.fleet for which quick was made
	look  *outlook     // nil: never the head's

	roused   uint64 // Core.passes in which verdicts were found
	verdicts []verdict

	arrivals []arrival // what its jobs count as when they arrive, if that …
	counted  bool      // … has been worked out

	vain attempts // see beginOnce

	full       bool   // does not fit what is free; stays so until something fitting is freed
	shadowed   uint64 // version of the plan for which it did not fit beside the head
	judged     uint64 // Core.fleet at which impossible was found
	impossible bool   // not even the empty fleet takes it
}

// classOf returns the line that a job belongs to and counts one more member.
func (c *Core) classOf(e *entry) *line {
	shape := c.shapeOf(e)
	key := lineKey{shape: shape, limit: max(e.spec.TimeLimit, 0), terms: c.policyOf(e.spec)}
	if spec := e.spec; spec.TimeMin > 0 && spec.TimeMin < key.limit {
		key.least = spec.TimeMin
	}
	c.joinShares(key.terms)
	key.own = ownOf(e, key.terms)
	l := c.lines[key]
	if l == nil {
		l = &line{key: key, kind: c.kindOf(shape), limit: key.limit, place: -1, spot: -1, stake: c.quotaDemandOf(key.terms, shape)}
		l.kind.lines = append(l.kind.lines, l)
		l.kind.uses++
		if l.stake != nil {
			l.stake.queue.lines = append(l.stake.queue.lines, l)
			l.stake.queue.cuts += min(l.stake.spare, 1)
		}
		c.lines[key] = l
		c.computeSize(l)
		c.computeNeeds(l)
		if c.preemption != nil && l.stake == nil && c.preemption.mayPreempt(key.terms.standing) {
			c.eager = append(c.eager, l)
		}
	} else {
		c.releasePolicy(key.terms) // a line uses its terms once
	}
	l.members++
	return l
}

func (c *Core) kindOf(shape *class.Shape) *kind {
	k, ok := c.byShape[shape]
	if !ok {
		k = &kind{shape: shape, index: len(c.kinds)}
		c.byShape[shape] = k
		c.kinds = append(c.kinds, k)
	}
	return k
}

// leaveClass counts one member less and forgets what nobody needs any longer.
func (c *Core) leaveClass(l *line) {
	l.members--
	if l.members > 0 {
		return
	}
	c.removeFromHeads(l)
	delete(c.lines, l.key)
	if i := slices.Index(c.eager, l); i >= 0 {
		c.eager = slices.Delete(c.eager, i, i+1)
	}
	c.releasePolicy(l.key.terms)
	i := slices.Index(l.kind.lines, l)
	l.kind.lines = slices.Delete(l.kind.lines, i, i+1)
	if s := l.stake; s != nil {
		i := slices.Index(s.queue.lines, l)
		s.queue.lines = slices.Delete(s.queue.lines, i, i+1)
		s.queue.cuts -= min(s.spare, 1)
		s.queue.releaseDemand(s.demand)
		for _, x := range s.kinds {
			c.releaseKind(x.kind)
		}
	}
	c.releaseKind(c.byShape[l.key.shape])
}

// releaseKind counts one use of a kind less.
func (c *Core) releaseKind(k *kind) {
	if k == nil {
		return
	}
	if k.uses--; k.uses == 0 {
		last := c.kinds[len(c.kinds)-1]
		c.kinds[k.index], last.index = last, k.index
		c.kinds = c.kinds[:len(c.kinds)-1]
		delete(c.byShape, k.shape)
		c.shapes.Forget(k.shape)
	}
}

// goesBefore is the order of lines by their first jobs.
func (l *line) goesBefore(o *line) bool {
	return l.firstRank().isBefore(o.firstRank())
}

// insertJob adds a job to its line. A first one is looked at, unless its kind is known
// not to fit.
func (c *Core) insertJob(e *entry) {
	l := e.line
	l.jobs.insertSorted(e)
	if l.jobs.firstJob() == e {
		c.firstJobChanged(l)
	}
}

// removeJob takes a job out of its line.
func (c *Core) removeJob(e *entry) {
	c.dropPlannedStart(e)
	l := e.line
	first := l.jobs.firstJob() == e
	l.jobs.remove(e)
	if first {
		c.firstJobChanged(l)
	}
}

// firstJobChanged notes that a line has another first job.
func (c *Core) firstJobChanged(l *line) {
	l.stands.of = nil
	if !l.rest.isBarred() || l.place >= 0 {
		c.updateHeads(l)
	}
	c.touchClass(l)
	l.updateBest()
	if l.rest != forRoom && !l.rest.isBarred() {
		c.wakeClass(l)
	}
	if l.stake != nil {
		c.wakeStrictQueue(l.stake.queue)
	}
}

// wakeClass has a line looked at in the next pass.
func (c *Core) wakeClass(l *line) {
	l.rest = active
	if !l.awake {
		l.awake = true
		c.woken = append(c.woken, l)
	}
}

// touchClass has the line's first job told its reason if that is another one.
func (c *Core) touchClass(l *line) {
	if !l.touched {
		l.touched = true
		c.touched = append(c.touched, l)
	}
}

// quickPlacement returns the placement of a kind on cells, or nil if it has none.
func (c *Core) quickPlacement(k *kind) *place.Quick {
	if k.since != c.fleet {
		k.since, k.quick = c.fleet, nil
		if place.Regular(k.shape) {
			k.quick = place.NewQuick(c.table, c.state, c.cells, k.shape, c.picks)
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
	claims := place.Gang(c.table, c.state, k.shape)
	k.full = claims == nil
	return claims
}

// fitsFleet reports whether the empty fleet, as it is up now, takes a shape.
func (c *Core) fitsFleet(k *kind) bool {
	if k.judged != c.fleet {
		k.judged = c.fleet
		k.impossible = !place.Fits(c.table, c.empty, k.shape)
	}
	return !k.impossible
}
