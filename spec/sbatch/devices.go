package sbatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// ask is a number of GPUs asked for by one option.
type ask struct {
	by   *Directive // nil: not asked
	list []slurmfmt.GRES
}

func (a ask) deviceCount() int64 {
	var n int64
	for _, g := range a.list {
		n += g.Count
	}
	return n
}

// namesType reports whether a type is named.
func (a ask) namesType() bool {
	return slices.ContainsFunc(a.list, func(g slurmfmt.GRES) bool { return g.Type != "" })
}

// asks holds what the seven ways of asking for GPUs come to. A count of zero is
// as if the option had not been given.
type asks struct{ perNode, perTask, total ask }

// fillDevices settles how many GPUs are asked for. However it is said, every GPU is
// claimed once: by node where a number per node is known, else by task, else in
// total.
func (p *parser) fillDevices(g *job.TaskGroup, set settings) {
	var a asks
	p.perNode(&a, g, set)
	p.readGPUOptions(&a, g, set)
	switch {
	case a.perNode.by != nil:
		p.fitPerNode(&a, g, set)
		g.PerNode.Devices = append(g.PerNode.Devices, deviceRequests(a.perNode)...)
	case a.perTask.by != nil:
		p.fitPerTask(&a, g, set)
		g.PerTask.Devices = append(g.PerTask.Devices, deviceRequests(a.perTask)...)
	case a.total.by != nil:
		if n := a.total.deviceCount(); n > 0 && n < int64(g.Nodes.Min) {
			p.failOption(a.total.by, fmt.Errorf("is fewer than the nodes, %d: each needs one", g.Nodes.Min), fmt.Sprintf("write --gpus=%d or more, or fewer nodes", g.Nodes.Min))
		}
		g.Total.Devices = append(g.Total.Devices, deviceRequests(a.total)...)
	}
	p.tasksPerGPU(&a, g, set)
}

// perNode reads --gres and --gpus-per-node; other generic resources are named
// amounts of each node.
func (p *parser) perNode(a *asks, g *job.TaskGroup, set settings) {
	if d, ok := set.get("gres"); ok && d.Value == "" {
		p.failOption(d, errors.New("names nothing"), "leave it out, or write --gres=none")
	} else if ok {
		list, err := slurmfmt.ParseGRES(d.Value)
		if !p.checkValue(d, err) || !p.checkFew(d, len(list)) {
			list = nil
		}
		gres := ask{by: d}
		for _, r := range list {
			switch {
			case r.Name == "gpu":
				gres.list = append(gres.list, r)
			case r.Name == "mps":
				p.fillShare(d, r, &g.PerNode)
			case isMistypedGPU(r.Name):
				p.failMistypedGPU(d, r)
			default:
				g.PerNode.Vector = addNamed(g.PerNode.Vector, r)
			}
		}
		p.mergeAsk(&a.perNode, gres)
	}
	if d, ok := set.get("gpus-per-node"); ok {
		list, err := slurmfmt.ParseGPUs(d.Value)
		if p.checkValue(d, err) && p.checkFew(d, len(list)) {
			p.mergeAsk(&a.perNode, ask{d, list})
		}
	}
	d, ok := set.get("gpus-per-socket")
	if !ok {
		if s, given := set.get("sockets-per-node"); given {
			p.addWarning(s, "has no effect here without --gpus-per-socket: sockets and cores are not chosen one by one")
		}
		return
	}
	list, err := slurmfmt.ParseGPUs(d.Value)
	sockets := p.parseCount(set, "sockets-per-node")
	switch {
	case !p.checkValue(d, err) || !p.checkFew(d, len(list)):
	case sockets == 0:
		p.failOption(d, errors.New("needs --sockets-per-node"), "or say --gpus-per-node")
	default:
		for i := range list {
			if list[i].Count > maxCount/int64(sockets) {
				p.failOption(d, errors.New("is too many"), fmt.Sprintf("ask for at most %d", maxCount))
				return
			}
			list[i].Count *= int64(sockets)
		}
		p.mergeAsk(&a.perNode, ask{d, list})
	}
}

// checkFew refuses lists that are longer than anything that there is.
func (p *parser) checkFew(d *Directive, n int) bool {
	if n > maxKinds {
		p.failOption(d, fmt.Errorf("names %d things", n), fmt.Sprintf("name at most %d", maxKinds))
	}
	return n <= maxKinds
}

// mergeAsk adds one more way of saying the same number per node.
func (p *parser) mergeAsk(have *ask, next ask) {
	n := next.deviceCount()
	switch {
	case n > maxCount:
		p.failOption(next.by, errors.New("is too many"), fmt.Sprintf("ask for at most %d", maxCount))
	case n == 0:
		if have.by != nil && len(next.list) > 0 {
			p.failOption(next.by, fmt.Errorf("contradicts %s", have.by.showOption()), "say one of them")
		}
	case have.by == nil:
		*have = next
	case p.opts.Strict || have.deviceCount() != n || have.namesType() && next.namesType() && !slices.EqualFunc(have.list, next.list, sameType):
		p.failOption(next.by, fmt.Errorf("and %s exclude each other", have.by.showOption()), "say one of them")
	default:
		p.addWarning(next.by, fmt.Sprintf("says the same as %s; newer versions of sbatch refuse both together", have.by.showOption()))
		if !have.namesType() {
			have.list = next.list
		}
	}
}

func sameType(a, b slurmfmt.GRES) bool { return a.Type == b.Type && a.Count == b.Count }

// readGPUOptions reads --gpus and --gpus-per-task; --tres-per-task was read before.
func (p *parser) readGPUOptions(a *asks, g *job.TaskGroup, set settings) {
	for _, w := range []struct {
		option string
		to     *ask
	}{{"gpus", &a.total}, {"gpus-per-task", &a.perTask}} {
		d, ok := set.get(w.option)
		if !ok {
			continue
		}
		list, err := slurmfmt.ParseGPUs(d.Value)
		if p.checkValue(d, err) && p.checkFew(d, len(list)) {
			p.mergeAsk(w.to, ask{d, list})
		}
	}
	if d, ok := set.get("tres-per-task"); ok {
		list, _ := slurmfmt.ParseTRES(d.Value) // checked before
		list = list[:min(len(list), maxKinds)]
		tres := ask{by: d}
		for _, t := range list {
			if t.Name == "gres/gpu" {
				tres.list = append(tres.list, t.GRES)
			}
		}
		p.mergeAsk(&a.perTask, tres)
	}
}

// tresPerTask reads the parts of --tres-per-task that are no GPUs.
func (p *parser) tresPerTask(g *job.TaskGroup, set settings) {
	d, ok := set.get("tres-per-task")
	if !ok {
		return
	}
	list, err := slurmfmt.ParseTRES(d.Value)
	if !p.checkValue(d, err) || !p.checkFew(d, len(list)) {
		return
	}
	for _, t := range list {
		switch {
		case t.Name == "cpu":
			n, ok := nodeCount(t.Value)
			if !ok || g.CPUsPerTask > 0 && g.CPUsPerTask != n {
				p.failOption(d, fmt.Errorf("has a number of CPUs that is none or contradicts --cpus-per-task"), "write cpu:N with a positive number, and leave out --cpus-per-task")
			}
			g.CPUsPerTask = n
		case t.Name == "mem":
			n, err := slurmfmt.ParseMemory(t.Value)
			if err != nil {
				p.failOption(d, fmt.Errorf("has a part that is no memory size: %q", t.Value), slurmfmt.MemoryForms)
			}
			g.PerTask.Memory = resource.Amount(n)
		case t.Name == "gres/gpu":
		case t.Name == "gres/mps":
			p.fillShare(d, t.GRES, &g.PerTask)
		case strings.HasPrefix(t.Name, "gres/"):
			g.PerTask.Vector = addNamed(g.PerTask.Vector, t.GRES)
		default:
			p.addWarning(d, fmt.Sprintf("asks for %s, which is not counted here", t.Name))
		}
	}
}

// isMistypedGPU reports whether the name of a GRES is one of gpu's that Slurm does not know.
func isMistypedGPU(name string) bool {
	lower := strings.ToLower(name)
	return name != "gpu" && (lower == "gpu" || lower == "gpus")
}

// failMistypedGPU refuses what would be an amount of a resource that no node has.
func (p *parser) failMistypedGPU(d *Directive, r slurmfmt.GRES) {
	p.blamePart(d, r.Offset, r.Len, fmt.Sprintf("%q is no generic resource: the name is gpu", r.Name), "write gpu for "+r.Name)
}

func addNamed(v resource.Vector, r slurmfmt.GRES) resource.Vector {
	name := "gres/" + r.Name
	if r.Type != "" {
		name += ":" + r.Type
	}
	return v.With(name, v.Get(name).Add(resource.Amount(r.Count)))
}

// fillShare turns mps:N, hundredths of one GPU, into a request for a share.
func (p *parser) fillShare(d *Directive, r slurmfmt.GRES, to *resource.Requirements) {
	if r.Count < 1 || r.Count > 100 {
		p.blamePart(d, r.Offset, r.Len, "asks for more than one GPU's 100 parts, or none", "write mps:1 to mps:100")
		return
	}
	to.Devices = append(to.Devices, resource.DeviceRequest{Type: r.Type, Count: 1, Share: resource.Share(r.Count * int64(resource.WholeDevice) / 100)})
}

// fitPerNode reconciles a number per node with the other ways.
func (p *parser) fitPerNode(a *asks, g *job.TaskGroup, set settings) {
	each := a.perNode.deviceCount()
	if total := a.total.deviceCount(); total > 0 {
		nodes := int(total / each)
		switch {
		case total%each != 0:
			p.failOption(a.total.by, fmt.Errorf("is not a multiple of %s", a.perNode.by.showOption()), "say one of them")
			return
		case g.Nodes == job.Range{} || nodes >= g.Nodes.Min && (nodes <= g.Nodes.Max || g.Nodes.Max == 0):
			g.Nodes = job.Range{Min: nodes, Max: nodes}
		default:
			p.failOption(a.total.by, fmt.Errorf("with %s needs %s, but --nodes=%s", a.perNode.by.showOption(), pluralOf(nodes, "node"), set.optionValue("nodes")), fmt.Sprintf("write --nodes=%d, or leave it out", nodes))
			return
		}
	}
	perTask := a.perTask.deviceCount()
	if perTask == 0 {
		return
	}
	tasks := int64(g.TasksPerNode)
	switch {
	case tasks == 0 && g.Tasks.Want == 0:
		tasks = each / perTask
	case tasks == 0 && g.Nodes.Max > 0:
		tasks = (int64(g.Tasks.Want) + int64(g.Nodes.Max) - 1) / int64(g.Nodes.Max) // on the fullest node
	case g.Tasks.Want > 0:
		tasks = min(tasks, int64(g.Tasks.Want))
	}
	if max(tasks, 1)*perTask > each {
		p.failOption(a.perTask.by, fmt.Errorf("for %s on a node is more than %s", pluralOf(int(max(tasks, 1)), "task"), a.perNode.by.showOption()),
			fmt.Sprintf("leave out --%s, or say %d for it", a.perNode.by.Option, max(tasks, 1)*perTask))
		return
	}
	if g.TasksPerNode == 0 { // no more tasks on a node than it has GPUs for
		g.TasksPerNode = int(each / perTask)
	}
}

// fitPerTask reconciles a number per task with a total.
func (p *parser) fitPerTask(a *asks, g *job.TaskGroup, set settings) {
	each, total := a.perTask.deviceCount(), a.total.deviceCount()
	tasks := int64(g.Tasks.Want)
	if tasks == 0 && g.Nodes.Min > 0 && g.Nodes.Min == g.Nodes.Max {
		tasks = int64(g.Nodes.Min) * int64(g.TasksPerNode)
	}
	switch {
	case total > 0 && total%each != 0:
		p.failOption(a.total.by, fmt.Errorf("is not a multiple of %s", a.perTask.by.showOption()), "say one of them")
	case total > 0 && tasks > 0 && tasks*each != total:
		p.failOption(a.total.by, fmt.Errorf("and %s make %s, but %d are asked for", a.perTask.by.showOption(), pluralOf(int(total/each), "task"), tasks), "leave out one of them")
	case total > 0 && tasks == 0:
		g.Tasks.Want = int(total / each)
	case total == 0 && tasks == 0 && g.Nodes == job.Range{}:
		p.failOption(a.perTask.by, errors.New("needs a number of tasks"), "add --ntasks=N, or say --gpus=N")
	}
}

// tasksPerGPU settles --ntasks-per-gpu.
func (p *parser) tasksPerGPU(a *asks, g *job.TaskGroup, set settings) {
	d, ok := set.slotValue("ntasks-per-gpu")
	if !ok {
		return
	}
	each := p.parseInteger(d, 1, maxCount)
	perNode, total := a.perNode.deviceCount(), a.total.deviceCount()
	switch {
	case each == 0:
	case a.perTask.deviceCount() > 0:
		p.failOption(d, fmt.Errorf("and %s exclude each other", a.perTask.by.showOption()), "say one of them")
	case max(perNode, total) > maxCount/each:
		p.failOption(d, errors.New("makes too many tasks"), fmt.Sprintf("ask for at most %d tasks in all", maxCount))
	case perNode > 0 && g.Tasks.Want == 0 && g.TasksPerNode == 0:
		g.TasksPerNode = int(perNode * each)
	case perNode > 0:
	case total > 0 && g.Tasks.Want == 0:
		g.Tasks.Want = int(total * each)
	case total > 0:
	case g.Tasks.Want > 0:
		total = (int64(g.Tasks.Want) + each - 1) / each
		if total < int64(g.Nodes.Min) {
			p.failOption(d, fmt.Errorf("and %d tasks ask for %d GPUs, fewer than the nodes, %d: each needs one", g.Tasks.Want, total, g.Nodes.Min), "ask for more tasks, or for fewer nodes")
		}
		g.Total.Devices = append(g.Total.Devices, resource.DeviceRequest{Count: int(total)})
	default:
		p.failOption(d, errors.New("needs a number of GPUs or of tasks"), "add --gpus=N or --ntasks=N")
	}
}

// splitProfile splits a MIG partition, such as "1g.10gb" or "a100_1g.5gb+me", off a type.
func splitProfile(text string) (gpu, profile string, ok bool) {
	at := strings.LastIndexByte(text, '_') + 1
	slices, size, cut := strings.Cut(text[at:], "g.")
	size, extra, attributes := strings.Cut(size, "+")
	size, gb := strings.CutSuffix(size, "gb")
	if !cut || !gb || !isDigits(slices) || !isDigits(size) || at == 1 || attributes && (extra == "" || strings.Trim(extra, "abcdefghijklmnopqrstuvwxyz.") != "") {
		return "", "", false
	}
	return text[:max(at-1, 0)], text[at:], true
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// deviceRequests turns counts by type into device requests.
func deviceRequests(a ask) []resource.DeviceRequest {
	var out []resource.DeviceRequest
	for _, g := range a.list {
		if g.Count == 0 {
			continue
		}
		r := resource.DeviceRequest{Type: g.Type, Count: int(g.Count)}
		if gpu, part, ok := splitProfile(strings.ToLower(g.Type)); ok {
			r.Type, r.Profile = gpu, part
		}
		out = append(out, r)
	}
	return out
}
