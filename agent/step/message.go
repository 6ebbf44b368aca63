package step

import (
	"encoding/json"

	"github.com/coxswain-sched/coxswain/model/job"
)

// Protocol is the version of the wire; srun and supervisors of one attempt come
// from one binary, so a difference means that the binary was replaced meanwhile.
const Protocol = 2

// Hello opens a connection. It names the attempt: sockets serve one after the other.
type Hello struct {
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

// Preparation is everything that a node needs to hold its tasks of a step. The
// node makes every task's own environment itself.
type Preparation struct {
	Info     Info      `json:"info"`
	Programs []Program `json:"programs"` // one per component
	Env      []string  `json:"env"`      // srun's, as --export left it
	Umask    int       `json:"umask"`
	Limits   []Rlimit  `json:"limits,omitempty"`
	Srun     Origin    `json:"srun"`
	PMI      bool      `json:"pmi,omitempty"` // give every task a PMI-1 connection
}

// Program is what the tasks of one component run.
type Program struct {
	Args    []string         `json:"args"`
	PerRank map[int][]string `json:"per_rank,omitempty"` // --multi-prog: by rank
	Dir     string           `json:"dir"`
	Stdin   Stream           `json:"stdin"`
	Stdout  Stream           `json:"stdout"`
	Stderr  Stream           `json:"stderr"`
	GPUBind string           `json:"gpu_bind,omitempty"` // which of the node's devices a task sees, as srun spells it
	Set     []string         `json:"set,omitempty"`      // variables of this component: NAME=VALUE
}

// Stream says where one descriptor of a task leads.
type Stream struct {
	Kind   StreamKind `json:"kind"`
	File   string     `json:"file,omitempty"` // a pattern that every task expands for itself
	Append bool       `json:"append,omitempty"`
	Rank   int        `json:"rank,omitempty"` // streamOne: the only rank that has it
}

// StreamKind is a way to connect a descriptor.
type StreamKind string

// The ways.
const (
	StreamSrun StreamKind = ""     // to srun
	StreamNone StreamKind = "none" // /dev/null
	StreamFile StreamKind = "file" // a file on the node
	StreamOne  StreamKind = "one"  // one rank's to srun, the others' to /dev/null
	StreamJoin StreamKind = "join" // standard error: where standard output goes
)

// Rlimit is a resource limit that tasks take over from srun.
type Rlimit struct {
	Resource int    `json:"resource"`
	Soft     uint64 `json:"soft"`
}

// Origin is where a step was started from.
type Origin struct {
	Host    string `json:"host"`
	Address string `json:"address"`
}

// Ending is how a task ended.
type Ending struct {
	Exit job.ExitCode `json:"exit"`
	OOM  bool         `json:"oom,omitempty"`
	Text string       `json:"text,omitempty"` // why the program could not be started
}

// MustJSON encodes a value of a type of this package that always can be.
func MustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
