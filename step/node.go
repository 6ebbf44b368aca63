package step

import (
	"errors"
	"net"
	"time"

	"github.com/coxswain-sched/coxswain/job"
)

// NodeConfig says what a Node works with.
type NodeConfig struct {
	Alloc    *Alloc
	Node     int             // index into Alloc.Nodes; 0 is also the arbiter of steps
	Spawner  Spawner         //
	TaskInit []string        // command that calls TaskInitMain: {"/path/cox", "task-init"}
	Report   func(TaskState) // called on every change of a task, one call at a time, not for long; may be nil
	LogDir   string          // rank logs are written here as <step>.<rank>.log; empty: none
	Grace    time.Duration   // between SIGTERM and SIGKILL when a step is ended; 0: 2 s
}

// TaskState is what a Node knows of one task.
type TaskState struct {
	Step    int          `json:"step"`
	Rank    int          `json:"rank"`
	PID     int          `json:"pid"`
	Running bool         `json:"running,omitempty"` // its barrier was opened and it has not ended
	Started time.Time    `json:"started,omitzero"`  // when its barrier was opened
	Ended   time.Time    `json:"ended,omitzero"`
	Exit    job.ExitCode `json:"exit"`
	OOM     bool         `json:"oom,omitempty"`
	Log     string       `json:"log,omitempty"`
}

// Node is the node side of steps: it serves srun, holds, starts, signals and
// watches the tasks of steps on one node. It is safe for concurrent use.
type Node struct {
	cfg NodeConfig
}

// NewNode checks the configuration. Nothing runs before Serve.
func NewNode(cfg NodeConfig) (*Node, error) {
	if cfg.Alloc == nil || cfg.Node < 0 || cfg.Node >= len(cfg.Alloc.Nodes) || cfg.Spawner == nil || len(cfg.TaskInit) == 0 {
		return nil, errors.New("step node: allocation, node, spawner and task-init command are needed")
	}
	return &Node{cfg: cfg}, nil
}

// Serve accepts srun's connections until the listener is closed or Close is
// called; it returns nil after Close.
func (n *Node) Serve(l net.Listener) error { return errors.New("not built yet") }

// Tasks lists every task that the node has had, by step and rank.
func (n *Node) Tasks() []TaskState { return nil }

// Signal sends a signal to the process group of every running task of a step, or
// of every step if step is negative.
func (n *Node) Signal(signal, step int) error { return nil }

// Close ends the tasks that are left (SIGTERM, grace, SIGKILL), refuses new steps,
// closes the listener and returns when everything that Node started has ended.
func (n *Node) Close() error { return nil }
