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

// writeGroup writes what one task group asks for.
func (r *renderer) writeGroup(g job.TaskGroup, i int) {
	if g.Name != "" {
		r.lines = append(r.lines, "# group "+oneLine(g.Name))
		r.addWarning("", "group %d has no name for sbatch: %s", i, oneLine(g.Name))
	}
	r.writeNodes(g)
	r.writeNumber("ntasks", int64(g.Tasks.Want))
	if g.Tasks.Min > 0 && g.Tasks.Min != g.Tasks.Want {
		r.addWarning("--ntasks", "has no least number for sbatch: all %d tasks start, or none", g.Tasks.Want)
	}
	r.writeNumber("ntasks-per-node", int64(g.TasksPerNode))
	r.writeNumber("cpus-per-task", int64(g.CPUsPerTask))
	r.writeFlag("overcommit", g.Overcommit)
	r.writeCPUs(g)
	r.writeDevices(g)
	r.writeMemory(g, i)
	if g.PerNode.Disk > 0 {
		r.writeOption("tmp", formatMiB(g.PerNode.Disk))
	}
	if how := r.spec.Source.Given["exclusive"]; i == 0 && g.Exclusive && how != "" {
		r.writeOption("exclusive", how)
	} else {
		r.writeFlag("exclusive", g.Exclusive)
	}
	r.writeOption("constraint", constraintText(g.Constraint))
	r.writeOption("nodelist", hostlist.CompressInOrder(g.NodeList))
	r.writeOption("exclude", hostlist.CompressInOrder(g.Exclude))
	r.writeFlag("contiguous", g.Contiguous)
	r.writeTopology(g)
	r.writeOption("distribution", g.Distribution)
}

func (r *renderer) writeNodes(g job.TaskGroup) {
	n := g.Nodes
	switch {
	case n == job.Range{}, n.Max == 0 && n.Min == len(g.NodeList):
	case g.Tasks.Want > 0 && n.Min > g.Tasks.Want && n.Min == n.Max && gpusOf(g) > 0 && len(g.Total.Devices) == 0:
		r.writeNumber("gpus", int64(n.Min)*gpusOf(g)) // --nodes allows no more nodes than tasks, a number of GPUs does
	case n.Max == 0:
		r.writeOption("nodes", fmt.Sprintf("%d-%d", n.Min, maxCount))
	case n.Min == n.Max:
		r.writeNumber("nodes", int64(n.Min))
	default:
		r.writeOption("nodes", fmt.Sprintf("%d-%d", n.Min, n.Max))
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

// writeCPUs writes claims on CPUs that the number per task does not say.
func (r *renderer) writeCPUs(g job.TaskGroup) {
	if n := g.PerDevice.CPU; n > 0 {
		r.writeNumber("cpus-per-gpu", int64(n.DivUp(resource.OneCPU)))
	}
	if g.PerNode.CPU > 0 && !g.Overcommit {
		least := g.PerNode.CPU.Add(g.PerTask.CPU.Mul(max(g.TasksPerNode, 1)))
		r.writeNumber("mincpus", int64(least.DivUp(resource.OneCPU)))
	}
}

// writeDevices writes claims on GPUs and other generic resources: by node as --gres, by
// task, and in total.
func (r *renderer) writeDevices(g job.TaskGroup) {
	node := r.gresItems(g.PerNode.Devices)
	for _, n := range g.PerNode.Named {
		node = append(node, r.namedItems(n)...)
	}
	r.writeOption("gres", strings.Join(node, ","))
	whole := func(d resource.DeviceRequest) bool { return d.Share == 0 && d.Bytes == 0 }
	tasks := slices.Clone(g.PerTask.Devices)
	shares := slices.DeleteFunc(slices.Clone(tasks), whole)
	var tres []string
	for _, text := range r.gresItems(shares) {
		tres = append(tres, "gres/"+text)
	}
	for _, n := range g.PerTask.Named {
		for _, text := range r.namedItems(n) {
			tres = append(tres, "gres/"+text)
		}
	}
	if m := g.PerTask.Memory; m > 0 && perCPU(g) == 0 {
		tres = append(tres, "mem:"+formatMiB(m))
	}
	r.writeOption("tres-per-task", strings.Join(tres, ","))
	r.writeOption("gpus-per-task", r.gpusValue(slices.DeleteFunc(tasks, func(d resource.DeviceRequest) bool { return !whole(d) })))
	r.writeOption("gpus", r.gpusValue(g.Total.Devices))
}

// gresItems writes devices as items of --gres.
func (r *renderer) gresItems(list []resource.DeviceRequest) []string {
	var out []string
	for _, d := range list {
		switch {
		case d.KindOf() != "gpu":
			r.addWarning("--gres", "has no device of the kind %s", d.KindOf())
		case d.Bytes > 0:
			r.addWarning("--gres", "has no part of a GPU by memory")
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

// gpusValue writes devices as a value of --gpus.
func (r *renderer) gpusValue(list []resource.DeviceRequest) string {
	var out []string
	for _, text := range r.gresItems(list) {
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

// namedItems writes a named amount, "gres/nvme:fast", as an item of --gres.
func (r *renderer) namedItems(n resource.Named) []string {
	name, ok := strings.CutPrefix(n.Name, "gres/")
	if !ok {
		r.addWarning("--gres", "has no resource called %s", n.Name)
		return nil
	}
	return []string{fmt.Sprintf("%s:%d", name, n.Amount)}
}

// writeMemory writes the claim on memory: of a node, for each GPU, or for each CPU.
func (r *renderer) writeMemory(g job.TaskGroup, i int) {
	switch {
	case g.AllMemory:
		r.writeOption("mem", "0")
	case g.PerDevice.Memory > 0:
		r.writeOption("mem-per-gpu", formatMiB(g.PerDevice.Memory))
	case perCPU(g) > 0:
		r.writeOption("mem-per-cpu", formatMiB(perCPU(g)))
	case g.PerNode.Memory > 0 && g.Overcommit && i == 0 && len(r.spec.Groups) > 1:
		r.writeOption("mem-per-cpu", formatMiB(g.PerNode.Memory)) // it claims one CPU; --mem would hold for later components too
	case g.PerNode.Memory > 0:
		r.writeOption("mem", formatMiB(g.PerNode.Memory))
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

// formatMiB prints a size in the largest unit that leaves a whole number.
func formatMiB(a resource.Amount) string {
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

// writeTopology writes what is asked of the topology.
func (r *renderer) writeTopology(g job.TaskGroup) {
	if w := g.Wishes.Switches; w.N > 0 {
		text := strconv.Itoa(w.N)
		if w.For != job.SiteWait {
			text += "@" + slurmfmt.FormatElapsed(w.For)
		}
		r.writeOption("switches", text)
	}
	if g.Segment > 1 {
		r.writeNumber("segment", int64(g.Segment))
	}
	r.writeFlag("spread-job", g.Spread)
	r.writeFlag("use-min-nodes", g.FewNodes)
}
