package step

import (
	"errors"
	"fmt"
	"slices"
)

// Request is a step that srun wants.
type Request struct {
	Name       string             `json:"name"`
	Components []ComponentRequest `json:"components"`
	Exact      bool               `json:"exact,omitempty"`     // only the CPUs asked for, not all of the nodes'
	Overlap    bool               `json:"overlap,omitempty"`   // shares everything with other steps
	Immediate  bool               `json:"immediate,omitempty"` // refuse rather than wait
}

// ComponentRequest is what one component of a step wants of one task group.
type ComponentRequest struct {
	Group        int           `json:"group"`
	Tasks        int           `json:"tasks,omitempty"`     // 0: TasksPerNode, or one, on each node
	NodesMin     int           `json:"nodes_min,omitempty"` // 0: as many as the tasks need
	NodesMax     int           `json:"nodes_max,omitempty"` // 0: NodesMin
	TasksPerNode int           `json:"tasks_per_node,omitempty"`
	CPUsPerTask  int           `json:"cpus_per_task,omitempty"`
	Soft         bool          `json:"soft,omitempty"` // CPUsPerTask only where it fits: it was not asked of this step
	Overcommit   bool          `json:"overcommit,omitempty"`
	NodeList     []string      `json:"node_list,omitempty"` // all of these
	Exclude      []string      `json:"exclude,omitempty"`
	Relative     int           `json:"relative,omitempty"` // skip that many nodes of the allocation
	Distribution string        `json:"distribution,omitempty"`
	Devices      DeviceRequest `json:"devices"`
}

// DeviceRequest says how many devices a component wants. Nothing asked means all that
// the job has on its nodes.
type DeviceRequest struct {
	None    bool   `json:"none,omitempty"` // asked for 0
	Type    string `json:"type,omitempty"` // empty: any
	Total   int    `json:"total,omitempty"`
	PerNode int    `json:"per_node,omitempty"`
	PerTask int    `json:"per_task,omitempty"`
}

// Requested reports whether a number of devices was asked for.
func (d DeviceRequest) Requested() bool { return d.None || d.Total+d.PerNode+d.PerTask > 0 }

// Why a step cannot be: for ever, or as long as other steps hold what it needs.
var (
	errTooMany = errors.New("More processors requested than permitted")
	errDevices = errors.New("Invalid generic resource (gres) specification")
	errNoNodes = errors.New("Requested node configuration is not available")
	errBusy    = errors.New("Requested nodes are busy")
)

// freePart is what a part of the allocation has to give.
type freePart struct {
	cpus    int
	devices []AllocDevice
	whole   bool // no other step holds anything here
}

// freeParts is the room of every part, by group and part.
type freeParts [][]freePart

// allParts is the room of an allocation in which no step runs.
func allParts(a *Alloc) freeParts {
	out := make(freeParts, len(a.Groups))
	for g, group := range a.Groups {
		for _, p := range group.Parts {
			out[g] = append(out[g], freePart{cpus: p.CPUs, devices: slices.Clone(p.Devices), whole: true})
		}
	}
	return out
}

// cloneParts copies the rooms so that the copy can be taken from.
func (r freeParts) cloneParts() freeParts {
	out := make(freeParts, len(r))
	for g := range r {
		out[g] = slices.Clone(r[g])
		for i := range out[g] {
			out[g][i].devices = slices.Clone(out[g][i].devices)
		}
	}
	return out
}

// layoutStep places a step. free is what other steps leave. The error is errBusy if the
// step would fit once they have ended.
func layoutStep(a *Alloc, free freeParts, r Request) (*Info, error) {
	all := allParts(a)
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
func placeStep(a *Alloc, have freeParts, r Request) (*Info, error) {
	have = have.cloneParts()
	info := &Info{Name: r.Name, Overlap: r.Overlap, Exact: r.Exact}
	if len(r.Components) == 0 {
		return nil, errors.New("a step needs a program")
	}
	exact := r.Exact || r.SharesGroups() // components of one step never wait for each other
	for index, q := range r.Components {
		if q.Group < 0 || q.Group >= len(a.Groups) {
			return nil, fmt.Errorf("Invalid het group %d: the job has %d", q.Group, len(a.Groups))
		}
		p := placer{request: q, group: &a.Groups[q.Group], have: have[q.Group], exact: exact}
		err := p.placeTasks(a)
		if q.Soft && errors.Is(err, errTooMany) {
			p.request.CPUsPerTask = 0
			err = p.placeTasks(a)
		}
		if err != nil {
			return nil, err
		}
		info.addComponent(index, q, &p)
	}
	return info, nil
}

// SharesGroups reports whether two components are for one task group.
func (r *Request) SharesGroups() bool {
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
	request ComponentRequest
	group   *AllocGroup
	have    []freePart
	exact   bool

	tasks  int
	chosen []int // parts of the group, ascending
	counts []int // tasks on each
	gives  []StepPart
}

// placeTasks chooses the nodes, spreads the tasks, takes CPUs and devices.
func (p *placer) placeTasks(a *Alloc) error {
	parts, must, err := p.candidateParts(a)
	if err != nil {
		return err
	}
	if err := p.checkDevices(); err != nil {
		return err
	}
	if err := p.chooseParts(parts, must); err != nil {
		return err
	}
	if err := p.spreadTasks(); err != nil {
		return err
	}
	ranks := dealRanks(p.counts, p.distributionWord())
	picked := make([][]AllocDevice, len(p.chosen))
	for i, part := range p.chosen {
		if picked[i], err = p.pickDevices(part, p.counts[i]); err != nil {
			return err
		}
	}
	for i, part := range p.chosen {
		give := StepPart{Node: p.group.Parts[part].Node, Ranks: ranks[i], Devices: picked[i]}
		p.takeResources(part, p.counts[i], &give)
		p.gives = append(p.gives, give)
	}
	return nil
}

// addComponent enters a placed component.
func (i *Info) addComponent(index int, q ComponentRequest, p *placer) {
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
