package env

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/wire"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// envScope is what an environment is made for: a batch script, or one task.
type envScope struct {
	alloc *step.Alloc
	node  int // index into alloc.Nodes
	group int // whose parts the job's variables describe; the step's groups if info is set

	info    *step.Info // nil: the batch script
	prep    *wire.Preparation
	program *wire.Program
	part    int // index into info.Parts
	local   int // index into that part's ranks
}

// newScope is the scope of the batch script.
func newScope(a *step.Alloc, node int) *envScope { return &envScope{alloc: a, node: node} }

// newStepScope is the scope of one task.
func newStepScope(a *step.Alloc, prep *wire.Preparation, part, local int) *envScope {
	p := &prep.Info.Parts[part]
	return &envScope{
		alloc: a, node: p.Node, info: &prep.Info, prep: prep, part: part, local: local,
		program: &prep.Programs[p.Component], group: prep.Info.Components[p.Component].Group,
	}
}

// stepComponent is the component of the step that the task belongs to.
func (s *envScope) stepComponent() *step.Component {
	return &s.info.Components[s.info.Parts[s.part].Component]
}

// jobGroups lists the task groups that the job's variables describe.
func (s *envScope) jobGroups() []int {
	if s.info == nil {
		return []int{s.group}
	}
	var out []int
	for _, c := range s.info.Components {
		if !slices.Contains(out, c.Group) {
			out = append(out, c.Group)
		}
	}
	slices.Sort(out)
	return out
}

// jobParts lists the parts of the allocation that the job's variables describe.
func (s *envScope) jobParts() []step.Part {
	var out []step.Part
	for _, g := range s.jobGroups() {
		out = append(out, s.alloc.Groups[g].Parts...)
	}
	return out
}

// jobGroup is the allocation's group that the scope belongs to.
func (s *envScope) jobGroup() *step.AllocGroup { return &s.alloc.Groups[s.group] }

// jobNodes lists the nodes that the job's variables describe, each once, by rank.
func (s *envScope) jobNodes() []string {
	var out []string
	for _, p := range s.jobParts() {
		if name := s.alloc.Nodes[p.Node].Name; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// stepNodes lists the step's nodes, each once, by rank.
func (s *envScope) stepNodes() []string {
	var out []string
	for _, p := range s.info.Parts {
		if name := s.alloc.Nodes[p.Node].Name; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// tasksPerNode lists the tasks on each node: the step's, or the job's.
func (s *envScope) tasksPerNode() []int {
	var out []int
	if s.info != nil {
		for _, p := range s.info.Parts {
			out = append(out, len(p.Ranks))
		}
		return out
	}
	for _, p := range s.jobParts() {
		n := max(p.Tasks, 1)
		if p.Whole && !s.tasksAsked() { // as many as the node's CPUs can run
			n = max(p.CPUs/max(s.jobGroup().CPUsPerTask, 1), 1)
		}
		out = append(out, n)
	}
	return out
}

// taskCount is the number of tasks of the step, or of the job.
func (s *envScope) taskCount() int {
	if s.info != nil {
		return s.info.Tasks
	}
	return s.jobGroup().Tasks
}

// tasksAsked reports whether the submission says how many tasks there are.
func (s *envScope) tasksAsked() bool {
	for _, option := range []string{"ntasks", "ntasks-per-node", "tasks-per-node", "ntasks-per-socket", "ntasks-per-gpu", "ntasks-per-core"} {
		if _, ok := s.alloc.Given[option]; ok {
			return true
		}
	}
	return s.alloc.Direct || s.jobGroup().Tasks > len(s.jobGroup().Parts)
}

// partHere is the allocation's part on the scope's node.
func (s *envScope) partHere() *step.Part {
	g := s.jobGroup()
	for i := range g.Parts {
		if g.Parts[i].Node == s.node {
			return &g.Parts[i]
		}
	}
	return &step.Part{Node: s.node}
}

// nodeDevices lists the devices on the scope's node: the step's, or the job's.
func (s *envScope) nodeDevices() []step.AllocDevice {
	if s.info != nil {
		return s.info.Parts[s.part].Devices
	}
	return s.partHere().Devices
}

// visibleDevices lists the devices that the scope's process is to see.
func (s *envScope) visibleDevices() []step.AllocDevice {
	all := s.nodeDevices()
	if s.info == nil {
		return all
	}
	return devicesOfTask(all, s.program.GPUBind, s.local)
}

// taskRank is the task's rank.
func (s *envScope) taskRank() int { return s.info.Parts[s.part].Ranks[s.local] }

// givenOption returns an option of the submission as it was written.
func (s *envScope) givenOption(option string) (string, bool) {
	v, ok := s.alloc.Given[option]
	return v, ok && v != ""
}

// Formats.

func formatNumber[N ~int | ~int64 | ~uint32 | ~uint64](n N) (string, bool) {
	return fmt.Sprint(n), true
}

func formatCounts(n []int) (string, bool) { return slurmfmt.FormatCounts(n), true }

func formatNodes(names []string) (string, bool) { return hostlist.CompressInOrder(names), true }

func formatIndices(devices []step.AllocDevice) (string, bool) {
	return step.DeviceIndices(devices), true
}

// formatMegabytes converts a memory option to MiB.
func formatMegabytes(text string) (string, bool) {
	bytes, err := slurmfmt.ParseMemory(text)
	if err != nil {
		return "", false
	}
	return formatNumber(bytes >> 20)
}
