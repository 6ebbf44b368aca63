package server

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// demand is what a job asks for, or holds, in all.
type demand struct {
	nodes, tasks int
	cpus         float64
	memory       int64 // bytes
	gpus         int
	gpuType      string // of the first device that names one
}

// asked sums a request. A job that says nothing of nodes takes one.
func asked(s *job.Spec) demand {
	var d demand
	for i := range s.Groups {
		g := &s.Groups[i]
		nodes, tasks := max(g.Nodes.Min, 1), max(g.Tasks.Want, 1)
		if g.TasksPerNode > 0 && g.Nodes.Min == 0 {
			nodes = (tasks + g.TasksPerNode - 1) / g.TasksPerNode
		}
		devices := nodes*g.PerNode.DeviceCount() + tasks*g.PerTask.DeviceCount() + g.Total.DeviceCount()
		sum := func(f func(resource.Vector) resource.Amount) resource.Amount {
			return f(g.PerNode.Vector).Mul(nodes).Add(f(g.PerTask.Vector).Mul(tasks)).Add(f(g.PerDevice).Mul(devices)).Add(f(g.Total.Vector))
		}
		cpu := sum(func(v resource.Vector) resource.Amount { return v.CPU })
		d.nodes, d.tasks, d.gpus = d.nodes+nodes, d.tasks+tasks, d.gpus+devices
		d.cpus += float64(max(cpu, resource.OneCPU)) / float64(resource.OneCPU)
		d.memory += int64(sum(func(v resource.Vector) resource.Amount { return v.Memory }))
		for _, list := range [][]resource.DeviceRequest{g.PerNode.Devices, g.PerTask.Devices, g.Total.Devices} {
			for _, r := range list {
				if d.gpuType == "" {
					d.gpuType = r.Type
				}
			}
		}
	}
	return d
}

// holds sums what an attempt holds or held; what it asks for where there is none.
func holds(v *control.View) demand {
	d := asked(v.Job.Spec)
	if len(v.Claims) == 0 {
		return d
	}
	d = demand{gpuType: d.gpuType}
	last := ""
	for i := range v.Claims {
		c := &v.Claims[i]
		if c.Node != last { // claims of one node follow each other, but for later groups
			d.nodes++
			last = c.Node
		}
		d.tasks += c.Tasks
		d.cpus += float64(c.Take.CPU) / float64(resource.OneCPU)
		d.memory += int64(c.Take.Memory)
		d.gpus += len(c.Devices)
	}
	return d
}

// gres is what one node gives, as Slurm writes it: "gres/gpu:h100:8".
func (d demand) gres(b []byte) []byte {
	if d.gpus == 0 {
		return b
	}
	b = append(b, "gres/gpu:"...)
	if d.gpuType != "" {
		b = append(append(b, d.gpuType...), ':')
	}
	n := max(d.nodes, 1)
	return strconv.AppendInt(b, int64((d.gpus+n-1)/n), 10)
}

// tres is the whole as Slurm writes it: "cpu=8,mem=64G,node=2,billing=8,gres/gpu=16".
func (d demand) tres(b []byte) []byte {
	b = appendFloat(append(b, "cpu="...), d.cpus)
	if d.memory > 0 {
		b = appendMemory(append(b, ",mem="...), d.memory)
	}
	b = strconv.AppendInt(append(b, ",node="...), int64(d.nodes), 10)
	b = appendFloat(append(b, ",billing="...), d.cpus)
	if d.gpus > 0 {
		b = strconv.AppendInt(append(b, ",gres/gpu="...), int64(d.gpus), 10)
	}
	return b
}

func appendFloat(b []byte, f float64) []byte { return strconv.AppendFloat(b, f, 'f', -1, 64) }

// appendMemory writes bytes in the largest of Slurm's units that keeps them whole:
// "64G", "1500M".
func appendMemory(b []byte, n int64) []byte {
	unit := 0
	for n >>= 10; n > 0 && n%1024 == 0 && unit < 3; n >>= 10 {
		unit++
	}
	return append(strconv.AppendInt(b, n, 10), "KMGT"[unit])
}
