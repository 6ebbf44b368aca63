package step

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// scope is what an environment is made for: a batch script, or one task.
type scope struct {
	alloc *Alloc
	node  int // index into alloc.Nodes
	group int // whose parts the job's variables describe; the step's groups if info is set

	info    *Info // nil: the batch script
	prep    *preparation
	program *program
	part    int // index into info.Parts
	local   int // index into that part's ranks
}

// newScope is the scope of the batch script.
func newScope(a *Alloc, node int) *scope { return &scope{alloc: a, node: node} }

// newStepScope is the scope of one task.
func newStepScope(a *Alloc, prep *preparation, part, local int) *scope {
	p := &prep.Info.Parts[part]
	return &scope{
		alloc: a, node: p.Node, info: &prep.Info, prep: prep, part: part, local: local,
		program: &prep.Programs[p.Component], group: prep.Info.Components[p.Component].Group,
	}
}

// component is the component of the step that the task belongs to.
func (s *scope) component() *Component {
	return &s.info.Components[s.info.Parts[s.part].Component]
}

// groups lists the task groups that the job's variables describe.
func (s *scope) groups() []int {
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
func (s *scope) jobParts() []Part {
	var out []Part
	for _, g := range s.groups() {
		out = append(out, s.alloc.Groups[g].Parts...)
	}
	return out
}

// own is the allocation's group that the scope belongs to.
func (s *scope) own() *AllocGroup { return &s.alloc.Groups[s.group] }

// jobNodes lists the nodes that the job's variables describe, each once, by rank.
func (s *scope) jobNodes() []string {
	var out []string
	for _, p := range s.jobParts() {
		if name := s.alloc.Nodes[p.Node].Name; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// stepNodes lists the step's nodes, each once, by rank.
func (s *scope) stepNodes() []string {
	var out []string
	for _, p := range s.info.Parts {
		if name := s.alloc.Nodes[p.Node].Name; !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// tasksPerNode lists the tasks on each node: the step's, or the job's.
func (s *scope) tasksPerNode() []int {
	var out []int
	if s.info != nil {
		for _, p := range s.info.Parts {
			out = append(out, len(p.Ranks))
		}
		return out
	}
	for _, p := range s.jobParts() {
		out = append(out, max(p.Tasks, 1))
	}
	return out
}

// tasks is the number of tasks of the step, or of the job.
func (s *scope) tasks() int {
	if s.info != nil {
		return s.info.Tasks
	}
	return s.own().Tasks
}

// tasksAsked reports whether the submission says how many tasks there are.
func (s *scope) tasksAsked() bool {
	for _, option := range []string{"ntasks", "ntasks-per-node", "tasks-per-node", "ntasks-per-socket", "ntasks-per-gpu", "ntasks-per-core"} {
		if _, ok := s.alloc.Given[option]; ok {
			return true
		}
	}
	return s.alloc.Direct || s.own().Tasks > len(s.own().Parts)
}

// here is the allocation's part on the scope's node.
func (s *scope) here() *Part {
	g := s.own()
	for i := range g.Parts {
		if g.Parts[i].Node == s.node {
			return &g.Parts[i]
		}
	}
	return &Part{Node: s.node}
}

// nodeDevices lists the devices on the scope's node: the step's, or the job's.
func (s *scope) nodeDevices() []AllocDevice {
	if s.info != nil {
		return s.info.Parts[s.part].Devices
	}
	return s.here().Devices
}

// devices lists the devices that the scope's process is to see.
func (s *scope) devices() []AllocDevice {
	all := s.nodeDevices()
	if s.info == nil {
		return all
	}
	return bindDevices(all, s.program.GPUBind, s.local)
}

// rank is the task's rank.
func (s *scope) rank() int { return s.info.Parts[s.part].Ranks[s.local] }

// given returns an option of the submission as it was written.
func (s *scope) given(option string) (string, bool) {
	v, ok := s.alloc.Given[option]
	return v, ok && v != ""
}

// Formats.

func number[N ~int | ~int64 | ~uint32 | ~uint64](n N) (string, bool) { return fmt.Sprint(n), true }

func counts(n []int) (string, bool) { return slurmfmt.FormatCounts(n), true }

func nodes(names []string) (string, bool) { return hostlist.CompressInOrder(names), true }

func indices(devices []AllocDevice) (string, bool) {
	var out []string
	for _, d := range devices {
		out = append(out, strconv.Itoa(d.Index))
	}
	return strings.Join(out, ","), true
}

func ints(n []int) string {
	out := make([]string, len(n))
	for i, k := range n {
		out[i] = strconv.Itoa(k)
	}
	return strings.Join(out, ",")
}

// megabytes converts a memory option to MiB.
func megabytes(text string) (string, bool) {
	bytes, err := slurmfmt.ParseMemory(text)
	if err != nil {
		return "", false
	}
	return number(bytes >> 20)
}
