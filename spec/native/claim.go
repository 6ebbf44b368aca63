package native

import (
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// claimText says which fields a group's claim is written by.
type claimText struct {
	node, task, total []resource.DeviceRequest
	fullCPUs          bool // per_task says the CPUs of a task
	fraction          bool // cpus says a part of a CPU
	gpuCPU            bool
	memory            string
	left              [4]wanted // what the flat fields do not say
}

// wanted are amounts that are written in full; cpus are written even if they are 0
// where that is not what stands there without them.
type wanted struct {
	need resource.Requirements
	zero bool
}

func claimOf(g *job.TaskGroup) claimText {
	c := claimText{node: g.PerNode.Devices, task: g.PerTask.Devices, total: g.Total.Devices}
	if len(c.node) > 0 && len(c.task)+len(c.total) > 0 || len(c.task) > 0 && len(c.total) > 0 {
		c.left[perNode].need.Devices, c.left[perTask].need.Devices, c.left[total].need.Devices = c.node, c.task, c.total
		c.node, c.task, c.total = nil, nil, nil
	}
	c.memory = onlyMemory(g)
	c.left[perNode].need.Vector = withoutFlatMemory(g.PerNode.Vector, c.memory == "memory")
	c.left[perNode].need.Disk = 0
	c.left[perTask].need.Vector = withoutFlatMemory(g.PerTask.Vector, c.memory == "memory_per_task")
	c.left[perGPU].need.Vector = withoutFlatMemory(g.PerDevice, c.memory == "memory_per_gpu")
	c.left[total].need.Vector = g.Total.Vector

	asked := resource.CPUs(g.CPUsPerTask)
	if g.PerDevice.CPU > 0 && g.CPUsPerTask == 0 && !g.Overcommit {
		c.gpuCPU = true
		c.left[perGPU].need.CPU = 0
	}
	switch {
	case g.Overcommit && g.PerTask.CPU == 0:
		if g.PerNode.CPU == resource.OneCPU {
			c.left[perNode].need.CPU = 0
		} else {
			c.left[perNode].zero = g.PerNode.CPU == 0
		}
	case g.Overcommit:
		c.fullCPUs = true
	case g.CPUsPerTask > 0 && g.PerTask.CPU == asked,
		c.gpuCPU && g.PerTask.CPU == 0,
		!c.gpuCPU && g.CPUsPerTask == 0 && g.PerTask.CPU == resource.OneCPU:
		c.left[perTask].need.CPU = 0
	case g.CPUsPerTask == 0 && !c.gpuCPU && g.PerTask.CPU%resource.OneCPU != 0:
		c.fraction = true
		c.left[perTask].need.CPU = 0
	default:
		c.fullCPUs = true
		c.left[perTask].zero = g.PerTask.CPU == 0
	}
	return c
}

// withoutFlatMemory is a vector without the memory that a flat field says.
func withoutFlatMemory(v resource.Vector, memory bool) resource.Vector {
	if memory {
		v.Memory = 0
	}
	return v
}

// onlyMemory is the flat field that says all of a group's memory, or "".
func onlyMemory(g *job.TaskGroup) string {
	found := ""
	for _, m := range []struct {
		name string
		size resource.Amount
	}{{"memory", g.PerNode.Memory}, {"memory_per_task", g.PerTask.Memory}, {"memory_per_gpu", g.PerDevice.Memory}} {
		switch {
		case m.size == 0:
		case found != "" || g.AllMemory:
			return ""
		default:
			found = m.name
		}
	}
	return found
}
