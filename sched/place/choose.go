package place

import (
	"cmp"
	"slices"
	"sort"

	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/topo"
)

// candidate is a node that qualifies, and how many tasks it could run; with
// devices that are collected in total, how many of these it could give besides no task.
type candidate struct {
	pos, tasks, extra int
	key               fitKey
}

// portion is what one node takes of a group.
type portion struct {
	pos, tasks int
	extra      []int           // of each device collected in total
	total      resource.Vector // of what is collected in total
}

// fitKey orders nodes that serve equally well; the smaller is preferred: shares onto
// devices that are shared already and keep little, nodes in use already, then the
// fewest free devices and CPUs.
type fitKey struct {
	broken, empty, devices int
	cpu                    resource.Amount
}

func (a fitKey) compareKey(b fitKey) int {
	return cmp.Or(cmp.Compare(a.broken, b.broken), cmp.Compare(a.empty, b.empty),
		cmp.Compare(a.devices, b.devices), cmp.Compare(a.cpu, b.cpu))
}

// chooseNodes picks the nodes of a group and what each takes, or nil.
func (v *view) chooseNodes(w *where) []portion {
	g := v.g
	c := v.listCandidates(w)
	if !v.hasMust(c) {
		return nil
	}
	if g.Each > 0 {
		return v.placeTasks(c, 0)
	}
	if p := v.placeTasks(c, g.Want); p != nil || g.Least == g.Want {
		return p
	}
	best, least := v.placeFewest(c)
	if best == nil {
		return nil
	}
	// The most tasks that fit: the first count above that does not, less one.
	sort.Search(g.Want-least-1, func(i int) bool {
		p := v.placeTasks(c, least+1+i)
		if p != nil && tasksOf(p) > tasksOf(best) {
			best = p
		}
		return p == nil
	})
	return best
}

// growths bounds how many numbers of tasks above the least are tried.
const growths = 64

// placeFewest places as few tasks as fit, which is mostly the least number. More can fit
// where that does not: nodes that cannot be left out (they are named, stand between
// such, are parts of a segment, or have devices that are collected in total) want a
// task each.
func (v *view) placeFewest(c []candidate) ([]portion, int) {
	g := v.g
	most := g.Least
	if len(g.TotalDevices) > 0 || g.Adjoint || g.Segment > 0 {
		most = min(g.Want-1, len(c), g.Least+growths)
	}
	for tasks := g.Least; tasks <= max(most, g.Least); tasks++ {
		if p := v.placeTasks(c, tasks); p != nil {
			return p, tasks
		}
	}
	return nil, 0
}

func tasksOf(p []portion) int {
	n := 0
	for _, x := range p {
		n += x.tasks
	}
	return n
}

// listCandidates lists the nodes that could take part, in node order.
func (v *view) listCandidates(w *where) []candidate {
	g := v.g
	limit, least := g.Want, 1
	if g.Each > 0 {
		limit, least = g.Each, g.Each
	} else if g.Least < g.MinNodes || len(g.TotalDevices) > 0 {
		least = 0
	}
	if g.Cap > 0 && g.Each == 0 {
		limit = min(limit, g.Cap)
	}
	var out []candidate
	for pos := range v.t.Len() {
		if !v.nodeQualifies(pos, w) {
			continue
		}
		tasks := v.mostTasks(pos, limit)
		if tasks < least {
			continue
		}
		out = append(out, candidate{pos: pos, tasks: tasks, extra: v.mostExtra(pos)})
	}
	return out
}

// mostExtra is how many of the devices collected in total a node could give
// without running a task; for several kinds the sum of each alone.
func (v *view) mostExtra(pos int) int {
	n := 0
	extra := make([]int, len(v.g.TotalDevices))
	for i, d := range v.g.TotalDevices {
		x := min(d.Count, v.freeUnits(v.freeRow(pos), pos, v.total[i][pos], &d))
		for extra[i] = x; extra[i] > 0 && !v.nodeFits(pos, 0, extra); extra[i]-- {
		}
		n += extra[i]
		extra[i] = 0
	}
	return n
}

func (v *view) hasMust(c []candidate) bool {
	for _, name := range v.g.Must {
		if !slices.ContainsFunc(c, func(x candidate) bool { return v.t.Node(x.pos).Is(name) }) {
			return false
		}
	}
	return true
}

// placeTasks places so many tasks on a number of nodes that the group allows: as many
// as there are where it gave a range, else as few as will do.
func (v *view) placeTasks(c []candidate, tasks int) []portion {
	g := v.g
	lo, hi := g.MinNodes, len(c)
	if g.MaxNodes > 0 {
		hi = min(hi, g.MaxNodes)
	}
	if g.Each == 0 { // no node is opened that would stay without a task
		hi = min(hi, max(lo, tasks, g.TotalCount()))
	}
	if hi < lo || !canReach(c, tasks, g.TotalCount(), hi) {
		return nil
	}
	if g.MaxNodes > 0 && !g.Few {
		for n := hi; n >= lo; n-- {
			if p := v.placeOnNodes(c, n, tasks); p != nil {
				return p
			}
		}
		return nil
	}
	n := lo + sort.Search(hi-lo, func(i int) bool { return canReach(c, tasks, g.TotalCount(), lo+i) })
	for ; n <= hi; n++ {
		if p := v.placeOnNodes(c, n, tasks); p != nil {
			return p
		}
	}
	return nil
}

// canReach reports whether n of the candidates could at most give what is asked for.
func canReach(c []candidate, tasks, extra, n int) bool {
	return sumLargest(c, n, func(x candidate) int { return x.tasks }) >= tasks &&
		(extra == 0 || sumLargest(c, n, func(x candidate) int { return x.extra }) >= extra)
}

// sumLargest sums the n largest values.
func sumLargest(c []candidate, n int, of func(candidate) int) int {
	all := make([]int, len(c))
	for i, x := range c {
		all[i] = of(x)
	}
	slices.SortFunc(all, func(a, b int) int { return b - a })
	return sumOf(all[:min(n, len(all))])
}

// placeOnNodes places the tasks on exactly n nodes, in the smallest topology domain that
// takes them.
func (v *view) placeOnNodes(c []candidate, n, tasks int) []portion {
	if v.g.Each > 0 {
		tasks = n * v.g.Each
	}
	if tasks < n { // more nodes than tasks: no node gets two
		c = slices.Clone(c)
		for i := range c {
			c[i].tasks = min(c[i].tasks, 1)
		}
	}
	if v.g.Switches > 0 && v.t.Levels() > 0 {
		return v.placeOnLeaves(c, n, tasks)
	}
	return v.placeAllowed(c, n, tasks)
}

// placeAllowed places the tasks on exactly n nodes where the group may have them.
func (v *view) placeAllowed(c []candidate, n, tasks int) []portion {
	if v.g.Within != 0 || v.g.Segment > 0 && n <= v.g.Segment {
		return v.inDomain(c, n, tasks)
	}
	if v.g.Adjoint {
		return v.placeAdjoint(c, n, tasks)
	}
	if n > 1 && len(v.g.Must) == 0 && !v.g.Spread {
		for level := v.t.Levels() - 1; level >= 0; level-- {
			for _, domain := range v.domainsAt(c, level, n) {
				if p := v.placeWithin(domain, n, tasks); p != nil {
					return p
				}
			}
		}
	}
	return v.placeWithin(c, n, tasks)
}

// domainsAt splits candidates by their topology domain at a level and returns the
// domains with at least n of them, the fullest first.
func (v *view) domainsAt(c []candidate, level, n int) [][]candidate {
	var out [][]candidate
	at := map[int]int{}
	for _, x := range c {
		d := v.domainOf(x.pos, level)
		if d < 0 {
			continue
		}
		i, ok := at[d]
		if !ok {
			i = len(out)
			at[d] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], x)
	}
	out = slices.DeleteFunc(out, func(d []candidate) bool { return len(d) < n })
	slices.SortStableFunc(out, func(a, b []candidate) int { return cmp.Compare(len(a), len(b)) })
	return out
}

// placeWithin places the tasks on exactly n of the candidates: on alike portions if
// enough nodes take one, else on those that take most.
func (v *view) placeWithin(c []candidate, n, tasks int) []portion {
	if len(c) < n {
		return nil
	}
	if p := v.placeAlike(c, n, tasks); p != nil {
		return p
	}
	if v.g.Segment > 0 && n > v.g.Segment {
		return nil // segments take alike portions
	}
	if len(v.g.TotalDevices) > 0 {
		return v.placeExactly(c, n, tasks, false)
	}
	if v.g.Each > 0 {
		return nil
	}
	chosen := v.mostFirst(c, n, tasks)
	if chosen == nil {
		return nil
	}
	return v.spreadTasks(chosen, tasks)
}

// placeAlike chooses n nodes of which each takes an equal part, rounded up.
func (v *view) placeAlike(c []candidate, n, tasks int) []portion {
	q := max(v.g.Each, (tasks+n-1)/n)
	if v.g.Cap > 0 && q > v.g.Cap {
		return nil
	}
	extra := make([]int, len(v.g.TotalDevices))
	for i, d := range v.g.TotalDevices {
		extra[i] = (d.Count + n - 1) / n
	}
	var ok []candidate
	for _, x := range c {
		if x.tasks < q || len(extra) > 0 && !v.nodeFits(x.pos, q, extra) {
			continue
		}
		x.key = v.keyOf(x.pos, q, extra)
		ok = append(ok, x)
	}
	if len(ok) < n || !v.hasMust(ok) {
		return nil
	}
	slices.SortStableFunc(ok, func(a, b candidate) int { return a.key.compareKey(b.key) })
	if v.g.Segment > 0 && n > v.g.Segment {
		if ok = v.wholeSegments(ok, n); len(ok) < n {
			return nil
		}
	}
	return v.spreadTasks(v.gatherNodes(ok, n), tasks)
}

func (v *view) keyOf(pos, tasks int, extra []int) fitKey {
	r := v.freeRow(pos)
	k := fitKey{devices: r.Devices.Len(), cpu: r.Free.CPU}
	if r.Holds == 0 {
		k.empty = 1
	}
	for _, d := range v.devicesNeeded(pos, tasks, extra) {
		if !d.isWhole() {
			k.broken = v.brokenDevices(pos, tasks, extra)
			break
		}
	}
	return k
}

// gatherNodes takes n of the candidates, which are in order of preference: those that
// must be among them, then such that few leaves are used, or many if they are to be
// spread.
func (v *view) gatherNodes(c []candidate, n int) []candidate {
	out, rest := v.splitNamed(c)
	if v.t.Levels() == 0 || n == 1 { // one node has no leaf to share: the preferred one
		return append(out, rest[:n-len(out)]...)
	}
	leaf := v.leavesOf(rest)
	if g := v.g; !g.Spread && g.Switches == 0 { // what is not known is one leaf
		for i := range leaf {
			leaf[i] = max(leaf[i], -1)
		}
	}
	chosen := topo.Gather
	if v.g.Spread {
		used := v.leavesOf(out)
		chosen = func(leaf []int, n int) []int { return topo.Scatter(leaf, used, n) }
	}
	for _, i := range chosen(leaf, n-len(out)) {
		out = append(out, rest[i])
	}
	return out
}

// splitNamed splits off the candidates that the group names.
func (v *view) splitNamed(c []candidate) (named, rest []candidate) {
	for _, x := range c {
		if slices.ContainsFunc(v.g.Must, v.t.Node(x.pos).Is) {
			named = append(named, x)
		} else {
			rest = append(rest, x)
		}
	}
	return named, rest
}

// mostFirst takes the n nodes with room for most tasks, the last one as tight as
// can be; nil if even these do not take all.
func (v *view) mostFirst(c []candidate, n, tasks int) []candidate {
	for i := range c {
		c[i].key = v.keyOf(c[i].pos, 0, nil)
	}
	out, rest := v.splitNamed(c)
	slices.SortStableFunc(rest, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.tasks, a.tasks), a.key.compareKey(b.key))
	})
	more := n - len(out)
	if more < 0 || more > len(rest) {
		return nil
	}
	out = append(out, rest[:more]...)
	have := 0
	for _, x := range out {
		have += x.tasks
	}
	if have < tasks {
		return nil
	}
	if more == 0 {
		return out
	}
	last := n - 1
	least := max(tasks-(have-out[last].tasks), 1)
	for _, x := range rest[more:] {
		if x.tasks >= least && x.tasks < out[last].tasks {
			out[last] = x
		}
	}
	return out
}

// placeAdjoint places the tasks on n nodes that follow each other in node order, in
// the shortest run of free ones that takes them.
func (v *view) placeAdjoint(c []candidate, n, tasks int) []portion {
	for _, run := range adjacentRuns(c, n) {
		for i := 0; i+n <= len(run); i++ {
			window := slices.Clone(run[i : i+n])
			if !v.hasMust(window) {
				continue
			}
			if p := v.spreadTasks(window, tasks); p != nil {
				return p
			}
		}
	}
	return nil
}

// adjacentRuns lists maximal runs of at least n adjacent nodes, the shortest first.
func adjacentRuns(c []candidate, n int) [][]candidate {
	var out [][]candidate
	for i := 0; i < len(c); {
		j := i + 1
		for j < len(c) && c[j].pos == c[j-1].pos+1 {
			j++
		}
		if j-i >= n {
			out = append(out, c[i:j])
		}
		i = j
	}
	slices.SortStableFunc(out, func(a, b []candidate) int { return cmp.Compare(len(a), len(b)) })
	return out
}
