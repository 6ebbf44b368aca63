package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/reason"
	"github.com/coxswain-sched/coxswain/resource"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// stake is what a line's jobs ask of the queue that their account is, or is in.
type stake struct {
	queue  *queue
	demand *demand
	listed bool             // in demand.waiting
	needs  []quota.Need     // of one job, at least; sorted by resource
	kinds  []flavored       // by flavours, as they came up
	got    quota.Assignment // as it was looked at last
	rough  bool             // what a job takes is known only when it is placed
	over   bool             // when it was placed last, it took more than there was
}

// flavored is the kind of a line's jobs on nodes of some flavours.
type flavored struct {
	flavors []int32
	kind    *kind // nil: they ask for devices of another type
}

// stakeOf works out what jobs of a shape ask of a queue; nil if their terms know none.
func (c *Core) stakeOf(t *terms, shape *class.Shape) *stake {
	if t.queue == nil {
		return nil
	}
	s := &stake{queue: t.queue, demand: t.queue.demandOf(shape)}
	for i, name := range c.quotas.Resources {
		a := resource.Amount(0)
		if name == "job" {
			a = 1
		}
		for g := range shape.Groups {
			a = a.Add(least(&shape.Groups[g], name))
		}
		if a > 0 {
			s.needs = append(s.needs, quota.Need{Resource: int32(i), Amount: a})
		}
	}
	nodes := c.quotas.Resource("node") != quota.None
	s.rough = slices.ContainsFunc(shape.Groups, func(g class.Group) bool { return vague(&g, nodes) })
	return s
}

// vague reports whether what a group takes depends on where it is placed; nodes:
// their number counts too.
func vague(g *class.Group, nodes bool) bool {
	if g.Whole || g.AllMemory || g.Want != g.Least {
		return true
	}
	spans := g.MaxNodes > g.MinNodes || g.MaxNodes == 0 && (g.Want > 1 || len(g.TotalDevices) > 0) && g.Each == 0
	return spans && (nodes || g.Each > 0 || len(g.BaseDevices) > 0 || !g.Base.IsZero())
}

// least is what a group takes at least of a countable thing, in the units of
// account.TRES.
func least(g *class.Group, name string) resource.Amount {
	tasks := max(g.Least, g.Each*g.MinNodes)
	switch name {
	case "cpu":
		return g.All.CPU
	case "memory":
		return g.All.Memory
	case "disk":
		return g.All.Disk
	case "node":
		return resource.Amount(g.MinNodes)
	case "task":
		return resource.Amount(tasks)
	case "gpu":
		return thousandths(g.BaseDevices, g.MinNodes).Add(thousandths(g.StepDevices, tasks)).Add(thousandths(g.TotalDevices, 1))
	}
	return g.All.Get(name)
}

func thousandths(needs []class.Need, times int) (sum resource.Amount) {
	for _, n := range needs {
		if n.Kind == "gpu" {
			sum = sum.Add(resource.Amount(n.Share).Mul(n.Count).Mul(times))
		}
	}
	return sum
}

// kindIn returns the kind of a line's jobs on nodes of flavours; nil: they can be on
// none.
func (c *Core) kindIn(l *line, flavors []int32) *kind {
	for i := range l.stake.kinds {
		if slices.Equal(l.stake.kinds[i].flavors, flavors) {
			return l.stake.kinds[i].kind
		}
	}
	bounds := make([]class.Bound, len(flavors))
	for i, f := range flavors {
		bounds[i] = class.Bound{Features: c.quotas.Flavors[f].Features, Type: c.quotas.Flavors[f].GPUType}
	}
	x := flavored{flavors: slices.Clone(flavors)}
	if shape := c.shapes.Restricted(l.key.shape, bounds); shape != nil {
		x.kind = c.kindOf(shape)
		x.kind.uses++
	}
	l.stake.kinds = append(l.stake.kinds, x)
	return x.kind
}

// assign chooses flavours for a line's jobs as things are, among those of which the
// fleet has nodes for them.
func (c *Core) assign(l *line) quota.Assignment {
	d := l.stake.demand
	if d.changes != c.quotas.changes || d.fleet != c.fleet {
		d.changes, d.fleet = c.quotas.changes, c.fleet
		d.got = c.quotas.Assign(l.stake.queue.node, l.stake.needs, func(f int32) bool {
			k := c.kindIn(l, c.quotas.alone[f:f+1])
			return k != nil && c.possible(k)
		}, nil)
	}
	return d.got
}

// turnTo makes a kind the one that a line's jobs are placed as.
func (c *Core) turnTo(l *line, k *kind) {
	if l.kind == k {
		return
	}
	i := slices.Index(l.kind.lines, l)
	l.kind.lines = slices.Delete(l.kind.lines, i, i+1)
	k.lines = append(k.lines, l)
	l.kind, l.why = k, reason.Reason{}
}

// staked is what is remembered of a line's stake.
func (c *Core) staked(l *line) (flavors []string, over bool) {
	if l.stake == nil {
		return nil, false
	}
	for _, x := range l.stake.kinds {
		if x.kind == l.kind {
			flavors = c.flavorNames(x.flavors)
		}
	}
	return flavors, l.stake.over
}

// stakeAs sets what was remembered.
func (c *Core) stakeAs(l *line, flavors []string, over bool) {
	if l.stake == nil {
		return
	}
	l.stake.over = over
	c.quotas.over = c.quotas.over || over
	if k := c.kindIn(l, c.flavorsNamed(flavors)); k != nil {
		c.turnTo(l, k)
	}
}
