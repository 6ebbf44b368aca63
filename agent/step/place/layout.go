package place

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
)

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
	devices []step.AllocDevice
	whole   bool // no other step holds anything here
}

// freeParts is the room of every part, by group and part.
type freeParts [][]freePart

// allParts is the room of an allocation in which no step runs.
func allParts(a *step.Alloc) freeParts {
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
func layoutStep(a *step.Alloc, free freeParts, r wire.Request) (*step.Info, error) {
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
func placeStep(a *step.Alloc, have freeParts, r wire.Request) (*step.Info, error) {
	have = have.cloneParts()
	info := &step.Info{Name: r.Name, Overlap: r.Overlap, Exact: r.Exact}
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
		addComponent(info, index, q, &p)
	}
	return info, nil
}

// placer places one component.
type placer struct {
	request wire.ComponentRequest
	group   *step.AllocGroup
	have    []freePart
	exact   bool

	tasks  int
	chosen []int // parts of the group, ascending
	counts []int // tasks on each
	gives  []step.StepPart
}

// placeTasks chooses the nodes, spreads the tasks, takes CPUs and devices.
func (p *placer) placeTasks(a *step.Alloc) error {
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
	picked := make([][]step.AllocDevice, len(p.chosen))
	for i, part := range p.chosen {
		if picked[i], err = p.pickDevices(part, p.counts[i]); err != nil {
			return err
		}
	}
	for i, part := range p.chosen {
		give := step.StepPart{Node: p.group.Parts[part].Node, Ranks: ranks[i], Devices: picked[i]}
		p.takeResources(part, p.counts[i], &give)
		p.gives = append(p.gives, give)
	}
	return nil
}

// addComponent enters a placed component into the step.
func addComponent(i *step.Info, index int, q wire.ComponentRequest, p *placer) {
	c := step.Component{
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
