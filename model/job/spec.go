package job

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/model/resource"
)

// Spec is what a user asked for, in one form for every front end. It is not
// written after submission. A zero field means "not asked".
type Spec struct {
	Name    string `json:"name"`
	Owner   Owner  `json:"owner"`
	Account string `json:"account,omitempty"`
	QOS     string `json:"qos,omitempty"`
	Comment string `json:"comment,omitempty"`

	Pool       string    `json:"pool,omitempty"`       // that runs it; empty: the server's own. Of a submission: see PoolNames
	Chosen     *Choice   `json:"chosen,omitempty"`     // why there, where it named no pool and there were several
	Partitions []string  `json:"partitions,omitempty"` // any of these; empty: the default
	Begin      time.Time `json:"begin,omitzero"`
	Held       bool      `json:"held,omitempty"`
	Nice       int64     `json:"nice,omitempty"`     // subtracted from the priority
	Priority   int64     `json:"priority,omitempty"` // larger goes first

	TimeLimit time.Duration `json:"time_limit,omitempty"` // 0: none
	TimeMin   time.Duration `json:"time_min,omitempty"`
	Deadline  time.Time     `json:"deadline,omitzero"` // must have ended by then
	Requeue   bool          `json:"requeue,omitempty"`
	Retries   *Retries      `json:"retries,omitempty"` // nil: it does not run again after a failure
	Rerun     Rerun         `json:"rerun,omitempty"`   // on which nodes it does
	// RequeueExit and RequeueExitHold are exit codes after which the site's rules requeue the job, or
	// requeue and hold it.
	RequeueExit     ExitCodes  `json:"requeue_exit,omitempty"`
	RequeueExitHold ExitCodes  `json:"requeue_exit_hold,omitempty"`
	Depends         Dependency `json:"depends,omitzero"`
	Array           *ArraySpec `json:"array,omitempty"`

	Groups []TaskGroup `json:"groups"` // one, or one per component of a heterogeneous job; all start together or none

	// Within is a level of the topology of which one domain has to have all nodes of all
	// groups, as TaskGroup.Within; Wish is one that is wished for.
	Within int  `json:"within,omitempty"`
	Wish   Wish `json:"wish,omitzero"`
	// Avoid are nodes that it is kept off for a while. No front end sets it: it is in what control
	// tells the core of a job that runs again.
	Avoid Avoid `json:"avoid,omitzero"`
	// Levels are the names that levels below InLeaf stand for, see NameLevel.
	Levels []string `json:"levels,omitempty"`

	Program  Program     `json:"program"`
	Output   Output      `json:"output"`
	Env      Environment `json:"env"`
	WorkDir  string      `json:"work_dir"`           // absolute
	Signal   *SignalSpec `json:"signal,omitempty"`   // sent before the time limit
	Licenses string      `json:"licenses,omitempty"` // as written
	// LicensesThere are the names in Licenses that the scheduler of the job's pool counts, and we
	// do not.
	LicensesThere []string   `json:"licenses_there,omitempty"`
	Mail          *Mail      `json:"mail,omitempty"`
	Notify        *Notify    `json:"notify,omitempty"`    // nil: no webhook of its own
	Image         string     `json:"image,omitempty"`     // container image of every task; empty: none asked for
	Container     *Container `json:"container,omitempty"` // how its container runs; nil: nothing is said
	Pod           *Pod       `json:"pod,omitempty"`       // what is asked of the pods it runs in; nil: nothing
	Serve         *Serve     `json:"serve,omitempty"`     // what it offers over the network; nil: nothing
	Secrets       []Secret   `json:"secrets,omitempty"`   // that its launch hands over
	Part          *Part      `json:"part,omitempty"`      // of a controller's work; nil: somebody submitted it

	Reservation string `json:"reservation,omitempty"`

	// KillOnBadExit ends the whole job when one of its directly started tasks
	// fails. It concerns Direct programs; srun has an option of its own.
	KillOnBadExit bool        `json:"kill_on_bad_exit,omitempty"`
	Source        Source      `json:"source"`
	Provenance    *Provenance `json:"provenance,omitempty"`
	Upload        *Upload     `json:"upload,omitempty"` // a directory that came with the job; nil: none did
}

// Upload is a directory that was sent with a job, for pools whose nodes do not have it.
type Upload struct {
	Digest string `json:"digest"` // SHA-256 of the archive (package upload), 64 hexadecimal digits
	Size   int64  `json:"size"`   // bytes of the archive
	Dir    string `json:"dir"`    // where it was, and is in the job; absolute
}

// Choice is why a job is in its pool. Nothing that changes from one hour to the next is in
// it: what jobs were sent there for is the same for all that are alike.
type Choice struct {
	Rule   string   `json:"rule"`             // of package advise
	Why    string   `json:"why"`              // one sentence, without the pool's name
	Passed []Passed `json:"passed,omitempty"` // pools that come before it, or suit better, and cannot run the job
	// Waits are the waits that were expected in it and in the other pools that can run the job, it
	// first; none: it was expected to start at once, or nobody could tell.
	Waits []PoolWait `json:"waits,omitempty"`
	// Among are the pools to which the job may move while it waits, the one that the advice prefers
	// first, with the one that it is in; none: it stays.
	Among []string `json:"among,omitempty"`
	// Filled are the fields that the submission left open and the site's rules filled in, as an
	// update names them: "account", "partition", "qos", "time limit". In another pool they are open again.
	Filled []string `json:"filled,omitempty"`
}

// Without is the choice of a job of which somebody has changed a field. The choice itself is not
// changed; nil has none.
func (c *Choice) Without(field string) *Choice {
	if c == nil || !slices.Contains(c.Filled, field) {
		return c
	}
	out := *c
	out.Filled = slices.DeleteFunc(slices.Clone(c.Filled), func(f string) bool { return f == field })
	return &out
}

// Passed is a pool and why it was not chosen.
type Passed struct {
	Pool string `json:"pool"`
	Why  string `json:"why"`
}

// Mail says when to write to whom about the job (sbatch --mail-type, --mail-user).
type Mail struct {
	Types []string `json:"types"`        // upper case: BEGIN, END, FAIL, REQUEUE, INVALID_DEPEND, TIME_LIMIT, TIME_LIMIT_90, _80, _50, STAGE_OUT, ARRAY_TASKS
	To    string   `json:"to,omitempty"` // empty: the submitting user
}

// Provenance is what is known of where the work came from, taken at submission.
type Provenance struct {
	Git   *Git       `json:"git,omitempty"`   // of the working directory; nil: not a repository, or not looked at
	Files []FileHash `json:"files,omitempty"` // files named on the command line or in the specification
	Image string     `json:"image,omitempty"` // digest that Spec.Image stood for; empty: not resolved
	Notes []string   `json:"notes,omitempty"` // what could not be recorded, and why
}

// Git is the state of a working copy.
type Git struct {
	Root   string `json:"root"`
	Commit string `json:"commit"`
	Branch string `json:"branch,omitempty"`
	Remote string `json:"remote,omitempty"` // of origin, without credentials
	Dirty  bool   `json:"dirty"`            // tracked files differ from the commit, or untracked ones are there
}

// FileHash is a file as it was at submission.
type FileHash struct {
	Name   string `json:"name"` // as named
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"` // bytes
}

// Owner is who submitted, as the operating system knows him.
type Owner struct {
	User string `json:"user"`
	UID  uint32 `json:"uid"`
	GID  uint32 `json:"gid"`
}

// Source says where the request came from, for messages and history.
type Source struct {
	Form   string            `json:"form"`             // "sbatch", "command"
	File   string            `json:"file,omitempty"`   // as named by the user; "-" is standard input
	Given  map[string]string `json:"given,omitempty"`  // options that were given, long name → value, as sbatch spells them
	Lines  [2]int            `json:"lines,omitzero"`   // first and last line of the directives
	Host   string            `json:"host,omitempty"`   // where it was submitted
	Submit string            `json:"submit,omitempty"` // directory it was submitted from
}

// ArraySpec is a set of task indices, in order, and how many may run at once.
type ArraySpec struct {
	Text       string   `json:"text"`    // as written
	Indices    []uint32 `json:"indices"` // ascending, each once
	MaxRunning uint32   `json:"max_running,omitempty"`
	Step       uint32   `json:"step,omitempty"`
}

// ProgramKind tells a batch script from a command that every task runs, and from nothing.
type ProgramKind string

// The kinds of program.
const (
	Batch  ProgramKind = "batch"  // one script on the first node, which starts steps by srun
	Direct ProgramKind = "direct" // the same command in every task of the gang

	// BareAllocation runs nothing: clients start steps and commands in what the job holds.
	BareAllocation ProgramKind = "allocation"

	// Pods is the work of a Kubernetes manifest: its script is a podspec.Set in JSON, and each task is
	// one pod of it.
	Pods ProgramKind = "pods"
)

// Known reports whether the kind is one of these.
func (k ProgramKind) Known() bool {
	return k == Batch || k == Direct || k == BareAllocation || k == Pods
}

// HasScript reports whether a program of the kind has a script, which the store keeps.
func (k ProgramKind) HasScript() bool { return k == Batch || k == Pods }

// Program is what runs. Script contents are stored apart, by hash.
type Program struct {
	Kind       ProgramKind `json:"kind"`
	ScriptHash string      `json:"script_hash,omitempty"` // sha256 in hex; Batch, Pods
	ScriptName string      `json:"script_name,omitempty"` // base name for messages
	Args       []string    `json:"args,omitempty"`        // Batch: the script's arguments. Direct: the command and its arguments
	Step       []string    `json:"step,omitempty"`        // Direct: options of srun for the step that runs the command
	Client     string      `json:"client,omitempty"`      // Direct, BareAllocation: the socket of the client that runs the job's steps itself; empty: the engine runs the command, or keeps the nodes

	// Lease is how long a BareAllocation stays, in the queue or on its nodes, after its client was
	// last heard of; 0: until somebody or its time limit ends it.
	Lease time.Duration `json:"lease,omitempty"`
}

// Output names the files of standard input, output and error, with sbatch's %
// patterns not yet expanded. Relative names are relative to WorkDir.
type Output struct {
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"` // empty: joined to Stdout
	Stdin  string `json:"stdin,omitempty"`  // empty: /dev/null
	Append bool   `json:"append,omitempty"`
}

// Environment says which variables a job starts with. The values stand in a blob.
type Environment struct {
	Hash   string   `json:"hash,omitempty"`   // blob with NUL-separated NAME=VALUE, as submitted; sha256 in hex
	Export string   `json:"export,omitempty"` // sbatch --export as written: ALL, NIL, NONE or a list
	Set    []string `json:"set,omitempty"`    // NAME=VALUE added last
}

// SignalSpec is sbatch's --signal.
type SignalSpec struct {
	Signal    int           `json:"signal"`
	Before    time.Duration `json:"before"`
	BatchOnly bool          `json:"batch_only,omitempty"` // to the batch script alone
}

// TaskGroup is a set of identical tasks and how they are spread over nodes. What
// a group takes from a node with t of its tasks and d of its devices is
//
//	PerNode + t·PerTask + d·PerDevice
//
// and Total is collected over all its nodes together.
type TaskGroup struct {
	Name  string `json:"name,omitempty"`
	Nodes Range  `json:"nodes"` // zero: as few as needed
	Tasks Count  `json:"tasks"`

	TasksPerNode int  `json:"tasks_per_node,omitempty"` // at most; with Nodes but no task count given: exactly. 0: no bound
	CPUsPerTask  int  `json:"cpus_per_task,omitempty"`  // as asked (0: not asked); the claim stands in PerTask
	Overcommit   bool `json:"overcommit,omitempty"`

	PerNode   resource.Requirements `json:"per_node,omitzero"`
	PerTask   resource.Requirements `json:"per_task,omitzero"`
	PerDevice resource.Vector       `json:"per_device,omitzero"`
	Total     resource.Requirements `json:"total,omitzero"`
	AllMemory bool                  `json:"all_memory,omitempty"` // every node's memory whole (--mem=0)

	Exclusive  bool       `json:"exclusive,omitempty"` // whole nodes
	Constraint Constraint `json:"constraint,omitzero"`
	NodeList   []string   `json:"node_list,omitempty"` // must all be among its nodes
	Exclude    []string   `json:"exclude,omitempty"`
	Contiguous bool       `json:"contiguous,omitempty"`
	// Elastic says that nodes may be added to the group and taken away while it runs,
	// between Nodes.Min, with which it starts, and Nodes.Max. See CheckElastic.
	Elastic bool `json:"elastic,omitempty"`
	// Subgroup is how many of its nodes belong together: the group's nodes come and go
	// in so many. 0: one by one.
	Subgroup int `json:"subgroup,omitempty"`
	// Within is the level of the topology of which one domain has to have all nodes: 1 is
	// the outermost one, InLeaf the innermost. 0: any nodes, as close together as can be.
	Within int `json:"within,omitempty"`
	// Segment is a number of nodes that have to be in one leaf: the group's nodes come in
	// segments of so many. 0: none.
	Segment int `json:"segment,omitempty"`
	// Switches is how many leaves may have its nodes. 0: any number. A node of which no
	// path is known counts as a leaf; in a fleet without any path it means nothing.
	Switches     int    `json:"switches,omitempty"`
	Spread       bool   `json:"spread,omitempty"`       // over as many leaves as can be, instead of few
	FewNodes     bool   `json:"few_nodes,omitempty"`    // of a range of nodes the smallest number that will do, instead of the largest
	Wishes       Wishes `json:"wishes,omitzero"`        // what it would rather have, see Forms
	Distribution string `json:"distribution,omitempty"` // "block" (default), "cyclic", "plane=N"
}

// InLeaf is the innermost level of the topology, however deep it is.
const InLeaf = -1

// Range bounds a count; Max 0 means no upper bound, both zero means not asked.
type Range struct {
	Min int `json:"min,omitempty"`
	Max int `json:"max,omitempty"`
}

// Count is a number of tasks that is wanted and the least that may start. Min
// equal to Want, or zero, means all or none.
type Count struct {
	Min  int `json:"min,omitempty"`
	Want int `json:"want"`
}

// Least is the smallest number of tasks that may start.
func (c Count) Least() int {
	if c.Min == 0 {
		return c.Want
	}
	return c.Min
}

// Constraint asks for node features: every node must satisfy one of the
// alternatives, and with Same all nodes the same one (sbatch's [a|b]).
type Constraint struct {
	Text         string     `json:"text,omitempty"`         // as written
	Alternatives [][]string `json:"alternatives,omitempty"` // each a list of features that must all be there
	Same         bool       `json:"same,omitempty"`
}

// IsZero reports whether nothing is asked for.
func (c Constraint) IsZero() bool { return len(c.Alternatives) == 0 }

// Elastic reports whether the job may hold more and fewer nodes while it runs.
func (s *Spec) Elastic() bool {
	return slices.ContainsFunc(s.Groups, func(g TaskGroup) bool { return g.Elastic })
}

// Unit is how many nodes come and go together in an elastic group.
func (g *TaskGroup) Unit() int { return max(g.Subgroup, 1) }

// Coupled reports whether the job has more than one task that must start together.
func (s *Spec) Coupled() bool {
	n := 0
	for _, g := range s.Groups {
		n += max(g.Tasks.Least(), g.Nodes.Min)
	}
	return n > 1
}
