package job

import "github.com/coxswain-sched/coxswain/model/resource"

// Demand is what a job asks for in all.
type Demand struct {
	Nodes, Tasks int
	CPUs         float64
	Memory       int64 // bytes
	GPUs         int
	GPUType      string // of the first device that names one
}

// Demand sums what the groups ask for. A job that says nothing of nodes takes one.
func (s *Spec) Demand() Demand {
	var d Demand
	for i := range s.Groups {
		g := &s.Groups[i]
		nodes, tasks := max(g.Nodes.Min, 1), max(g.Tasks.Want, 1)
		if g.TasksPerNode > 0 && g.Nodes.Min == 0 {
			nodes = (tasks + g.TasksPerNode - 1) / g.TasksPerNode
		}
		if g.Tasks.Want == 0 { // as many on each node as it says, else one
			tasks = nodes * max(g.TasksPerNode, 1)
		}
		devices := nodes*g.PerNode.DeviceCount() + tasks*g.PerTask.DeviceCount() + g.Total.DeviceCount()
		sum := func(f func(resource.Vector) resource.Amount) resource.Amount {
			return f(g.PerNode.Vector).Mul(nodes).Add(f(g.PerTask.Vector).Mul(tasks)).Add(f(g.PerDevice).Mul(devices)).Add(f(g.Total.Vector))
		}
		cpu := sum(func(v resource.Vector) resource.Amount { return v.CPU })
		d.Nodes, d.Tasks, d.GPUs = d.Nodes+nodes, d.Tasks+tasks, d.GPUs+devices
		d.CPUs += float64(max(cpu, resource.OneCPU)) / float64(resource.OneCPU)
		d.Memory += int64(sum(func(v resource.Vector) resource.Amount { return v.Memory }))
		for _, list := range [][]resource.DeviceRequest{g.PerNode.Devices, g.PerTask.Devices, g.Total.Devices} {
			for _, r := range list {
				if d.GPUType == "" {
					d.GPUType = r.Type
				}
			}
		}
	}
	return d
}
