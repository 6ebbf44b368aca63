package place

import (
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/index"
)

// Missing says what is missing for a gang that does not fit, as the function
// Missing does, from the cells.
func (q *Quick) Missing() reason.Reason {
	g := q.v.g
	tasks := max(g.Least, g.Each*g.MinNodes)
	for _, d := range q.listLacks(tasks, g.MinNodes) {
		if d.free < d.need {
			r := reason.Reason{Code: reason.Resources, Resource: d.name, Need: int64(d.need), Free: int64(d.free)}
			if d.part != nil {
				r.Used, r.Most = int64(d.part.Bytes), int64(d.most)
			}
			return r
		}
	}
	e := explainer{v: q.v}
	need, free, room := e.leastNodes(), q.Takers(), 0
	q.eachOpenCell(func(c *index.Cell) { room += c.N * max(0, q.v.mostTasks(c.Pos, g.Least)) })
	r := reason.Reason{Code: reason.Resources, Resource: "nodes", Need: int64(need), Free: int64(free), Nodes: free}
	if free >= need {
		r.Resource, r.Need, r.Free = "tasks", int64(tasks), int64(min(room, tasks-1))
	}
	return r
}

// Takers counts the nodes that could take their part, as Now does: a part is the least that
// a node takes if the gang is spread as far as it may be, which Part may not be.
func (q *Quick) Takers() (n int) {
	p := (&explainer{v: q.v}).partOf(q.countQualifying())
	q.eachOpenCell(func(c *index.Cell) {
		if q.v.nodeFits(c.Pos, p.tasks, nil) {
			n += c.N
		}
	})
	return n
}

// eachOpenCell calls f with the cells whose nodes qualify and admit the group beside what
// they hold; the view looks at the cell's row meanwhile.
func (q *Quick) eachOpenCell(f func(c *index.Cell)) {
	for _, c := range q.cells.Live() {
		if !q.anyInClass(c.Class) || c.Row.Whole > 0 || q.v.g.Whole && c.Row.Holds > 0 {
			continue
		}
		q.v.probe = &c.Row
		f(c)
	}
	q.v.probe = nil
}

// countQualifying counts the nodes that qualify, whatever is free on them.
func (q *Quick) countQualifying() int {
	n := 0
	for _, c := range q.cells.Live() {
		if q.anyInClass(c.Class) {
			n += c.N
		}
	}
	return n
}

// lack is an amount of one resource that is needed, and how much is free.
type lack struct {
	name       string
	need, free resource.Amount
	part       *class.Need     // by memory; nil: it is none
	most       resource.Amount // bytes, left of the device that has most
}

// listLacks lists what so many tasks on so many nodes ask for, in the order of demands.
func (q *Quick) listLacks(tasks, nodes int) []lack {
	g := q.v.g
	var needs []class.Need
	for _, n := range g.BaseDevices {
		needs = class.Merge(needs, n, nodes)
	}
	for _, n := range g.StepDevices {
		needs = class.Merge(needs, n, tasks)
	}
	var out []lack
	for _, n := range needs {
		l := lack{name: n.Name(), need: resource.Amount(n.Count)}
		mask := q.t.Mask(n.Match)
		if n.Bytes > 0 {
			l.part = &n
		}
		q.eachOpenCell(func(c *index.Cell) {
			l.free += resource.Amount(c.N * max(0, q.v.freeUnits(&c.Row, c.Pos, mask[c.Pos], &n)))
			if l.part != nil {
				l.most = max(l.most, q.v.mostLeft(&c.Row, c.Pos, &n))
			}
		})
		out = append(out, l)
	}
	vec := g.Base.Scale(nodes).Add(g.Step.Scale(tasks))
	add := func(name string, need resource.Amount, of func(resource.Vector) resource.Amount) {
		if need <= 0 {
			return
		}
		l := lack{name: name, need: need}
		q.eachOpenCell(func(c *index.Cell) { l.free = l.free.Add(max(0, of(c.Row.Free)).Mul(c.N)) })
		out = append(out, l)
	}
	add("cpu", vec.CPU, func(f resource.Vector) resource.Amount { return f.CPU })
	add("memory", vec.Memory, func(f resource.Vector) resource.Amount { return f.Memory })
	add("disk", vec.Disk, func(f resource.Vector) resource.Amount { return f.Disk })
	for _, x := range vec.Named {
		add(x.Name, x.Amount, func(f resource.Vector) resource.Amount { return f.Get(x.Name) })
	}
	return out
}
