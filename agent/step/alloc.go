package step

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coxswain-sched/coxswain/agent/deviceenv"
	"github.com/coxswain-sched/coxswain/model/job"
)

// AllocVariable names the environment variable that holds the name of the
// allocation's file.
const AllocVariable = "COX_ALLOC"

// BatchStep is the step number of the batch script.
const BatchStep = -1

// Alloc is what the processes of one attempt may know of their allocation. It is
// written once, before anything starts, and only read afterwards.
type Alloc struct {
	Job     job.ID         `json:"job"`
	Attempt uint32         `json:"attempt"` // 1 for the first
	Array   *job.ArrayTask `json:"array,omitempty"`
	Name    string         `json:"name"`

	Owner       job.Owner `json:"owner"`
	Account     string    `json:"account,omitempty"`
	QOS         string    `json:"qos,omitempty"`
	Partition   string    `json:"partition,omitempty"`
	Reservation string    `json:"reservation,omitempty"`
	Licenses    string    `json:"licenses,omitempty"`
	Cluster     string    `json:"cluster"`

	Gang      string `json:"gang,omitempty"`       // file that says who is in an elastic gang; empty: it is none
	FirstRank int    `json:"first_rank,omitempty"` // in the gang, of what was added to one

	Dir        string `json:"dir"`                  // the attempt's own directory
	Bin        string `json:"bin"`                  // holds srun, scontrol …; first in the job's PATH; empty: not changed
	Checkpoint string `json:"checkpoint,omitempty"` // the job's directory for what it saves; empty: it has none
	Restore    string `json:"restore,omitempty"`    // what was reported as saved last; empty: nothing

	WorkDir    string `json:"work_dir"`
	SubmitDir  string `json:"submit_dir"`
	SubmitHost string `json:"submit_host"`

	Direct  bool       `json:"direct,omitempty"`  // the program is run by every task, without a batch script
	Command string     `json:"command,omitempty"` // what runs, for scontrol show job
	Output  job.Output `json:"output,omitzero"`
	Requeue bool       `json:"requeue,omitempty"`

	Submitted time.Time     `json:"submitted,omitzero"`
	Started   time.Time     `json:"started,omitzero"`
	TimeLimit time.Duration `json:"time_limit,omitempty"` // 0: none

	Given  map[string]string `json:"given,omitempty"`  // options of the submission, long name → value as sbatch spells them
	Export string            `json:"export,omitempty"` // sbatch --export as written
	Set    []string          `json:"set,omitempty"`    // NAME=VALUE added last to the job's environment

	Ports []string `json:"ports,omitempty"` // NAME=VALUE that say on which ports the first task serves; they are added after Set

	Machine string `json:"machine,omitempty"` // address of the machine as virtual nodes with networks of their own reach it

	Nodes  []AllocNode  `json:"nodes"`  // each node once; the batch script runs on the first
	Groups []AllocGroup `json:"groups"` // one, or one per component of a heterogeneous job
}

// AllocNode is one node of the allocation.
type AllocNode struct {
	Name    string             `json:"name"`
	Address string             `json:"address"`           // by which tasks on other nodes reach it; empty: its name
	Socket  string             `json:"socket"`            // path of its Node's unix socket
	Path    string             `json:"path,omitempty"`    // topology from the top down, with dots: "spine1.leaf3"
	Virtual bool               `json:"virtual,omitempty"` // one of several on this machine
	CPUs    int                `json:"cpus"`              // logical CPUs that the node has in all
	Vendors []deviceenv.Vendor `json:"vendors,omitempty"` // of the hardware that is in the machine, the job's or not
}

// AllocGroup is one task group: a component of a heterogeneous job, or the job.
type AllocGroup struct {
	Name         string `json:"name,omitempty"`
	Tasks        int    `json:"tasks"`                    // over all its parts; the ranks of a step that asks for nothing else
	CPUsPerTask  int    `json:"cpus_per_task,omitempty"`  // 0: not asked
	TasksPerNode int    `json:"tasks_per_node,omitempty"` // 0: not asked
	Overcommit   bool   `json:"overcommit,omitempty"`
	Distribution string `json:"distribution,omitempty"`
	MemoryMB     int64  `json:"memory_mb,omitempty"`     // asked for on each node; 0: not asked
	GPUsPerNode  int    `json:"gpus_per_node,omitempty"` // 0: not asked
	Parts        []Part `json:"parts"`                   // in the order of the claims, each node at most once
}

// Part is what a task group has on one node.
type Part struct {
	Node     int           `json:"node"` // index into Alloc.Nodes
	Tasks    int           `json:"tasks"`
	CPUs     int           `json:"cpus"`
	MemoryMB int64         `json:"memory_mb"`
	Devices  []AllocDevice `json:"devices,omitempty"` // sorted by Index
	Whole    bool          `json:"whole,omitempty"`
}

// AllocDevice is a device that the job holds on a node.
type AllocDevice struct {
	Index int              `json:"index"`           // as the driver numbers it on its node
	Kind  string           `json:"kind"`            // "gpu"
	Type  string           `json:"type,omitempty"`  // "h100"
	UUID  string           `json:"uuid,omitempty"`  //
	Shown deviceenv.Device `json:"shown"`           // how the variables of its vendor name it
	Share int              `json:"share,omitempty"` // thousandths held; 0 or 1000: the whole device
	Bytes int64            `json:"bytes,omitempty"` // of its memory that are held, if that is what was asked for
}

// Load reads an allocation's file.
func Load(path string) (*Alloc, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read allocation: %w", err)
	}
	a, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read allocation %s: %w", path, err)
	}
	return a, nil
}

// Parse reads what Text wrote.
func Parse(text []byte) (*Alloc, error) {
	a := new(Alloc)
	if err := json.Unmarshal(text, a); err != nil {
		return nil, err
	}
	return a, a.Check()
}

// File is the name of the allocation's file.
func (a *Alloc) File() string { return filepath.Join(a.Dir, "alloc.json") }

// Text is the contents of the allocation's file.
func (a *Alloc) Text() ([]byte, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("write allocation: %w", err)
	}
	return append(text, '\n'), nil
}

// Save writes the allocation's file, whole or not at all, readable by its owner
// and, so that the job's own processes can read it, its group.
func (a *Alloc) Save() error {
	text, err := a.Text()
	if err != nil {
		return err
	}
	next := a.File() + ".new"
	if err := os.WriteFile(next, text, 0o640); err != nil {
		return fmt.Errorf("write allocation: %w", err)
	}
	if err := os.Rename(next, a.File()); err != nil {
		return fmt.Errorf("write allocation: %w", err)
	}
	return nil
}

// Check reports the first way in which the allocation contradicts itself.
func (a *Alloc) Check() error {
	if len(a.Nodes) == 0 || len(a.Groups) == 0 {
		return fmt.Errorf("allocation of job %s has %d nodes and %d groups", a.Job, len(a.Nodes), len(a.Groups))
	}
	for g, group := range a.Groups {
		seen := make(map[int]bool)
		for _, p := range group.Parts {
			if p.Node < 0 || p.Node >= len(a.Nodes) || seen[p.Node] {
				return fmt.Errorf("allocation of job %s: group %d has no or two parts on node %d", a.Job, g, p.Node)
			}
			seen[p.Node] = true
		}
		if len(group.Parts) == 0 {
			return fmt.Errorf("allocation of job %s: group %d has no node", a.Job, g)
		}
	}
	return nil
}

// Het reports whether the job has several components.
func (a *Alloc) Het() bool { return len(a.Groups) > 1 }

// End is when the time limit ends the job; zero without a limit.
func (a *Alloc) End() time.Time {
	if a.TimeLimit == 0 || a.Started.IsZero() {
		return time.Time{}
	}
	return a.Started.Add(a.TimeLimit)
}
