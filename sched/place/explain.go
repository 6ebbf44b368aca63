package place

import (
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// Never says why a gang could not even start on an empty fleet, or nil if it
// could. With ideal, every node counts as up and no device as in foreign use.
func Never(t *index.Table, shape *class.Shape, ideal bool) []reason.Reason {
	empty := t.Vacant(ideal)
	if placeGang(t, empty, shape, ideal) != nil {
		return nil
	}
	if r, bad := partitionReason(t, shape); bad {
		return []reason.Reason{r}
	}
	var out []reason.Reason
	nodes := 0
	for i := range shape.Groups {
		e := newExplainer(t, empty, shape, i, ideal)
		nodes += e.v.g.MinNodes
		if e.fitsAlone() {
			continue
		}
		out = append(out, e.neverReason())
	}
	if len(out) == 0 { // each group fits, not all of them together
		out = append(out, reason.Reason{Code: reason.NodeCount, Resource: "nodes", Need: int64(nodes), Free: int64(t.Len())})
	}
	return out
}

// Now says what is missing for a gang to start on a state, or nil if it fits.
func Now(t *index.Table, s *index.State, shape *class.Shape) []reason.Reason {
	if Fits(t, s, shape) {
		return nil
	}
	return missingReasons(t, s, shape, true)
}

// Missing is Now for a gang that is known not to fit. It does not count the nodes
// that could take part.
func Missing(t *index.Table, s *index.State, shape *class.Shape) []reason.Reason {
	return missingReasons(t, s, shape, false)
}

func missingReasons(t *index.Table, s *index.State, shape *class.Shape, count bool) []reason.Reason {
	var out []reason.Reason
	need, free := 0, 0
	for i := range shape.Groups {
		e := newExplainer(t, s, shape, i, false)
		need += e.v.g.MinNodes
		free = max(free, len(e.open))
		if len(shape.Groups) == 1 || !e.fitsAlone() {
			out = append(out, e.nowReason(count))
		}
	}
	if len(out) == 0 {
		out = append(out, reason.Reason{Code: reason.Resources, Resource: "nodes", Need: int64(need), Free: int64(min(free, need-1)), Nodes: free})
	}
	return out
}

func partitionReason(t *index.Table, shape *class.Shape) (reason.Reason, bool) {
	if len(shape.Partitions) == 0 {
		return reason.Reason{}, false
	}
	for i := range t.Len() {
		n := t.Node(i)
		if parts := n.Parts; !shape.In(n.Pool) {
			continue
		} else if len(parts) == 0 || slices.ContainsFunc(shape.Partitions, func(p string) bool { return slices.Contains(parts, p) }) {
			return reason.Reason{}, false
		}
	}
	return reason.Reason{Code: reason.Partition, Want: strings.Join(shape.Partitions, ",")}, true
}

// explainer looks at one group: the nodes that qualify, and those of them that
// admit it.
type explainer struct {
	v          *view
	i          int
	shape      *class.Shape
	named      []int // whatever their features and state
	featured   []int // with the features
	qualifying []int
	open       []int
}

func newExplainer(t *index.Table, s *index.State, shape *class.Shape, i int, ideal bool) *explainer {
	e := &explainer{v: newView(t, s, &shape.Groups[i], ideal), i: i, shape: shape}
	n := t.Len()
	e.named, e.featured, e.qualifying = make([]int, 0, n), make([]int, 0, n), make([]int, 0, n)
	for pos := range t.Len() {
		n := t.Node(pos)
		if !shape.In(n.Pool) || len(shape.Partitions) > 0 && len(n.Parts) > 0 &&
			!slices.ContainsFunc(shape.Partitions, func(p string) bool { return slices.Contains(n.Parts, p) }) ||
			e.v.isRefused(pos) {
			continue
		}
		e.named = append(e.named, pos)
		if !HasAny(n.Qualities, e.v.g.Alternatives) {
			continue
		}
		e.featured = append(e.featured, pos)
		if n.State != fleet.Up && !ideal {
			continue
		}
		e.qualifying = append(e.qualifying, pos)
		if e.v.isOpen(pos) {
			e.open = append(e.open, pos)
		}
	}
	return e
}

// fitsAlone reports whether the group would fit if it were the only one.
func (e *explainer) fitsAlone() bool {
	one := &class.Shape{Pools: e.shape.Pools, Partitions: e.shape.Partitions, Groups: e.shape.Groups[e.i : e.i+1]}
	return placeGang(e.v.t, e.v.s, one, e.v.ideal) != nil
}

// neverReason names the first gate that the group does not pass on an empty fleet.
func (e *explainer) neverReason() reason.Reason {
	g := e.v.g
	if r, bad := e.listReason(); bad {
		return r
	}
	if len(e.featured) < g.MinNodes && len(g.Alternatives) > 0 && len(e.named) >= g.MinNodes {
		return reason.Reason{Code: reason.Constraint, Want: g.Text, Nodes: len(e.featured)}
	}
	if len(e.qualifying) < g.MinNodes && len(e.featured) >= g.MinNodes {
		return reason.Reason{Code: reason.NodeDown, Want: e.downNodes()}
	}
	if len(e.qualifying) < g.MinNodes {
		return reason.Reason{Code: reason.NodeCount, Resource: "nodes", Need: int64(g.MinNodes), Free: int64(len(e.qualifying))}
	}
	for _, d := range e.listDemands(e.leastPart()) {
		if most := e.largestOf(d); most < d.need {
			r := reason.Reason{Code: reason.TooLarge, Resource: d.name, Need: int64(d.need), Most: int64(most)}
			return d.inBytes(e.v, e.qualifying, r)
		}
	}
	if r := e.downNodes(); r != "" && !e.v.ideal && e.wouldFitUp() {
		return reason.Reason{Code: reason.NodeDown, Want: r}
	}
	need := max(g.MinNodes, e.leastNodes(), 1)
	return reason.Reason{Code: reason.NodeCount, Resource: "nodes", Need: int64(need), Free: int64(min(e.countClosest(e.qualifying), need-1))}
}

// wouldFitUp reports whether the group fits an empty fleet with all nodes up.
func (e *explainer) wouldFitUp() bool {
	one := &class.Shape{Pools: e.shape.Pools, Partitions: e.shape.Partitions, Groups: e.shape.Groups[e.i : e.i+1]}
	return placeGang(e.v.t, e.v.t.Empty(false), one, true) != nil
}

// nowReason names what is missing on the present state.
func (e *explainer) nowReason(count bool) reason.Reason {
	g := e.v.g
	tasks := max(g.Least, g.Each*g.MinNodes)
	for _, d := range e.listDemands(piece{tasks: tasks, nodes: g.MinNodes, extra: g.TotalCount()}) {
		if free := e.totalOf(d); free < d.need {
			r := reason.Reason{Code: reason.Resources, Resource: d.name, Need: int64(d.need), Free: int64(free)}
			if count {
				r.Nodes = e.countTakers(e.open)
			}
			return d.inBytes(e.v, e.open, r)
		}
	}
	need, free := e.leastNodes(), e.countClosest(e.open)
	if named := e.countTakers(e.namedNodes()); named < len(g.Must) {
		need, free = len(g.Must), named
	}
	if g.Adjoint {
		free = e.longestRun()
	}
	r := reason.Reason{Code: reason.Resources, Resource: "nodes", Need: int64(need), Free: int64(free), Nodes: free}
	if free >= need {
		r.Resource, r.Need, r.Free = "tasks", int64(tasks), int64(min(e.openTasks(), tasks-1))
	}
	return r
}

func (e *explainer) listReason() (reason.Reason, bool) {
	for _, name := range e.v.g.Must {
		pos := e.listedNode(name)
		switch {
		case pos < 0 || !slices.Contains(e.featured, pos):
			return reason.Reason{Code: reason.NodeList, Want: name}, true
		case !slices.Contains(e.qualifying, pos):
			return reason.Reason{Code: reason.NodeDown, Want: name}, true
		}
	}
	return reason.Reason{}, false
}

// listedNode is the node that the group names; of several, which are in several pools, the first
// that it could use at all; -1: there is none.
func (e *explainer) listedNode(name string) int {
	list := e.v.t.Named(name)
	if i := slices.IndexFunc(list, func(pos int) bool { return slices.Contains(e.featured, pos) }); i > 0 {
		return list[i]
	}
	if len(list) == 0 {
		return -1
	}
	return list[0]
}

// downNodes names nodes that would do but for their state; at most four.
func (e *explainer) downNodes() string {
	var names []string
	for _, pos := range e.featured {
		if n := e.v.t.Node(pos); n.State != fleet.Up && !e.v.ideal {
			names = append(names, n.Name)
		}
	}
	if len(names) > 4 {
		names = append(names[:4], "…")
	}
	return strings.Join(names, ",")
}

// piece is a part of the group.
type piece struct{ nodes, tasks, extra int }

// leastPart is the least that one node of the group has to take if the group is spread
// over as many nodes as it may be.
func (e *explainer) leastPart() piece { return e.partOf(len(e.qualifying)) }

// partOf is part where so many nodes qualify.
func (e *explainer) partOf(qualifying int) piece {
	g := e.v.g
	n := g.MaxNodes
	if n == 0 {
		n = max(g.MinNodes, qualifying, 1)
	}
	tasks := (g.Least + n - 1) / n
	return piece{nodes: 1, tasks: max(tasks, g.Each), extra: (g.TotalCount() + n - 1) / n}
}

// leastNodes is how many nodes the group needs at least.
func (e *explainer) leastNodes() int {
	g := e.v.g
	n := g.MinNodes
	if g.Cap > 0 {
		n = max(n, (g.Least+g.Cap-1)/g.Cap)
	}
	return n
}

// countTakers counts the nodes that could take their part.
func (e *explainer) countTakers(nodes []int) int {
	p := e.leastPart()
	n := 0
	for _, pos := range nodes {
		extra := make([]int, len(e.v.g.TotalDevices))
		if len(extra) == 1 {
			extra[0] = p.extra
		}
		if e.v.nodeFits(pos, p.tasks, extra) {
			n++
		}
	}
	return n
}

// countClosest counts the nodes that could take their part where the group may have them:
// the most of one domain, or in whole segments.
func (e *explainer) countClosest(nodes []int) int {
	g := e.v.g
	if g.Within == 0 && g.Segment == 0 {
		return e.countTakers(nodes)
	}
	level := job.InLeaf
	if g.Within > 0 {
		level = g.Within - 1
	}
	in := map[int]int{}
	for _, pos := range nodes {
		if d := e.v.domainOf(pos, level); d >= 0 {
			in[d] += e.countTakers([]int{pos})
		}
	}
	best, sum := 0, 0
	for _, n := range in {
		best = max(best, n)
		if g.Segment > 0 {
			sum += n - n%g.Segment
		}
	}
	if g.Within == 0 && g.MinNodes > g.Segment {
		return sum
	}
	return best
}

// namedNodes lists the nodes that the group names, as far as they admit it.
func (e *explainer) namedNodes() []int {
	var out []int
	for _, name := range e.v.g.Must {
		if pos := e.listedNode(name); slices.Contains(e.open, pos) {
			out = append(out, pos)
		}
	}
	return out
}

// openTasks is how many tasks the open nodes could run together.
func (e *explainer) openTasks() int {
	n := 0
	for _, pos := range e.open {
		n += max(0, e.v.mostTasks(pos, e.v.g.Least))
	}
	return n
}

// longestRun is the largest number of adjacent nodes that could take their part.
func (e *explainer) longestRun() int {
	best, run, last := 0, 0, -2
	for _, pos := range e.open {
		if e.countTakers([]int{pos}) == 0 {
			continue
		}
		if pos != last+1 {
			run = 0
		}
		run, last = run+1, pos
		best = max(best, run)
	}
	return best
}

// demand is an amount of one resource, and how much of it a node has free.
type demand struct {
	name string
	need resource.Amount
	free func(pos int) resource.Amount
	part *class.Need // by memory; nil: it is none
}

// listDemands lists what a part of the group asks for: devices first, because they
// are what people wait for.
func (e *explainer) listDemands(p piece) []demand {
	g, v := e.v.g, e.v
	var out []demand
	var needs []class.Need
	for _, n := range g.BaseDevices {
		needs = class.Merge(needs, n, p.nodes)
	}
	for _, n := range g.StepDevices {
		needs = class.Merge(needs, n, p.tasks)
	}
	for _, n := range g.TotalDevices {
		if p.extra < g.TotalCount() && len(g.TotalDevices) == 1 {
			n.Count = p.extra
		} else if p.extra < g.TotalCount() {
			continue
		}
		needs = class.Merge(needs, n, 1)
	}
	for _, n := range needs {
		mask := v.t.Mask(n.Match)
		out = append(out, demand{n.Name(), resource.Amount(n.Count), func(pos int) resource.Amount {
			return resource.Amount(v.freeUnits(v.s.Row(pos), pos, mask[pos], &n))
		}, nil})
		if n.Bytes > 0 {
			out[len(out)-1].part = &n
		}
	}
	vec := g.Base.Scale(p.nodes).Add(g.Step.Scale(p.tasks)).Add(g.Extra.Scale(p.extra))
	if p.extra == g.TotalCount() && p.tasks >= g.Least {
		vec = vec.Add(g.Total)
	}
	add := func(name string, need resource.Amount, of func(resource.Vector) resource.Amount) {
		if need > 0 {
			out = append(out, demand{name, need, func(pos int) resource.Amount { return of(v.s.Row(pos).Free) }, nil})
		}
	}
	add("cpu", vec.CPU, func(f resource.Vector) resource.Amount { return f.CPU })
	add("memory", vec.Memory, func(f resource.Vector) resource.Amount { return f.Memory })
	add("disk", vec.Disk, func(f resource.Vector) resource.Amount { return f.Disk })
	for _, x := range vec.Named {
		add(x.Name, x.Amount, func(f resource.Vector) resource.Amount { return f.Get(x.Name) })
	}
	return out
}

// inBytes adds to the reason of what is missing of parts by memory how large one is, and
// what the device has left of these nodes that has most.
func (d *demand) inBytes(v *view, nodes []int, r reason.Reason) reason.Reason {
	if d.part == nil {
		return r
	}
	r.Used, r.Most = int64(d.part.Bytes), 0
	for _, pos := range nodes {
		r.Most = max(r.Most, int64(v.mostLeft(v.s.Row(pos), pos, d.part)))
	}
	return r
}

// mostLeft is the memory that the device of a node has left that has most of it, among
// those that are what is needed but for their memory.
func (v *view) mostLeft(r *index.Row, pos int, need *class.Need) (most resource.Amount) {
	n, any := v.t.Node(pos), need.Match
	any.Memory = 0
	for _, p := range v.t.Mask(any)[pos].And(v.usableDevices(pos)).Positions() {
		if n.Devices[p].Memory > 0 {
			most = max(most, r.Left(n, p)/resource.Load(0, resource.WholeDevice, 0))
		}
	}
	return most
}

// largestOf is the most of a resource that one qualifying node has, or the least
// that one of the nodes has that the group names.
func (e *explainer) largestOf(d demand) resource.Amount {
	var most resource.Amount
	if len(e.v.g.Must) > 0 {
		most = resource.Unlimited
		for _, name := range e.v.g.Must {
			most = min(most, d.free(e.listedNode(name)))
		}
		return most
	}
	for _, pos := range e.qualifying {
		most = max(most, d.free(pos))
	}
	return most
}

// totalOf sums a resource over the nodes that admit the group.
func (e *explainer) totalOf(d demand) resource.Amount {
	var all resource.Amount
	for _, pos := range e.open {
		all = all.Add(max(0, d.free(pos)))
	}
	return all
}
