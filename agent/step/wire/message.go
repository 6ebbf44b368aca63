package wire

import (
	"encoding/json"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
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

// Preparation is everything that a node needs to hold its tasks of a step. The
// node makes every task's own environment itself.
type Preparation struct {
	Info     step.Info        `json:"info"`
	Programs []Program        `json:"programs"` // one per component
	Env      []string         `json:"env"`      // srun's, as --export left it
	Umask    int              `json:"umask"`
	Terminal *Window          `json:"terminal,omitempty"` // the first task gets a terminal of this size; nil: none does
	Limits   []barrier.Rlimit `json:"limits,omitempty"`
	Srun     Origin           `json:"srun"`
	PMI      bool             `json:"pmi,omitempty"` // give every task a connection for PMI-1 and PMI-2

	PMIx        PMIx `json:"pmix,omitempty"`
	PMIxVersion int  `json:"pmix_version,omitempty"` // of libpmix, that was asked for; 0: any

	Container *Container `json:"container,omitempty"` // of its own for the step; nil: the job's, or none
}

// Container is the container that a step asks for.
type Container struct {
	Image     string        `json:"image,omitempty"` // empty: that of an earlier step, by its name
	Container job.Container `json:"container"`
}

// PMIx says whether a node has a PMIx server for the tasks.
type PMIx string

// The ways.
const (
	PMIxNone    PMIx = ""       // none
	PMIxOffered PMIx = "offer"  // from the first program that connects
	PMIxNeeded  PMIx = "needed" // before any task begins, or the step is refused
)

// Program is what the tasks of one component run.
type Program struct {
	Args    []string         `json:"args"`
	PerRank map[int][]string `json:"per_rank,omitempty"` // --multi-prog: by rank
	Dir     string           `json:"dir"`
	Chdir   bool             `json:"chdir,omitempty"` // Dir was asked for; else it is that of srun
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

// PMIValueMax is the longest value of the process management interface, of which
// nodes carry lines between tasks and srun.
const PMIValueMax = 4096

// PMI2 is the Number of a frame MsgPMI of a task that speaks PMI-2: the body is one command,
// without its length. Answers are passed on as they are.
const PMI2 = 2
