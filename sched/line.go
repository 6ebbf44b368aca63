package sched

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/reason"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/place"
)

// line is the queue of jobs that are alike to the core: same shape, same limit.
// Only its first job is ever looked at; those behind it cannot do better.
type line struct {
	key     lineKey
	kind    *kind
	limit   time.Duration
	entries []*entry // in queue order, without blocked ones
	members int      // queued jobs of this kind, blocked ones too

	why     reason.Reason // why the first one waits
	leader  *entry        // whom that was told
	parked  uint64        // at this value of grown …
	planned uint64        // … and of the plan's version it could not start
}

type lineKey struct {
	shape *class.Shape
	limit time.Duration
}

// kind is what is known of a shape. Versions say when it was found; free
// resources only shrink between two of them, so a no stays a no.
type kind struct {
	shape      *class.Shape
	lines      int
	full       uint64 // value of grown at which it did not fit
	shadowed   uint64 // version of the plan for which it did not fit beside the head
	judged     uint64 // value of changed at which impossible was found
	impossible bool   // not even the empty fleet takes it
}

// lineOf returns the line that a specification belongs to and counts one more
// member.
func (c *Core) lineOf(spec *job.Spec) *line {
	shape := c.shapes.Shape(spec)
	key := lineKey{shape, max(spec.TimeLimit, 0)}
	l := c.lines[key]
	if l == nil {
		l = &line{key: key, kind: c.kind(shape), limit: key.limit}
		l.kind.lines++
		c.lines[key] = l
	}
	l.members++
	return l
}

func (c *Core) kind(shape *class.Shape) *kind {
	k, ok := c.kinds[shape]
	if !ok {
		k = &kind{shape: shape}
		c.kinds[shape] = k
	}
	return k
}

// leave counts one member less and forgets what nobody needs any longer.
func (c *Core) leave(l *line) {
	l.members--
	if l.members > 0 {
		return
	}
	delete(c.lines, l.key)
	l.kind.lines--
	if l.kind.lines == 0 {
		delete(c.kinds, l.kind.shape)
		c.shapes.Forget(l.kind.shape)
	}
}

func (l *line) insert(e *entry) {
	i, _ := slices.BinarySearchFunc(l.entries, e, (*entry).before)
	l.entries = slices.Insert(l.entries, i, e)
}

func (l *line) remove(e *entry) {
	if i, found := slices.BinarySearchFunc(l.entries, e, (*entry).before); found {
		l.entries = slices.Delete(l.entries, i, i+1)
	}
}

// fit places a shape on what is free now.
func (c *Core) fit(k *kind) []fleet.Claim {
	if k.full == c.grown {
		return nil
	}
	claims := place.Gang(c.table, c.state, k.shape)
	if claims == nil {
		k.full = c.grown
	}
	return claims
}

// possible reports whether the empty fleet, as it is up now, takes a shape.
func (c *Core) possible(k *kind) bool {
	if k.judged != c.changed {
		k.judged = c.changed
		k.impossible = !place.Fits(c.table, c.empty, k.shape)
	}
	return !k.impossible
}
