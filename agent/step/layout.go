package step

import (
	"errors"
	"fmt"
	"slices"
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
