package barrier

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/model/rusage"
)

// Spawner starts processes and learns of their end. The supervisor implements it:
// as a subreaper it has one loop that waits for every child.
type Spawner interface {
	// Spawn starts a process in a session of its own and returns its pid and a
	// channel that delivers its end once. The files are still the caller's.
	Spawn(c *Cmd) (pid int, exited <-chan Exit, err error)
}

// StepEnder is an optional ability of a Spawner: to end every process that is left
// of a step on this node, for instance by its cgroup, before it returns.
type StepEnder interface {
	EndStep(step int) error
}

// NodeNetwork is an optional ability of a Spawner whose processes are in a network of their node's
// own: it runs f, which opens a socket, in that network.
type NodeNetwork interface {
	InNetwork(f func() error) error
}

// Cmd is a process to start.
type Cmd struct {
	Path  string
	Args  []string // with the name of the program first
	Env   []string
	Dir   string     // empty: any
	Files []*os.File // becomes descriptors 0, 1, 2 …

	Terminal bool // descriptor 0 is its terminal

	Step  int // the step and the rank that the process is for
	Rank  int
	Local int // index among the step's tasks of this node
}

// Exit is how a process ended.
type Exit struct {
	Status int  // exit status; 0 if it was killed by a signal
	Signal int  // the signal that killed it; 0: none
	OOM    bool // the kernel killed it at its memory limit
	// Used is what it used, with every descendant that was waited for. Memory is the peak of
	// the largest one, and not less than that of the process that started it.
	Used rusage.Use
}

// OK reports whether the process ended with exit status 0.
func (e *Exit) OK() bool { return e.Status == 0 && e.Signal == 0 }

// UseOf is what the kernel counted of a process that was waited for.
func UseOf(ru *unix.Rusage) rusage.Use {
	const block = 512 // bytes, of the kernel's counters
	return rusage.Use{
		Known: rusage.CPU | rusage.Memory | rusage.IO,
		User:  time.Duration(ru.Utime.Nano()), System: time.Duration(ru.Stime.Nano()),
		Memory: ru.Maxrss << 10, Read: ru.Inblock * block, Written: ru.Oublock * block,
	}
}
