package place

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// AsSlurm places a gang of one group on the nodes that Slurm's select/cons_tres would
// choose among those that are allowed (by position; nil: all), without or with
// topology/tree; nil if that finds none. What is not one group of a fixed size, or
// names its nodes, is placed as Gang does.
//
// What is like Slurm is the set of nodes. How many tasks each takes and which devices
// follow our own rules, so that a set on which ours finds no room is refused. Sources:
// Slurm's documents on topology and consumable resources, and slurmctld 22.05.8 itself
// (test/slurm/compat).
func AsSlurm(t *index.Table, s *index.State, shape *class.Shape, allowed []bool) []fleet.Claim {
	if !isSingleGroup(shape) {
		return gangOnNodes(t, s, shape, allowed)
	}
	partitions := shape.Partitions
	if len(partitions) == 0 {
		partitions = []string{""}
	}
	v := newView(t, s, &shape.Groups[0], false)
	v.slurm = true
	if v.tooFull() {
		return nil
	}
	for _, pool := range t.Pools() {
		if !shape.In(pool) {
			continue
		}
		for _, partition := range partitions {
			c := &consres{view: v, allowed: allowed}
			w := &where{pool: pool, partition: partition}
			if parts := c.chooseParts(w); parts != nil {
				return v.claimPortions(0, c.dealTasks(parts, w))
			}
		}
	}
	return nil
}

// isSingleGroup reports whether a shape is one group on a fixed number of nodes with a
// fixed number of tasks.
func isSingleGroup(shape *class.Shape) bool {
	if len(shape.Groups) != 1 || shape.Else != nil {
		return false
	}
	g := &shape.Groups[0]
	if g.Spread || g.Few || g.Switches > 0 || g.Within != 0 || g.Segment > 0 { // of which Slurm knows nothing, or otherwise
		return false
	}
	bounded := g.Cap > 0 && g.Each == 0 && g.Want != g.Cap*g.MinNodes
	return !bounded && g.Least == g.Want && (g.MaxNodes == 0 || g.MaxNodes == g.MinNodes) && len(g.TotalDevices) == 0 && g.Total.IsZero() &&
		len(g.Must) == 0 && !g.Adjoint && !g.Same
}

// gangOnNodes is Gang among the allowed nodes.
func gangOnNodes(t *index.Table, s *index.State, shape *class.Shape, allowed []bool) []fleet.Claim {
	less := *shape
	if shape.Else != nil {
		less.Else = nil
		if claims := gangOnNodes(t, s, &less, allowed); claims != nil {
			return claims
		}
		return AsSlurm(t, s, shape.Else, allowed)
	}
	less.Groups = slices.Clone(shape.Groups)
	for i := range less.Groups {
		not := slices.Clone(less.Groups[i].Not)
		for pos, ok := range allowed {
			if !ok {
				not = append(not, t.Label(pos))
			}
		}
		less.Groups[i].Not = not
	}
	return Gang(t, s, &less)
}

// part is what a node gives.
type part struct{ pos, cpus int }

// dealTasks deals the tasks out: as many to each node as it gives CPUs for, or, where
// that is not their number, as we do on all of these nodes.
func (c *consres) dealTasks(parts []part, w *where) []portion {
	out := make([]portion, len(parts))
	left := c.tasks
	for i, x := range parts {
		out[i] = portion{pos: x.pos, tasks: x.cpus / c.each}
		left -= out[i].tasks
	}
	ok := left == 0 && len(c.g.TotalDevices) == 0 && c.g.Total.IsZero() && !c.g.Whole && c.g.Each == 0
	for _, x := range out {
		ok = ok && x.tasks > 0 && c.nodeFits(x.pos, x.tasks, nil)
	}
	if ok {
		return out
	}
	all := slices.DeleteFunc(c.listCandidates(w), func(x candidate) bool {
		return !slices.ContainsFunc(parts, func(p part) bool { return p.pos == x.pos })
	})
	if len(all) != len(parts) {
		return nil
	}
	return c.placeOnNodes(all, len(parts), c.g.Want)
}

// consres chooses nodes as select/cons_tres does.
type consres struct {
	*view
	allowed []bool

	min, max int   // nodes
	tasks    int   // of the whole job
	each     int   // CPUs of a task
	cpus     int   // of the whole job, at least
	least    int   // CPUs that every node gives at least (pn_min_cpus)
	usable   []int // CPUs by position that the job could use there; 0: none
}

func (c *consres) chooseParts(w *where) []part {
	g := c.g
	each := int(max(g.Step.CPU, 1)+resource.OneCPU-1) / int(resource.OneCPU)
	tasks := g.Want
	if g.Each > 0 {
		tasks = g.Each * g.MinNodes
	}
	c.min, c.max, c.tasks, c.each, c.cpus = g.MinNodes, g.MaxNodes, tasks, each, tasks*each
	if c.max == 0 {
		c.max = max(tasks, c.min)
	}
	perNode := g.Cap // Slurm's ntasks_per_node
	c.least = max(perNode, 1) * each
	need := perNode
	if perNode == 0 && c.max == 1 {
		need = tasks
	}
	c.usable = make([]int, c.t.Len())
	for pos := range c.usable {
		if c.allowed != nil && !c.allowed[pos] || !c.nodeQualifies(pos, w) {
			continue
		}
		n := c.mostTasks(pos, int(c.t.Node(pos).Capacity.CPU/resource.OneCPU)/each)
		if n < max(need, 1) {
			continue
		}
		c.usable[pos] = n * each
	}
	return c.retryWithFewer()
}

// retryWithFewer tries with all nodes, then leaves out those with the fewest CPUs, more and
// more of them (choose_nodes).
func (c *consres) retryWithFewer() []part {
	avail := slices.Clone(c.usable)
	count := func() (n int) {
		for _, a := range avail {
			if a > 0 {
				n++
			}
		}
		return n
	}
	if count() < c.min {
		return nil
	}
	got, seen := c.evalNodes(avail)
	if got != nil || count() <= c.min {
		return got
	}
	most := slices.Max(seen)
	left := count()
	for few := 1; few < most; few++ {
		changed := false
		for pos := range avail {
			if avail[pos] > 0 && seen[pos] > 0 && seen[pos] <= few {
				avail[pos], changed = 0, true
				if left--; left <= c.min {
					break
				}
			}
		}
		if !changed && few != 1 {
			continue
		}
		if got, seen = c.evalNodes(minSeen(avail, seen)); got != nil {
			return got
		}
		if left <= c.min {
			break
		}
	}
	return nil
}

// minSeen is avail where a try before has already counted with fewer.
func minSeen(avail, seen []int) []int {
	out := slices.Clone(avail)
	for i := range out {
		if out[i] > 0 {
			out[i] = min(out[i], seen[i])
		}
	}
	return out
}

// picking is one try.
type picking struct {
	*consres
	avail      []int // CPUs by position
	seen       []int // avail, less where a node was counted with less
	parts      []part
	cpus, rest int // CPUs still wanted, and at most
	need, more int // nodes still wanted, and at most
}

func (c *consres) evalNodes(avail []int) (parts []part, seen []int) {
	p := &picking{consres: c, avail: slices.Clone(avail), seen: slices.Clone(avail), cpus: c.cpus, rest: c.cpus, need: c.min, more: c.max}
	ok := false
	if c.t.Levels() > 0 {
		ok = p.takeLeaves()
	} else {
		ok = p.fillTightest()
	}
	if !ok {
		return nil, p.seen
	}
	slices.SortFunc(p.parts, func(a, b part) int { return a.pos - b.pos })
	return p.parts, p.seen
}

func (p *picking) isSatisfied() bool { return p.need <= 0 && p.cpus <= 0 }

// takeNode adds a node, with not more CPUs than leave one for each node that is still to
// come (_cpus_to_use).
func (p *picking) takeNode(pos int) {
	n := p.avail[pos]
	if !p.g.Whole {
		if bound := p.rest - max(p.need-1, 0); n > bound {
			n = max(bound, p.least)
			p.seen[pos] = n
		}
	}
	p.parts = append(p.parts, part{pos, n})
	p.cpus, p.rest, p.need, p.more = p.cpus-n, p.rest-n, p.need-1, p.more-1
	p.avail[pos] = 0
}

// stretch is a run of usable nodes that follow each other.
type stretch struct{ from, to, nodes, cpus int }

// fillTightest fills the tightest stretch that is sufficient, or the largest one (_eval_nodes).
func (p *picking) fillTightest() bool {
	var all []stretch
	for pos := 0; pos < len(p.avail); pos++ {
		if p.avail[pos] == 0 {
			continue
		}
		s := stretch{from: pos}
		for ; pos < len(p.avail) && p.avail[pos] > 0; pos++ {
			s.nodes++
			s.cpus += p.avail[pos]
		}
		s.to = pos - 1
		all = append(all, s)
	}
	for len(all) > 0 && p.more > 0 {
		best, fits := 0, false
		for i, s := range all {
			enough := s.cpus >= p.cpus && s.nodes >= p.need
			if i == 0 || enough && !fits || enough && s.cpus < all[best].cpus || !enough && s.cpus > all[best].cpus {
				best, fits = i, enough
			}
		}
		p.fillStretch(all[best])
		if p.isSatisfied() {
			return true
		}
		all = slices.Delete(all, best, best+1)
	}
	return p.isSatisfied()
}

// fillStretch takes nodes of a stretch: the tightest one if one is enough, else in order.
func (p *picking) fillStretch(s stretch) {
	if p.need <= 1 {
		best := -1
		for pos := s.from; pos <= s.to; pos++ {
			if p.avail[pos] >= p.cpus && p.avail[pos] > 0 && (best < 0 || p.avail[pos] < p.avail[best]) {
				best = pos
			}
		}
		if best >= 0 {
			p.takeNode(best)
			return
		}
	}
	for pos := s.from; pos <= s.to && p.more > 0 && !p.isSatisfied(); pos++ {
		if p.avail[pos] == 0 || p.more == 1 && p.avail[pos] < p.cpus {
			continue
		}
		p.takeNode(pos)
	}
}

// takeLeaves takes leaf after leaf: the tightest that has the nodes that are still wanted,
// else the one with most nodes (_eval_nodes_topo, for leaves below one spine).
func (p *picking) takeLeaves() bool {
	leaves := map[int][]int{}
	var order []int
	nodes, cpus := 0, 0
	for pos, a := range p.avail {
		if a == 0 {
			continue
		}
		d := p.t.Node(pos).Domains
		if len(d) == 0 {
			continue // on no switch
		}
		leaf := d[len(d)-1]
		if leaves[leaf] == nil {
			order = append(order, leaf)
		}
		leaves[leaf] = append(leaves[leaf], pos)
		nodes, cpus = nodes+1, cpus+a
	}
	if nodes < p.need || cpus < p.cpus {
		return false
	}
	for len(order) > 0 {
		best := 0
		for i := range order {
			a, b := len(leaves[order[i]]), len(leaves[order[best]])
			fits, bestFits := a >= p.need, b >= p.need
			if fits && (!bestFits || a < b) || !fits && !bestFits && a > b {
				best = i
			}
		}
		for _, pos := range leaves[order[best]] {
			if p.more <= 0 {
				break
			}
			if p.takeNode(pos); p.isSatisfied() {
				return true
			}
		}
		order = slices.Delete(order, best, best+1)
		if p.more <= 0 {
			break
		}
	}
	return p.isSatisfied()
}
