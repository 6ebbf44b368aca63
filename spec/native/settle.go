package native

import (
	"slices"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// settleGroup checks the fields of a group against each other and makes a task group.
func (p *parser) settleGroup(g *groupDraft) job.TaskGroup {
	p.oneOf(g, "gpus", "gpus_per_node", "gpus_per_task")
	p.oneOf(g, "memory", "memory_per_task", "memory_per_cpu", "memory_per_gpu")
	p.oneOf(g, "cpus", "cpus_per_gpu")
	p.fitElastic(g)
	p.fitNodes(g)
	p.fitTasks(g)
	p.fitCPUs(g)
	t := &g.group
	t.PerNode, t.PerTask, t.Total = g.claim[perNode].need, g.claim[perTask].need, g.claim[total].need
	t.PerDevice = g.claim[perGPU].need.Vector
	if g.memPC > 0 {
		for _, v := range []*resource.Vector{&t.PerNode.Vector, &t.PerTask.Vector, &t.PerDevice} {
			v.Memory = v.Memory.Add(g.memPC.Mul(int(v.CPU.DivUp(resource.OneCPU))))
		}
	}
	if t.PerNode.DeviceCount()+t.PerTask.DeviceCount()+t.Total.DeviceCount() == 0 && !t.PerDevice.IsZero() {
		for _, name := range []string{"cpus_per_gpu", "memory_per_gpu", "per_gpu"} {
			if v, ok := g.given[name]; ok {
				p.failValue(v, "add gpus:, or say it for each task", "is for each GPU, and no GPUs are asked for")
			}
		}
	}
	p.convertWishes(g)
	return *t
}

// oneOf refuses more than one of some fields.
func (p *parser) oneOf(g *groupDraft, names ...string) {
	first := ""
	for _, n := range names {
		v, ok := g.given[n]
		switch {
		case !ok:
		case first == "":
			first = n
		default:
			p.failValue(v, "say one of them", "%s and %s exclude each other", first, n)
		}
	}
}

// fitNodes makes room for the nodes that are named.
func (p *parser) fitNodes(g *groupDraft) {
	t := &g.group
	n := len(t.NodeList)
	if n == 0 {
		return
	}
	v := g.given["nodelist"]
	excluded := map[string]bool{}
	for _, x := range t.Exclude {
		excluded[x] = true
	}
	switch i := slices.IndexFunc(t.NodeList, func(n string) bool { return excluded[n] }); {
	case i >= 0:
		p.failValue(v, "", "names %s, which exclude excludes", t.NodeList[i])
	case t.Tasks.Want > 0 && t.Tasks.Want < n:
		p.failValue(v, "name fewer nodes, or ask for more tasks", "names %d nodes, but there are %d tasks", n, t.Tasks.Want)
	case t.Nodes == job.Range{}:
		t.Nodes.Min = n
	case t.Nodes.Max > 0 && t.Nodes.Max < n:
		p.failValue(v, "", "names %d nodes, more than nodes: %d allows", n, t.Nodes.Max)
	}
}

// fitTasks checks tasks against nodes.
func (p *parser) fitTasks(g *groupDraft) {
	t := &g.group
	want := t.Tasks.Want
	if t.Tasks.Min > want {
		p.failValue(g.given["min_tasks"], "", "is more than tasks, %d", want)
	}
	if want == 0 {
		return
	}
	if v, ok := g.given["nodes"]; ok && want < t.Nodes.Min {
		p.failValue(v, "ask for more tasks or fewer nodes", "%d nodes are more than %d tasks can use", t.Nodes.Min, want)
		return
	}
	if t.Nodes.Max > 0 {
		t.Nodes.Max = max(min(t.Nodes.Max, want), t.Nodes.Min)
		if v, ok := g.given["tasks_per_node"]; ok && int64(t.TasksPerNode)*int64(t.Nodes.Max) < int64(want) {
			p.failValue(v, "ask for more nodes, or leave out tasks", "%d on each of %d nodes are fewer than %d tasks", t.TasksPerNode, t.Nodes.Max, want)
		}
	}
}

// fitCPUs settles the claim on CPUs: those of each task are 1 if nothing is said.
func (p *parser) fitCPUs(g *groupDraft) {
	said, full := g.claim[perTask].said["cpus"]
	flat, asked := g.given["cpus"]
	_, byGPU := g.claim[perGPU].said["cpus"]
	if full && asked {
		p.failValue(flat, "leave one of them out", "%s says it already, in line %d", said.path, said.at.Line)
	}
	need := &g.claim[perTask].need.CPU
	switch {
	case full:
	case g.group.Overcommit:
		if _, ok := g.claim[perNode].said["cpus"]; !ok {
			g.claim[perNode].need.CPU = resource.OneCPU
		}
	case asked:
		*need = g.cpus
	case !byGPU:
		*need = resource.OneCPU
	}
}

// fitElastic checks what an elastic group says of its size. Tasks that are as many on
// each node may be said instead of nodes.
func (p *parser) fitElastic(g *groupDraft) {
	t := &g.group
	v, ok := g.given["elastic"]
	if !t.Elastic {
		if v, ok := g.given["subgroup"]; ok {
			p.failValue(v, "add elastic: true", "is for elastic groups")
		}
		return
	}
	if each := t.TasksPerNode; ok && t.Tasks.Min > 0 && t.Tasks.Want > t.Tasks.Min && each > 0 && t.Nodes == (job.Range{}) && t.Tasks.Min%each == 0 && t.Tasks.Want%each == 0 {
		t.Nodes = job.Range{Min: t.Tasks.Min / each, Max: t.Tasks.Want / each}
		t.Tasks = job.Count{}
	}
	unit := t.Unit()
	switch {
	case t.Tasks != job.Count{}:
		p.failValue(v, "write nodes: 2-8 and tasks_per_node, or tasks and min_tasks that are multiples of tasks_per_node", "a group that changes by nodes has the same number of tasks on each")
	case t.Nodes.Min < 1 || t.Nodes.Max <= t.Nodes.Min:
		p.failValue(v, "write nodes: 2-8", "needs a smallest and a larger number of nodes")
	case t.Nodes.Min%unit != 0 || t.Nodes.Max%unit != 0:
		p.failValue(g.given["subgroup"], "write multiples of it", "nodes: %d-%d are no multiples of %d", t.Nodes.Min, t.Nodes.Max, unit)
	case len(t.NodeList) > 0 || t.Contiguous || t.Constraint.Same || t.Within != 0 || t.Switches > 0 || t.Spread || t.Segment > 1 || len(t.Wishes.GPUs) > 0:
		p.failValue(v, "leave it out, or say elastic: false", "does not go together with nodelist, contiguous, [a|b], within, switches, spread, segment and gpu_types")
	case g.claim[total].need.DeviceCount() > 0 || !g.claim[total].need.Vector.IsZero():
		p.failValue(v, "say gpus_per_node or gpus_per_task", "nothing can be collected over all nodes: their number changes")
	}
}
