package native

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// groupDraft is a task group while its fields are read.
type groupDraft struct {
	group job.TaskGroup
	given map[string]value
	at    value // of the whole, in a list of groups
	claim [4]amounts
	cpus  resource.Amount // CPUs of each task
	memPC resource.Amount // memory for each CPU

	withinFor, switchesFor time.Duration
}

// The parts of a group's claim.
const (
	perNode = iota
	perTask
	perGPU
	total
)

// amounts are resources asked for together.
type amounts struct {
	need resource.Requirements
	said map[string]value // by name: cpus, memory, disk, gpus
}

func (a *amounts) setAmount(name string, v value) {
	if a.said == nil {
		a.said = map[string]value{}
	}
	a.said[name] = v
}

// groupFields are the fields of a task group, in the order in which Render writes
// them.
var groupFields = []field[groupDraft]{
	{name: "name", form: aText, doc: "name of the group", set: func(p *parser, g *groupDraft, v value) { g.group.Name, _ = p.parseLine(v) }},
	{name: "nodes", form: aNodes, doc: "number of nodes; as few as needed if not given", sbatch: "nodes", also: []string{"num_nodes", "nnodes"}, set: setNodes},
	{name: "tasks", form: aCount, doc: "number of tasks; without it one, or as many a node as tasks_per_node says", sbatch: "ntasks", also: []string{"num_tasks", "ranks", "processes", "replicas"}, set: func(p *parser, g *groupDraft, v value) { g.group.Tasks.Want = p.parseCount(v) }},
	{name: "min_tasks", form: aCount, doc: "start with this many if all tasks do not fit", also: []string{"tasks_min"}, set: func(p *parser, g *groupDraft, v value) { g.group.Tasks.Min = p.parseCount(v) }},
	{name: "elastic", form: aBool, doc: "nodes are added and taken away while it runs, between the smallest and the largest number: it starts with the smallest", set: groupFlag(func(g *job.TaskGroup) *bool { return &g.Elastic })},
	{name: "subgroup", form: aCount, doc: "of an elastic group: so many nodes come and go together", set: func(p *parser, g *groupDraft, v value) { g.group.Subgroup = p.parseCount(v) }},
	{name: "tasks_per_node", form: aCount, doc: "tasks on a node: at most, and exactly if tasks is not given", sbatch: "ntasks-per-node", also: []string{"ranks_per_node", "nproc_per_node"}, set: func(p *parser, g *groupDraft, v value) { g.group.TasksPerNode = p.parseCount(v) }},
	{name: "gpus", form: aGPUs, doc: "GPUs in all", sbatch: "gpus", also: []string{"gpu", "num_gpus", "accelerators"}, set: setGPUs(total)},
	{name: "gpus_per_node", form: aGPUs, doc: "GPUs of each node", sbatch: "gpus-per-node", also: []string{"gres"}, set: setGPUs(perNode)},
	{name: "gpus_per_task", form: aGPUs, doc: "GPUs of each task", sbatch: "gpus-per-task", set: setGPUs(perTask)},
	{name: "gpu_types", form: aList, doc: "types that its GPUs may have, all of one: the first that can be had, in this order", also: []string{"gpu_type", "accelerator_types"}, set: setGPUTypes},
	{name: "gpu_types_for", form: aPatience, doc: "how long the job waits for each type before it also accepts the next one; not at all if not given", set: func(p *parser, g *groupDraft, v value) { g.group.Wishes.GPUsFor = p.parsePatience(v) }},
	{name: "cpus", form: aCPUs, doc: "CPUs of each task (1 if not given)", sbatch: "cpus-per-task", also: []string{"cpu", "cores", "num_cpus", "ncpus"}, set: setCPUs},
	{name: "cpus_per_gpu", form: aCPUs, doc: "CPUs with each GPU, instead of cpus", sbatch: "cpus-per-gpu", set: func(p *parser, g *groupDraft, v value) {
		g.claim[perGPU].need.CPU = p.parseCPUs(v)
		g.claim[perGPU].setAmount("cpus", v)
	}},
	{name: "memory", form: aSizeAll, doc: "memory on each node; all: the whole node's", sbatch: "mem", also: []string{"ram", "mem_per_node"}, set: setMemory},
	{name: "memory_per_task", form: aSize, doc: "memory of each task", set: sizeOf(perTask)},
	{name: "memory_per_cpu", form: aSize, doc: "memory with each CPU", sbatch: "mem-per-cpu", set: func(p *parser, g *groupDraft, v value) { g.memPC = p.parseSize(v) }},
	{name: "memory_per_gpu", form: aSize, doc: "memory with each GPU", sbatch: "mem-per-gpu", set: sizeOf(perGPU)},
	{name: "disk", form: aSize, doc: "scratch space on each node", sbatch: "tmp", also: []string{"scratch", "tmp_disk"}, set: func(p *parser, g *groupDraft, v value) {
		g.claim[perNode].need.Disk = p.parseSize(v)
		g.claim[perNode].setAmount("disk", v)
	}},
	{name: "per_node", form: form{text: "{amounts}", schema: objectSchema(amountFields)}, doc: "amounts for each node", set: setAmounts(perNode)},
	{name: "per_task", form: form{text: "{amounts}", schema: objectSchema(amountFields)}, doc: "amounts for each task", set: setAmounts(perTask)},
	{name: "per_gpu", form: form{text: "{amounts}", schema: objectSchema(amountFields[:len(amountFields)-1])}, doc: "amounts for each GPU", set: setAmounts(perGPU)},
	{name: "total", form: form{text: "{amounts}", schema: objectSchema(amountFields)}, doc: "amounts over all nodes together", set: setAmounts(total)},
	{name: "exclusive", form: aBool, doc: "whole nodes", sbatch: "exclusive", set: groupFlag(func(g *job.TaskGroup) *bool { return &g.Exclusive })},
	{name: "overcommit", form: aBool, doc: "one CPU a node, however many tasks", sbatch: "overcommit", set: groupFlag(func(g *job.TaskGroup) *bool { return &g.Overcommit })},
	{name: "constraint", form: form{text: "a, a&b, a|b, [a|b] in quotes", schema: scalarSchema}, doc: "features that the nodes must have", sbatch: "constraint", also: []string{"features", "node_selector"}, set: setConstraint},
	{name: "nodelist", form: aList, doc: "nodes that must be among its nodes, such as gpu[1-4]", sbatch: "nodelist", also: []string{"hosts"}, set: func(p *parser, g *groupDraft, v value) { g.group.NodeList = p.parseHosts(v) }},
	{name: "exclude", form: aList, doc: "nodes that must not", sbatch: "exclude", set: func(p *parser, g *groupDraft, v value) { g.group.Exclude = p.parseHosts(v) }},
	{name: "contiguous", form: aBool, doc: "nodes that follow each other", sbatch: "contiguous", set: groupFlag(func(g *job.TaskGroup) *bool { return &g.Contiguous })},
	{name: "within", form: aLevel, doc: "one domain of this level of the topology has all of its nodes", also: []string{"topology"}, set: func(p *parser, g *groupDraft, v value) { g.group.Within = p.parseLevel(v) }},
	{name: "within_for", form: aPatience, doc: "how long the job waits for within before it accepts other nodes; 0s: only if possible at once; always if not given", set: func(p *parser, g *groupDraft, v value) { g.withinFor = p.parsePatience(v) }},
	{name: "switches", form: aCount, doc: "at most so many leaves have its nodes", sbatch: "switches", also: []string{"max_leaves"}, set: func(p *parser, g *groupDraft, v value) { g.group.Switches = p.parseCount(v) }},
	{name: "switches_for", form: form{text: "10m, 0s, site", schema: patternSchema(`^(0s|site|[0-9].*)$`)}, doc: "how long the job waits for switches before it accepts any number, at most as long as the site allows (site); always if not given", set: setSwitchesFor},
	{name: "spread", form: aBool, doc: "over as many leaves as can be, instead of few", sbatch: "spread-job", set: groupFlag(func(g *job.TaskGroup) *bool { return &g.Spread })},
	{name: "few_nodes", form: aBool, doc: "of a range of nodes the smallest number that will do, instead of the largest", sbatch: "use-min-nodes", set: groupFlag(func(g *job.TaskGroup) *bool { return &g.FewNodes })},
	{name: "segment", form: aCount, doc: "its nodes come in so many of one leaf each", sbatch: "segment", set: func(p *parser, g *groupDraft, v value) { g.group.Segment = p.parseCount(v) }},
	{name: "distribution", form: form{text: "block, cyclic, plane=N", schema: patternSchema(`^(block|cyclic|plane=[1-9][0-9]*)$`)}, doc: "how tasks are dealt to nodes", sbatch: "distribution", set: setDistribution},
}

var (
	aNodes = form{text: "4, 2-4, 2- (at least)", schema: anyOf(aCount.schema, patternSchema(`^[1-9][0-9]*(-([1-9][0-9]*)?)?$`))}
	aCPUs  = form{text: "4, 0.5", schema: func() schema { return schema{"type": "number", "minimum": 0, "maximum": maxCount} }}
	aLevel = form{text: "leaf, a level from 1 (outermost), or the name of one", schema: anyOf(integerSchema(1, 16), patternSchema(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`))}
	aGPUs  = form{text: "2, h100, h100:2, [h100:2, {…}]", schema: gpuSchema}
)

// amountFields are the resources of per_node, per_task, per_gpu and total. The last
// one does not stand in per_gpu.
var amountFields = []field[amounts]{
	{name: "cpus", form: aCPUs, doc: "CPUs", also: []string{"cpu"}, set: func(p *parser, a *amounts, v value) { a.need.CPU = p.parseCPUs(v); a.setAmount("cpus", v) }},
	{name: "memory", form: aSize, doc: "memory", also: []string{"mem"}, set: func(p *parser, a *amounts, v value) { a.need.Memory = p.parseSize(v); a.setAmount("memory", v) }},
	{name: "disk", form: aSize, doc: "scratch space", also: []string{"tmp"}, set: func(p *parser, a *amounts, v value) { a.need.Disk = p.parseSize(v); a.setAmount("disk", v) }},
	{name: "resources", form: form{text: "{NAME: number, …}", schema: func() schema { return schema{"type": "object", "additionalProperties": anAmount.schema()} }}, doc: "amounts of other resources by name, such as gres/fpga", also: []string{"named", "gres"}, set: setNamed},
	{name: "gpus", form: aGPUs, doc: "GPUs", also: []string{"gpu", "devices"}, set: func(p *parser, a *amounts, v value) { a.need.Devices = p.parseGPUs(v); a.setAmount("gpus", v) }},
}

func setAmounts(part int) func(*parser, *groupDraft, value) {
	return func(p *parser, g *groupDraft, v value) {
		if v.Kind != yaml.Mapping {
			p.failValue(v, "write {cpus: 4, memory: 8G}", "is %s where amounts are expected", v.Kind)
			return
		}
		fields := amountFields
		if part == perGPU {
			fields = fields[:len(fields)-1]
		}
		var a amounts
		decodeFields(p, v.path, v.Node, fields, &a)
		to := &g.claim[part]
		for name, said := range a.said {
			if other, twice := to.said[name]; twice {
				p.failValue(said, "leave one of them out", "%s says it already, in line %d", other.path, other.at.Line)
			}
			to.setAmount(name, said)
		}
		mergeRequirements(&to.need, a.need)
	}
}

func mergeRequirements(to *resource.Requirements, more resource.Requirements) {
	to.Vector = to.Add(more.Vector)
	to.Devices = append(to.Devices, more.Devices...)
}

func setNamed(p *parser, a *amounts, v value) {
	if v.Kind != yaml.Mapping {
		p.failValue(v, "write {NAME: number}", "is %s where names and numbers are expected", v.Kind)
		return
	}
	for _, f := range v.Fields {
		item := value{Node: f.Value, path: v.path + "." + f.Name, name: f.Name, at: f.Place}
		if f.Name == "" {
			p.failValue(v, "", "has a resource without a name")
			continue
		}
		a.need.Vector = a.need.With(f.Name, resource.Amount(p.parseNumber(item, 1, math.MaxInt64)))
	}
}

// claimOnce notes a flat field that stands for an amount, unless the amount was said
// before.
func (p *parser) claimOnce(g *groupDraft, part int, name string, v value) bool {
	if other, twice := g.claim[part].said[name]; twice {
		p.failValue(v, "leave one of them out", "%s says it already, in line %d", other.path, other.at.Line)
		return false
	}
	g.claim[part].setAmount(name, v)
	return true
}

func setGPUs(part int) func(*parser, *groupDraft, value) {
	return func(p *parser, g *groupDraft, v value) {
		if p.claimOnce(g, part, "gpus", v) {
			g.claim[part].need.Devices = append(g.claim[part].need.Devices, p.parseGPUs(v)...)
		}
	}
}

func sizeOf(part int) func(*parser, *groupDraft, value) {
	return func(p *parser, g *groupDraft, v value) {
		if p.claimOnce(g, part, "memory", v) {
			g.claim[part].need.Memory = p.parseSize(v)
		}
	}
}

func setMemory(p *parser, g *groupDraft, v value) {
	if v.Kind == yaml.Scalar && v.Text == "all" {
		g.group.AllMemory = true
		return
	}
	sizeOf(perNode)(p, g, v)
}

func setCPUs(p *parser, g *groupDraft, v value) {
	g.cpus = p.parseCPUs(v)
	if g.cpus%resource.OneCPU == 0 {
		g.group.CPUsPerTask = int(g.cpus / resource.OneCPU)
	}
}

func groupFlag(to func(*job.TaskGroup) *bool) func(*parser, *groupDraft, value) {
	return func(p *parser, g *groupDraft, v value) { *to(&g.group) = p.parseBool(v) }
}

// setNodes reads "4", "2-4" and "2-".
func setNodes(p *parser, g *groupDraft, v value) {
	s, ok := p.parseLine(v)
	if !ok {
		return
	}
	low, high, ranged := strings.Cut(s, "-")
	lo, err := strconv.ParseInt(low, 10, 32)
	hi, err2 := lo, err
	switch {
	case ranged && high == "":
		hi, err2 = 0, nil
	case ranged:
		hi, err2 = strconv.ParseInt(high, 10, 32)
	}
	switch {
	case err != nil || err2 != nil || lo < 1 || ranged && high != "" && hi < 1 || low[0] == '+':
		p.failValue(v, "forms: "+aNodes.text, "%q is no number of nodes", shortName(s))
	case hi > 0 && hi < lo:
		p.failValue(v, "write "+high+"-"+low, "the maximum, %d, is below the minimum, %d", hi, lo)
	default:
		g.group.Nodes = job.Range{Min: int(lo), Max: int(hi)}
	}
}

func setConstraint(p *parser, g *groupDraft, v value) {
	s, ok := p.parseLine(v)
	if !ok {
		return
	}
	c, err := sbatch.ParseConstraint(s)
	if err != nil {
		p.failSlurmValue(v, err, "forms: a, a&b, a|b, (a|b)&c, [a|b]")
		return
	}
	g.group.Constraint = c
}

func setDistribution(p *parser, g *groupDraft, v value) {
	s, ok := p.parseLine(v)
	if ok && s != "block" && s != "cyclic" && !isPlane(s) {
		p.failValue(v, "forms: block, cyclic, plane=N", "%q is no distribution", shortName(s))
	}
	g.group.Distribution = s
}

func isPlane(s string) bool {
	text, ok := strings.CutPrefix(s, "plane=")
	n, err := strconv.ParseInt(text, 10, 32)
	return ok && err == nil && n > 0 && text[0] != '+'
}
