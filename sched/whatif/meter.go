package whatif

import (
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/sched"
)

// meter counts what is in use: devices, or whole CPUs where no node has devices.
type meter struct {
	cpus        bool
	used, there int
	milli       int // of CPUs
}

func newMeter(nodes, changed []fleet.Node) *meter {
	all := map[fleet.NodeKey]*fleet.Node{}
	for i := range nodes {
		all[nodes[i].Key()] = &nodes[i]
	}
	for i := range changed {
		all[changed[i].Key()] = &changed[i]
	}
	m, cpus := &meter{}, 0
	for _, n := range all {
		if n.State == fleet.Up {
			m.there += len(n.Devices)
			cpus += int(n.Capacity.CPU / resource.OneCPU)
		}
	}
	if m.there == 0 {
		m.cpus, m.there = true, cpus
	}
	return m
}

func (m *meter) takeClaims(claims []fleet.Claim, sign int) {
	for i := range claims {
		if m.cpus {
			m.milli += sign * int(claims[i].Take.CPU)
		} else {
			m.used += sign * len(claims[i].Devices)
		}
	}
	if m.cpus {
		m.used = m.milli / int(resource.OneCPU)
	}
}

// noteUse writes down what is used now, if that changed.
func (m *meter) noteUse(out *Outcome, now sched.Instant) {
	u := Use{At: now, Used: m.used, There: m.there}
	if n := len(out.Use); n > 0 {
		last := &out.Use[n-1]
		if last.Used == u.Used && last.There == u.There {
			return
		}
		if last.At == now {
			*last = u
			return
		}
	}
	out.Use = append(out.Use, u)
}

// devicesAsked is how many devices a job asks for at least.
func devicesAsked(s *job.Spec) int {
	n := 0
	for i := range s.Groups {
		g := &s.Groups[i]
		nodes, tasks := max(g.Nodes.Min, 1), max(g.Tasks.Least(), 1)
		if g.Tasks.Want == 0 {
			tasks = nodes * max(g.TasksPerNode, 1)
		}
		n += nodes*g.PerNode.DeviceCount() + tasks*g.PerTask.DeviceCount() + g.Total.DeviceCount()
	}
	return n
}
