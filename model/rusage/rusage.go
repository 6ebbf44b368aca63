// Package rusage says what the processes of a job used: CPU time, memory, bytes read and
// written, and the use of GPUs, by step and by node.
//
// A quantity that nobody measured is unknown, which is not zero: Use.Known says which are
// known. Sums of known and unknown parts are of the known parts alone, and are known.
//
// A Record is small whatever a job does: of many steps it keeps the first and the last, of
// many nodes the first, and counts the others in the totals.
//
// docs/reference/efficiency.md gives the definitions for users.
package rusage

import (
	"cmp"
	"slices"
	"time"
)

// Quantity is a set of quantities.
type Quantity uint8

// The quantities.
const (
	CPU    Quantity = 1 << iota // User and System
	Memory                      // Memory
	IO                          // Read and Written
)

// Use is what some processes used.
type Use struct {
	Known   Quantity      `json:"known,omitempty"`
	User    time.Duration `json:"user,omitempty"`    // CPU time in user mode
	System  time.Duration `json:"system,omitempty"`  // CPU time in the kernel
	Memory  int64         `json:"memory,omitempty"`  // peak of resident memory, bytes
	Read    int64         `json:"read,omitempty"`    // bytes from disks and file servers; none from the kernel's cache
	Written int64         `json:"written,omitempty"` // bytes to them
	// Now is resident memory at the moment of the measurement, bytes, of a node or an attempt that runs;
	// 0: not known.
	Now int64 `json:"now,omitempty"`
}

// Has reports whether all of some quantities are known.
func (u Use) Has(q Quantity) bool { return u.Known&q == q }

// CPUTime is the time in user mode and in the kernel.
func (u Use) CPUTime() time.Duration { return u.User + u.System }

// Plus is the sum of two uses. The sum of two peaks is a bound of the peak of both together.
func (u Use) Plus(o Use) Use {
	return Use{
		Known: u.Known | o.Known, User: u.User + o.User, System: u.System + o.System,
		Memory: u.Memory + o.Memory, Read: u.Read + o.Read, Written: u.Written + o.Written, Now: u.Now + o.Now,
	}
}

// Raise raises each quantity of u to that of a later or a more complete measurement.
func (u *Use) Raise(o Use) {
	u.Known |= o.Known
	u.Memory = max(u.Memory, o.Memory)
	u.Read, u.Written = max(u.Read, o.Read), max(u.Written, o.Written)
	if o.CPUTime() > u.CPUTime() {
		u.User, u.System = o.User, o.System
	}
}

// Extreme is the task of a step that used most, or least, of something.
type Extreme struct {
	Value int64  `json:"value"` // bytes, or nanoseconds
	Node  string `json:"node,omitempty"`
	Task  int    `json:"task,omitempty"` // rank
}

// Step is what one step used, on one node or on all.
type Step struct {
	Step  int `json:"step"` // engine.BatchStep for the batch script
	Tasks int `json:"tasks"`
	// Running is how many of the tasks still run, of a record of an attempt that runs.
	Running int `json:"running,omitempty"`
	Sum     Use `json:"sum"` // of all its tasks; Memory is the sum of their peaks
	// MaxMemory, MaxRead and MaxWritten are of the task that used most, MinCPU of the one
	// that used least; nil: not known, or where Sum is known and 0, no task used any.
	MaxMemory  *Extreme `json:"max_memory,omitempty"`
	MinCPU     *Extreme `json:"min_cpu,omitempty"`
	MaxRead    *Extreme `json:"max_read,omitempty"`
	MaxWritten *Extreme `json:"max_written,omitempty"`
}

// TaskStep is a step of one task.
func TaskStep(step, rank int, node string, u Use) Step {
	s := Step{Step: step, Tasks: 1, Sum: u}
	of := func(q Quantity, n int64) *Extreme {
		if !u.Has(q) || n == 0 && q == IO {
			return nil
		}
		return &Extreme{Value: n, Node: node, Task: rank}
	}
	s.MaxMemory, s.MinCPU = of(Memory, u.Memory), of(CPU, int64(u.CPUTime()))
	s.MaxRead, s.MaxWritten = of(IO, u.Read), of(IO, u.Written)
	return s
}

// Merge adds other tasks of the same step.
func (s *Step) Merge(o Step) {
	s.Tasks += o.Tasks
	s.Running += o.Running
	s.Sum = s.Sum.Plus(o.Sum)
	s.MaxMemory = extremeOf(s.MaxMemory, o.MaxMemory, 1)
	s.MinCPU = extremeOf(s.MinCPU, o.MinCPU, -1)
	s.MaxRead = extremeOf(s.MaxRead, o.MaxRead, 1)
	s.MaxWritten = extremeOf(s.MaxWritten, o.MaxWritten, 1)
}

// extremeOf is the larger of two, or with the sign -1 the smaller; of equal ones that of the
// smaller rank. What is returned is shared and not written to.
func extremeOf(a, b *Extreme, sign int) *Extreme {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	if c := sign * cmp.Compare(a.Value, b.Value); c > 0 || c == 0 && a.Task <= b.Task {
		return a
	}
	return b
}

// GPU is how one GPU was used while a job held it.
type GPU struct {
	Index   int     `json:"index"`            // of the device on its node
	Samples int     `json:"samples"`          // that the numbers come from
	Busy    float64 `json:"busy"`             // per cent of the time in which a kernel ran, on average
	MaxBusy float64 `json:"max_busy"`         // … and the highest sample
	Memory  int64   `json:"memory,omitempty"` // peak of its memory in use, bytes
	Of      int64   `json:"of,omitempty"`     // its memory, bytes; 0: not known
	Now     int64   `json:"now,omitempty"`    // its memory in use at the last sample, bytes
}

// Node is what a job used on one node.
type Node struct {
	Name string `json:"name"`
	Use         // Memory is the peak of all processes together
	GPUs []GPU  `json:"gpus,omitempty"` // that were measured
}

// Record is what an attempt of a job used.
type Record struct {
	// Total is of all nodes; Memory is the sum of the nodes' peaks.
	Total Use    `json:"total"`
	Nodes []Node `json:"nodes,omitempty"` // in the order of the attempt, at most MaxNodes
	Steps []Step `json:"steps,omitempty"` // by number, at most MaxSteps
	// LeftNodes and LeftSteps count those that are in Total alone. Steps that are left out are
	// of the middle.
	LeftNodes int `json:"left_nodes,omitempty"`
	LeftSteps int `json:"left_steps,omitempty"`
	// GPUs sums up the GPUs of all nodes.
	GPUs GPUs `json:"gpus,omitzero"`
	// At is when an attempt that runs was measured, the last of its nodes; zero: not known, or it has ended.
	At time.Time `json:"at,omitzero"`
}

// MaxNodes and MaxSteps bound a Record.
const (
	MaxNodes = 1000
	MaxSteps = 1000
)

// GPUs sums up several GPUs.
type GPUs struct {
	Count  int     `json:"count"`            // that were measured
	Busy   float64 `json:"busy"`             // per cent, their average
	Memory int64   `json:"memory,omitempty"` // sum of their peaks, bytes
	Of     int64   `json:"of,omitempty"`     // their memory, bytes
}

// Make makes the record of an attempt of what its nodes say. A node's steps are those of its tasks
// there. nil: nothing is known.
func Make(nodes []Node, steps [][]Step) *Record {
	r := &Record{}
	for i := range nodes {
		r.Total = r.Total.Plus(nodes[i].Use)
		for _, g := range nodes[i].GPUs {
			r.GPUs.Busy += g.Busy
			r.GPUs.Memory += g.Memory
			r.GPUs.Of += g.Of
			r.GPUs.Count++
		}
	}
	if r.GPUs.Count > 0 {
		r.GPUs.Busy /= float64(r.GPUs.Count)
	}
	if r.Total.Known == 0 && r.GPUs.Count == 0 {
		return nil
	}
	r.Nodes = nodes[:min(len(nodes), MaxNodes)]
	r.LeftNodes = len(nodes) - len(r.Nodes)
	for _, list := range steps {
		for i := range list {
			r.addStep(list[i])
		}
	}
	if n := len(r.Steps) - MaxSteps; n > 0 {
		r.Steps = slices.Delete(r.Steps, MaxSteps/2, MaxSteps/2+n)
		r.LeftSteps = n
	}
	return r
}

func (r *Record) addStep(s Step) {
	i, found := slices.BinarySearchFunc(r.Steps, s.Step, func(a Step, step int) int { return cmp.Compare(a.Step, step) })
	if found {
		r.Steps[i].Merge(s)
		return
	}
	r.Steps = slices.Insert(r.Steps, i, s)
}

// Step finds a step of the record; nil: nothing is known of it.
func (r *Record) Step(step int) *Step {
	if r == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(r.Steps, step, func(a Step, step int) int { return cmp.Compare(a.Step, step) })
	if !found {
		return nil
	}
	return &r.Steps[i]
}

// Renamed is the record with other names of nodes; names that are not there stay. nil: r is nil.
func (r *Record) Renamed(names map[string]string) *Record {
	if r == nil {
		return nil
	}
	out := *r
	out.Nodes, out.Steps = slices.Clone(r.Nodes), slices.Clone(r.Steps)
	for i := range out.Nodes {
		out.Nodes[i].Name = cmp.Or(names[out.Nodes[i].Name], out.Nodes[i].Name)
	}
	for i := range out.Steps {
		s := &out.Steps[i]
		for _, x := range []**Extreme{&s.MaxMemory, &s.MinCPU, &s.MaxRead, &s.MaxWritten} {
			if *x != nil {
				renamed := **x
				renamed.Node = cmp.Or(names[renamed.Node], renamed.Node)
				*x = &renamed
			}
		}
	}
	return &out
}
