package discover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"
)

// Machine is what one machine offers to work started by this process.
type Machine struct {
	// CPUs are the logical processors that this process may run on, by ID.
	CPUs []CPU
	// CPUQuota is the CPU time allowed by cgroups in thousandths of a CPU;
	// 0 means no limit.
	CPUQuota int64
	// MemoryBytes is the usable main memory: what is installed on the NUMA
	// nodes allowed, or the cgroup limit where that is less. 0 means unknown.
	MemoryBytes int64
	// NUMA holds the memory nodes by ID; at least one, all of them with only
	// the CPUs usable here.
	NUMA []NUMANode
	// GPUs holds the usable GPUs: NVIDIA's first, then AMD's, each in the
	// order of Index.
	GPUs []GPU
}

// CPU is one logical processor.
type CPU struct {
	ID     int // the kernel's number
	Core   int // processors with equal Socket and Core are threads of one core
	Socket int // physical package
	NUMA   int // ID of its NUMA node
}

// NUMANode is one memory node and the processors next to it.
type NUMANode struct {
	ID          int
	CPUs        []int // IDs of usable CPUs, ascending; empty for a memory-only node
	MemoryBytes int64 // installed; 0 means unknown
	// Distance to each node of Machine.NUMA, in the same order, in the
	// firmware's scale (10 is local); nil means unknown.
	Distance []int
}

// UsableCPUs is the number of CPUs that work may fill at once: the CPUs
// allowed, cut to the cgroup quota, at least 1.
func (m Machine) UsableCPUs() int {
	n := len(m.CPUs)
	if m.CPUQuota > 0 {
		n = min(n, int(m.CPUQuota/1000))
	}
	return max(n, 1)
}

// Cores is the number of physical cores among the CPUs.
func (m Machine) Cores() int {
	type core struct{ socket, core int }
	seen := make(map[core]bool, len(m.CPUs))
	for _, c := range m.CPUs {
		seen[core{c.Socket, c.Core}] = true
	}
	return len(seen)
}

// Sockets is the number of physical packages among the CPUs.
func (m Machine) Sockets() int {
	seen := map[int]bool{}
	for _, c := range m.CPUs {
		seen[c.Socket] = true
	}
	return len(seen)
}

// Note says in one line what was tried and why it could not be used, or what
// limits the result.
type Note struct {
	Source string // what was asked: a program, a file, a variable
	Text   string
}

// String is "source: text".
func (n Note) String() string { return n.Source + ": " + n.Text }

// Options tells [Look] where to look. The zero value means this machine.
type Options struct {
	// FS is the root of the file system: os.DirFS("/") by default. Links are
	// followed where it implements fs.ReadLinkFS.
	FS fs.FS
	// Run starts a program: [Exec] by default.
	Run Runner
	// LookupEnv reads this process's environment: os.LookupEnv by default.
	LookupEnv func(string) (string, bool)
	// Executable is the path of the running binary; the NVML helper is
	// looked for beside it. os.Executable by default.
	Executable string
	// Timeout bounds each program started; 10 s by default, because a driver
	// that is not kept loaded takes seconds to answer.
	Timeout time.Duration
	// NumCPU stands in where neither sysfs nor procfs name the CPUs:
	// runtime.NumCPU() by default.
	NumCPU int
	// NoGPU leaves out the search for GPUs.
	NoGPU bool
}

const defaultTimeout = 10 * time.Second

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = os.DirFS("/")
	}
	if o.Run == nil {
		o.Run = Exec
	}
	if o.LookupEnv == nil {
		o.LookupEnv = os.LookupEnv
	}
	if o.Executable == "" {
		// Without it the helper is looked for in PATH alone.
		o.Executable, _ = os.Executable()
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.NumCPU <= 0 {
		o.NumCPU = runtime.NumCPU()
	}
	return o
}

// Look discovers the machine. It fails only when ctx ends before the result
// is complete; everything else that goes wrong is a note.
func Look(ctx context.Context, opts Options) (Machine, []Note, error) {
	s := &search{ctx: ctx, Options: opts.withDefaults()}
	var m Machine
	m.CPUs = s.findCPUs()
	m.NUMA = s.findNUMA(m.CPUs)
	m.MemoryBytes = s.installedMemory(m.NUMA)
	m.CPUQuota = s.applyCgroupLimits(&m)
	if !s.NoGPU {
		m.GPUs = s.findGPUs(m.NUMA)
	}
	if err := ctx.Err(); err != nil {
		return Machine{}, s.notes, fmt.Errorf("look at this machine: %w", err)
	}
	return m, s.notes, nil
}

// search is one run of Look: its options and the notes so far.
type search struct {
	Options
	ctx   context.Context
	notes []Note
}

func (s *search) addNote(source, format string, args ...any) {
	s.notes = append(s.notes, Note{Source: source, Text: fmt.Sprintf(format, args...)})
}

// runTool starts a program under the deadline. Its output comes back beside an
// error too: several tools explain themselves on standard output.
func (s *search) runTool(name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(s.ctx, s.Timeout)
	defer cancel()
	out, err := s.Run(ctx, name, args...)
	if err != nil && ctx.Err() != nil && s.ctx.Err() == nil {
		err = fmt.Errorf("%w: waited %v", errSilent, s.Timeout)
	}
	return out, err
}

var errSilent = errors.New("no answer")
