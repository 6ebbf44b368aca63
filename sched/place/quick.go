package place

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// Quick places gangs of one shape on the cells of a state instead of on its nodes.
// It answers as Gang does, to the byte, for shapes that are regular; where it
// cannot tell it says so, and Gang has to be asked.
//
// It remembers what each cell can take, and is good as long as its Cells are.
type Quick struct {
	t       *index.Table
	cells   *index.Cells
	shape   *class.Shape
	v       *view
	nodes   int  // of the gang
	part    int  // tasks of each, rounded up
	least   int  // tasks that a node must take to be a candidate
	limit   int  // tasks that are counted on one node at most
	loose   bool // where nodes do not take alike parts, others might do
	shares  bool
	known   []take   // by cell
	allowed [][]bool // by pool and partition in the order of trial, and by class
	picks   *Picks
	w       *work

	foresight *Foresight // nil: nothing is expected
	rated     *rater     // nil: it does not tell nodes apart
}

// take is what a node of a cell can take of a group.
type take struct {
	tasks  int16 // unknown: not worked out; -1: not even a node's own part
	broken int32 // what shares leave in pieces (view.broken)
}

const unknown = -2

// Regular reports whether Quick can place a shape: one group on a fixed number of
// nodes that are alike to it, each with an equal part.
func Regular(shape *class.Shape) bool {
	if len(shape.Groups) != 1 || shape.Else != nil {
		return false
	}
	g := &shape.Groups[0]
	switch {
	case g.Same, g.Adjoint, g.Within != 0, g.Segment > 0, g.Switches > 0, g.Spread, len(g.Must) > 0, len(g.Not) > 0, len(g.TotalDevices) > 0, !g.Total.IsZero(),
		g.MaxNodes != 0 && g.MaxNodes != g.MinNodes, max(g.Want, g.Each) > 1<<14:
		return false
	case g.MinNodes > 1 && asksShares(g):
		return false
	case g.Each > 0:
		return true
	}
	return g.Want == g.Least && g.Want >= g.MinNodes
}

// asksShares reports whether a group asks for shares of devices.
func asksShares(g *class.Group) bool {
	part := func(d class.Need) bool { return !d.Undivided() }
	return slices.ContainsFunc(g.BaseDevices, part) || slices.ContainsFunc(g.StepDevices, part)
}

// NewQuick returns the placement of a regular shape. Picks is shared by all that
// look at one table.
func NewQuick(t *index.Table, s *index.State, cells *index.Cells, shape *class.Shape, picks *Picks) *Quick {
	g := &shape.Groups[0]
	q := &Quick{t: t, cells: cells, shape: shape, v: newView(t, s, g, false), nodes: g.MinNodes, picks: picks, w: &picks.work}
	q.part, q.limit, q.least = g.Each, g.Each, g.Each
	if g.Each == 0 {
		q.part, q.limit, q.least = (g.Want+g.MinNodes-1)/g.MinNodes, g.Want, 1
		if g.Cap > 0 {
			q.limit = min(q.limit, g.Cap)
		}
		q.loose = q.part > 1 && (g.MaxNodes == 0 || g.MinNodes > 1 && g.Cap*g.MinNodes != g.Want)
	}
	q.shares = asksShares(g)
	partitions := shape.Partitions
	if len(partitions) == 0 {
		partitions = []string{""}
	}
	for _, pool := range t.Pools() {
		if !shape.In(pool) {
			continue
		}
		for _, partition := range partitions {
			q.allowed = append(q.allowed, q.qualifyingClasses(pool, partition))
		}
	}
	return q
}

// qualifyingClasses says which classes qualify.
func (q *Quick) qualifyingClasses(pool, partition string) []bool {
	out := make([]bool, len(q.t.Classes()))
	for i, c := range q.t.Classes() {
		out[i] = c.State == fleet.Up && c.Pool == pool && HasAny(c.Features, q.v.g.Alternatives) &&
			(partition == "" || len(c.Parts) == 0 || slices.Contains(c.Parts, partition))
	}
	return out
}

// Takes is what a node of a cell can take: so many tasks, at most as many as the
// group has; -1 if not even a node's own part.
func (q *Quick) Takes(id int32) int { return int(q.takeOf(id).tasks) }

// Part is how many tasks each of how many nodes has to take.
func (q *Quick) Part() (tasks, nodes int) { return q.part, q.nodes }

// Serves reports whether a node of a cell can take its part.
func (q *Quick) Serves(id int32) bool {
	return id >= 0 && int(q.takeOf(id).tasks) >= q.part && q.anyInClass(q.cells.Cell(id).Class)
}

// Candidate reports whether a node of a cell could take part in the gang at all.
func (q *Quick) Candidate(id int32) bool {
	return id >= 0 && int(q.takeOf(id).tasks) >= q.least && q.anyInClass(q.cells.Cell(id).Class)
}

func (q *Quick) anyInClass(class int32) bool {
	for _, a := range q.allowed {
		if a[class] {
			return true
		}
	}
	return false
}

func (q *Quick) takeOf(id int32) take {
	if n := q.cells.Len(); len(q.known) < n {
		old := len(q.known)
		q.known = slices.Grow(q.known, n-old)[:n]
		for i := old; i < n; i++ {
			q.known[i] = take{tasks: unknown}
		}
	}
	if q.known[id].tasks == unknown {
		q.known[id] = q.computeTake(q.cells.Cell(id))
	}
	return q.known[id]
}

func (q *Quick) computeTake(c *index.Cell) take {
	q.v.probe = &c.Row
	out := take{tasks: int16(q.v.mostTasks(c.Pos, q.limit))}
	if q.shares && int(out.tasks) >= q.part {
		out.broken = int32(q.v.brokenDevices(c.Pos, q.part, nil))
	}
	q.v.probe = nil
	return out
}

// Place returns the claims of the gang on the state outside avoid (nodes by page;
// nil: none), in rank order, or nil if it does not fit there. sure is false where a
// placement on unlike nodes may exist: Gang can tell. The claims may use memory
// that is shared with others and are not to be appended to.
func (q *Quick) Place(avoid []uint64) (claims []fleet.Claim, sure bool) {
	for _, allowed := range q.allowed {
		nodes, sure := q.chooseNodes(allowed, avoid)
		switch {
		case !sure:
			return nil, false
		case nodes != nil:
			return q.claimParts(nodes)
		}
	}
	return nil, true
}

// Fits is Place without a choice of nodes.
func (q *Quick) Fits(avoid []uint64) (fits, sure bool) {
	for _, allowed := range q.allowed {
		ok, open := q.countServing(allowed, avoid)
		if ok >= q.nodes {
			return true, true
		}
		if open {
			return false, false
		}
	}
	return false, true
}

// countServing says how many nodes serve, and, if they are too few, whether unlike parts might do.
func (q *Quick) countServing(allowed []bool, avoid []uint64) (serve int, open bool) {
	if most, all := q.cells.Devices(); q.v.g.OneDevices > most || q.v.g.AllDevices > all {
		return 0, false
	}
	candidates, room := 0, 0
	for _, c := range q.cells.Live() {
		if !allowed[c.Class] {
			continue
		}
		k := q.takeOf(c.ID)
		if int(k.tasks) < q.least {
			continue
		}
		n := c.Count(avoid)
		candidates += n
		room += n * int(k.tasks)
		if int(k.tasks) >= q.part {
			serve += n
		}
	}
	return serve, q.loose && candidates >= q.nodes && room >= q.v.g.Want
}

func (q *Quick) chooseNodes(allowed []bool, avoid []uint64) (nodes []int32, sure bool) {
	serve, open := q.countServing(allowed, avoid)
	if serve < q.nodes {
		return nil, !open
	}
	if q.nodes == 1 {
		q.w.nodes = append(q.w.nodes[:0], q.singleNode(allowed, avoid))
		return q.w.nodes, true
	}
	return q.gangNodes(allowed, avoid)
}

// singleNode finds the node that serves and is preferred.
func (q *Quick) singleNode(allowed []bool, avoid []uint64) int32 {
	if q.rated != nil {
		return q.leastWastedNode(allowed, avoid)
	}
	var best *index.Cell
	var broken int32
	pos := int32(-1)
	for _, c := range q.cells.Live() {
		if best != nil && !q.shares && !c.SameRank(best) {
			break
		}
		if !allowed[c.Class] {
			continue
		}
		k := q.takeOf(c.ID)
		if int(k.tasks) < q.part || best != nil && (k.broken > broken || k.broken == broken && !c.SameRank(best)) {
			continue
		}
		p := q.firstMember(c, avoid)
		if p < 0 || best != nil && k.broken == broken && p > pos {
			continue
		}
		best, broken, pos = c, k.broken, p
	}
	return pos
}

// leastWastedNode finds the node that serves and on which least becomes useless.
func (q *Quick) leastWastedNode(allowed []bool, avoid []uint64) int32 {
	best, pos := int64(0), int32(-1)
	for _, c := range q.cells.Live() {
		if !allowed[c.Class] || int(q.takeOf(c.ID).tasks) < q.part {
			continue
		}
		rate := q.rateCell(c)
		if pos >= 0 && rate < best {
			continue
		}
		if p := q.firstMember(c, avoid); p >= 0 && (pos < 0 || rate > best || p < pos) {
			best, pos = rate, p
		}
	}
	return pos
}

// firstMember is the first member of a cell in node order, or -1.
func (q *Quick) firstMember(c *index.Cell, avoid []uint64) int32 {
	pos, pages := int32(-1), q.t.Pages()
	ordered := len(q.t.Leaves()) == 1
	c.Pages(avoid, func(no int32, mask uint64) bool {
		if p := pages[no].Nodes[bits.TrailingZeros64(mask)]; pos < 0 || p < pos {
			pos = p
		}
		return !ordered
	})
	return pos
}

// tally is what one leaf, or one domain, has for a gang.
type tally struct {
	candidates, serve int
	room              int
	first             int32 // of the candidates
	rank, best        int32 // of those that serve the preferred one: its rank and position
}

// work is scratch memory for one placement at a time.
type work struct {
	leaves  []tally
	touched []int32 // leaves with candidates
	domains []tally
	seen    []int32 // domains with candidates
	serving []serving
	members []member
	nodes   []int32
}

type serving struct {
	cell *index.Cell
	rank int32
}

type member struct{ rank, pos int32 }

// gangNodes chooses nodes in the smallest topology domain that has enough, and within
// it in few leaves.
func (q *Quick) gangNodes(allowed []bool, avoid []uint64) (nodes []int32, sure bool) {
	q.tallyLeaves(allowed, avoid)
	within, level := -1, -1
	for l := q.t.Levels() - 1; l >= 0; l-- {
		d, undecided := q.chooseDomain(l)
		if undecided {
			return nil, false
		}
		if d >= 0 {
			within, level = d, l
			break
		}
	}
	w := q.w
	w.nodes = w.nodes[:0]
	for need := q.nodes; need > 0; {
		best := int32(-1)
		for _, i := range w.touched {
			x := &w.leaves[i]
			if x.serve == 0 || level >= 0 && !q.leafInDomain(i, level, within) {
				continue
			}
			if best < 0 || q.isCloser(x, &w.leaves[best], need) {
				best = i
			}
		}
		n := min(w.leaves[best].serve, need)
		q.collectNodes(best, n, avoid)
		w.leaves[best].serve = 0
		need -= n
	}
	slices.SortFunc(w.nodes, func(a, b int32) int { return q.t.Ranked(int(a), int(b)) })
	return w.nodes, true
}

// leafInDomain reports whether a leaf lies in a domain of a level.
func (q *Quick) leafInDomain(leaf int32, level, domain int) bool {
	d := q.t.Leaves()[leaf].Domains
	return len(d) > level && d[level] == domain
}

// isCloser reports whether a leaf serves need better than another one: as topo.Gather
// has it, and among equals the one with the preferred node.
func (q *Quick) isCloser(a, b *tally, need int) bool {
	x, y := a.serve, b.serve
	switch {
	case x >= need && y >= need && x != y:
		return x < y
	case (x >= need) != (y >= need):
		return x >= need
	case x < need && x != y:
		return x > y
	}
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.best, b.best)) < 0
}

// tallyLeaves counts candidates and those that serve by leaf.
func (q *Quick) tallyLeaves(allowed []bool, avoid []uint64) {
	w, pages := q.w, q.t.Pages()
	if n := len(q.t.Leaves()); len(w.leaves) < n {
		w.leaves = make([]tally, n)
	}
	for _, i := range w.touched {
		w.leaves[i] = tally{}
	}
	w.touched, w.serving = w.touched[:0], w.serving[:0]
	rank := int32(0)
	var last *index.Cell
	for _, c := range q.cells.Live() {
		if !allowed[c.Class] {
			continue
		}
		k := q.takeOf(c.ID)
		if int(k.tasks) < q.least {
			continue
		}
		serves := int(k.tasks) >= q.part
		if serves {
			if last == nil || !c.SameRank(last) {
				rank++
			}
			last = c
			w.serving = append(w.serving, serving{c, rank})
		}
		c.Pages(avoid, func(no int32, mask uint64) bool {
			i := pages[no].Leaf
			x := &w.leaves[i]
			pos := pages[no].Nodes[bits.TrailingZeros64(mask)]
			if x.candidates == 0 {
				w.touched = append(w.touched, i)
				x.first = pos
			}
			n := bits.OnesCount64(mask)
			x.candidates += n
			x.room += n * int(k.tasks)
			x.first = min(x.first, pos)
			if serves {
				if x.serve == 0 || rank < x.rank || rank == x.rank && pos < x.best {
					x.rank, x.best = rank, pos
				}
				x.serve += n
			}
			return true
		})
	}
}

// chooseDomain finds the domain of a level with the fewest candidates that are enough,
// or -1. undecided: one before it might take the gang in unlike parts.
func (q *Quick) chooseDomain(level int) (best int, undecided bool) {
	w := q.w
	if n := q.t.DomainCount(); len(w.domains) < n {
		w.domains = make([]tally, n)
	}
	w.seen = w.seen[:0]
	for _, i := range w.touched {
		d := q.t.Leaves()[i].Domains
		if len(d) <= level {
			continue
		}
		x, y := &w.domains[d[level]], &w.leaves[i]
		if x.candidates == 0 {
			w.seen = append(w.seen, int32(d[level]))
			x.first = y.first
		}
		x.candidates += y.candidates
		x.serve += y.serve
		x.room += y.room
		x.first = min(x.first, y.first)
	}
	for {
		best = -1
		for _, d := range w.seen {
			x := &w.domains[d]
			if x.candidates < q.nodes {
				continue
			}
			if best < 0 || cmp.Or(cmp.Compare(x.candidates, w.domains[best].candidates), cmp.Compare(x.first, w.domains[best].first)) < 0 {
				best = int(d)
			}
		}
		if best < 0 || w.domains[best].serve >= q.nodes {
			break
		}
		if q.loose && w.domains[best].room >= q.v.g.Want {
			undecided = true
			break
		}
		w.domains[best].candidates = 0 // the next one
	}
	for _, d := range w.seen {
		w.domains[d] = tally{}
	}
	return best, undecided
}

// collectNodes takes the n preferred nodes of a leaf.
func (q *Quick) collectNodes(leaf int32, n int, avoid []uint64) {
	w, pages := q.w, q.t.Pages()
	w.members = w.members[:0]
	l := q.t.Leaves()[leaf]
	for _, s := range w.serving {
		for no := l.From; no < l.To; no++ {
			mask := s.cell.On(no)
			if avoid != nil {
				mask &^= avoid[no]
			}
			for ; mask != 0; mask &= mask - 1 {
				w.members = append(w.members, member{s.rank, pages[no].Nodes[bits.TrailingZeros64(mask)]})
			}
		}
	}
	slices.SortFunc(w.members, func(a, b member) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.pos, b.pos)) })
	for _, m := range w.members[:n] {
		w.nodes = append(w.nodes, m.pos)
	}
}

// claimParts takes the gang's parts from chosen nodes.
func (q *Quick) claimParts(nodes []int32) ([]fleet.Claim, bool) {
	g := q.v.g
	out := make([]fleet.Claim, len(nodes))
	if g.Each > 0 || len(nodes)*q.part == g.Want {
		for i, pos := range nodes {
			out[i] = q.claimPortion(portion{pos: int(pos), tasks: q.part})
		}
		return out, true
	}
	chosen := make([]candidate, len(nodes))
	for i, pos := range nodes {
		chosen[i] = candidate{pos: int(pos), tasks: q.Takes(q.cells.Of(int(pos)))}
	}
	portions := q.v.spreadTasks(chosen, g.Want)
	if portions == nil {
		return nil, false
	}
	for i, p := range portions {
		out[i] = q.claimPortion(p)
	}
	return out, true
}

func (q *Quick) claimPortion(p portion) fleet.Claim {
	n := q.t.Node(p.pos)
	c := fleet.Claim{Node: n.Name, Pool: n.Pool, Tasks: p.tasks, Whole: q.v.g.Whole, Take: q.v.needOf(p.pos, p.tasks, 0)}
	if !c.Whole {
		if wants := q.v.devicesNeeded(p.pos, p.tasks, nil); len(wants) == 1 && wants[0].isWhole() {
			c.Devices = q.picks.claimWhole(q.t, p.pos, q.v.freeRow(p.pos), wants[0])
			return c
		}
		if devices, ok := q.divideDevice(p.pos, q.v.freeRow(p.pos)); ok {
			c.Devices = devices
			return c
		}
	}
	return q.v.claimPortion(0, p)
}

// Countable reports whether the gang fits exactly if as many nodes serve as it has:
// one pool, one partition, no unlike parts.
func (q *Quick) Countable() bool { return len(q.allowed) == 1 && !q.loose }

// Even reports whether each node takes its whole part, whatever else is free: the
// nodes that serve are all that matters.
func (q *Quick) Even() bool { return !q.loose }

// Claim is what the gang would take of a node that serves it now.
func (q *Quick) Claim(pos int) (fleet.Claim, bool) {
	if !q.Serves(q.cells.Of(pos)) {
		return fleet.Claim{}, false
	}
	return q.claimPortion(portion{pos: pos, tasks: q.part}), true
}

// ClaimOn is what it would take of a node if so much were free there, which has to
// be enough.
func (q *Quick) ClaimOn(pos int, row *index.Row) fleet.Claim {
	q.v.probe = row
	c := q.claimPortion(portion{pos: pos, tasks: q.part})
	q.v.probe = nil
	return c
}
