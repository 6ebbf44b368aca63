package sbatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// parseGroup turns one component into a task group.
func (p *parser) parseGroup(set settings) job.TaskGroup {
	g := job.TaskGroup{
		Nodes: p.parseNodes(set), Tasks: job.Count{Want: p.parseCount(set, "ntasks")},
		TasksPerNode: p.parseCount(set, "ntasks-per-node"), CPUsPerTask: p.parseCount(set, "cpus-per-task"),
		NodeList: p.expandHosts(set, "nodelist"), Exclude: p.expandHosts(set, "exclude"),
	}
	_, g.Overcommit = set.get("overcommit")
	_, g.Contiguous = set.get("contiguous")
	_, g.FewNodes = set.get("use-min-nodes")
	p.nodeFile(&g, set)
	p.tasksOfSockets(&g, set)
	p.tresPerTask(&g, set)
	p.fitNodeList(&g, set)
	p.fillDevices(&g, set)
	p.trimNodeList(&g, namedBy(set)) // again: the number of tasks may follow from that of GPUs
	p.fitTasks(&g, set)
	p.fillCPUs(&g, set)
	p.fillMemory(&g, set)
	p.fillNodeChoice(&g, set)
	p.fillTopology(&g, set)
	if d, ok := set.get("tmp"); ok {
		n, err := slurmfmt.ParseMemory(d.Value)
		p.checkValue(d, err)
		g.PerNode.Disk = resource.Amount(n)
	}
	return g
}

// nodeFile adds the hosts of --nodefile to the node list.
func (p *parser) nodeFile(g *job.TaskGroup, set settings) {
	d, ok := set.get("nodefile")
	if !ok {
		return
	}
	if data, ok := p.readFile(d); ok {
		names, err := hostlist.Expand(string(data))
		if err != nil {
			p.failOption(d, fmt.Errorf("is no list of hosts: %s", err), hostForms)
			return
		}
		g.NodeList = eachOnce(append(g.NodeList, names...))
	}
}

// fitNodeList makes room for the nodes that are named.
func (p *parser) fitNodeList(g *job.TaskGroup, set settings) {
	named := len(g.NodeList)
	if named == 0 {
		return
	}
	d := namedBy(set)
	excluded := make(map[string]bool, len(g.Exclude))
	for _, x := range g.Exclude {
		excluded[x] = true
	}
	if k := slices.IndexFunc(g.NodeList, func(n string) bool { return excluded[n] }); k >= 0 {
		p.failOption(d, fmt.Errorf("names %s, which --exclude excludes", g.NodeList[k]), "take it out of one of them")
		return
	}
	if most := g.Nodes.Max; g.Nodes != (job.Range{}) && most < named {
		p.addWarning(d, fmt.Sprintf("names %d nodes, more than --nodes=%s allows: the first are taken", named, set.optionValue("nodes")))
		g.NodeList = g.NodeList[:most]
	}
	p.trimNodeList(g, d)
	if g.Nodes == (job.Range{}) {
		g.Nodes.Min = len(g.NodeList)
	}
}

// trimNodeList leaves out nodes that no task is there for.
func (p *parser) trimNodeList(g *job.TaskGroup, d *Directive) {
	named, want := len(g.NodeList), g.Tasks.Want
	if want == 0 || want >= named {
		return
	}
	p.addWarning(d, fmt.Sprintf("names %d nodes, but %s cannot use more than %d: the first are taken", named, pluralOf(want, "task"), want))
	g.NodeList = g.NodeList[:want]
	if g.Nodes.Min == named && g.Nodes.Max == 0 {
		g.Nodes.Min = want
	}
}

// namedBy returns the option that names nodes.
func namedBy(set settings) *Directive {
	if d, ok := set.get("nodelist"); ok {
		return d
	}
	d, _ := set.get("nodefile")
	return d
}

// tasksOfSockets reads SOCKETS[:CORES[:THREADS]] of --extra-node-info. Where nothing says how many
// tasks there are, each node has one for each of these threads, as sbatch has it.
func (p *parser) tasksOfSockets(g *job.TaskGroup, set settings) {
	d, ok := set.get("extra-node-info")
	if !ok {
		return
	}
	each := 1
	parts := strings.Split(d.Value, ":")
	for _, part := range parts {
		n, ok := nodeCount(part)
		switch {
		case part == "*":
		case !ok || len(parts) > 3 || n > maxCount/each:
			p.failOption(d, errors.New("is not SOCKETS[:CORES[:THREADS]]"), "write numbers, such as --extra-node-info=2:4:1")
			return
		default:
			each *= n
		}
	}
	nodes := max(g.Nodes.Min, 1)
	if g.Tasks.Want > 0 || g.TasksPerNode > 0 || each == 1 || g.Nodes.Min != g.Nodes.Max || each > maxCount/nodes {
		return
	}
	g.Tasks.Want = each * nodes
}

// fitTasks checks tasks against nodes: never more nodes than tasks.
func (p *parser) fitTasks(g *job.TaskGroup, set settings) {
	want := g.Tasks.Want
	if want == 0 {
		return
	}
	if d, ok := set.get("nodes"); ok && want < g.Nodes.Min {
		p.addWarning(d, fmt.Sprintf("is more than the tasks can use: %s on %s", pluralOf(want, "task"), pluralOf(want, "node")))
		g.Nodes.Min = want
	}
	if g.Nodes.Max > 0 {
		g.Nodes.Max = max(min(g.Nodes.Max, want), g.Nodes.Min)
	}
	if d, ok := set.get("ntasks-per-node"); ok && g.Nodes.Max > 0 && int64(g.TasksPerNode)*int64(g.Nodes.Max) < int64(want) {
		most := int64(g.TasksPerNode) * int64(g.Nodes.Max)
		p.addWarning(d, fmt.Sprintf("is not read, as by sbatch: on %s it allows %d tasks, and --ntasks=%d", pluralOf(g.Nodes.Max, "node"), most, want))
		g.TasksPerNode = 0
	}
}

// fillCPUs fills the claim on CPUs.
func (p *parser) fillCPUs(g *job.TaskGroup, set settings) {
	perTask := resource.CPUs(max(g.CPUsPerTask, 1))
	perGPU, hasPerGPU := set.get("cpus-per-gpu")
	switch {
	case hasPerGPU && g.CPUsPerTask > 0:
		p.failOption(perGPU, errors.New("and --cpus-per-task exclude each other"), "say one of them")
	case hasPerGPU:
		n := p.parseInteger(perGPU, 1, maxCount)
		if g.PerNode.DeviceCount()+g.PerTask.DeviceCount()+g.Total.DeviceCount() == 0 {
			p.addWarning(perGPU, "has no effect: no GPUs are asked for")
			break
		}
		g.PerDevice.CPU = resource.CPUs(int(n))
		return
	case g.Overcommit:
		g.PerNode.CPU = resource.OneCPU
		return
	}
	g.PerTask.CPU = perTask
	if n := p.parseCount(set, "mincpus"); n > 0 {
		tasks := max(g.TasksPerNode, 1)
		g.PerNode.CPU = max(0, resource.CPUs(n).Sub(perTask.Mul(tasks)))
	}
}

// memoryOptions exclude each other.
var memoryOptions = []string{"mem", "mem-per-cpu", "mem-per-gpu"}

// fillMemory fills the claim on memory.
func (p *parser) fillMemory(g *job.TaskGroup, set settings) {
	var given []*Directive
	for _, name := range memoryOptions {
		if d, ok := set.get(name); ok {
			given = append(given, d)
		}
	}
	if len(given) == 0 {
		return
	}
	d := given[0]
	if len(given) > 1 {
		p.failOption(given[1], fmt.Errorf("and --%s exclude each other", d.Option), "say one of --mem, --mem-per-cpu and --mem-per-gpu; --mem holds for later components too")
		return
	}
	n, err := slurmfmt.ParseMemory(d.Value)
	if !p.checkValue(d, err) {
		return
	}
	if g.PerTask.Memory > 0 {
		p.failOption(d, errors.New("and the mem of --tres-per-task exclude each other"), "say one of them")
		return
	}
	size := resource.Amount(n)
	switch {
	case n == 0:
		g.AllMemory = true
	case d.Option == "mem":
		g.PerNode.Memory = size
	case d.Option == "mem-per-gpu":
		g.PerDevice.Memory = size
		if g.PerNode.DeviceCount()+g.PerTask.DeviceCount()+g.Total.DeviceCount() == 0 {
			p.failOption(d, errors.New("needs GPUs, and none are asked for"), "add --gpus=N, or write --mem="+d.Value)
		}
	default: // with the CPUs, wherever they are claimed
		g.PerTask.Memory = timesCPUs(size, g.PerTask.CPU)
		g.PerNode.Memory += timesCPUs(size, g.PerNode.CPU)
		g.PerDevice.Memory += timesCPUs(size, g.PerDevice.CPU)
	}
}

func timesCPUs(size, cpu resource.Amount) resource.Amount {
	return size.Mul(int(cpu.DivUp(resource.OneCPU)))
}

// fillNodeChoice fills which nodes will do and whether they are shared.
func (p *parser) fillNodeChoice(g *job.TaskGroup, set settings) {
	if d, ok := set.get("exclusive"); ok {
		g.Exclusive = true
		switch strings.ToLower(d.Value) {
		case "", "exclusive":
		case "user", "mcs":
			p.addWarning(d, "is taken as --exclusive: whole nodes for this job alone")
		case "topo":
			p.failOption(d, errors.New("is not built: a job cannot have a part of the topology to itself"), "write --exclusive for whole nodes, or have its nodes reserved (cox reserve) and name --reservation")
		default:
			p.failOption(d, errors.New("is not a way to share (forms: --exclusive, =user, =mcs)"), "")
		}
	}
	if d, ok := set.get("constraint"); ok && d.Value != "" {
		c, at, n, err := parseConstraint(d.Value)
		if err != nil {
			p.blamePart(d, at, n, err.Error(), constraintRemedy(err))
		}
		g.Constraint = c
	}
	if d, ok := set.get("distribution"); ok {
		g.Distribution = p.parseDistribution(d)
	}
}

// distributionForms lists the forms of --distribution, for messages.
const distributionForms = "block, cyclic, plane=N, arbitrary, * ; then :block, :cyclic or :fcyclic for sockets"

// parseDistribution reads how tasks are dealt to nodes; sockets are not bound.
func (p *parser) parseDistribution(d *Directive) string {
	list, _, packed := strings.Cut(strings.ToLower(d.Value), ",")
	first, rest, levels := strings.Cut(list, ":")
	known := map[string]bool{"block": true, "cyclic": true, "fcyclic": true, "*": true}
	for level := range strings.SplitSeq(rest, ":") {
		if levels && !known[level] {
			p.failOption(d, fmt.Errorf("is not a distribution (forms: %s)", distributionForms), "")
			return ""
		}
	}
	if levels || packed {
		p.addWarning(d, "deals tasks to nodes; tasks are not bound to sockets and cores")
	}
	plane, isPlane := strings.CutPrefix(first, "plane=")
	n, planeOK := nodeCount(plane)
	switch {
	case first == "*" || first == "block":
		return "block"
	case first == "cyclic":
		return first
	case isPlane && planeOK:
		return fmt.Sprintf("plane=%d", n)
	case first == "arbitrary":
		p.failOption(d, errors.New("lays tasks out by the order of a node list, which is not built yet"), "write block, cyclic or plane=N")
		return ""
	}
	p.failOption(d, fmt.Errorf("is not a distribution (forms: %s)", distributionForms), "")
	return ""
}
