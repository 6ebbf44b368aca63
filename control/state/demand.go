package state

import (
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Demand sums what an attempt holds or held; what the job asks for where there is none.
func (v *View) Demand() job.Demand {
	d := v.Job.Spec.Demand()
	if len(v.Claims) == 0 {
		return d
	}
	d = job.Demand{GPUType: d.GPUType}
	last := ""
	for i := range v.Claims {
		c := &v.Claims[i]
		if c.Node != last { // claims of one node follow each other, but for later groups
			d.Nodes++
			last = c.Node
		}
		d.Tasks += c.Tasks
		d.CPUs += float64(c.Take.CPU) / float64(resource.OneCPU)
		d.Memory += int64(c.Take.Memory)
		d.GPUs += len(c.Devices)
	}
	return d
}
