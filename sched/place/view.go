package place

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// view is one group looking at one state: which nodes it may use and how much of
// the group each could take.
type view struct {
	t     *index.Table
	s     *index.State
	g     *class.Group
	ideal bool // nodes that are not up count as up
	slurm bool // ranks go over the nodes in node order
	base  [][]index.Set
	step  [][]index.Set
	total [][]index.Set
	not   []int      // positions of the nodes that the group is not to use, in order
	wants []want     // scratch
	probe *index.Row // looked at instead of the state's row; nil: the state's
}

func newView(t *index.Table, s *index.State, g *class.Group, ideal bool) *view {
	if g.Segment > 0 && t.Levels() == 0 { // nobody can tell
		h := *g
		h.Segment = 0
		g = &h
	}
	v := &view{t: t, s: s, g: g, ideal: ideal}
	masks := func(needs []class.Need) (out [][]index.Set) {
		for _, n := range needs {
			out = append(out, t.Mask(n.Match))
		}
		return out
	}
	v.base, v.step, v.total = masks(g.BaseDevices), masks(g.StepDevices), masks(g.TotalDevices)
	for _, name := range g.Not {
		v.not = t.AppendNamed(v.not, name)
	}
	slices.Sort(v.not)
	return v
}

// isRefused reports whether the group is not to use a node.
func (v *view) isRefused(pos int) bool {
	_, found := slices.BinarySearch(v.not, pos)
	return found
}

// freeRow is what is free on a node.
func (v *view) freeRow(pos int) *index.Row {
	if v.probe != nil {
		return v.probe
	}
	return v.s.Row(pos)
}

// where bounds the nodes of a group.
type where struct {
	pool      string
	partition string
	features  []string // all of them, instead of any of the group's alternatives
	without   []int    // positions that are not to be used
	level     int      // of the topology, as job.TaskGroup.Within has it; 0: none
	domain    int      // that all nodes are in, at this level
}

// nodeQualifies reports whether a node may be used at all, whatever is free on it.
func (v *view) nodeQualifies(pos int, w *where) bool {
	n := v.t.Node(pos)
	switch {
	case n.State != fleet.Up && !v.ideal,
		n.Pool != w.pool,
		w.partition != "" && len(n.Parts) > 0 && !slices.Contains(n.Parts, w.partition),
		v.isRefused(pos),
		slices.Contains(w.without, pos),
		w.level != 0 && v.domainOf(pos, w.level-1) != w.domain:
		return false
	}
	if w.features != nil {
		return HasAll(n.Qualities, w.features)
	}
	return HasAny(n.Qualities, v.g.Alternatives)
}

// HasAll reports whether a node with these features has all that are asked for.
func HasAll(have, want []string) bool {
	for _, f := range want {
		if !slices.Contains(have, f) {
			return false
		}
	}
	return true
}

// HasAny reports whether a node with these features satisfies one of the
// alternatives, or whether there are none.
func HasAny(have []string, alternatives [][]string) bool {
	return len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(a []string) bool { return HasAll(have, a) })
}

// needOf is what a node has to give for so many tasks and collected devices.
func (v *view) needOf(pos, tasks, extra int) resource.Vector {
	g := v.g
	out := g.Base
	if tasks > 0 {
		out = out.Add(g.Step.Scale(tasks))
	}
	if extra > 0 {
		out = out.Add(g.Extra.Scale(extra))
	}
	if g.AllMemory {
		out.Memory = max(out.Memory, v.t.Node(pos).Capacity.Memory)
	}
	if g.Whole {
		out.CPU = max(out.CPU, v.t.Node(pos).Capacity.CPU)
	}
	return out
}

// isOpen reports whether the node admits this group beside what it holds.
func (v *view) isOpen(pos int) bool {
	r := v.freeRow(pos)
	return r.Whole == 0 && (!v.g.Whole || r.Holds == 0)
}

// nodeFits reports whether a node can run so many tasks and give so many of each
// device that is collected in total.
func (v *view) nodeFits(pos, tasks int, extra []int) bool {
	r := v.freeRow(pos)
	if !v.isOpen(pos) || !r.Free.Covers(v.needOf(pos, tasks, sumOf(extra))) {
		return false
	}
	wants := v.devicesNeeded(pos, tasks, extra)
	return len(wants) == 0 || canServe(v.t.Node(pos), r, v.usableDevices(pos), wants)
}

func (v *view) usableDevices(pos int) index.Set {
	if v.ideal {
		return v.t.Node(pos).Ideal
	}
	return v.t.Node(pos).Usable
}

// devicesNeeded lists what a node has to give in devices. The result is good until the
// next call.
func (v *view) devicesNeeded(pos, tasks int, extra []int) []want {
	v.wants = v.wants[:0]
	add := func(n class.Need, mask index.Set, count int) {
		if count == 0 {
			return
		}
		for i := range v.wants {
			if v.wants[i].mask == mask && v.wants[i].share == n.Share && v.wants[i].bytes == n.Bytes {
				v.wants[i].count += count
				return
			}
		}
		v.wants = append(v.wants, want{mask: mask, count: count, share: n.Share, bytes: n.Bytes})
	}
	for i, n := range v.g.BaseDevices {
		add(n, v.base[i][pos], n.Count)
	}
	for i, n := range v.g.StepDevices {
		add(n, v.step[i][pos], n.Count*tasks)
	}
	for i, n := range v.g.TotalDevices {
		if extra != nil {
			add(n, v.total[i][pos], extra[i])
		}
	}
	return v.wants
}

// mostTasks returns how many tasks a node could run, at most limit; -1 if it cannot
// even serve the group without a task.
func (v *view) mostTasks(pos, limit int) int {
	r := v.freeRow(pos)
	if v.g.OneDevices > r.Devices.Len() || !v.isOpen(pos) {
		return -1
	}
	base := v.needOf(pos, 0, 0)
	if !r.Free.Covers(base) {
		return -1
	}
	n := limit
	if !v.g.AllMemory && !v.g.Whole {
		n = r.Free.Sub(base).Times(v.g.Step, limit)
	}
	for i, d := range v.g.StepDevices {
		n = min(n, v.freeUnits(r, pos, v.step[i][pos], &d)/d.Count)
	}
	for n >= 0 && !v.nodeFits(pos, n, nil) {
		n--
	}
	return n
}

// freeUnits is how many shares (or whole devices) of one kind are free on a node.
func (v *view) freeUnits(r *index.Row, pos int, mask index.Set, need *class.Need) int {
	free := mask.And(r.Devices)
	if need.Undivided() {
		return free.Len()
	}
	devices, n := v.t.Node(pos).Devices, 0
	if need.Bytes == 0 {
		n = free.Len() * int(resource.WholeDevice/need.Share)
	} else {
		for _, p := range free.Positions() {
			n += int(resource.FullLoad(devices[p].Memory) / resource.Load(devices[p].Memory, need.Share, need.Bytes))
		}
	}
	for _, p := range r.Parts {
		if mask.And(v.usableDevices(pos)).Minus(r.Full).Has(p.Pos) {
			memory := devices[p.Pos].Memory
			n += int(max(0, resource.FullLoad(memory)-p.Held) / resource.Load(memory, need.Share, need.Bytes))
		}
	}
	return n
}

// brokenDevices says how much of a node's devices shares would leave in pieces: first how
// many free devices have to be opened for them, then what stays free on the shared
// ones that take them, in thousandths. Of two nodes with room on shared devices, the
// one on which the smaller remainder stays is preferred (best fit; sched/share has
// what this and other scores are worth).
func (v *view) brokenDevices(pos, tasks int, extra []int) int {
	n, r := v.t.Node(pos), v.freeRow(pos)
	wants := v.devicesNeeded(pos, tasks, extra)
	whole, packed := asUndivided(n, r, v.usableDevices(pos), wants)
	opened, left := 0, 0
	for _, w := range whole {
		if !w.isWhole() {
			opened += w.count
		}
	}
	for i, u := range packed {
		if slices.ContainsFunc(packed[:i], func(o units) bool { return o.pos == u.pos }) {
			continue
		}
		rest := r.Left(n, u.pos)
		for _, o := range packed[i:] {
			if o.pos == u.pos {
				rest -= wants[o.want].loadOf(&n.Devices[u.pos])
			}
		}
		left += int(inThousandths(&n.Devices[u.pos], rest))
	}
	return opened*(index.MaxDevices+1)*int(resource.WholeDevice) + left
}

// compareRanks compares two nodes by the ranks that they get.
func (v *view) compareRanks(a, b int) int {
	if v.slurm {
		return a - b
	}
	return v.t.Ranked(a, b)
}

// claimPortion takes a portion: the node's devices are chosen now.
func (v *view) claimPortion(group int, p portion) fleet.Claim {
	n, r := v.t.Node(p.pos), v.freeRow(p.pos)
	c := fleet.Claim{
		Node: n.Name, Pool: n.Pool, Group: group, Tasks: p.tasks, Whole: v.g.Whole,
		Take: v.needOf(p.pos, p.tasks, sumOf(p.extra)).Add(p.total),
	}
	if v.g.Whole {
		for _, d := range r.Devices.Positions() {
			c.Devices = append(c.Devices, fleet.DeviceClaim{Index: n.Devices[d].Index, Share: resource.WholeDevice})
		}
		return c
	}
	c.Devices = assignDevices(n, r, slices.Clone(v.devicesNeeded(p.pos, p.tasks, p.extra)))
	return c
}

func sumOf(list []int) int {
	n := 0
	for _, x := range list {
		n += x
	}
	return n
}
