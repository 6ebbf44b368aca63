package sched

import (
	"math/bits"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/place"
	"github.com/coxswain-sched/coxswain/sched/plan"
)

// availabilityProfile says when each node can take its part of a gang of one kind, if running
// jobs use their limits. The gang fits from the instant on at which as many nodes as
// it has can: nodes only become freer as long as nothing new starts.
//
// A job behind the head may start on any nodes as long as enough are left for the
// head at its instant. So the head is promised an instant and a number of nodes
// rather than names; names are told, and may change without delay.
type availabilityProfile struct {
	c     *Core
	quick *place.Quick
	need  int // nodes

	when   []Instant // by position; never: not at all
	seen   int       // entries of fleetState.changed that are reckoned with
	logged uint64    // fleetState.changedEpoch then

	at          Instant // the need-th smallest of when
	before, due int     // nodes with when < at, and ≤ at
	avoid       []uint64
	breaks      []int8 // by cell; scratch of nodesToAvoid
	nth         []Instant
}

// profileOf returns the availability profile of a kind, up to date; nil if its start does not
// depend on a number of alike nodes alone.
func (c *Core) profileOf(k *kind) *availabilityProfile {
	q := c.quickPlacement(k)
	if q == nil || !q.Countable() {
		return nil
	}
	if k.profile == nil {
		_, nodes := q.Part()
		k.profile = &availabilityProfile{c: c, quick: q, need: nodes, logged: c.fleet.changedEpoch - 1}
	}
	k.profile.catchUp()
	return k.profile
}

// catchUp reckons with what has changed since the last time.
func (o *availabilityProfile) catchUp() {
	c := o.c
	if o.logged != c.fleet.changedEpoch || len(c.fleet.changed)-o.seen > len(c.fleet.nodes)/2 {
		o.rebuildTimes()
		return
	}
	for _, pos := range c.fleet.changed[o.seen:] {
		was, is := o.when[pos], o.nodeReadyAt(int(pos))
		if was == is {
			continue
		}
		o.when[pos] = is
		o.countNode(was, -1)
		o.countNode(is, 1)
	}
	o.seen = len(c.fleet.changed)
}

func (o *availabilityProfile) rebuildTimes() {
	c := o.c
	o.when = slices.Grow(o.when[:0], len(c.fleet.nodes))[:len(c.fleet.nodes)]
	o.before, o.due = 0, 0
	for pos := range o.when {
		o.when[pos] = o.nodeReadyAt(pos)
		o.countNode(o.when[pos], 1)
	}
	o.seen, o.logged = len(c.fleet.changed), c.fleet.changedEpoch
}

func (o *availabilityProfile) countNode(when Instant, n int) {
	if when < o.at {
		o.before += n
	}
	if when <= o.at {
		o.due += n
	}
}

// nodeReadyAt is when a node can take its part; 0: now.
func (o *availabilityProfile) nodeReadyAt(pos int) Instant {
	cell := o.c.fleet.cells.Of(pos)
	if cell < 0 {
		return never
	}
	if o.quick.Serves(cell) {
		return 0
	}
	for _, a := range o.c.futureCells(pos) {
		if o.quick.Serves(a.cell) {
			return a.from
		}
	}
	return never
}

// gangStart is the earliest instant at which the gang fits; never if that depends on
// jobs without a limit.
func (o *availabilityProfile) gangStart() Instant {
	if o.before < o.need && o.due >= o.need {
		return o.at
	}
	if o.before == o.need { // the next smaller one
		at := Instant(-1)
		for _, w := range o.when {
			if w < o.at && w > at {
				at = w
			}
		}
		o.settleAt(at)
		return o.at
	}
	if len(o.when) < o.need {
		o.settleAt(never)
		return never
	}
	o.nth = append(o.nth[:0], o.when...)
	o.settleAt(plan.Nth(o.nth, o.need-1))
	return o.at
}

func (o *availabilityProfile) settleAt(at Instant) {
	o.at, o.before, o.due = at, 0, 0
	for _, w := range o.when {
		if w < at {
			o.before++
		}
		if w <= at {
			o.due++
		}
	}
}

// sparesGang reports whether claims that outlast the promised instant leave the gang
// its start.
func (o *availabilityProfile) sparesGang(claims []fleet.Claim) bool {
	slack := o.due - o.need
	last := -1
	for i := range claims {
		pos := o.c.fleet.table.Find(claims[i].Key())
		if pos == last || o.when[pos] > o.at {
			continue // claims on one node are told together by the first
		}
		last = pos
		if !o.nodeStillServes(pos, claims) {
			if slack--; slack < 0 {
				return false
			}
		}
	}
	return true
}

// nodeStillServes reports whether a node can still take its part at the promised instant
// beside claims that hold it then.
func (o *availabilityProfile) nodeStillServes(pos int, claims []fleet.Claim) bool {
	row := o.c.rowAt(pos, o.at)
	desc := o.c.fleet.table.Node(pos)
	for i := range claims {
		if claims[i].Node == desc.Name {
			row.Change(desc, &claims[i], 1)
		}
	}
	return o.quick.Serves(o.c.fleet.cells.Intern(pos, &row))
}

// nodesToAvoid marks, by page, the nodes that the gang would lose if a job of another
// kind took its part there, but for so many of them that it can spare.
func (o *availabilityProfile) nodesToAvoid(q *place.Quick, spare int) []uint64 {
	c := o.c
	pages := c.fleet.table.Pages()
	o.avoid = slices.Grow(o.avoid[:0], len(pages))[:len(pages)]
	clear(o.avoid)
	o.breaks = slices.Grow(o.breaks[:0], c.fleet.cells.Len())[:c.fleet.cells.Len()]
	clear(o.breaks)
	for _, x := range c.fleet.cells.Live() {
		if q.Serves(x.ID) {
			x.Pages(nil, func(no int32, mask uint64) bool {
				o.avoid[no] |= mask
				return true
			})
		}
	}
	for no, serve := range o.avoid {
		for m := serve; m != 0; m &= m - 1 {
			slot := bits.TrailingZeros64(m)
			pos := pages[no].Nodes[slot]
			switch {
			case o.when[pos] > o.at || !o.losesNode(q, int(pos)):
				o.avoid[no] &^= 1 << slot
			case spare > 0:
				spare--
				o.avoid[no] &^= 1 << slot
			}
		}
	}
	return o.avoid
}

// losesNode reports whether a node like this one would be lost to the gang with a part
// of another kind on it.
func (o *availabilityProfile) losesNode(q *place.Quick, pos int) bool {
	cell := o.c.cellAt(pos, o.at)
	if int(cell) < len(o.breaks) && o.breaks[cell] != 0 {
		return o.breaks[cell] > 0
	}
	row := o.c.rowAt(pos, o.at)
	lost := true
	if claim, ok := q.Claim(pos); ok {
		row.Change(o.c.fleet.table.Node(pos), &claim, 1)
		lost = !o.quick.Serves(o.c.fleet.cells.Intern(pos, &row))
	}
	if int(cell) < len(o.breaks) {
		o.breaks[cell] = -1
		if lost {
			o.breaks[cell] = 1
		}
	}
	return lost
}

// tellableNodes chooses the nodes that are told: of those that can take their part at the
// instant, as few leaves as will do.
func (o *availabilityProfile) tellableNodes() []int32 {
	return o.chooseNodes(func(pos int32) bool { return o.when[pos] <= o.at })
}

// chooseNodes takes as many nodes as the gang has of those that are ready, on as few
// leaves as will do; nil if there are not enough.
func (o *availabilityProfile) chooseNodes(isReady func(pos int32) bool) []int32 {
	c := o.c
	leaves := c.fleet.table.Leaves()
	pages := c.fleet.table.Pages()
	ready := make([]uint64, len(pages))
	free := make([]int, len(leaves))
	for no, p := range pages {
		for slot, pos := range p.Nodes {
			if isReady(pos) {
				ready[no] |= 1 << slot
				free[p.Leaf]++
			}
		}
	}
	var out []int32
	for need := o.need; need > 0; {
		best := -1
		for i, n := range free {
			if n > 0 && (best < 0 || n >= need && (free[best] < need || n < free[best]) || n < need && free[best] < need && n > free[best]) {
				best = i
			}
		}
		if best < 0 {
			return nil
		}
		take := min(free[best], need)
		free[best] = 0
		need -= take
		for no := leaves[best].From; no < leaves[best].To && take > 0; no++ {
			for m := ready[no]; m != 0 && take > 0; m &= m - 1 {
				out = append(out, pages[no].Nodes[bits.TrailingZeros64(m)])
				take--
			}
		}
	}
	slices.Sort(out)
	return out
}

// claimsOn takes the gang's parts from nodes as they will be at the instant.
func (o *availabilityProfile) claimsOn(nodes []int32) []fleet.Claim {
	out := make([]fleet.Claim, len(nodes))
	for i, pos := range nodes {
		row := o.c.rowAt(int(pos), o.at)
		out[i] = o.quick.ClaimOn(int(pos), &row)
	}
	return out
}
