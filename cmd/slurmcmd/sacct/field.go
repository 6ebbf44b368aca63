package sacct

import (
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// line is one line: a job, or its batch step.
type line struct {
	jobs.Row
	batch bool
}

// field is a column of sacct.
type field struct {
	name  string
	width int
	needs []jobs.Col
	text  func(b []byte, l line) []byte
	step  bool // a step has it too
}

func cell(c jobs.Col) func([]byte, line) []byte {
	return func(b []byte, l line) []byte { return append(b, l.Bytes(c)...) }
}

func number(c jobs.Col) func([]byte, line) []byte {
	return func(b []byte, l line) []byte { return strconv.AppendInt(b, l.Int(c), 10) }
}

func when(f func(l line) int64) func([]byte, line) []byte {
	return func(b []byte, l line) []byte { return l.AppendTime(b, f(l), "Unknown") }
}

func fixed(s string) func([]byte, line) []byte {
	return func(b []byte, _ line) []byte { return append(b, s...) }
}

var (
	span   = []jobs.Col{jobs.State, jobs.Started, jobs.Ended}
	counts = []jobs.Col{jobs.State, jobs.Started, jobs.Ended, jobs.CPUs, jobs.NodesMin}
)

func pending(l line) bool { return l.Base() == job.Pending }

// cpus are the CPUs that the job has or asks for; a batch step has those of one node.
func cpus(l line) int64 {
	n := l.Int(jobs.CPUs)
	if nodes := l.Int(jobs.NodesMin); l.batch && nodes > 1 {
		n = (n + nodes - 1) / nodes
	}
	return n
}

func cpuSeconds(l line) int64 { return cpus(l) * l.Elapsed() }

// waited is how long the job waited, seconds.
func waited(l line) int64 {
	from, to := max(l.Int(jobs.Eligible), l.Int(jobs.Submitted)), l.Int(jobs.Started)
	if pending(l) || to == 0 {
		to = max(l.Int(jobs.Ended), 0)
		if to == 0 {
			to = l.Now
		}
	}
	return max(to-from, 0)
}

var waitCols = []jobs.Col{jobs.State, jobs.Eligible, jobs.Submitted, jobs.Started, jobs.Ended, jobs.CPUs, jobs.NodesMin}

func appendID(b []byte, l line) []byte {
	b = l.AppendName(b)
	if l.batch {
		b = append(b, ".batch"...)
	}
	return b
}

func appendState(b []byte, l line) []byte {
	s := l.Base()
	if s == job.Lost {
		s = job.NodeFail
	}
	return append(b, s.String()...)
}

func appendExit(b []byte, l line) []byte {
	b = append(strconv.AppendInt(b, l.Int(jobs.ExitStatus), 10), ':')
	return strconv.AppendInt(b, l.Int(jobs.ExitSignal), 10)
}

func appendNodes(b []byte, l line) []byte {
	switch {
	case l.batch:
		return append(b, l.Bytes(jobs.BatchHost)...)
	case len(l.Nodes()) == 0:
		return append(b, "None assigned"...)
	}
	return append(b, l.Nodes()...)
}

func appendTRES(b []byte, l line) []byte { return append(b, l.Bytes(jobs.TRES)...) }

func appendAllocTRES(b []byte, l line) []byte {
	if pending(l) || l.Int(jobs.Started) == 0 {
		return b
	}
	return appendTRES(b, l)
}

func appendAlloc(b []byte, l line) []byte {
	if pending(l) || l.Int(jobs.Started) == 0 {
		return append(b, '0')
	}
	return strconv.AppendInt(b, cpus(l), 10)
}

func limit(b []byte, l line) []byte {
	if n := l.Int(jobs.TimeLimit); n > 0 {
		return jobs.AppendLongSpan(b, n)
	}
	return append(b, "UNLIMITED"...)
}

// fields are sacct's columns in the order of --helpformat.
var fields = []field{
	{"Account", 10, []jobs.Col{jobs.Account}, cell(jobs.Account), true},
	{"AdminComment", 19, nil, fixed(""), false},
	{"AllocCPUS", 10, counts, appendAlloc, true},
	{"AllocNodes", 10, counts, func(b []byte, l line) []byte {
		switch {
		case pending(l) || l.Int(jobs.Started) == 0:
			return append(b, '0')
		case l.batch:
			return append(b, '1')
		}
		return strconv.AppendInt(b, max(l.Int(jobs.NodesMin), 1), 10)
	}, true},
	{"AllocTRES", 10, []jobs.Col{jobs.State, jobs.Started, jobs.TRES}, appendAllocTRES, false},
	{"AssocID", 7, nil, fixed("0"), false},
	{"Cluster", 10, nil, fixed(jobs.Cluster), true},
	{"Comment", 14, []jobs.Col{jobs.Comment}, cell(jobs.Comment), false},
	{"Constraints", 19, []jobs.Col{jobs.Features}, cell(jobs.Features), false},
	{"Container", 19, nil, fixed(""), false},
	{"CPUTime", 10, counts, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, cpuSeconds(l)) }, true},
	{"CPUTimeRAW", 10, counts, func(b []byte, l line) []byte { return strconv.AppendInt(b, cpuSeconds(l), 10) }, true},
	{"DBIndex", 10, []jobs.Col{jobs.ID}, cell(jobs.ID), false},
	{"DerivedExitCode", 15, []jobs.Col{jobs.ExitStatus, jobs.ExitSignal}, appendExit, false},
	{"Elapsed", 10, span, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, l.Elapsed()) }, true},
	{"ElapsedRaw", 10, span, func(b []byte, l line) []byte { return strconv.AppendInt(b, l.Elapsed(), 10) }, true},
	{"Eligible", 19, []jobs.Col{jobs.Eligible}, when(func(l line) int64 { return l.Int(jobs.Eligible) }), false},
	{"End", 19, []jobs.Col{jobs.Ended}, when(func(l line) int64 { return l.Int(jobs.Ended) }), true},
	{"ExitCode", 8, []jobs.Col{jobs.ExitStatus, jobs.ExitSignal}, appendExit, true},
	{"Flags", 19, nil, fixed(""), false},
	{"GID", 6, []jobs.Col{jobs.GID}, number(jobs.GID), false},
	{"Group", 9, []jobs.Col{jobs.GID}, func(b []byte, l line) []byte { return append(b, face.GroupName(uint32(l.Int(jobs.GID)))...) }, false},
	{"JobID", 12, []jobs.Col{jobs.Name}, appendID, true},
	{"JobIDRaw", 12, []jobs.Col{jobs.ID}, func(b []byte, l line) []byte {
		if b = append(b, l.Bytes(jobs.ID)...); l.batch {
			b = append(b, ".batch"...)
		}
		return b
	}, true},
	{"JobName", 10, []jobs.Col{jobs.JobName}, func(b []byte, l line) []byte {
		if l.batch {
			return append(b, "batch"...)
		}
		return append(b, l.Bytes(jobs.JobName)...)
	}, true},
	{"Layout", 9, nil, fixed(""), false},
	{"NCPUS", 10, counts, func(b []byte, l line) []byte { return strconv.AppendInt(b, cpus(l), 10) }, true},
	{"NNodes", 8, []jobs.Col{jobs.NodesMin}, func(b []byte, l line) []byte {
		if l.batch {
			return append(b, '1')
		}
		return strconv.AppendInt(b, max(l.Int(jobs.NodesMin), 1), 10)
	}, true},
	{"NodeList", 15, []jobs.Col{jobs.State, jobs.NodeList, jobs.BatchHost}, appendNodes, true},
	{"NTasks", 8, nil, func(b []byte, l line) []byte {
		if l.batch {
			return append(b, '1')
		}
		return b
	}, true},
	{"Partition", 10, []jobs.Col{jobs.Partition}, cell(jobs.Partition), false},
	{"Planned", 10, waitCols, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, waited(l)) }, false},
	{"PlannedCPU", 10, waitCols, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, waited(l)*cpus(l)) }, false},
	{"PlannedCPURAW", 10, waitCols, func(b []byte, l line) []byte { return strconv.AppendInt(b, waited(l)*cpus(l), 10) }, false},
	{"Priority", 10, []jobs.Col{jobs.Priority}, number(jobs.Priority), false},
	{"QOS", 10, []jobs.Col{jobs.QOS}, cell(jobs.QOS), false},
	{"QOSRAW", 6, nil, fixed("0"), false},
	{"Reason", 22, []jobs.Col{jobs.Reason, jobs.State, jobs.Flags, jobs.ExitSignal}, func(b []byte, l line) []byte { return append(b, l.ReasonWord()...) }, false},
	{"ReqCPUFreq", 10, nil, fixed("Unknown"), true},
	{"ReqCPUS", 8, counts, func(b []byte, l line) []byte { return strconv.AppendInt(b, cpus(l), 10) }, true},
	{"ReqMem", 10, []jobs.Col{jobs.Memory, jobs.MemoryPerCPU, jobs.NodesMin}, func(b []byte, l line) []byte {
		n := l.Int(jobs.Memory) * max(l.Int(jobs.NodesMin), 1)
		return append(b, slurmfmt.FormatMemory(n)...)
	}, false},
	{"ReqNodes", 8, []jobs.Col{jobs.NodesMin}, func(b []byte, l line) []byte { return strconv.AppendInt(b, max(l.Int(jobs.NodesMin), 1), 10) }, false},
	{"ReqTRES", 10, []jobs.Col{jobs.TRES}, appendTRES, false},
	{"Reservation", 20, []jobs.Col{jobs.Reservation}, cell(jobs.Reservation), false},
	{"Reserved", 10, waitCols, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, waited(l)) }, false},
	{"Restarts", 8, []jobs.Col{jobs.Attempt, jobs.State}, func(b []byte, l line) []byte { return strconv.AppendInt(b, l.Restarts(), 10) }, false},
	{"Start", 19, []jobs.Col{jobs.Started}, when(func(l line) int64 { return l.Int(jobs.Started) }), true},
	{"State", 10, []jobs.Col{jobs.State}, appendState, true},
	{"Submit", 19, []jobs.Col{jobs.Submitted}, when(func(l line) int64 { return l.Int(jobs.Submitted) }), true},
	{"SubmitLine", 20, []jobs.Col{jobs.Command}, cell(jobs.Command), false},
	{"Suspended", 10, nil, fixed("00:00:00"), true},
	{"StdErr", 20, []jobs.Col{jobs.Stderr}, cell(jobs.Stderr), false},
	{"StdIn", 20, []jobs.Col{jobs.Stdin}, cell(jobs.Stdin), false},
	{"StdOut", 20, []jobs.Col{jobs.Stdout}, cell(jobs.Stdout), false},
	{"SystemCPU", 10, nil, fixed("00:00:00"), true},
	{"Timelimit", 10, []jobs.Col{jobs.TimeLimit}, limit, false},
	{"TimelimitRaw", 12, []jobs.Col{jobs.TimeLimit}, func(b []byte, l line) []byte {
		if n := l.Int(jobs.TimeLimit); n > 0 {
			return strconv.AppendInt(b, n/60, 10)
		}
		return append(b, "UNLIMITED"...)
	}, false},
	{"TotalCPU", 10, nil, fixed("00:00:00"), true},
	{"UID", 6, []jobs.Col{jobs.UID}, number(jobs.UID), false},
	{"User", 9, []jobs.Col{jobs.User}, cell(jobs.User), false},
	{"UserCPU", 10, nil, fixed("00:00:00"), true},
	{"WCKey", 10, nil, fixed(""), false},
	{"WorkDir", 20, []jobs.Col{jobs.WorkDir}, cell(jobs.WorkDir), false},
}

// unmeasured are fields of Slurm's that are empty here, with their widths.
var unmeasured = []struct {
	name  string
	width int
}{
	{"AveCPU", 10},
	{"AveCPUFreq", 10},
	{"AveDiskRead", 14},
	{"AveDiskWrite", 14},
	{"AvePages", 10},
	{"AveRSS", 10},
	{"AveVMSize", 10},
	{"BlockID", 16},
	{"ConsumedEnergy", 14},
	{"ConsumedEnergyRaw", 17},
	{"Extra", 19},
	{"FailedNode", 15},
	{"Licenses", 19},
	{"MaxDiskRead", 12},
	{"MaxDiskReadNode", 15},
	{"MaxDiskReadTask", 15},
	{"MaxDiskWrite", 12},
	{"MaxDiskWriteNode", 16},
	{"MaxDiskWriteTask", 16},
	{"MaxPages", 8},
	{"MaxPagesNode", 12},
	{"MaxPagesTask", 14},
	{"MaxRSS", 10},
	{"MaxRSSNode", 10},
	{"MaxRSSTask", 10},
	{"MaxVMSize", 10},
	{"MaxVMSizeNode", 14},
	{"MaxVMSizeTask", 14},
	{"McsLabel", 12},
	{"MinCPU", 10},
	{"MinCPUNode", 10},
	{"MinCPUTask", 10},
	{"ReqCPUFreqGov", 13},
	{"ReqCPUFreqMax", 13},
	{"ReqCPUFreqMin", 13},
	{"ReservationId", 13},
	{"ResvCPU", 10},
	{"ResvCPURAW", 10},
	{"SystemComment", 15},
	{"TRESUsageInAve", 14},
	{"TRESUsageInMax", 14},
	{"TRESUsageInMaxNode", 18},
	{"TRESUsageInMaxTask", 18},
	{"TRESUsageInMin", 14},
	{"TRESUsageInMinNode", 18},
	{"TRESUsageInMinTask", 18},
	{"TRESUsageInTot", 14},
	{"TRESUsageOutAve", 15},
	{"TRESUsageOutMax", 15},
	{"TRESUsageOutMaxNode", 19},
	{"TRESUsageOutMaxTask", 19},
	{"TRESUsageOutMin", 15},
	{"TRESUsageOutMinNode", 19},
	{"TRESUsageOutMinTask", 19},
	{"TRESUsageOutTot", 15},
	{"WCKeyID", 10},
}

// findField finds a field by a name that may be shortened.
func findField(name string) (field, bool) {
	name = strings.ToLower(name)
	var near *field
	for i := range fields {
		f := strings.ToLower(fields[i].name)
		if f == name {
			return fields[i], true
		}
		if near == nil && strings.HasPrefix(f, name) && len(name) > 1 {
			near = &fields[i]
		}
	}
	for _, u := range unmeasured {
		if strings.EqualFold(u.name, name) {
			return field{u.name, u.width, nil, fixed(""), true}, true
		}
	}
	if near != nil {
		return *near, true
	}
	return field{}, false
}
