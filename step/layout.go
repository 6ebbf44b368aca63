package step

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// request is a step that srun wants.
type request struct {
	Name       string `json:"name"`
	Components []ask  `json:"components"`
	Exact      bool   `json:"exact,omitempty"`     // only the CPUs asked for, not all of the nodes'
	Overlap    bool   `json:"overlap,omitempty"`   // shares everything with other steps
	Immediate  bool   `json:"immediate,omitempty"` // refuse rather than wait
}

// ask is what one component of a step wants of one task group.
type ask struct {
	Group        int      `json:"group"`
	Tasks        int      `json:"tasks,omitempty"`     // 0: TasksPerNode, or one, on each node
	NodesMin     int      `json:"nodes_min,omitempty"` // 0: as many as the tasks need
	NodesMax     int      `json:"nodes_max,omitempty"` // 0: NodesMin
	TasksPerNode int      `json:"tasks_per_node,omitempty"`
	CPUsPerTask  int      `json:"cpus_per_task,omitempty"`
	Soft         bool     `json:"soft,omitempty"` // CPUsPerTask only where it fits: it was not asked of this step
	Overcommit   bool     `json:"overcommit,omitempty"`
	NodeList     []string `json:"node_list,omitempty"` // all of these
	Exclude      []string `json:"exclude,omitempty"`
	Relative     int      `json:"relative,omitempty"` // skip that many nodes of the allocation
	Distribution string   `json:"distribution,omitempty"`
	Devices      devices  `json:"devices"`
}

// devices says how many devices a component wants. Nothing asked means all that
// the job has on its nodes.
type devices struct {
	None    bool   `json:"none,omitempty"` // asked for 0
	Type    string `json:"type,omitempty"` // empty: any
	Total   int    `json:"total,omitempty"`
	PerNode int    `json:"per_node,omitempty"`
	PerTask int    `json:"per_task,omitempty"`
}

// asked reports whether a number of devices was asked for.
func (d devices) asked() bool { return d.None || d.Total+d.PerNode+d.PerTask > 0 }

// Why a step cannot be: for ever, or as long as other steps hold what it needs.
var (
	errTooMany = errors.New("More processors requested than permitted")
	errDevices = errors.New("Invalid generic resource (gres) specification")
	errNoNodes = errors.New("Requested node configuration is not available")
	errBusy    = errors.New("Requested nodes are busy")
)

// room is what a part of the allocation has to give.
type room struct {
	cpus    int
	devices []AllocDevice
	whole   bool // no other step holds anything here
}

// rooms is the room of every part, by group and part.
type rooms [][]room

// everything is the room of an allocation in which no step runs.
func everything(a *Alloc) rooms {
	out := make(rooms, len(a.Groups))
	for g, group := range a.Groups {
		for _, p := range group.Parts {
			out[g] = append(out[g], room{cpus: p.CPUs, devices: slices.Clone(p.Devices), whole: true})
		}
	}
	return out
}

// clone copies the rooms so that the copy can be taken from.
func (r rooms) clone() rooms {
	out := make(rooms, len(r))
	for g := range r {
		out[g] = slices.Clone(r[g])
		for i := range out[g] {
			out[g][i].devices = slices.Clone(out[g][i].devices)
		}
	}
	return out
}

// layout places a step. free is what other steps leave. The error is errBusy if the
// step would fit once they have ended.
func layout(a *Alloc, free rooms, r request) (*Info, error) {
	all := everything(a)
	info, err := placeStep(a, all, r)
	if err != nil || r.Overlap {
		return info, err
	}
	if info, err = placeStep(a, free, r); err != nil {
		return nil, errBusy
	}
	return info, nil
}

// placeStep places a step on what is there.
func placeStep(a *Alloc, have rooms, r request) (*Info, error) {
	have = have.clone()
	info := &Info{Name: r.Name, Overlap: r.Overlap, Exact: r.Exact}
	if len(r.Components) == 0 {
		return nil, errors.New("a step needs a program")
	}
	exact := r.Exact || r.sharesGroups() // components of one step never wait for each other
	for index, q := range r.Components {
		if q.Group < 0 || q.Group >= len(a.Groups) {
			return nil, fmt.Errorf("Invalid het group %d: the job has %d", q.Group, len(a.Groups))
		}
		p := placer{ask: q, group: &a.Groups[q.Group], have: have[q.Group], exact: exact}
		err := p.place(a)
		if q.Soft && errors.Is(err, errTooMany) {
			p.ask.CPUsPerTask = 0
			err = p.place(a)
		}
		if err != nil {
			return nil, err
		}
		info.add(index, q, &p)
	}
	return info, nil
}

// sharesGroups reports whether two components are for one task group.
func (r *request) sharesGroups() bool {
	seen := make(map[int]bool)
	for _, q := range r.Components {
		if seen[q.Group] {
			return true
		}
		seen[q.Group] = true
	}
	return false
}

// placer places one component.
type placer struct {
	ask   ask
	group *AllocGroup
	have  []room
	exact bool

	tasks  int
	chosen []int // parts of the group, ascending
	counts []int // tasks on each
	gives  []StepPart
}

// place chooses the nodes, spreads the tasks, takes CPUs and devices.
func (p *placer) place(a *Alloc) error {
	parts, must, err := p.candidates(a)
	if err != nil {
		return err
	}
	if err := p.checkDevices(); err != nil {
		return err
	}
	if err := p.choose(parts, must); err != nil {
		return err
	}
	if err := p.spread(); err != nil {
		return err
	}
	ranks := deal(p.counts, p.distribution())
	picked := make([][]AllocDevice, len(p.chosen))
	for i, part := range p.chosen {
		if picked[i], err = p.devices(part, p.counts[i]); err != nil {
			return err
		}
	}
	for i, part := range p.chosen {
		give := StepPart{Node: p.group.Parts[part].Node, Ranks: ranks[i], Devices: picked[i]}
		p.take(part, p.counts[i], &give)
		p.gives = append(p.gives, give)
	}
	return nil
}

// candidates lists the parts that may be used, ascending, and those that must be.
func (p *placer) candidates(a *Alloc) (parts []int, must map[int]bool, err error) {
	must = make(map[int]bool)
	want := make(map[string]bool)
	for _, name := range p.ask.NodeList {
		want[name] = true
	}
	for i, part := range p.group.Parts {
		name := a.Nodes[part.Node].Name
		if want[name] {
			must[i] = true
			delete(want, name)
		}
		if i < p.ask.Relative && !must[i] || slices.Contains(p.ask.Exclude, name) {
			continue
		}
		parts = append(parts, i)
	}
	if len(want) > 0 {
		return nil, nil, errNoNodes
	}
	for i := range must {
		if !slices.Contains(parts, i) {
			return nil, nil, errNoNodes
		}
	}
	return parts, must, nil
}

// checkDevices reports devices that no node of the job has.
func (p *placer) checkDevices() error {
	d, most, total := p.ask.Devices, 0, 0
	for _, part := range p.group.Parts {
		n := len(ofType(part.Devices, d.Type))
		most, total = max(most, n), total+n
	}
	if max(d.PerNode, d.PerTask) > most || d.Total > total {
		return errDevices
	}
	return nil
}

// capacity is how many tasks a part could take.
func (p *placer) capacity(part int) int {
	have, claim := p.have[part], p.group.Parts[part]
	if !p.exact && !have.whole {
		return 0
	}
	n := have.cpus / max(p.ask.CPUsPerTask, 1)
	if p.ask.CPUsPerTask <= max(p.group.CPUsPerTask, 1) && have.whole {
		n = max(n, claim.Tasks) // what the job was given is enough for its own tasks
	}
	if p.ask.Overcommit && have.cpus > 0 {
		n = max(n, 1<<20)
	}
	if p.ask.TasksPerNode > 0 {
		n = min(n, p.ask.TasksPerNode)
	}
	d := p.ask.Devices
	switch {
	case d.PerTask > 0:
		n = min(n, len(ofType(have.devices, d.Type))/d.PerTask)
	case d.PerNode > 0 && len(ofType(have.devices, d.Type)) < d.PerNode:
		n = 0
	case !d.asked() && len(have.devices) < len(claim.Devices):
		n = 0
	}
	return n
}

// choose settles the number of tasks and the nodes.
func (p *placer) choose(parts []int, must map[int]bool) error {
	least, most := max(p.ask.NodesMin, len(must)), p.ask.NodesMax
	if p.ask.NodesMin > 0 && most == 0 {
		most = least
	}
	if most == 0 {
		most = len(parts)
	}
	p.tasks = p.ask.Tasks
	if p.tasks == 0 {
		if p.ask.NodesMin == 0 {
			least = len(parts)
		}
		p.tasks = max(p.ask.TasksPerNode, 1) * least
	}
	if least > len(parts) || len(must) > most {
		return errNoNodes
	}
	if least > p.tasks {
		return fmt.Errorf("%d tasks cannot run on %d nodes", p.tasks, least)
	}
	var usable []int
	for _, i := range parts {
		if p.capacity(i) > 0 {
			usable = append(usable, i)
		} else if must[i] {
			return errTooMany
		}
	}
	if least > len(usable) {
		return errTooMany
	}
	p.chosen = p.pick(usable, must, max(least, 1), most)
	if p.chosen == nil {
		return errTooMany
	}
	return nil
}

// pick takes the first nodes that hold the tasks, in order, or if too many would be
// needed, the roomiest ones; with a range of nodes asked, as many as it allows.
func (p *placer) pick(usable []int, must map[int]bool, least, most int) []int {
	first := slices.Clone(usable)
	slices.SortStableFunc(first, func(x, y int) int { return boolOrder(must[x], must[y]) })
	roomy := slices.Clone(usable)
	slices.SortStableFunc(roomy, func(x, y int) int {
		if o := boolOrder(must[x], must[y]); o != 0 {
			return o
		}
		return p.capacity(y) - p.capacity(x)
	})
	for _, order := range [][]int{first, roomy} {
		sum := 0
		for k, i := range order {
			if sum += p.capacity(i); k+1 >= least && sum >= p.tasks {
				if p.ask.NodesMax > 0 {
					k = max(k, min(most, p.tasks, len(order))-1)
				}
				if k+1 > most {
					break
				}
				out := slices.Clone(order[:k+1])
				slices.Sort(out)
				return out
			}
		}
	}
	return nil
}

// boolOrder orders true before false.
func boolOrder(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

// distribution is how ranks are dealt: the first word of --distribution.
func (p *placer) distribution() string {
	word, _, _ := strings.Cut(p.ask.Distribution, ",")
	word, _, _ = strings.Cut(word, ":")
	return word
}

// spread settles how many tasks each node gets; each gets at least one.
func (p *placer) spread() error {
	caps := make([]int, len(p.chosen))
	asJob := make([]int, len(p.chosen))
	for i, part := range p.chosen {
		caps[i] = p.capacity(part)
		asJob[i] = p.group.Parts[part].Tasks
	}
	dist := p.distribution()
	if p.ask.Distribution == "" && p.ask.TasksPerNode == 0 && fits(asJob, caps, p.tasks) {
		p.counts = asJob
		return nil
	}
	run := 1
	switch word, arg, _ := strings.Cut(dist, "="); {
	case word == "plane":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 1 {
			return fmt.Errorf("Invalid plane size in --distribution=%s", p.ask.Distribution)
		}
		run = n
	case strings.HasSuffix(strings.ToLower(p.ask.Distribution), ",pack"):
		run = p.tasks
	}
	p.counts = make([]int, len(caps))
	left := p.tasks
	for i := range p.counts {
		p.counts[i]++
		left--
	}
	for round := 0; left > 0; round++ {
		before := left
		for i := range p.counts {
			n := min(run, caps[i]-p.counts[i], left)
			if round == 0 && run < p.tasks {
				n = min(run-1, n) // the first round's one is already there
			}
			p.counts[i] += n
			left -= n
		}
		if left == before && (round > 0 || run > 1) {
			return errTooMany
		}
	}
	return nil
}

// fits reports whether counts sum to the tasks, give every node one, and no node
// more than it can take.
func fits(counts, caps []int, tasks int) bool {
	sum := 0
	for i, n := range counts {
		if n < 1 || n > caps[i] {
			return false
		}
		sum += n
	}
	return sum == tasks
}

// deal deals ranks to nodes: in blocks, in turn (cyclic), or in turn by planes.
func deal(counts []int, dist string) [][]int {
	run := 1 << 30
	switch {
	case dist == "cyclic":
		run = 1
	case strings.HasPrefix(dist, "plane="):
		if n, err := strconv.Atoi(dist[len("plane="):]); err == nil && n > 0 {
			run = n
		}
	}
	out := make([][]int, len(counts))
	rank, total := 0, 0
	for _, n := range counts {
		total += n
	}
	for rank < total {
		for i, n := range counts {
			for k := 0; k < run && len(out[i]) < n; k++ {
				out[i] = append(out[i], rank)
				rank++
			}
		}
	}
	return out
}

// take takes CPUs for a number of tasks, and the picked devices, from a part's room.
func (p *placer) take(part, tasks int, give *StepPart) {
	have := &p.have[part]
	give.CPUs = have.cpus
	if p.exact {
		give.CPUs = min(have.cpus, tasks*max(p.ask.CPUsPerTask, 1))
	}
	have.cpus -= give.CPUs
	have.whole = false
	have.devices = without(have.devices, give.Devices)
}

// devices picks the devices of a part for its tasks.
func (p *placer) devices(part, tasks int) ([]AllocDevice, error) {
	d := p.ask.Devices
	have := ofType(p.have[part].devices, d.Type)
	want := len(have)
	switch {
	case d.None:
		want = 0
	case d.PerTask > 0:
		want = d.PerTask * tasks
	case d.PerNode > 0:
		want = d.PerNode
	case d.Total > 0:
		want = p.shareOfTotal(part)
	}
	if want > len(have) {
		return nil, errTooMany
	}
	return slices.Clone(have[:want]), nil
}

// shareOfTotal is a part's share of --gpus: one on every node, then filled from the
// first; more than there can be if the chosen nodes together have too few.
func (p *placer) shareOfTotal(part int) int {
	d := p.ask.Devices
	left := d.Total - len(p.chosen)
	if left < 0 {
		return 1 << 30
	}
	share := 0
	for _, i := range p.chosen {
		room := len(ofType(p.have[i].devices, d.Type))
		extra := min(left, max(room-1, 0))
		left -= extra
		if i == part {
			share = 1 + extra
		}
	}
	if left > 0 {
		return 1 << 30
	}
	return share
}

// ofType filters devices by type; all if it is empty.
func ofType(all []AllocDevice, typ string) []AllocDevice {
	if typ == "" {
		return all
	}
	var out []AllocDevice
	for _, d := range all {
		if d.Type == typ {
			out = append(out, d)
		}
	}
	return out
}

// without removes devices by their index.
func without(all, gone []AllocDevice) []AllocDevice {
	return slices.DeleteFunc(slices.Clone(all), func(d AllocDevice) bool {
		return slices.ContainsFunc(gone, func(g AllocDevice) bool { return g.Index == d.Index })
	})
}

// add enters a placed component.
func (i *Info) add(index int, q ask, p *placer) {
	c := Component{
		Group: q.Group, Tasks: p.tasks, First: i.Tasks, CPUsPerTask: q.CPUsPerTask,
		TasksPerNode: q.TasksPerNode, Distribution: q.Distribution,
	}
	for _, give := range p.gives {
		give.Component = index
		for k := range give.Ranks {
			give.Ranks[k] += i.Tasks
		}
		i.Parts = append(i.Parts, give)
	}
	i.Components = append(i.Components, c)
	i.Tasks += p.tasks
}
