// Package column is the table of the columns of a list of jobs: what the server can
// answer with (GET /v1/jobs?columns=…), what clients ask for, and what docs/reference/api.md
// says of each. Server, cox, cox-top and Slurm's commands use this table, so that a
// column has one name and one number in a program.
//
// Times are Unix seconds (0: none), durations seconds, memory bytes, sets joined by
// commas. The numbers of the constants are not part of the protocol; names are.
package column

import "strings"

// Column is a column of a list of jobs.
type Column uint8

// The columns, in the order of documentation.
const (
	ID Column = iota
	Name
	ArrayJob
	ArrayTask
	ArrayLimit
	HetSize
	JobName
	User
	UID
	GID
	Account
	QOS
	Pool
	Partition
	State
	Flags
	Reason
	ReasonText
	Priority
	Nice
	Submitted
	Eligible
	Started
	Ended
	Begin
	Deadline
	StartsBy
	TimeLimit
	TimeMin
	Attempt
	ExitStatus
	ExitSignal
	NodesMin
	NodesMax
	NodeList
	ReqNodes
	ExcNodes
	BatchHost
	Tasks
	CPUs
	CPUsPerTask
	TasksPerNode
	Memory
	MemoryPerCPU
	GPUs
	GRES
	TRES
	Features
	Licenses
	Reservation
	Dependency
	Requeue
	Contiguous
	Exclusive
	Comment
	Command
	WorkDir
	Stdin
	Stdout
	Stderr
	SubmitHost
	ScriptHash
	Message
	CancelledBy
	SuspendedAt
	ResumedAt
	SuspendedFor
	Past
	Steps
	Used

	Count int = iota // number of columns
)

var table = [Count]struct{ name, doc string }{
	ID:           {"id", "number"},
	Name:         {"name", "as shown: 7, 7_3; 7_[1-4,9%2] where tasks are collapsed"},
	ArrayJob:     {"array_job", "number of the array; 0: none"},
	ArrayTask:    {"array_task", "index in the array, or the collapsed set"},
	ArrayLimit:   {"array_limit", "tasks of the array that may run at once; 0: no limit"},
	HetSize:      {"het_size", "components of a heterogeneous job; 1: not heterogeneous"},
	JobName:      {"job_name", "name that the user gave"},
	User:         {"user", "owner"},
	UID:          {"uid", "owner's number"},
	GID:          {"gid", "owner's group"},
	Account:      {"account", ""},
	QOS:          {"qos", ""},
	Pool:         {"pool", "pool whose nodes it has, or waits for"},
	Partition:    {"partition", "partitions asked for, joined by commas, or the one it runs in"},
	State:        {"state", "long name of the base state"},
	Flags:        {"flags", "CONFIGURING and the like"},
	Reason:       {"reason", "code of the first reason why it waits"},
	ReasonText:   {"reason_text", "the reason as a sentence"},
	Priority:     {"priority", ""},
	Nice:         {"nice", ""},
	Submitted:    {"submitted", ""},
	Eligible:     {"eligible", ""},
	Started:      {"started", ""},
	Ended:        {"ended", ""},
	Begin:        {"begin", "earliest start that the user asked for"},
	Deadline:     {"deadline", ""},
	StartsBy:     {"starts_by", "planned start of a waiting job"},
	TimeLimit:    {"time_limit", "0: none"},
	TimeMin:      {"time_min", ""},
	Attempt:      {"attempt", ""},
	ExitStatus:   {"exit_status", ""},
	ExitSignal:   {"exit_signal", ""},
	NodesMin:     {"nodes_min", "nodes asked for, or held"},
	NodesMax:     {"nodes_max", ""},
	NodeList:     {"node_list", "nodes that it has or had last, as a host list"},
	ReqNodes:     {"req_nodes", "nodes asked for by name"},
	ExcNodes:     {"exc_nodes", "excluded nodes"},
	BatchHost:    {"batch_host", "node of the batch script"},
	Tasks:        {"tasks", ""},
	CPUs:         {"cpus", "in all, held or asked for"},
	CPUsPerTask:  {"cpus_per_task", ""},
	TasksPerNode: {"tasks_per_node", ""},
	Memory:       {"memory", "asked for, as Slurm counts it: per node"},
	MemoryPerCPU: {"memory_per_cpu", ""},
	GPUs:         {"gpus", "in all, held or asked for"},
	GRES:         {"gres", "as Slurm writes it per node: gres/gpu:h100:8"},
	TRES:         {"tres", "cpu=,mem=,node=,gres/gpu= in all"},
	Features:     {"features", "constraint as written"},
	Licenses:     {"licenses", ""},
	Reservation:  {"reservation", ""},
	Dependency:   {"dependency", "as in sbatch, the part that is not yet met"},
	Requeue:      {"requeue", "1: may run again"},
	Contiguous:   {"contiguous", "1: yes"},
	Exclusive:    {"exclusive", "1: whole nodes"},
	Comment:      {"comment", ""},
	Command:      {"command", "script or command, as named"},
	WorkDir:      {"work_dir", ""},
	Stdin:        {"stdin", "expanded"},
	Stdout:       {"stdout", "expanded"},
	Stderr:       {"stderr", "expanded"},
	SubmitHost:   {"submit_host", ""},
	ScriptHash:   {"script_hash", ""},
	Message:      {"message", "why the last attempt failed"},
	CancelledBy:  {"cancelled_by", "number of the user who cancelled it; empty: nobody"},
	SuspendedAt:  {"suspended_at", "last time that the last attempt was suspended; 0: never"},
	ResumedAt:    {"resumed_at", "when it continued after that; 0: it has not"},
	Past:         {"past", "attempts before the last one, oldest first, joined by ;: number, start, end, state, exit status, signal, nodes, joined by blanks"},
	Steps:        {"steps", "steps of the last attempt, a list in JSON as getUsage has it; empty: none was seen"},
	Used:         {"used", "what the last attempt used, in JSON as getUsage has it, without nodes and steps; empty: it has not ended, or nobody measured it"},
	SuspendedFor: {"suspended_for", "seconds that the last attempt was suspended in all, without a suspension that still lasts"},
}

// String is the column's name on the wire.
func (c Column) String() string { return table[c].name }

// Doc says what the column holds; empty where its name does.
func (c Column) Doc() string { return table[c].doc }

// All lists every column.
func All() []Column {
	all := make([]Column, Count)
	for i := range all {
		all[i] = Column(i)
	}
	return all
}

// ByName finds a column by its name on the wire.
func ByName(name string) (Column, bool) {
	for i := range table {
		if table[i].name == name {
			return Column(i), true
		}
	}
	return 0, false
}

// Names lists the names of columns.
func Names(columns []Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.String()
	}
	return names
}

// Join is the value of the parameter "columns".
func Join(columns []Column) string { return strings.Join(Names(columns), ",") }
