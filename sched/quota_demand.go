package sched

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched/aggregate"
	"github.com/coxswain-sched/coxswain/sched/class"
	"github.com/coxswain-sched/coxswain/sched/quota"
)

// quotaDemand is what a class's jobs ask of the queue that their account is, or is in.
type quotaDemand struct {
	queue              *quotaQueue
	demand             *shapeDemand
	queueIndex         int          // in quotaQueue.heads; -1: it is not there
	listed             bool         // in demand.waiting
	ledAt              uint64       // quotas.changes when it went on before all others: it rests again, and would again
	needs              []quota.Need // of one job, all its tasks; sorted by resource
	cuttable           int          // tasks that may be left out
	kinds              []flavorKind // by flavours, as they came up
	got                quotaBid     // as it was looked at last
	suited             [2]uint64    // quotas.changes and fleetState.version when it was seen to fit (quotaSuits)
	dependsOnPlacement bool         // what a job takes is known only when it is placed
}

// flavorKind is the kind of a class's jobs on nodes of some flavours.
type flavorKind struct {
	flavors []int32
	cut     int   // tasks that are left out
	kind    *kind // nil: they ask for devices of another type
}

// quotaDemandOf works out what jobs of a shape ask of a queue; nil if their policy knows none.
func (c *Core) quotaDemandOf(t *effectivePolicy, shape *class.Shape) *quotaDemand {
	if t.queue == nil {
		return nil
	}
	s := &quotaDemand{queueIndex: -1, queue: t.queue, demand: t.queue.demandOf(shape), needs: c.amountsWanted(shape, 0)}
	for i := range shape.Groups {
		s.cuttable += shape.Groups[i].Want - shape.Groups[i].Least
	}
	nodes := c.quotas.Resource("node") != quota.None
	s.demand.needs, s.demand.cuts = s.needs, s.cuttable > 0
	t.queue.noteNeed(s.demand)
	s.dependsOnPlacement = slices.ContainsFunc(shape.Groups, func(g class.Group) bool { return dependsOnPlacement(&g, nodes) })
	return s
}

// dependsOnPlacement reports whether what a group takes depends on where it is placed; nodes:
// their number counts too.
func dependsOnPlacement(g *class.Group, nodes bool) bool {
	if g.Whole || g.AllMemory {
		return true
	}
	spans := g.MaxNodes > g.MinNodes || g.MaxNodes == 0 && (g.Want > 1 || len(g.TotalDevices) > 0) && g.Each == 0
	return spans && (nodes || g.Each > 0 || len(g.BaseDevices) > 0 || !g.Base.IsZero())
}

// amountsWanted is what a job takes of each thing that is counted, with so many tasks left
// out.
func (c *Core) amountsWanted(shape *class.Shape, cut int) (needs []quota.Need) {
	tasks := shape.Tasks(cut)
	for i, name := range c.quotas.Resources {
		a := resource.Amount(0)
		if name == "job" {
			a = 1
		}
		for g := range shape.Groups {
			a = a.Add(groupAmount(&shape.Groups[g], tasks[g], name))
		}
		if a > 0 {
			needs = append(needs, quota.Need{Resource: int32(i), Amount: a})
		}
	}
	return needs
}

// needsOf is what a class's jobs ask for with so many tasks left out.
func (c *Core) needsOf(l *jobClass, cut int) []quota.Need {
	if cut == 0 {
		return l.quotaDemand.needs
	}
	return c.amountsWanted(l.key.shape, cut)
}

// groupAmount is what so many tasks of a group take at least of a countable thing, in the
// units of account.TRES.
func groupAmount(g *class.Group, tasks int, name string) resource.Amount {
	all := g.All
	if more := tasks - g.Least; g.Each == 0 && more > 0 {
		all = all.Add(g.Step.Scale(more))
	}
	tasks = max(tasks, g.Each*g.MinNodes)
	switch name {
	case "cpu":
		return all.CPU
	case "memory":
		return all.Memory
	case "disk":
		return all.Disk
	case "node":
		return resource.Amount(g.MinNodes).Add(all.Get(aggregate.Nodes))
	case "task":
		return resource.Amount(tasks)
	case "gpu":
		return deviceThousandths(g.BaseDevices, g.MinNodes).Add(deviceThousandths(g.StepDevices, tasks)).Add(deviceThousandths(g.TotalDevices, 1)).Add(aggregate.Count(all, name))
	}
	return all.Get(name)
}

func deviceThousandths(needs []class.Need, times int) (sum resource.Amount) {
	for _, n := range needs {
		if n.Kind == "gpu" {
			sum = sum.Add(resource.Amount(n.Share).Mul(n.Count).Mul(times))
		}
	}
	return sum
}

// kindIn returns the kind of a class's jobs on nodes of flavours, with so many tasks
// left out; nil: they can be on none.
func (c *Core) kindIn(l *jobClass, flavors []int32, cut int) *kind {
	for i := range l.quotaDemand.kinds {
		if x := &l.quotaDemand.kinds[i]; x.cut == cut && slices.Equal(x.flavors, flavors) {
			return x.kind
		}
	}
	bounds := make([]class.Bound, len(flavors))
	for i, f := range flavors {
		bounds[i] = class.Bound{Features: c.quotas.Flavors[f].Features, Type: c.quotas.Flavors[f].GPUType}
	}
	x := flavorKind{flavors: slices.Clone(flavors), cut: cut}
	less := c.shapes.Cut(l.key.shape, cut)
	shape := c.shapes.Restricted(less, bounds)
	if shape != nil {
		x.kind = c.kindOf(shape)
		x.kind.uses++
	}
	if cut > 0 && shape != less && c.queue.byShape[less] == nil {
		c.shapes.Forget(less)
	}
	c.forgetCuts(l, cut)
	l.quotaDemand.kinds = append(l.quotaDemand.kinds, x)
	return x.kind
}

// forgetCuts drops kinds of a class for other numbers of tasks than this one, but the
// one that its jobs are placed as.
func (c *Core) forgetCuts(l *jobClass, cut int) {
	l.quotaDemand.kinds = slices.DeleteFunc(l.quotaDemand.kinds, func(x flavorKind) bool {
		gone := x.cut != 0 && x.cut != cut && x.kind != l.kind
		if gone {
			c.releaseKind(x.kind)
		}
		return gone
	})
}

// setKind makes a kind the one that a class's jobs are placed as.
func (c *Core) setKind(l *jobClass, k *kind) {
	if l.kind == k {
		return
	}
	i := slices.Index(l.kind.classes, l)
	l.kind.classes = slices.Delete(l.kind.classes, i, i+1)
	k.classes = append(k.classes, l)
	l.kind, l.why = k, reason.Reason{}
}

// demandMemory is what is remembered of a class's quota demand.
func (c *Core) demandMemory(l *jobClass) (flavors []string, cut int, over bool) {
	if l.quotaDemand == nil {
		return nil, 0, false
	}
	for _, x := range l.quotaDemand.kinds {
		if x.kind == l.kind {
			flavors, cut = c.flavorNames(x.flavors), x.cut
		}
	}
	return flavors, cut, l.exceededQuota
}

// restoreDemand sets what was remembered.
func (c *Core) restoreDemand(l *jobClass, flavors []string, cut int, over bool) {
	if l.quotaDemand == nil {
		return
	}
	l.exceededQuota = over
	c.quotas.over = c.quotas.over || over
	if k := c.kindIn(l, c.flavorsNamed(flavors), cut); k != nil {
		c.setKind(l, k)
	}
}
