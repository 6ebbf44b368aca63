package jobs

import (
	"strconv"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Field is a column of squeue.
type Field struct {
	Letter byte   // of -o; 0: it has none
	Long   string // of -O
	Head   string
	Needs  []Col
	Append func(b []byte, r Row) []byte
}

func cell(c Col) func([]byte, Row) []byte {
	return func(b []byte, r Row) []byte { return append(b, r.Bytes(c)...) }
}

func number(c Col) func([]byte, Row) []byte {
	return func(b []byte, r Row) []byte { return strconv.AppendInt(b, r.Int(c), 10) }
}

func null(c Col) func([]byte, Row) []byte {
	return func(b []byte, r Row) []byte { return orNull(b, r.Bytes(c)) }
}

func na(c Col) func([]byte, Row) []byte {
	return func(b []byte, r Row) []byte { return orNA(b, r.Bytes(c)) }
}

func when(c Col, none string) func([]byte, Row) []byte {
	return func(b []byte, r Row) []byte { return r.AppendTime(b, r.Int(c), none) }
}

// fixed is a field of Slurm's that says the same of every job here.
func fixed(s string) func([]byte, Row) []byte {
	return func(b []byte, _ Row) []byte { return append(b, s...) }
}

var (
	spanCols = []Col{State, Started, Ended}
	endCols  = []Col{State, Started, Ended, StartsBy, TimeLimit}
)

// Fields are squeue's columns. Some are here only so that a format which names them
// works: what they say does not exist in Coxswain.
func Fields() []Field { return fields }

var fields = []Field{
	{'a', "account", "ACCOUNT", []Col{Account}, null(Account)},
	{0, "accruetime", "ACCRUE_TIME", []Col{Eligible}, when(Eligible, "N/A")},
	{0, "admin_comment", "ADMIN_COMMENT", nil, fixed("(null)")},
	{0, "allocnodes", "ALLOC_NODES", []Col{SubmitHost}, cell(SubmitHost)},
	{0, "allocsid", "ALLOC_SID", nil, fixed("0")},
	{'F', "arrayjobid", "ARRAY_JOB_ID", []Col{ArrayJob, ID}, appendArrayJob},
	{'K', "arraytaskid", "ARRAY_TASK_ID", []Col{ArrayTask}, na(ArrayTask)},
	{0, "associd", "ASSOC_ID", nil, fixed("0")},
	{0, "batchflag", "BATCH_FLAG", []Col{ScriptHash}, appendBatchFlag},
	{'B', "batchhost", "EXEC_HOST", []Col{BatchHost}, func(b []byte, r Row) []byte {
		if len(r.Bytes(BatchHost)) == 0 {
			return append(b, "n/a"...)
		}
		return append(b, r.Bytes(BatchHost)...)
	}},
	{0, "boardspernode", "BOARDS_PER_NODE", nil, fixed("0")},
	{0, "burstbuffer", "BURST_BUFFER", nil, fixed("(null)")},
	{0, "burstbufferstate", "BURST_BUFFER_STATE", nil, fixed("(null)")},
	{0, "cluster", "CLUSTER", nil, fixed(Cluster)},
	{0, "clusterfeature", "CLUSTER_FEATURES", nil, fixed("(null)")},
	{'o', "command", "COMMAND", []Col{Command}, func(b []byte, r Row) []byte { return orNull(b, r.Script()) }},
	{'k', "comment", "COMMENT", []Col{Comment}, null(Comment)},
	{0, "container", "CONTAINER", nil, fixed("(null)")},
	{0, "containerid", "CONTAINER_ID", nil, fixed("(null)")},
	{'O', "contiguous", "CONTIGUOUS", []Col{Contiguous}, number(Contiguous)},
	{'I', "cores", "CORES_PER_SOCKET", nil, fixed("*")},
	{'X', "corespec", "CORE_SPEC", nil, fixed("N/A")},
	{0, "cpus-per-task", "CPUS_PER_TASK", []Col{CPUsPerTask}, func(b []byte, r Row) []byte { return strconv.AppendInt(b, max(r.Int(CPUsPerTask), 1), 10) }},
	{0, "cpus-per-tres", "CPUS_PER_TRES", nil, fixed("N/A")},
	{0, "deadline", "DEADLINE", []Col{Deadline}, when(Deadline, "N/A")},
	{0, "delayboot", "DELAY_BOOT", nil, fixed("0:00")},
	{'E', "dependency", "DEPENDENCY", []Col{Dependency}, null(Dependency)},
	{0, "derivedec", "DERIVED_EC", []Col{ExitStatus}, number(ExitStatus)},
	{0, "eligibletime", "ELIGIBLE_TIME", []Col{Eligible}, when(Eligible, "N/A")},
	{'e', "endtime", "END_TIME", endCols, func(b []byte, r Row) []byte {
		if r.Int(TimeLimit) == 0 && !r.Base().Final() {
			return append(b, "NONE"...)
		}
		return r.AppendTime(b, r.End(), "N/A")
	}},
	{0, "exit_code", "EXIT_CODE", []Col{ExitStatus}, number(ExitStatus)},
	{'f', "feature", "FEATURES", []Col{Features}, null(Features)},
	{'G', "groupid", "GROUP", []Col{GID}, number(GID)},
	{'g', "groupname", "GROUP", []Col{GID}, func(b []byte, r Row) []byte { return append(b, face.GroupName(uint32(r.Int(GID)))...) }},
	{0, "hetjobid", "HET_JOB_ID", []Col{ID}, func(b []byte, r Row) []byte {
		if r.part < 0 {
			return append(b, "N/A"...)
		}
		return append(b, r.Bytes(ID)...)
	}},
	{0, "hetjoboffset", "HET_JOB_OFFSET", nil, func(b []byte, r Row) []byte {
		if r.part < 0 {
			return append(b, "N/A"...)
		}
		return strconv.AppendInt(b, int64(r.part), 10)
	}},
	{0, "hetjobidset", "HET_JOB_ID_SET", []Col{ID}, func(b []byte, r Row) []byte {
		if r.part < 0 {
			return append(b, "N/A"...)
		}
		return append(b, r.Bytes(ID)...)
	}},
	{'i', "jobarrayid", "JOBID", []Col{Name}, func(b []byte, r Row) []byte { return r.AppendName(b) }},
	{'A', "jobid", "JOBID", []Col{ID, ArrayJob, ArrayTask}, func(b []byte, r Row) []byte { return strconv.AppendInt(b, r.Number(), 10) }},
	{0, "lastschedeval", "LAST_SCHED_EVAL", nil, fixed("N/A")},
	{'W', "licenses", "LICENSES", []Col{Licenses}, null(Licenses)},
	{0, "maxcpus", "MAX_CPUS", []Col{CPUs}, number(CPUs)},
	{0, "maxnodes", "MAX_NODES", []Col{NodesMax}, number(NodesMax)},
	{0, "mcslabel", "MCSLABEL", nil, fixed("(null)")},
	{0, "mem-per-tres", "MEM_PER_TRES", nil, fixed("N/A")},
	{'m', "minmemory", "MIN_MEMORY", []Col{Memory, MemoryPerCPU}, func(b []byte, r Row) []byte { n, _ := r.Memory(); return AppendMemory(b, n) }},
	{0, "mintime", "TIME_MIN", []Col{TimeMin}, func(b []byte, r Row) []byte { return AppendSpan(b, r.Int(TimeMin)) }},
	{'d', "mintmpdisk", "MIN_TMP_DISK", nil, fixed("0")},
	{'c', "mincpus", "MIN_CPUS", []Col{CPUsPerTask, TasksPerNode}, func(b []byte, r Row) []byte {
		return strconv.AppendInt(b, max(r.Int(CPUsPerTask), 1)*max(r.Int(TasksPerNode), 1), 10)
	}},
	{'j', "name", "NAME", []Col{JobName}, cell(JobName)},
	{0, "network", "NETWORK", nil, fixed("(null)")},
	{'y', "nice", "NICE", []Col{Nice}, number(Nice)},
	{'N', "nodelist", "NODELIST", []Col{NodeList, State}, appendNodes},
	{0, "ntpercore", "NTASKS_PER_CORE", nil, fixed("N/A")},
	{0, "ntpernode", "NTASKS_PER_NODE", []Col{TasksPerNode}, number(TasksPerNode)},
	{0, "ntpersocket", "NTASKS_PER_SOCKET", nil, fixed("N/A")},
	{0, "ntperboard", "NTASKS_PER_BOARD", nil, fixed("0")},
	{'C', "numcpus", "CPUS", []Col{CPUs}, number(CPUs)},
	{'D', "numnodes", "NODES", []Col{NodesMin}, func(b []byte, r Row) []byte { return strconv.AppendInt(b, max(r.Int(NodesMin), 1), 10) }},
	{0, "numtasks", "TASKS", []Col{Tasks}, func(b []byte, r Row) []byte { return strconv.AppendInt(b, max(r.Int(Tasks), 1), 10) }},
	{0, "origin", "ORIGIN", nil, fixed("NA")},
	{0, "originraw", "ORIGIN_RAW", nil, fixed("NA")},
	{'h', "oversubscribe", "OVER_SUBSCRIBE", []Col{Exclusive}, func(b []byte, r Row) []byte {
		if r.Is(Exclusive) {
			return append(b, "NO"...)
		}
		return append(b, "OK"...)
	}},
	{'P', "partition", "PARTITION", []Col{Partition}, cell(Partition)},
	{0, "preempttime", "PREEMPT_TIME", nil, fixed("N/A")},
	{0, "pendingtime", "PENDING_TIME", []Col{State, Submitted, Started, Ended, StartsBy}, func(b []byte, r Row) []byte {
		until := r.Start()
		if r.Base() == job.Pending {
			until = r.Now
		}
		return strconv.AppendInt(b, max(until-r.Int(Submitted), 0), 10)
	}},
	{'p', "priority", "PRIORITY", []Col{Priority}, func(b []byte, r Row) []byte {
		return strconv.AppendFloat(b, float64(r.Int(Priority))/(1<<32), 'f', 14, 64)
	}},
	{'Q', "prioritylong", "PRIORITY", []Col{Priority}, number(Priority)},
	{0, "profile", "PROFILE", nil, fixed("NotSet")},
	{'q', "qos", "QOS", []Col{QOS}, func(b []byte, r Row) []byte {
		if len(r.Bytes(QOS)) == 0 {
			return append(b, "normal"...)
		}
		return append(b, r.Bytes(QOS)...)
	}},
	{'r', "reason", "REASON", reasonCols, func(b []byte, r Row) []byte { return append(b, r.ReasonWord()...) }},
	{'R', "reasonlist", "NODELIST(REASON)", append([]Col{NodeList}, reasonCols...), appendReasonList},
	{0, "reboot", "REBOOT", nil, fixed("0")},
	{'n', "reqnodes", "REQ_NODES", []Col{ReqNodes}, cell(ReqNodes)},
	{0, "reqswitch", "REQ_SWITCH", nil, fixed("0")},
	{0, "requeue", "REQUEUE", []Col{Requeue}, number(Requeue)},
	{'v', "reservation", "RESERVATION", []Col{Reservation}, null(Reservation)},
	{0, "resizetime", "RESIZE_TIME", nil, fixed("N/A")},
	{0, "restartcnt", "RESTART_COUNT", []Col{Attempt, State}, func(b []byte, r Row) []byte { return strconv.AppendInt(b, r.Restarts(), 10) }},
	{'Y', "schednodes", "SCHEDNODES", nil, fixed("(null)")},
	{'z', "sct", "S:C:T", nil, fixed("*:*:*")},
	{0, "siblingsactive", "ACTIVE_SIBLINGS", nil, fixed("NA")},
	{'H', "sockets", "SOCKETS_PER_NODE", nil, fixed("*")},
	{0, "sperboard", "SOCKETS_PER_BOARD", nil, fixed("0")},
	{'S', "starttime", "START_TIME", []Col{State, Started, Ended, StartsBy}, func(b []byte, r Row) []byte { return r.AppendTime(b, r.Start(), "N/A") }},
	{'T', "state", "STATE", []Col{State, Flags}, func(b []byte, r Row) []byte { s, _ := r.StateWords(); return append(b, s...) }},
	{'t', "statecompact", "ST", []Col{State, Flags}, func(b []byte, r Row) []byte { _, s := r.StateWords(); return append(b, s...) }},
	{0, "stderr", "STDERR", []Col{Stderr}, cell(Stderr)},
	{0, "stdin", "STDIN", []Col{Stdin}, cell(Stdin)},
	{0, "stdout", "STDOUT", []Col{Stdout}, cell(Stdout)},
	{'V', "submittime", "SUBMIT_TIME", []Col{Submitted}, when(Submitted, "N/A")},
	{0, "system_comment", "SYSTEM_COMMENT", nil, fixed("(null)")},
	{'J', "threads", "THREADS_PER_CORE", nil, fixed("*")},
	{'L', "timeleft", "TIME_LEFT", append([]Col{TimeLimit}, spanCols...), func(b []byte, r Row) []byte {
		limit := r.Int(TimeLimit)
		if limit == 0 {
			return append(b, "UNLIMITED"...)
		}
		return AppendSpan(b, limit-r.Elapsed())
	}},
	{'l', "timelimit", "TIME_LIMIT", []Col{TimeLimit}, func(b []byte, r Row) []byte {
		if n := r.Int(TimeLimit); n > 0 {
			return AppendSpan(b, n)
		}
		return append(b, "UNLIMITED"...)
	}},
	{'M', "timeused", "TIME", spanCols, func(b []byte, r Row) []byte { return AppendSpan(b, r.Elapsed()) }},
	{0, "tres-alloc", "TRES_ALLOC", []Col{TRES}, na(TRES)},
	{0, "tres", "TRES_ALLOC", []Col{TRES}, na(TRES)},
	{0, "tres-bind", "TRES_BIND", nil, fixed("N/A")},
	{0, "tres-freq", "TRES_FREQ", nil, fixed("N/A")},
	{0, "tres-per-job", "TRES_PER_JOB", nil, fixed("N/A")},
	{'b', "tres-per-node", "TRES_PER_NODE", []Col{GRES}, na(GRES)},
	{0, "gres", "TRES_PER_NODE", []Col{GRES}, na(GRES)},
	{0, "tres-per-socket", "TRES_PER_SOCKET", nil, fixed("N/A")},
	{0, "tres-per-task", "TRES_PER_TASK", nil, fixed("N/A")},
	{'U', "userid", "UID", []Col{UID}, number(UID)},
	{'u', "username", "USER", []Col{User}, cell(User)},
	{0, "wait4switch", "WAIT4SWITCH", nil, fixed("0:00")},
	{'w', "wckey", "WCKEY", nil, fixed("(null)")},
	{'Z', "workdir", "WORK_DIR", []Col{WorkDir}, cell(WorkDir)},
	{'x', "excnodes", "EXC_NODES", []Col{ExcNodes}, cell(ExcNodes)},
	{'s', "selectjobinfo", "SELECT_JOBINFO", nil, fixed("")},
	{0, "shared", "OVER_SUBSCRIBE", []Col{Exclusive}, func(b []byte, r Row) []byte {
		if r.Is(Exclusive) {
			return append(b, "NO"...)
		}
		return append(b, "OK"...)
	}},
}

// Cluster is what is printed where Slurm names its cluster.
const Cluster = "coxswain"

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
	if n := r.Int(ArrayJob); n > 0 {
		return strconv.AppendInt(b, n, 10)
	}
	return append(b, r.Bytes(ID)...)
}

func appendBatchFlag(b []byte, r Row) []byte {
	if len(r.Bytes(ScriptHash)) > 0 {
		return append(b, '1')
	}
	return append(b, '0')
}

// Nodes are the nodes that the job has or had; a job that waits has none.
func (r Row) Nodes() []byte {
	if r.Base() == job.Pending {
		return nil
	}
	return r.Bytes(NodeList)
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
	return append(b, r.Bytes(NodeList)...)
}

// Restarts is how often the job was started again.
func (r Row) Restarts() int64 {
	n := r.Int(Attempt)
	if r.Base() != job.Pending {
		n--
	}
	return max(n, 0)
}

// Script is the script's or the command's name; a script from standard input or of
// --wrap has none.
func (r Row) Script() []byte {
	if b := r.Bytes(Command); string(b) != "-" {
		return b
	}
	return nil
}
