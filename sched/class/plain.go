package class

import (
	"reflect"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// plain is what a request of the usual form asks for: one group, at most one kind
// of device a node and a task, no named nodes, features or resources. It is found
// again without writing the request out.
type plain struct {
	pool, partition string
	nodes           job.Range
	tasks           job.Count
	each            int
	node, task, dev amounts
	ofNode, ofTask  resource.DeviceRequest
	memory, alone   bool
}

type amounts struct{ cpu, memory, disk resource.Amount }

// plainForm returns the plain form of a specification; false if it has none.
func plainForm(spec *job.Spec) (plain, bool) {
	if len(spec.Groups) != 1 || spec.Within != 0 || len(spec.Partitions) > 1 || len(spec.Partitions) == 1 && spec.Partitions[0] == "" {
		return plain{}, false
	}
	g := spec.Groups[0]
	if g.Elastic {
		g.Nodes.Max, g.Elastic, g.Subgroup = g.Nodes.Min, false, 0
	}
	p := plain{pool: spec.Pool, nodes: g.Nodes, tasks: g.Tasks, each: g.TasksPerNode, memory: g.AllMemory, alone: g.Exclusive}
	if len(spec.Partitions) == 1 {
		p.partition = spec.Partitions[0]
	}
	// What is taken over, and what does not matter to placement, is taken away;
	// anything that is left makes it another form.
	g.Nodes, g.Tasks, g.TasksPerNode, g.AllMemory, g.Exclusive = job.Range{}, job.Count{}, 0, false, false
	g.Name, g.Distribution, g.CPUsPerTask, g.Overcommit = "", "", 0, false
	ok := oneRequest(&g.PerNode.Devices, &p.ofNode) && oneRequest(&g.PerTask.Devices, &p.ofTask)
	for _, v := range []struct {
		from *resource.Vector
		to   *amounts
	}{{&g.PerNode.Vector, &p.node}, {&g.PerTask.Vector, &p.task}, {&g.PerDevice, &p.dev}} {
		*v.to = amounts{v.from.CPU, v.from.Memory, v.from.Disk}
		v.from.CPU, v.from.Memory, v.from.Disk = 0, 0, 0
	}
	return p, ok && reflect.ValueOf(g).IsZero()
}

func oneRequest(list *[]resource.DeviceRequest, to *resource.DeviceRequest) bool {
	if len(*list) > 1 {
		return false
	}
	if len(*list) == 1 {
		*to = (*list)[0]
	}
	*list = nil
	return true
}
