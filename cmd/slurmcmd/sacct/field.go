package sacct

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/stepusage"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/printable"
	"github.com/coxswain-sched/coxswain/model/rusage"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// line is one line: a job, or one of its steps.
type line struct {
	jobs.Row
	step  *api.Step  // nil: the job
	steps []api.Step // of the job
	units stepusage.Units
}

// isBatch reports whether the line is that of the batch script.
func (l line) isBatch() bool { return l.step != nil && l.step.ID == "batch" }

// isTimed reports whether the line is that of a step with times of its own. The batch script has
// those of the job, as in Slurm.
func (l line) isTimed() bool { return l.step != nil && !l.isBatch() && !l.step.Started.IsZero() }

// suspended is how long the job's last attempt was suspended, seconds. It needs span.
func (l line) suspended() int64 {
	n := l.Int(column.SuspendedFor)
	if from := l.Int(column.SuspendedAt); from > 0 && l.Int(column.ResumedAt) == 0 {
		n += max(cmp.Or(l.Int(column.Ended), l.Now)-from, 0)
	}
	return n
}

// Elapsed is how long the job's last attempt ran, seconds, without the time that it was suspended.
// It needs span.
func (l line) Elapsed() int64 {
	if l.isTimed() {
		end := l.Now
		if !l.step.Ended.IsZero() {
			end = l.step.Ended.Unix()
		}
		return max(end-l.step.Started.Unix(), 0)
	}
	n := l.Row.Elapsed()
	if n == 0 {
		return 0
	}
	return max(n-l.suspended(), 0)
}

// field is a column of sacct.
type field struct {
	name  string
	width int
	needs []column.Column
	text  func(b []byte, l line) []byte
	step  bool // a step has it too
}

func textField(c column.Column) func([]byte, line) []byte {
	return func(b []byte, l line) []byte { return append(b, l.Bytes(c)...) }
}

func numberField(c column.Column) func([]byte, line) []byte {
	return func(b []byte, l line) []byte { return strconv.AppendInt(b, l.Int(c), 10) }
}

func timeField(f func(l line) int64) func([]byte, line) []byte {
	return func(b []byte, l line) []byte { return l.AppendTime(b, f(l), "Unknown") }
}

func fixedField(s string) func([]byte, line) []byte {
	return func(b []byte, _ line) []byte { return append(b, s...) }
}

var (
	span     = []column.Column{column.State, column.Started, column.Ended, column.SuspendedAt, column.ResumedAt, column.SuspendedFor}
	exitCols = []column.Column{column.ExitStatus, column.ExitSignal, column.State, column.Flags, column.CancelledBy}
	counts   = append([]column.Column{column.CPUs, column.NodesMin}, span...)
)

func isPending(l line) bool { return l.Base() == job.Pending }

// cpuCount are the CPUs that the job has or asks for; a batch step has those of one node.
func cpuCount(l line) int64 {
	if l.step != nil && l.step.CPUs > 0 {
		return int64(l.step.CPUs)
	}
	n := l.Int(column.CPUs)
	if nodes := l.Int(column.NodesMin); l.isBatch() && nodes > 1 {
		n = (n + nodes - 1) / nodes
	}
	return n
}

func cpuSeconds(l line) int64 { return cpuCount(l) * l.Elapsed() }

// waitSeconds is how long the job waited, seconds.
func waitSeconds(l line) int64 {
	from, to := max(l.Int(column.Eligible), l.Int(column.Submitted)), l.Int(column.Started)
	if isPending(l) || to == 0 {
		to = max(l.Int(column.Ended), 0)
		if to == 0 {
			to = l.Now
		}
	}
	return max(to-from, 0)
}

var waitCols = []column.Column{column.State, column.Eligible, column.Submitted, column.Started, column.Ended, column.CPUs, column.NodesMin}

func appendID(b []byte, l line) []byte {
	return appendStepID(l.AppendName(b), l)
}

// appendStepID appends what stands behind the job's number.
func appendStepID(b []byte, l line) []byte {
	if l.step != nil {
		b = append(append(b, '.'), l.step.ID...)
	}
	return b
}

func appendState(b []byte, l line) []byte {
	s := l.Base()
	if l.step != nil && !l.isBatch() {
		return append(b, l.step.State...)
	}
	switch {
	case s == job.Lost:
		s = job.NodeFail
	case l.Has(jobs.PastRequeued):
		return append(b, "REQUEUED"...)
	case l.step == nil && wasCancelled(l.Row):
		if b = append(b, job.Cancelled.String()...); len(l.Bytes(column.CancelledBy)) > 0 {
			b = append(append(b, " by "...), l.Bytes(column.CancelledBy)...)
		}
		return b
	}
	return append(b, s.String()...)
}

// wasCancelled reports whether somebody asked for the end of a job. One of which processes
// live yet is cancelled to Slurm at once.
func wasCancelled(r jobs.Row) bool {
	return r.Base() == job.Cancelled || len(r.Bytes(column.CancelledBy)) > 0 && r.Has("STOPPING")
}

// appendExit appends the exit code of a job or its script. A job that was cancelled has none
// to Slurm, its script has.
func appendExit(b []byte, l line) []byte {
	if l.step != nil && !l.isBatch() {
		return appendCode(b, l.step.Exit)
	}
	if l.step == nil && wasCancelled(l.Row) {
		return append(b, "0:0"...)
	}
	b = append(strconv.AppendInt(b, l.Int(column.ExitStatus), 10), ':')
	return strconv.AppendInt(b, l.Int(column.ExitSignal), 10)
}

func appendCode(b []byte, e job.ExitCode) []byte {
	b = append(strconv.AppendInt(b, int64(e.Status), 10), ':')
	return strconv.AppendInt(b, int64(e.Signal), 10)
}

// appendDerived appends the highest exit code of the job's steps, without the batch script.
func appendDerived(b []byte, l line) []byte {
	return appendCode(b, jobs.DerivedExit(l.steps))
}

func appendNodes(b []byte, l line) []byte {
	switch {
	case l.step != nil && l.step.Nodes != "":
		return append(b, l.step.Nodes...)
	case l.isBatch():
		return append(b, l.Bytes(column.BatchHost)...)
	case len(l.Nodes()) == 0:
		return append(b, "None assigned"...)
	}
	return append(b, l.Nodes()...)
}

func appendTRES(b []byte, l line) []byte { return append(b, l.Bytes(column.TRES)...) }

func appendAllocTRES(b []byte, l line) []byte {
	if isPending(l) || l.Int(column.Started) == 0 {
		return b
	}
	if l.step == nil {
		return appendTRES(b, l)
	}
	nodes := int64(max(l.step.Count, 1)) // a step may use all memory that the job has on its nodes
	b = strconv.AppendInt(append(b, "cpu="...), cpuCount(l), 10)
	if memory := l.Int(column.Memory) * nodes; memory > 0 {
		b = append(append(b, ",mem="...), slurmfmt.FormatMemory(memory)...)
	}
	return strconv.AppendInt(append(b, ",node="...), nodes, 10)
}

func appendAlloc(b []byte, l line) []byte {
	if isPending(l) || l.Int(column.Started) == 0 {
		return append(b, '0')
	}
	return strconv.AppendInt(b, cpuCount(l), 10)
}

func appendLimit(b []byte, l line) []byte {
	if n := l.Int(column.TimeLimit); n > 0 {
		return jobs.AppendLongSpan(b, n)
	}
	return append(b, "UNLIMITED"...)
}

var usedCols = []column.Column{column.Used, column.Steps}

// cpuField is a field of CPU time: of a step, or of the job in all.
func cpuField(which func(rusage.Use) time.Duration) func([]byte, line) []byte {
	return func(b []byte, l line) []byte {
		var used rusage.Use
		if l.step == nil {
			used = l.Used().Total
		} else if l.step.Used != nil {
			used = l.step.Used.Sum
		}
		if !used.Has(rusage.CPU) {
			return b
		}
		return stepusage.AppendCPUTime(b, which(used))
	}
}

func unixOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// startOf is when the job, or the step, started.
func startOf(l line) int64 {
	if l.isTimed() {
		return l.step.Started.Unix()
	}
	return l.Int(column.Started)
}

// stepField is a field of what a step used; the job's own line is empty there, as Slurm's is.
func stepField(f stepusage.Field) field {
	return field{f.Name, f.Width, []column.Column{column.Steps}, func(b []byte, l line) []byte {
		if l.step == nil {
			return b
		}
		return f.Text(b, l.step, l.units)
	}, true}
}

// fields are sacct's columns in the order of --helpformat.
var fields = []field{
	{"Account", 10, []column.Column{column.Account}, textField(column.Account), true},
	{"AdminComment", 19, nil, fixedField(""), false},
	{"AllocCPUS", 10, counts, appendAlloc, true},
	{"AllocNodes", 10, counts, func(b []byte, l line) []byte {
		switch {
		case isPending(l) || l.Int(column.Started) == 0:
			return append(b, '0')
		case l.step != nil:
			return strconv.AppendInt(b, int64(max(l.step.Count, 1)), 10)
		}
		return strconv.AppendInt(b, max(l.Int(column.NodesMin), 1), 10)
	}, true},
	{"AllocTRES", 10, append([]column.Column{column.TRES, column.Memory}, counts...), appendAllocTRES, true},
	{"AssocID", 7, nil, fixedField("0"), false},
	{"Cluster", 10, nil, func(b []byte, l line) []byte { return append(b, l.Cluster...) }, true},
	{"Comment", 14, []column.Column{column.Comment}, textField(column.Comment), false},
	{"Constraints", 19, []column.Column{column.Features}, textField(column.Features), false},
	{"Container", 19, nil, fixedField(""), false},
	{"CPUTime", 10, counts, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, cpuSeconds(l)) }, true},
	{"CPUTimeRAW", 10, counts, func(b []byte, l line) []byte { return strconv.AppendInt(b, cpuSeconds(l), 10) }, true},
	{"DBIndex", 10, []column.Column{column.ID}, textField(column.ID), false},
	{"DerivedExitCode", 15, []column.Column{column.Steps}, appendDerived, false},
	{"Elapsed", 10, span, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, l.Elapsed()) }, true},
	{"ElapsedRaw", 10, span, func(b []byte, l line) []byte { return strconv.AppendInt(b, l.Elapsed(), 10) }, true},
	{"Eligible", 19, []column.Column{column.Eligible}, timeField(func(l line) int64 { return l.Int(column.Eligible) }), false},
	{"End", 19, []column.Column{column.Ended}, timeField(func(l line) int64 {
		if l.isTimed() {
			return unixOrZero(l.step.Ended)
		}
		return l.Int(column.Ended)
	}), true},
	{"ExitCode", 8, exitCols, appendExit, true},
	{"Flags", 19, nil, fixedField(""), false},
	{"GID", 6, []column.Column{column.GID}, numberField(column.GID), false},
	{"Group", 9, []column.Column{column.GID}, func(b []byte, l line) []byte { return append(b, slurmcmd.GroupName(uint32(l.Int(column.GID)))...) }, false},
	{"JobID", 12, []column.Column{column.Name}, appendID, true},
	{"JobIDRaw", 12, []column.Column{column.ID}, func(b []byte, l line) []byte {
		return appendStepID(append(b, l.Bytes(column.ID)...), l)
	}, true},
	{"JobName", 10, []column.Column{column.JobName}, func(b []byte, l line) []byte {
		if l.step != nil {
			return append(b, printable.Clean([]byte(l.step.Name))...)
		}
		return append(b, l.Bytes(column.JobName)...)
	}, true},
	{"Layout", 9, nil, fixedField(""), false},
	{"NCPUS", 10, counts, func(b []byte, l line) []byte { return strconv.AppendInt(b, cpuCount(l), 10) }, true},
	{"NNodes", 8, []column.Column{column.NodesMin}, func(b []byte, l line) []byte {
		if l.step != nil {
			return strconv.AppendInt(b, int64(max(l.step.Count, 1)), 10)
		}
		return strconv.AppendInt(b, max(l.Int(column.NodesMin), 1), 10)
	}, true},
	{"NodeList", 15, []column.Column{column.State, column.NodeList, column.BatchHost}, appendNodes, true},
	{"NTasks", 8, nil, func(b []byte, l line) []byte {
		if l.step != nil {
			return strconv.AppendInt(b, int64(max(l.step.Tasks, 1)), 10)
		}
		return b
	}, true},
	{"Partition", 10, []column.Column{column.Partition}, textField(column.Partition), false},
	{"Planned", 10, waitCols, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, waitSeconds(l)) }, false},
	{"PlannedCPU", 10, waitCols, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, waitSeconds(l)*cpuCount(l)) }, false},
	{"PlannedCPURAW", 10, waitCols, func(b []byte, l line) []byte { return strconv.AppendInt(b, waitSeconds(l)*cpuCount(l), 10) }, false},
	{"Priority", 10, jobs.PriorityColumns, func(b []byte, l line) []byte { return strconv.AppendInt(b, l.Priority(), 10) }, false},
	{"QOS", 10, []column.Column{column.QOS}, textField(column.QOS), false},
	{"QOSRAW", 6, nil, fixedField("0"), false},
	{"Reason", 22, []column.Column{column.Reason, column.State, column.Flags, column.ExitSignal}, func(b []byte, l line) []byte { return append(b, l.ReasonWord()...) }, false},
	{"ReqCPUFreq", 10, nil, fixedField("Unknown"), true},
	{"ReqCPUS", 8, counts, func(b []byte, l line) []byte { return strconv.AppendInt(b, cpuCount(l), 10) }, true},
	{"ReqMem", 10, []column.Column{column.Memory, column.MemoryPerCPU, column.NodesMin}, func(b []byte, l line) []byte {
		n := l.Int(column.Memory) * max(l.Int(column.NodesMin), 1)
		if l.units != (stepusage.Units{}) {
			return l.units.AppendSize(b, n)
		}
		return append(b, slurmfmt.FormatMemory(n)...)
	}, false},
	{"ReqNodes", 8, []column.Column{column.NodesMin}, func(b []byte, l line) []byte { return strconv.AppendInt(b, max(l.Int(column.NodesMin), 1), 10) }, false},
	{"ReqTRES", 10, []column.Column{column.TRES}, appendTRES, false},
	{"Reservation", 20, []column.Column{column.Reservation}, textField(column.Reservation), false},
	{"Reserved", 10, waitCols, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, waitSeconds(l)) }, false},
	{"Restarts", 8, []column.Column{column.Attempt, column.State}, func(b []byte, l line) []byte { return strconv.AppendInt(b, l.Restarts(), 10) }, false},
	{"Start", 19, []column.Column{column.Started}, timeField(startOf), true},
	{"State", 10, []column.Column{column.State, column.Flags, column.CancelledBy}, appendState, true},
	{"Submit", 19, []column.Column{column.Submitted}, timeField(func(l line) int64 {
		if l.isTimed() {
			return startOf(l)
		}
		return l.Int(column.Submitted)
	}), true},
	{"SubmitLine", 20, []column.Column{column.Command}, textField(column.Command), false},
	{"Suspended", 10, span, func(b []byte, l line) []byte { return jobs.AppendLongSpan(b, l.suspended()) }, true},
	{"StdErr", 20, []column.Column{column.Stderr}, textField(column.Stderr), false},
	{"StdIn", 20, []column.Column{column.Stdin}, textField(column.Stdin), false},
	{"StdOut", 20, []column.Column{column.Stdout}, textField(column.Stdout), false},
	{"SystemCPU", 10, usedCols, cpuField(func(u rusage.Use) time.Duration { return u.System }), true},
	{"Timelimit", 10, []column.Column{column.TimeLimit}, appendLimit, false},
	{"TimelimitRaw", 12, []column.Column{column.TimeLimit}, func(b []byte, l line) []byte {
		if n := l.Int(column.TimeLimit); n > 0 {
			return strconv.AppendInt(b, n/60, 10)
		}
		return append(b, "UNLIMITED"...)
	}, false},
	{"TotalCPU", 10, usedCols, cpuField(rusage.Use.CPUTime), true},
	{"UID", 6, []column.Column{column.UID}, numberField(column.UID), false},
	{"User", 9, []column.Column{column.User}, textField(column.User), false},
	{"UserCPU", 10, usedCols, cpuField(func(u rusage.Use) time.Duration { return u.User }), true},
	{"WCKey", 10, nil, fixedField(""), false},
	{"WorkDir", 20, []column.Column{column.WorkDir}, textField(column.WorkDir), false},
}

// unmeasured are fields of Slurm's that are empty here, with their widths.
var unmeasured = []struct {
	name  string
	width int
}{
	{"AveCPUFreq", 10},
	{"AvePages", 10},
	{"AveVMSize", 10},
	{"BlockID", 16},
	{"ConsumedEnergy", 14},
	{"ConsumedEnergyRaw", 17},
	{"Extra", 19},
	{"FailedNode", 15},
	{"Licenses", 19},
	{"MaxPages", 8},
	{"MaxPagesNode", 12},
	{"MaxPagesTask", 14},
	{"MaxVMSize", 10},
	{"MaxVMSizeNode", 14},
	{"MaxVMSizeTask", 14},
	{"McsLabel", 12},
	{"ReqCPUFreqGov", 13},
	{"ReqCPUFreqMax", 13},
	{"ReqCPUFreqMin", 13},
	{"ReservationId", 13},
	{"ResvCPU", 10},
	{"ResvCPURAW", 10},
	{"SystemComment", 15},
	{"TRESUsageOutMin", 15},
	{"TRESUsageOutMinNode", 19},
	{"TRESUsageOutMinTask", 19},
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
	for _, f := range stepusage.Fields {
		if strings.EqualFold(f.Name, name) {
			return stepField(f), true
		}
	}
	for _, u := range unmeasured {
		if strings.EqualFold(u.name, name) {
			return field{u.name, u.width, nil, fixedField(""), true}, true
		}
	}
	if near != nil {
		return *near, true
	}
	return field{}, false
}
