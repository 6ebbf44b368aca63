package step

import (
	"encoding/json"

	"github.com/coxswain-sched/coxswain/model/job"
)

// protocol is the version of the wire; srun and supervisors of one attempt come
// from one binary, so a difference means that the binary was replaced meanwhile.
const protocol = 2

// hello opens a connection. It names the attempt: sockets serve one after the other.
type hello struct {
	Version int    `json:"version"`
	Job     job.ID `json:"job"`
	Attempt uint32 `json:"attempt"`
}

// Info is a step as the arbiter made it: its number and who runs where on what.
type Info struct {
	Step       int         `json:"step"`
	Name       string      `json:"name"`
	Tasks      int         `json:"tasks"`
	Components []Component `json:"components"` // at least one; ranks go over them in order
	Parts      []StepPart  `json:"parts"`      // ordered by component; the index is SLURM_NODEID
	Overlap    bool        `json:"overlap,omitempty"`
	Exact      bool        `json:"exact,omitempty"`
}

// Component is one program of a step and what every task of it gets.
type Component struct {
	Group        int    `json:"group"` // of the allocation
	Tasks        int    `json:"tasks"`
	First        int    `json:"first"`                   // its first rank
	CPUsPerTask  int    `json:"cpus_per_task,omitempty"` // 0: not asked
	TasksPerNode int    `json:"tasks_per_node,omitempty"`
	Distribution string `json:"distribution,omitempty"`
}

// StepPart is what a step has on one node for one component.
type StepPart struct {
	Component int           `json:"component"`
	Node      int           `json:"node"`  // index into Alloc.Nodes
	Ranks     []int         `json:"ranks"` // ascending; the index is SLURM_LOCALID
	CPUs      int           `json:"cpus"`
	Devices   []AllocDevice `json:"devices,omitempty"`
}

// preparation is everything that a node needs to hold its tasks of a step. The
// node makes every task's own environment itself.
type preparation struct {
	Info     Info      `json:"info"`
	Programs []program `json:"programs"` // one per component
	Env      []string  `json:"env"`      // srun's, as --export left it
	Umask    int       `json:"umask"`
	Limits   []limit   `json:"limits,omitempty"`
	Srun     origin    `json:"srun"`
	PMI      bool      `json:"pmi,omitempty"` // give every task a PMI-1 connection
}

// program is what the tasks of one component run.
type program struct {
	Args    []string         `json:"args"`
	PerRank map[int][]string `json:"per_rank,omitempty"` // --multi-prog: by rank
	Dir     string           `json:"dir"`
	Stdin   stream           `json:"stdin"`
	Stdout  stream           `json:"stdout"`
	Stderr  stream           `json:"stderr"`
	GPUBind string           `json:"gpu_bind,omitempty"` // which of the node's devices a task sees, as srun spells it
	Set     []string         `json:"set,omitempty"`      // variables of this component: NAME=VALUE
}

// stream says where one descriptor of a task leads.
type stream struct {
	Kind   streamKind `json:"kind"`
	File   string     `json:"file,omitempty"` // a pattern that every task expands for itself
	Append bool       `json:"append,omitempty"`
	Rank   int        `json:"rank,omitempty"` // streamOne: the only rank that has it
}

// streamKind is a way to connect a descriptor.
type streamKind string

// The ways.
const (
	streamSrun streamKind = ""     // to srun
	streamNone streamKind = "none" // /dev/null
	streamFile streamKind = "file" // a file on the node
	streamOne  streamKind = "one"  // one rank's to srun, the others' to /dev/null
	streamJoin streamKind = "join" // standard error: where standard output goes
)

// limit is a resource limit that tasks take over from srun.
type limit struct {
	Resource int    `json:"resource"`
	Soft     uint64 `json:"soft"`
}

// origin is where a step was started from.
type origin struct {
	Host    string `json:"host"`
	Address string `json:"address"`
}

// ending is how a task ended.
type ending struct {
	Exit job.ExitCode `json:"exit"`
	OOM  bool         `json:"oom,omitempty"`
	Text string       `json:"text,omitempty"` // why the program could not be started
}

// mustJSON encodes a value of a type of this package that always can be.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
