package sbatch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// group writes what one task group asks for.
func (r *renderer) group(g job.TaskGroup, i int) {
	if g.Name != "" {
		r.lines = append(r.lines, "# group "+oneLine(g.Name))
		r.warn("", "group %d has no name for sbatch: %s", i, oneLine(g.Name))
	}
	r.nodes(g)
	r.number("ntasks", int64(g.Tasks.Want))
	if g.Tasks.Min > 0 && g.Tasks.Min != g.Tasks.Want {
		r.warn("--ntasks", "has no least number for sbatch: all %d tasks start, or none", g.Tasks.Want)
	}
	r.number("ntasks-per-node", int64(g.TasksPerNode))
	r.number("cpus-per-task", int64(g.CPUsPerTask))
	r.flag("overcommit", g.Overcommit)
	r.cpus(g)
	r.devices(g)
	r.memory(g, i)
	if g.PerNode.Disk > 0 {
		r.put("tmp", mebibytes(g.PerNode.Disk))
	}
	if how := r.spec.Source.Given["exclusive"]; i == 0 && g.Exclusive && how != "" {
		r.put("exclusive", how)
	} else {
		r.flag("exclusive", g.Exclusive)
	}
	r.put("constraint", constraintText(g.Constraint))
	r.put("nodelist", hostlist.CompressInOrder(g.NodeList))
	r.put("exclude", hostlist.CompressInOrder(g.Exclude))
	r.flag("contiguous", g.Contiguous)
	r.closely(g)
	r.put("distribution", g.Distribution)
}

func (r *renderer) nodes(g job.TaskGroup) {
	n := g.Nodes
	switch {
	case n == job.Range{}, n.Max == 0 && n.Min == len(g.NodeList):
	case g.Tasks.Want > 0 && n.Min > g.Tasks.Want && n.Min == n.Max && gpusOf(g) > 0 && len(g.Total.Devices) == 0:
		r.number("gpus", int64(n.Min)*gpusOf(g)) // --nodes allows no more nodes than tasks, a number of GPUs does
	case n.Max == 0:
		r.put("nodes", fmt.Sprintf("%d-%d", n.Min, maxCount))
	case n.Min == n.Max:
		r.number("nodes", int64(n.Min))
	default:
		r.put("nodes", fmt.Sprintf("%d-%d", n.Min, n.Max))
	}
}

// gpusOf is how many whole GPUs a group takes of each node.
func gpusOf(g job.TaskGroup) int64 {
	n := 0
	for _, d := range g.PerNode.Devices {
		if d.KindOf() == "gpu" && d.Share == 0 && d.Bytes == 0 {
			n += d.Count
		}
	}
	return int64(n)
}

// cpus writes claims on CPUs that the number per task does not say.
func (r *renderer) cpus(g job.TaskGroup) {
	if n := g.PerDevice.CPU; n > 0 {
		r.number("cpus-per-gpu", int64(n.DivUp(resource.OneCPU)))
	}
	if g.PerNode.CPU > 0 && !g.Overcommit {
		least := g.PerNode.CPU.Add(g.PerTask.CPU.Mul(max(g.TasksPerNode, 1)))
		r.number("mincpus", int64(least.DivUp(resource.OneCPU)))
	}
}

// devices writes claims on GPUs and other generic resources: by node as --gres, by
// task, and in total.
func (r *renderer) devices(g job.TaskGroup) {
	node := r.gres(g.PerNode.Devices)
	for _, n := range g.PerNode.Named {
		node = append(node, r.named(n)...)
	}
	r.put("gres", strings.Join(node, ","))
	whole := func(d resource.DeviceRequest) bool { return d.Share == 0 && d.Bytes == 0 }
	tasks := slices.Clone(g.PerTask.Devices)
	shares := slices.DeleteFunc(slices.Clone(tasks), whole)
	var tres []string
	for _, text := range r.gres(shares) {
		tres = append(tres, "gres/"+text)
	}
	for _, n := range g.PerTask.Named {
		for _, text := range r.named(n) {
			tres = append(tres, "gres/"+text)
		}
	}
	if m := g.PerTask.Memory; m > 0 && perCPU(g) == 0 {
		tres = append(tres, "mem:"+mebibytes(m))
	}
	r.put("tres-per-task", strings.Join(tres, ","))
	r.put("gpus-per-task", r.gpus(slices.DeleteFunc(tasks, func(d resource.DeviceRequest) bool { return !whole(d) })))
	r.put("gpus", r.gpus(g.Total.Devices))
}

// gres writes devices as items of --gres.
func (r *renderer) gres(list []resource.DeviceRequest) []string {
	var out []string
	for _, d := range list {
		switch {
		case d.KindOf() != "gpu":
			r.warn("--gres", "has no device of the kind %s", d.KindOf())
		case d.Bytes > 0:
			r.warn("--gres", "has no part of a GPU by memory")
		case d.Share > 0 && d.Count == 1:
			kind := "mps"
			if d.Type != "" {
				kind += ":" + d.Type
			}
			out = append(out, fmt.Sprintf("%s:%d", kind, int64(d.Share)*100/int64(resource.WholeDevice)))
		default:
			kind := "gpu"
			if t := typeOf(d); t != "" {
				kind += ":" + t
			}
			out = append(out, fmt.Sprintf("%s:%d", kind, d.Count))
		}
	}
	return out
}

// gpus writes devices as a value of --gpus.
func (r *renderer) gpus(list []resource.DeviceRequest) string {
	var out []string
	for _, text := range r.gres(list) {
		out = append(out, strings.TrimPrefix(text, "gpu:"))
	}
	return strings.Join(out, ",")
}

// typeOf is the type with the MIG profile, as sites name their partitions.
func typeOf(d resource.DeviceRequest) string {
	if d.Profile == "" {
		return d.Type
	}
	if d.Type == "" {
		return d.Profile
	}
	return d.Type + "_" + d.Profile
}

// named writes a named amount, "gres/nvme:fast", as an item of --gres.
func (r *renderer) named(n resource.Named) []string {
	name, ok := strings.CutPrefix(n.Name, "gres/")
	if !ok {
		r.warn("--gres", "has no resource called %s", n.Name)
		return nil
	}
	return []string{fmt.Sprintf("%s:%d", name, n.Amount)}
}

// memory writes the claim on memory: of a node, for each GPU, or for each CPU.
func (r *renderer) memory(g job.TaskGroup, i int) {
	switch {
	case g.AllMemory:
		r.put("mem", "0")
	case g.PerDevice.Memory > 0:
		r.put("mem-per-gpu", mebibytes(g.PerDevice.Memory))
	case perCPU(g) > 0:
		r.put("mem-per-cpu", mebibytes(perCPU(g)))
	case g.PerNode.Memory > 0 && g.Overcommit && i == 0 && len(r.spec.Groups) > 1:
		r.put("mem-per-cpu", mebibytes(g.PerNode.Memory)) // it claims one CPU; --mem would hold for later components too
	case g.PerNode.Memory > 0:
		r.put("mem", mebibytes(g.PerNode.Memory))
	}
}

// perCPU is the size for each CPU if memory goes with the CPUs, 0 otherwise.
func perCPU(g job.TaskGroup) resource.Amount {
	if g.PerTask.Memory == 0 || g.PerTask.CPU == 0 || g.AllMemory || g.PerDevice.Memory > 0 {
		return 0
	}
	size := g.PerTask.Memory / g.PerTask.CPU.DivUp(resource.OneCPU)
	if size%resource.MiB != 0 || timesCPUs(size, g.PerTask.CPU) != g.PerTask.Memory || timesCPUs(size, g.PerNode.CPU) != g.PerNode.Memory {
		return 0
	}
	return size
}

// mebibytes prints a size in the largest unit that leaves a whole number.
func mebibytes(a resource.Amount) string {
	n, unit := int64((a+resource.MiB-1)/resource.MiB), 0
	for n%1024 == 0 && unit < 2 {
		n, unit = n/1024, unit+1
	}
	return fmt.Sprintf("%d%c", n, "MGT"[unit])
}

// constraintText is the constraint as written, or from its alternatives.
func constraintText(c job.Constraint) string {
	if c.Text != "" || c.IsZero() {
		return c.Text
	}
	var parts []string
	for _, a := range c.Alternatives {
		part := strings.Join(a, "&")
		if len(a) > 1 && len(c.Alternatives) > 1 {
			part = "(" + part + ")"
		}
		parts = append(parts, part)
	}
	text := strings.Join(parts, "|")
	if c.Same {
		return "[" + text + "]"
	}
	return text
}

// closely writes what is asked of the topology.
func (r *renderer) closely(g job.TaskGroup) {
	if w := g.Wishes.Switches; w.N > 0 {
		text := strconv.Itoa(w.N)
		if w.For != job.SiteWait {
			text += "@" + slurmfmt.FormatElapsed(w.For)
		}
		r.put("switches", text)
	}
	if g.Segment > 1 {
		r.number("segment", int64(g.Segment))
	}
	r.flag("spread-job", g.Spread)
	r.flag("use-min-nodes", g.FewNodes)
}
