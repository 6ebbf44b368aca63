package jobs

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Field is a column of squeue.
type Field struct {
	Letter byte   // of -o; 0: it has none
	Long   string // of -O
	Head   string
	Needs  []column.Column
	Append func(b []byte, r Row) []byte
}

// NeedsCluster reports whether the field prints Rows.Cluster.
func (f *Field) NeedsCluster() bool { return f.Long == "cluster" }

func textCell(c column.Column) func([]byte, Row) []byte {
	return func(b []byte, r Row) []byte { return append(b, r.Bytes(c)...) }
}

func numberCell(c column.Column) func([]byte, Row) []byte {
	return func(b []byte, r Row) []byte { return strconv.AppendInt(b, r.Int(c), 10) }
}

func nullCell(c column.Column) func([]byte, Row) []byte {
	return func(b []byte, r Row) []byte { return orNull(b, r.Bytes(c)) }
}

func naCell(c column.Column) func([]byte, Row) []byte {
	return func(b []byte, r Row) []byte { return orNA(b, r.Bytes(c)) }
}

func timeCell(c column.Column, none string) func([]byte, Row) []byte {
	return func(b []byte, r Row) []byte { return r.AppendTime(b, r.Int(c), none) }
}

// fixedCell is a field of Slurm's that says the same of every job here.
func fixedCell(s string) func([]byte, Row) []byte {
	return func(b []byte, _ Row) []byte { return append(b, s...) }
}

var (
	spanCols = []column.Column{column.State, column.Started, column.Ended}
	endCols  = []column.Column{column.State, column.Started, column.Ended, column.StartsBy, column.TimeLimit}
)

// Fields are squeue's columns. Some are here only so that a format which names them
// works: what they say does not exist in Coxswain.
func Fields() []Field { return fields }

var fields = []Field{
	{'a', "account", "ACCOUNT", []column.Column{column.Account}, nullCell(column.Account)},
	{0, "accruetime", "ACCRUE_TIME", []column.Column{column.Eligible}, timeCell(column.Eligible, "N/A")},
	{0, "admin_comment", "ADMIN_COMMENT", nil, fixedCell("(null)")},
	{0, "allocnodes", "ALLOC_NODES", []column.Column{column.SubmitHost}, textCell(column.SubmitHost)},
	{0, "allocsid", "ALLOC_SID", nil, fixedCell("0")},
	{'F', "arrayjobid", "ARRAY_JOB_ID", []column.Column{column.ArrayJob, column.ID}, appendArrayJob},
	{'K', "arraytaskid", "ARRAY_TASK_ID", []column.Column{column.ArrayTask}, naCell(column.ArrayTask)},
	{0, "associd", "ASSOC_ID", nil, fixedCell("0")},
	{0, "batchflag", "BATCH_FLAG", []column.Column{column.ScriptHash}, appendBatchFlag},
	{'B', "batchhost", "EXEC_HOST", []column.Column{column.BatchHost}, func(b []byte, r Row) []byte {
		if len(r.Bytes(column.BatchHost)) == 0 {
			return append(b, "n/a"...)
		}
		return append(b, r.Bytes(column.BatchHost)...)
	}},
	{0, "boardspernode", "BOARDS_PER_NODE", nil, fixedCell("0")},
	{0, "burstbuffer", "BURST_BUFFER", nil, fixedCell("(null)")},
	{0, "burstbufferstate", "BURST_BUFFER_STATE", nil, fixedCell("(null)")},
	{0, "cluster", "CLUSTER", nil, func(b []byte, r Row) []byte { return append(b, r.Cluster...) }},
	{0, "clusterfeature", "CLUSTER_FEATURES", nil, fixedCell("(null)")},
	{'o', "command", "COMMAND", []column.Column{column.Command}, func(b []byte, r Row) []byte { return orNull(b, r.Script()) }},
	{'k', "comment", "COMMENT", []column.Column{column.Comment}, nullCell(column.Comment)},
	{0, "container", "CONTAINER", nil, fixedCell("(null)")},
	{0, "containerid", "CONTAINER_ID", nil, fixedCell("(null)")},
	{'O', "contiguous", "CONTIGUOUS", []column.Column{column.Contiguous}, numberCell(column.Contiguous)},
	{'I', "cores", "CORES_PER_SOCKET", nil, fixedCell("*")},
	{'X', "corespec", "CORE_SPEC", nil, fixedCell("N/A")},
	{0, "cpus-per-task", "CPUS_PER_TASK", []column.Column{column.CPUsPerTask}, func(b []byte, r Row) []byte { return strconv.AppendInt(b, max(r.Int(column.CPUsPerTask), 1), 10) }},
	{0, "cpus-per-tres", "CPUS_PER_TRES", nil, fixedCell("N/A")},
	{0, "deadline", "DEADLINE", []column.Column{column.Deadline}, timeCell(column.Deadline, "N/A")},
	{0, "delayboot", "DELAY_BOOT", nil, fixedCell("0:00")},
	{'E', "dependency", "DEPENDENCY", []column.Column{column.Dependency}, nullCell(column.Dependency)},
	{0, "derivedec", "DERIVED_EC", []column.Column{column.ExitStatus}, numberCell(column.ExitStatus)},
	{0, "eligibletime", "ELIGIBLE_TIME", []column.Column{column.Eligible}, timeCell(column.Eligible, "N/A")},
	{'e', "endtime", "END_TIME", endCols, func(b []byte, r Row) []byte {
		if r.Int(column.TimeLimit) == 0 && !r.Base().Final() {
			return append(b, "NONE"...)
		}
		return r.AppendTime(b, r.End(), "N/A")
	}},
	{0, "exit_code", "EXIT_CODE", []column.Column{column.ExitStatus}, numberCell(column.ExitStatus)},
	{'f', "feature", "FEATURES", []column.Column{column.Features}, nullCell(column.Features)},
	{'G', "groupid", "GROUP", []column.Column{column.GID}, numberCell(column.GID)},
	{'g', "groupname", "GROUP", []column.Column{column.GID}, func(b []byte, r Row) []byte { return append(b, slurmcmd.GroupName(uint32(r.Int(column.GID)))...) }},
	{0, "hetjobid", "HET_JOB_ID", []column.Column{column.ID}, func(b []byte, r Row) []byte {
		if r.part < 0 {
			return append(b, "N/A"...)
		}
		return append(b, r.Bytes(column.ID)...)
	}},
	{0, "hetjoboffset", "HET_JOB_OFFSET", nil, func(b []byte, r Row) []byte {
		if r.part < 0 {
			return append(b, "N/A"...)
		}
		return strconv.AppendInt(b, int64(r.part), 10)
	}},
	{0, "hetjobidset", "HET_JOB_ID_SET", []column.Column{column.ID}, func(b []byte, r Row) []byte {
		if r.part < 0 {
			return append(b, "N/A"...)
		}
		return append(b, r.Bytes(column.ID)...)
	}},
	{'i', "jobarrayid", "JOBID", []column.Column{column.Name}, func(b []byte, r Row) []byte { return r.AppendName(b) }},
	{'A', "jobid", "JOBID", []column.Column{column.ID, column.ArrayJob, column.ArrayTask}, func(b []byte, r Row) []byte { return strconv.AppendInt(b, r.Number(), 10) }},
	{0, "lastschedeval", "LAST_SCHED_EVAL", nil, fixedCell("N/A")},
	{'W', "licenses", "LICENSES", []column.Column{column.Licenses}, nullCell(column.Licenses)},
	{0, "maxcpus", "MAX_CPUS", []column.Column{column.CPUs}, numberCell(column.CPUs)},
	{0, "maxnodes", "MAX_NODES", []column.Column{column.NodesMax}, numberCell(column.NodesMax)},
	{0, "mcslabel", "MCSLABEL", nil, fixedCell("(null)")},
	{0, "mem-per-tres", "MEM_PER_TRES", nil, fixedCell("N/A")},
	{'m', "minmemory", "MIN_MEMORY", []column.Column{column.Memory, column.MemoryPerCPU}, func(b []byte, r Row) []byte { n, _ := r.Memory(); return AppendMemory(b, n) }},
	{0, "mintime", "TIME_MIN", []column.Column{column.TimeMin}, func(b []byte, r Row) []byte { return AppendSpan(b, r.Int(column.TimeMin)) }},
	{'d', "mintmpdisk", "MIN_TMP_DISK", nil, fixedCell("0")},
	{'c', "mincpus", "MIN_CPUS", []column.Column{column.CPUsPerTask, column.TasksPerNode}, func(b []byte, r Row) []byte {
		return strconv.AppendInt(b, max(r.Int(column.CPUsPerTask), 1)*max(r.Int(column.TasksPerNode), 1), 10)
	}},
	{'j', "name", "NAME", []column.Column{column.JobName}, textCell(column.JobName)},
	{0, "network", "NETWORK", nil, fixedCell("(null)")},
	{'y', "nice", "NICE", []column.Column{column.Nice}, numberCell(column.Nice)},
	{'N', "nodelist", "NODELIST", []column.Column{column.NodeList, column.State}, appendNodes},
	{0, "ntpercore", "NTASKS_PER_CORE", nil, fixedCell("N/A")},
	{0, "ntpernode", "NTASKS_PER_NODE", []column.Column{column.TasksPerNode}, numberCell(column.TasksPerNode)},
	{0, "ntpersocket", "NTASKS_PER_SOCKET", nil, fixedCell("N/A")},
	{0, "ntperboard", "NTASKS_PER_BOARD", nil, fixedCell("0")},
	{'C', "numcpus", "CPUS", []column.Column{column.CPUs}, numberCell(column.CPUs)},
	{'D', "numnodes", "NODES", []column.Column{column.NodesMin}, func(b []byte, r Row) []byte { return strconv.AppendInt(b, max(r.Int(column.NodesMin), 1), 10) }},
	{0, "numtasks", "TASKS", []column.Column{column.Tasks}, func(b []byte, r Row) []byte { return strconv.AppendInt(b, max(r.Int(column.Tasks), 1), 10) }},
	{0, "origin", "ORIGIN", nil, fixedCell("NA")},
	{0, "originraw", "ORIGIN_RAW", nil, fixedCell("NA")},
	{'h', "oversubscribe", "OVER_SUBSCRIBE", []column.Column{column.Exclusive}, func(b []byte, r Row) []byte {
		if r.Is(column.Exclusive) {
			return append(b, "NO"...)
		}
		return append(b, "OK"...)
	}},
	{'P', "partition", "PARTITION", []column.Column{column.Partition}, textCell(column.Partition)},
	{0, "preempttime", "PREEMPT_TIME", nil, fixedCell("N/A")},
	{0, "pendingtime", "PENDING_TIME", []column.Column{column.State, column.Submitted, column.Started, column.Ended, column.StartsBy}, func(b []byte, r Row) []byte {
		until := r.Start()
		if r.Base() == job.Pending {
			until = r.Now
		}
		return strconv.AppendInt(b, max(until-r.Int(column.Submitted), 0), 10)
	}},
	{'p', "priority", "PRIORITY", PriorityColumns, func(b []byte, r Row) []byte {
		return strconv.AppendFloat(b, float64(r.Priority())/(1<<32), 'f', 14, 64)
	}},
	{'Q', "prioritylong", "PRIORITY", PriorityColumns, func(b []byte, r Row) []byte { return strconv.AppendInt(b, r.Priority(), 10) }},
	{0, "profile", "PROFILE", nil, fixedCell("NotSet")},
	{'q', "qos", "QOS", []column.Column{column.QOS}, func(b []byte, r Row) []byte {
		if len(r.Bytes(column.QOS)) == 0 {
			return append(b, "normal"...)
		}
		return append(b, r.Bytes(column.QOS)...)
	}},
	{'r', "reason", "REASON", reasonCols, func(b []byte, r Row) []byte { return append(b, r.ReasonWord()...) }},
	{'R', "reasonlist", "NODELIST(REASON)", append([]column.Column{column.NodeList}, reasonCols...), appendReasonList},
	{0, "reboot", "REBOOT", nil, fixedCell("0")},
	{'n', "reqnodes", "REQ_NODES", []column.Column{column.ReqNodes}, textCell(column.ReqNodes)},
	{0, "reqswitch", "REQ_SWITCH", nil, fixedCell("0")},
	{0, "requeue", "REQUEUE", []column.Column{column.Requeue}, numberCell(column.Requeue)},
	{'v', "reservation", "RESERVATION", []column.Column{column.Reservation}, nullCell(column.Reservation)},
	{0, "resizetime", "RESIZE_TIME", nil, fixedCell("N/A")},
	{0, "restartcnt", "RESTART_COUNT", []column.Column{column.Attempt, column.State}, func(b []byte, r Row) []byte { return strconv.AppendInt(b, r.Restarts(), 10) }},
	{'Y', "schednodes", "SCHEDNODES", nil, fixedCell("(null)")},
	{'z', "sct", "S:C:T", nil, fixedCell("*:*:*")},
	{0, "siblingsactive", "ACTIVE_SIBLINGS", nil, fixedCell("NA")},
	{'H', "sockets", "SOCKETS_PER_NODE", nil, fixedCell("*")},
	{0, "sperboard", "SOCKETS_PER_BOARD", nil, fixedCell("0")},
	{'S', "starttime", "START_TIME", []column.Column{column.State, column.Started, column.Ended, column.StartsBy}, func(b []byte, r Row) []byte { return r.AppendTime(b, r.Start(), "N/A") }},
	{'T', "state", "STATE", []column.Column{column.State, column.Flags}, func(b []byte, r Row) []byte { s, _ := r.StateWords(); return append(b, s...) }},
	{'t', "statecompact", "ST", []column.Column{column.State, column.Flags}, func(b []byte, r Row) []byte { _, s := r.StateWords(); return append(b, s...) }},
	{0, "stderr", "STDERR", []column.Column{column.Stderr}, textCell(column.Stderr)},
	{0, "stdin", "STDIN", []column.Column{column.Stdin}, textCell(column.Stdin)},
	{0, "stdout", "STDOUT", []column.Column{column.Stdout}, textCell(column.Stdout)},
	{'V', "submittime", "SUBMIT_TIME", []column.Column{column.Submitted}, timeCell(column.Submitted, "N/A")},
	{0, "system_comment", "SYSTEM_COMMENT", nil, fixedCell("(null)")},
	{'J', "threads", "THREADS_PER_CORE", nil, fixedCell("*")},
	{'L', "timeleft", "TIME_LEFT", append([]column.Column{column.TimeLimit}, spanCols...), func(b []byte, r Row) []byte {
		limit := r.Int(column.TimeLimit)
		if limit == 0 {
			return append(b, "UNLIMITED"...)
		}
		return AppendSpan(b, limit-r.Elapsed())
	}},
	{'l', "timelimit", "TIME_LIMIT", []column.Column{column.TimeLimit}, func(b []byte, r Row) []byte {
		if n := r.Int(column.TimeLimit); n > 0 {
			return AppendSpan(b, n)
		}
		return append(b, "UNLIMITED"...)
	}},
	{'M', "timeused", "TIME", spanCols, func(b []byte, r Row) []byte { return AppendSpan(b, r.Elapsed()) }},
	{0, "tres-alloc", "TRES_ALLOC", []column.Column{column.TRES}, naCell(column.TRES)},
	{0, "tres", "TRES_ALLOC", []column.Column{column.TRES}, naCell(column.TRES)},
	{0, "tres-bind", "TRES_BIND", nil, fixedCell("N/A")},
	{0, "tres-freq", "TRES_FREQ", nil, fixedCell("N/A")},
	{0, "tres-per-job", "TRES_PER_JOB", nil, fixedCell("N/A")},
	{'b', "tres-per-node", "TRES_PER_NODE", []column.Column{column.GRES}, naCell(column.GRES)},
	{0, "gres", "TRES_PER_NODE", []column.Column{column.GRES}, naCell(column.GRES)},
	{0, "tres-per-socket", "TRES_PER_SOCKET", nil, fixedCell("N/A")},
	{0, "tres-per-task", "TRES_PER_TASK", nil, fixedCell("N/A")},
	{'U', "userid", "UID", []column.Column{column.UID}, numberCell(column.UID)},
	{'u', "username", "USER", []column.Column{column.User}, textCell(column.User)},
	{0, "wait4switch", "WAIT4SWITCH", nil, fixedCell("0:00")},
	{'w', "wckey", "WCKEY", nil, fixedCell("(null)")},
	{'Z', "workdir", "WORK_DIR", []column.Column{column.WorkDir}, textCell(column.WorkDir)},
	{'x', "excnodes", "EXC_NODES", []column.Column{column.ExcNodes}, textCell(column.ExcNodes)},
	{'s', "selectjobinfo", "SELECT_JOBINFO", nil, fixedCell("")},
	{0, "shared", "OVER_SUBSCRIBE", []column.Column{column.Exclusive}, func(b []byte, r Row) []byte {
		if r.Is(column.Exclusive) {
			return append(b, "NO"...)
		}
		return append(b, "OK"...)
	}},
}

// Find returns the index of a field by its name in -O.
func Find(long string) (int, bool) {
	for i := range fields {
		if fields[i].Long == long {
			return i, true
		}
	}
	return 0, false
}

// FindLetter returns the index of a field by its letter in -o.
func FindLetter(letter byte) (int, bool) {
	for i := range fields {
		if fields[i].Letter == letter {
			return i, true
		}
	}
	return 0, false
}

func appendArrayJob(b []byte, r Row) []byte {
	if n := r.Int(column.ArrayJob); n > 0 {
		return strconv.AppendInt(b, n, 10)
	}
	return append(b, r.Bytes(column.ID)...)
}

func appendBatchFlag(b []byte, r Row) []byte {
	if len(r.Bytes(column.ScriptHash)) > 0 {
		return append(b, '1')
	}
	return append(b, '0')
}

// Nodes are the nodes that the job has or had; a job that waits has none.
func (r Row) Nodes() []byte {
	if r.Base() == job.Pending {
		return nil
	}
	return r.Bytes(column.NodeList)
}

func appendNodes(b []byte, r Row) []byte { return append(b, r.Nodes()...) }

func appendReasonList(b []byte, r Row) []byte {
	switch r.Base() {
	case job.Pending, job.Timeout, job.OutOfMemory, job.Deadline, job.Failed:
		if !r.Has("COMPLETING") {
			b = append(b, '(')
			return append(append(b, r.ReasonWord()...), ')')
		}
	}
	return append(b, r.Bytes(column.NodeList)...)
}

// Restarts is how often the job was started again.
func (r Row) Restarts() int64 {
	n := r.Int(column.Attempt)
	if r.Base() != job.Pending {
		n--
	}
	return max(n, 0)
}

// Script is the script's or the command's name; a script from standard input or of
// --wrap has none.
func (r Row) Script() []byte {
	if b := r.Bytes(column.Command); string(b) != "-" {
		return b
	}
	return nil
}
