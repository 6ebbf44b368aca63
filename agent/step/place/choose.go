package place

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/step"
)

// candidateParts lists the parts that may be used, ascending, and those that must be.
func (p *placer) candidateParts(a *step.Alloc) (parts []int, must map[int]bool, err error) {
	must = make(map[int]bool)
	want := make(map[string]bool)
	for _, name := range p.request.NodeList {
		want[name] = true
	}
	for i, part := range p.group.Parts {
		name := a.Nodes[part.Node].Name
		if want[name] {
			must[i] = true
			delete(want, name)
		}
		if i < p.request.Relative && !must[i] || slices.Contains(p.request.Exclude, name) {
			continue
		}
		parts = append(parts, i)
	}
	if len(want) > 0 {
		return nil, nil, errNoNodes
	}
	for i := range must {
		if !slices.Contains(parts, i) {
			return nil, nil, errNoNodes
		}
	}
	return parts, must, nil
}

// taskCapacity is how many tasks a part could take.
func (p *placer) taskCapacity(part int) int {
	have, claim := p.have[part], p.group.Parts[part]
	if !p.exact && !have.whole {
		return 0
	}
	n := have.cpus / max(p.request.CPUsPerTask, 1)
	if p.request.CPUsPerTask <= max(p.group.CPUsPerTask, 1) && have.whole {
		n = max(n, claim.Tasks) // what the job was given is enough for its own tasks
	}
	if p.request.Overcommit && have.cpus > 0 {
		n = max(n, 1<<20)
	}
	if p.request.TasksPerNode > 0 {
		n = min(n, p.request.TasksPerNode)
	}
	d := p.request.Devices
	switch {
	case d.PerTask > 0:
		n = min(n, len(devicesOfType(have.devices, d.Type))/d.PerTask)
	case d.PerNode > 0 && len(devicesOfType(have.devices, d.Type)) < d.PerNode:
		n = 0
	case !d.Requested() && len(have.devices) < len(claim.Devices):
		n = 0
	}
	return n
}

// chooseParts settles the number of tasks and the nodes.
func (p *placer) chooseParts(parts []int, must map[int]bool) error {
	least, most := max(p.request.NodesMin, len(must)), p.request.NodesMax
	if p.request.NodesMin > 0 && most == 0 {
		most = least
	}
	if most == 0 {
		most = len(parts)
	}
	p.tasks = p.request.Tasks
	if p.tasks == 0 {
		if p.request.NodesMin == 0 {
			least = len(parts)
		}
		p.tasks = max(p.request.TasksPerNode, 1) * least
	}
	if least > len(parts) || len(must) > most {
		return errNoNodes
	}
	if least > p.tasks {
		return fmt.Errorf("%d tasks cannot run on %d nodes", p.tasks, least)
	}
	var usable []int
	for _, i := range parts {
		if p.taskCapacity(i) > 0 {
			usable = append(usable, i)
		} else if must[i] {
			return errTooMany
		}
	}
	if least > len(usable) {
		return errTooMany
	}
	p.chosen = p.pickParts(usable, must, max(least, 1), most)
	if p.chosen == nil {
		return errTooMany
	}
	return nil
}

// pickParts takes the first nodes that hold the tasks, in order, or if too many would be
// needed, the roomiest ones; with a range of nodes asked, as many as it allows.
func (p *placer) pickParts(usable []int, must map[int]bool, least, most int) []int {
	first := slices.Clone(usable)
	slices.SortStableFunc(first, func(x, y int) int { return boolOrder(must[x], must[y]) })
	roomy := slices.Clone(usable)
	slices.SortStableFunc(roomy, func(x, y int) int {
		if o := boolOrder(must[x], must[y]); o != 0 {
			return o
		}
		return p.taskCapacity(y) - p.taskCapacity(x)
	})
	for _, order := range [][]int{first, roomy} {
		sum := 0
		for k, i := range order {
			if sum += p.taskCapacity(i); k+1 >= least && sum >= p.tasks {
				if p.request.NodesMax > 0 {
					k = max(k, min(most, p.tasks, len(order))-1)
				}
				if k+1 > most {
					break
				}
				out := slices.Clone(order[:k+1])
				slices.Sort(out)
				return out
			}
		}
	}
	return nil
}

// boolOrder orders true before false.
func boolOrder(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}
