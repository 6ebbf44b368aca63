package api

import (
	"time"

	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Node is a node with what is used of it.
type Node struct {
	Name       string    `json:"name"`
	Pool       string    `json:"pool"`
	Engine     string    `json:"engine"`
	State      string    `json:"state" doc:"up, draining, down, unknown; for people see Slurm's words in State of sinfo"`
	Why        string    `json:"why,omitempty"`
	Since      time.Time `json:"since,omitzero" doc:"when it was drained"`
	By         string    `json:"by,omitempty" doc:"who drained it"`
	Address    string    `json:"address,omitempty"`
	Virtual    bool      `json:"virtual,omitempty"`
	Hosts      []string  `json:"hosts,omitempty" doc:"the machines that it is on, where they have other names: of a slurmd in a pod, the Kubernetes node"`
	Features   []string  `json:"features,omitempty"`
	Partitions []string  `json:"partitions,omitempty"`
	Path       []string  `json:"path,omitempty" doc:"topology from the top down"`
	CPUs       float64   `json:"cpus"`
	CPUsUsed   float64   `json:"cpus_used"`
	Memory     int64     `json:"memory"`
	MemoryUsed int64     `json:"memory_used"`
	Disk       int64     `json:"disk,omitempty" doc:"bytes of node-local scratch that jobs can ask for"`
	DiskUsed   int64     `json:"disk_used,omitempty"`
	Sockets    int       `json:"sockets,omitempty"`
	System     *System   `json:"system,omitempty" doc:"of the machine, where the server knows it: for nodes of its own machine"`
	Devices    []Device  `json:"devices,omitempty"`
	Counted    []Counted `json:"counted,omitempty" doc:"of a pool whose own scheduler chooses the nodes: its GPUs, which have no numbers here"`
	Jobs       []string  `json:"jobs,omitempty" doc:"names of the jobs that hold something here"`

	Fences []fleet.HealthFence `json:"fences,omitempty" doc:"what checks keep from new work: the node, or devices of it. They are apart from a drain, and go when the check passes again"`

	Owner    string `json:"owner,omitempty" doc:"the pool that may start work on its machine; left out where that needs no record, with one pool"`
	Handover string `json:"handover,omitempty" doc:"of the machine, while one is under way: from where, to where, and how far it is"`
	Fence    uint64 `json:"fence,omitempty" doc:"epoch of Coxswain's own fence in the engine, which keeps all new work off; an administrator's drain is in state and why, and stays when the fence goes"`
}

// Machines is the answer to a list of machines.
type Machines struct {
	Machines []Machine        `json:"machines"`
	Warnings []MachineWarning `json:"warnings,omitempty" doc:"rules of hand-over that have no effect, since the pools have changed after they were set"`
}

// MachineWarning is something of machines that is not as somebody meant it, and what mends it.
type MachineWarning struct {
	Text string `json:"text"`
	Do   string `json:"do,omitempty" doc:"what mends it"`
}

// Machine is a machine, which pool owns it, and what pools call it. A hand-over under way has to and step.
type Machine struct {
	Name     string        `json:"name"`
	Pool     string        `json:"pool" doc:"its owner: the one pool that may start work there; empty: nobody yet"`
	Epoch    uint64        `json:"epoch,omitempty" doc:"grows by one with each hand-over; left out: there is one pool, and no record"`
	To       string        `json:"to,omitempty" doc:"the pool that a hand-over under way gives it to"`
	Last     string        `json:"last,omitempty" doc:"the pool before"`
	Step     string        `json:"step,omitempty" doc:"the last step that is done: asked, drain, fence, prove, admit, check; release: the hand-over has ended"`
	Back     bool          `json:"back,omitempty" doc:"the hand-over is walked back"`
	Waits    string        `json:"waits,omitempty" doc:"for what the next step waits"`
	Evidence string        `json:"evidence,omitempty" doc:"what was seen that the last step is done"`
	Deadline time.Time     `json:"deadline,omitzero" doc:"when the hand-over is walked back, if the new pool has not been admitted"`
	By       string        `json:"by,omitempty" doc:"who asked for it"`
	Reason   string        `json:"reason,omitempty"`
	At       time.Time     `json:"at,omitzero" doc:"of the last change"`
	Closed   bool          `json:"closed,omitempty" doc:"Coxswain keeps its fence on the nodes of other pools there"`
	Nodes    []MachineNode `json:"nodes"`
	Open     []string      `json:"open,omitempty" doc:"pools whose engines could start work there now, whoever asks them; with more than one, cox doctor says how to close the others"`
}

// MachineNode is a node on a machine, as its engine reports it.
type MachineNode struct {
	Pool    string `json:"pool"`
	Engine  string `json:"engine"`
	Node    string `json:"node"`
	State   string `json:"state" doc:"as its engine says: up, draining, down, unknown"`
	Why     string `json:"why,omitempty"`
	Fence   uint64 `json:"fence,omitempty" doc:"epoch of Coxswain's own fence in the engine"`
	Drained string `json:"drained,omitempty" doc:"why an administrator drained it by cox node drain"`
}

// System is what the kernel of a node's machine says.
type System struct {
	Arch   string    `json:"arch" doc:"x86_64, aarch64"`
	OS     string    `json:"os" doc:"name, release and version of the kernel"`
	Booted time.Time `json:"booted"`
	Load   float64   `json:"load" doc:"processes that run or wait for the disk, over the last minute"`
}

// Counted is how many devices of a kind, or of a type of it, there are, and how many of them are
// taken. A device of a type is counted in its kind too.
type Counted struct {
	Name string `json:"name" doc:"gpu, gpu:h100"`
	All  int64  `json:"all"`
	Used int64  `json:"used"`
}

// Device is a device with who holds it.
type Device struct {
	fleet.Device
	Jobs []string `json:"jobs,omitempty"`
}

// Nodes is the answer to a list of nodes.
type Nodes struct {
	Nodes []Node `json:"nodes"`
}

// CheckNodes asks for checks of nodes.
type CheckNodes struct {
	Nodes []string `json:"nodes,omitempty" doc:"names or host lists; none: all that have checks"`
	Pool  string   `json:"pool,omitempty" doc:"of this pool alone"`
}

// NodeCheck is what the last check of a node saw.
type NodeCheck struct {
	Node    string              `json:"node"`
	Pool    string              `json:"pool"`
	At      time.Time           `json:"at,omitzero" doc:"when; left out: it was not checked since the server began"`
	Results []fleet.CheckResult `json:"results"`
	Fences  []fleet.HealthFence `json:"fences,omitempty" doc:"what checks keep from new work"`
	Error   string              `json:"error,omitempty" doc:"why nobody could look; the results are of before"`
}

// NodeChecks is the answer to a list of checks, and to a request for some.
type NodeChecks struct {
	Nodes []NodeCheck `json:"nodes"`
}

// Partition is a view of a pool.
type Partition struct {
	Name        string   `json:"name"`
	Default     bool     `json:"default,omitempty"`
	State       string   `json:"state"` // "up"
	Pool        string   `json:"pool"`
	Nodes       []string `json:"nodes"`
	TimeLimit   float64  `json:"time_limit,omitempty" doc:"seconds; 0 for none"`
	DefaultTime float64  `json:"default_time,omitempty"`
}

// Partitions is the answer to a list of partitions.
type Partitions struct {
	Partitions []Partition `json:"partitions"`
}

// NodeChange drains nodes or takes them back.
type NodeChange struct {
	Nodes  []string `json:"nodes" doc:"names or host lists"`
	Verb   string   `json:"verb" enum:"drain,resume"`
	Reason string   `json:"reason,omitempty" doc:"drain needs one"`
}
