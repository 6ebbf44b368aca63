package place

import (
	"cmp"
	"slices"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// spreadTasks divides tasks, and what is collected in total, over chosen nodes, all of
// which take part. It returns the portions in rank order, or nil.
func (v *view) spreadTasks(chosen []candidate, tasks int) []portion {
	slices.SortFunc(chosen, func(a, b candidate) int { return v.compareRanks(a.pos, b.pos) })
	out := make([]portion, len(chosen))
	for i, x := range chosen {
		out[i].pos = x.pos
	}
	switch {
	case v.g.Each > 0:
		for i := range out {
			out[i].tasks = v.g.Each
		}
	case !divideTasks(out, chosen, tasks, v.g.Even || len(v.g.TotalDevices) > 0):
		return nil
	}
	if len(v.g.TotalDevices) > 0 && !v.collectDevices(out) {
		if out = v.placeExactly(chosen, len(chosen), tasks, true); out == nil {
			return nil
		}
	}
	if !v.g.Total.IsZero() && !v.gatherTotal(out) {
		return nil
	}
	return out
}

// divideTasks gives each node its tasks: evenly, larger counts first, or node after
// node; never more than a node takes, and none without a task while there are enough.
func divideTasks(out []portion, chosen []candidate, tasks int, even bool) bool {
	room := 0
	for _, x := range chosen {
		room += x.tasks
		if x.tasks == 0 && tasks >= len(chosen) {
			return false
		}
	}
	if room < tasks {
		return false
	}
	if even {
		levelTasks(out, chosen, tasks)
		return true
	}
	for i, x := range chosen {
		later := len(chosen) - 1 - i
		out[i].tasks = min(x.tasks, max(tasks-later, min(1, tasks)))
		tasks -= out[i].tasks
	}
	return tasks == 0
}

// levelTasks raises all nodes together to the highest level that the tasks reach. What
// is left goes to the nodes with most room, the first ones among equals.
func levelTasks(out []portion, chosen []candidate, tasks int) {
	order := make([]int, len(chosen))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chosen[b].tasks, chosen[a].tasks) })
	for h := 1; tasks > 0; h++ {
		for _, i := range order {
			if tasks > 0 && chosen[i].tasks >= h {
				out[i].tasks++
				tasks--
			}
		}
	}
}

// collectDevices adds the devices collected in total round by round, so that every node
// gives one before any gives two.
func (v *view) collectDevices(out []portion) bool {
	for i := range out {
		out[i].extra = make([]int, len(v.g.TotalDevices))
	}
	for k, d := range v.g.TotalDevices {
		left := d.Count
		for round := 0; left > 0; round++ {
			before := left
			for i := range out {
				p := &out[i]
				if left == 0 || p.extra[k] < round {
					continue
				}
				p.extra[k]++
				if v.nodeFits(p.pos, p.tasks, p.extra) {
					left--
				} else {
					p.extra[k]--
				}
			}
			if before == left || round == 0 && left > 0 && before-left < len(out) {
				return false
			}
		}
	}
	return true
}

// gatherTotal collects the countable resources asked for in total, node after node.
func (v *view) gatherTotal(out []portion) bool {
	left := v.g.Total
	for i := range out {
		p := &out[i]
		free := v.freeRow(p.pos).Free.Sub(v.needOf(p.pos, p.tasks, sumOf(p.extra)))
		p.total = positivePart(free, left)
		left = left.Sub(p.total)
	}
	return resource.Vector{}.Covers(left)
}

// positivePart is as much of want as free has, in every component.
func positivePart(free, want resource.Vector) resource.Vector {
	part := func(a, b resource.Amount) resource.Amount { return max(0, min(a, b)) }
	out := resource.Vector{CPU: part(free.CPU, want.CPU), Memory: part(free.Memory, want.Memory), Disk: part(free.Disk, want.Disk)}
	for _, x := range want.Named {
		out = out.With(x.Name, part(free.Get(x.Name), x.Amount))
	}
	return out
}
