package jobs

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// appendColumn appends a value of a job to a line of text.
type appendColumn func(b []byte, v *state.View) []byte

// columnsOf finds the columns of a request, with whether any needs the parts of a
// spec that lists usually leave out.
// Jobs that name no pool are of home.
func columnsOf(names []string, home string) (cols []appendColumn, which []string, whole bool, err error) {
	for _, n := range names {
		col, ok := column.ByName(n)
		if slices.Contains(which, n) {
			return nil, nil, false, fault.New(fault.Invalid, "columns: %s is named twice", n).Advise("name each column once")
		}
		if !ok {
			return nil, nil, false, fault.New(fault.Invalid, "columns: there is no column %q", n).
				Advise("columns stand in docs/reference/api.md; a client that is newer than this server needs a newer server")
		}
		f := columns[col]
		if col == column.Pool {
			f = textColumn(func(v *state.View) string { return poolOf(v, home) })
		}
		cols, which = append(cols, f), append(which, n)
		whole = whole || col == column.MemoryPerCPU
	}
	return cols, which, whole, nil
}

func textColumn(f func(*state.View) string) appendColumn {
	return func(b []byte, v *state.View) []byte { return api.AppendTSV(b, f(v)) }
}

func numberColumn(f func(*state.View) int64) appendColumn {
	return func(b []byte, v *state.View) []byte { return strconv.AppendInt(b, f(v), 10) }
}

func timeColumn(f func(*state.View) time.Time) appendColumn {
	return func(b []byte, v *state.View) []byte {
		t := f(v)
		if t.IsZero() {
			return append(b, '0')
		}
		return strconv.AppendInt(b, t.Unix(), 10)
	}
}

func yesNo(f func(*state.View) bool) appendColumn {
	return func(b []byte, v *state.View) []byte {
		if f(v) {
			return append(b, '1')
		}
		return append(b, '0')
	}
}

func firstGroup(v *state.View) *job.TaskGroup {
	if len(v.Job.Spec.Groups) == 0 {
		return &job.TaskGroup{}
	}
	return &v.Job.Spec.Groups[0]
}

// columns has a function for every column.
var columns = [column.Count]appendColumn{
	column.ID:         numberColumn(func(v *state.View) int64 { return int64(v.Job.ID) }),
	column.Name:       appendName,
	column.ArrayJob:   numberColumn(func(v *state.View) int64 { return int64(arrayOf(v).Job) }),
	column.ArrayTask:  appendTask,
	column.ArrayLimit: numberColumn(func(v *state.View) int64 { return int64(arrayOf(v).MaxRunning) }),
	column.HetSize:    numberColumn(func(v *state.View) int64 { return int64(max(len(v.Job.Spec.Groups), 1)) }),
	column.JobName:    textColumn(func(v *state.View) string { return v.Job.Spec.Name }),
	column.User:       textColumn(func(v *state.View) string { return v.Job.Spec.Owner.User }),
	column.UID:        numberColumn(func(v *state.View) int64 { return int64(v.Job.Spec.Owner.UID) }),
	column.GID:        numberColumn(func(v *state.View) int64 { return int64(v.Job.Spec.Owner.GID) }),
	column.Account:    textColumn(func(v *state.View) string { return v.Job.Spec.Account }),
	column.QOS:        textColumn(func(v *state.View) string { return v.Job.Spec.QOS }),
	column.Pool:       textColumn(func(v *state.View) string { return cmp.Or(v.Pool, v.Job.Spec.Pool) }),
	column.Partition:  appendPartition,
	column.State:      func(b []byte, v *state.View) []byte { return append(b, v.Job.State.String()...) },
	column.Flags:      appendFlags,
	column.Reason:     textColumn(func(v *state.View) string { return string(v.Why.Code) }),
	column.ReasonText: textColumn(reasonText),
	column.Priority:   numberColumn(func(v *state.View) int64 { return v.Priority }),
	column.Nice:       numberColumn(func(v *state.View) int64 { return v.Job.Spec.Nice }),
	column.Submitted:  timeColumn(func(v *state.View) time.Time { return v.Job.Submitted }),
	column.Eligible:   timeColumn(func(v *state.View) time.Time { return v.Eligible }),
	column.Started:    timeColumn(func(v *state.View) time.Time { return v.Job.Started }),
	column.Ended:      timeColumn(func(v *state.View) time.Time { return v.Job.Ended }),
	column.Begin:      timeColumn(func(v *state.View) time.Time { return v.Job.Spec.Begin }),
	column.Deadline:   timeColumn(func(v *state.View) time.Time { return v.Job.Spec.Deadline }),
	column.StartsBy:   timeColumn(func(v *state.View) time.Time { return v.StartsBy }),
	column.TimeLimit:  numberColumn(func(v *state.View) int64 { return wholeSeconds(v.Job.Spec.TimeLimit) }),
	column.TimeMin:    numberColumn(func(v *state.View) int64 { return wholeSeconds(v.Job.Spec.TimeMin) }),
	column.Attempt:    numberColumn(func(v *state.View) int64 { return int64(v.Job.Attempt) }),
	column.ExitStatus: numberColumn(func(v *state.View) int64 { return int64(v.Job.Exit.Status) }),
	column.ExitSignal: numberColumn(func(v *state.View) int64 { return int64(v.Job.Exit.Signal) }),
	column.NodesMin:   numberColumn(func(v *state.View) int64 { return int64(v.Demand().Nodes) }),
	column.NodesMax:   numberColumn(func(v *state.View) int64 { return int64(mostNodes(v.Job.Spec)) }),
	column.NodeList:   textColumn(func(v *state.View) string { return nodeList(v.Claims) }),
	column.ReqNodes:   textColumn(func(v *state.View) string { return hostlist.Compress(firstGroup(v).NodeList) }),
	column.ExcNodes:   textColumn(func(v *state.View) string { return hostlist.Compress(firstGroup(v).Exclude) }),
	column.BatchHost: textColumn(func(v *state.View) string {
		if len(v.Claims) == 0 {
			return ""
		}
		return v.Claims[0].Node
	}),
	column.Tasks:        numberColumn(func(v *state.View) int64 { return int64(v.Demand().Tasks) }),
	column.CPUs:         func(b []byte, v *state.View) []byte { return appendFloat(b, v.Demand().CPUs) },
	column.CPUsPerTask:  numberColumn(func(v *state.View) int64 { return int64(max(firstGroup(v).CPUsPerTask, 1)) }),
	column.SuspendedAt:  timeColumn(func(v *state.View) time.Time { return v.SuspendedAt }),
	column.ResumedAt:    timeColumn(func(v *state.View) time.Time { return v.ResumedAt }),
	column.SuspendedFor: numberColumn(func(v *state.View) int64 { return wholeSeconds(v.SuspendedFor) }),
	column.Past:         textColumn(pastAttempts),
	column.Steps:        textColumn(stepsCell),
	column.Used:         textColumn(usedSummary),
	column.TasksPerNode: numberColumn(func(v *state.View) int64 { return int64(firstGroup(v).TasksPerNode) }),
	column.Memory:       numberColumn(memoryPerNode),
	column.MemoryPerCPU: numberColumn(memoryPerCPU),
	column.GPUs:         numberColumn(func(v *state.View) int64 { return int64(v.Demand().GPUs) }),
	column.GRES:         func(b []byte, v *state.View) []byte { return demand(v.Demand()).appendGRES(b) },
	column.TRES:         func(b []byte, v *state.View) []byte { return demand(v.Demand()).appendTRES(b) },
	column.Features:     textColumn(func(v *state.View) string { return firstGroup(v).Constraint.Text }),
	column.Licenses:     textColumn(func(v *state.View) string { return v.Job.Spec.Licenses }),
	column.Reservation:  textColumn(func(v *state.View) string { return v.Job.Spec.Reservation }),
	column.Dependency: textColumn(func(v *state.View) string {
		if v.Job.Spec.Depends.IsZero() || v.Job.State != job.Pending {
			return ""
		}
		if v.Why.Code == "dependency" && v.Why.Want != "" {
			return v.Why.Want
		}
		return v.Job.Spec.Depends.String()
	}),
	column.Requeue:    yesNo(func(v *state.View) bool { return v.Job.Spec.Requeue }),
	column.Contiguous: yesNo(func(v *state.View) bool { return firstGroup(v).Contiguous }),
	column.Exclusive:  yesNo(func(v *state.View) bool { return firstGroup(v).Exclusive }),
	column.Comment:    textColumn(func(v *state.View) string { return v.Job.Spec.Comment }),
	column.Command:    textColumn(commandLine),
	column.WorkDir:    textColumn(func(v *state.View) string { return v.Job.Spec.WorkDir }),
	column.Stdin:      textColumn(func(v *state.View) string { return expandPattern(v, v.Job.Spec.Output.Stdin, "/dev/null") }),
	column.Stdout:     textColumn(func(v *state.View) string { return expandPattern(v, v.Job.Spec.Output.Stdout, "") }),
	column.Stderr:     textColumn(stderrOf),
	column.SubmitHost: textColumn(func(v *state.View) string { return v.Job.Spec.Source.Host }),
	column.ScriptHash: textColumn(func(v *state.View) string { return v.Job.Spec.Program.ScriptHash }),
	column.CancelledBy: textColumn(func(v *state.View) string {
		if v.CancelledBy == nil {
			return ""
		}
		return strconv.FormatUint(uint64(*v.CancelledBy), 10)
	}),
	column.Message: textColumn(statusMessage),
}

func appendName(b []byte, v *state.View) []byte {
	a := v.Job.Array
	if a == nil {
		return strconv.AppendUint(b, uint64(v.Job.ID), 10)
	}
	b = append(strconv.AppendUint(b, uint64(a.Job), 10), '_')
	return strconv.AppendUint(b, uint64(a.Index), 10)
}

func appendTask(b []byte, v *state.View) []byte {
	if v.Job.Array == nil {
		return b
	}
	return strconv.AppendUint(b, uint64(v.Job.Array.Index), 10)
}

var noArray job.ArrayTask

func arrayOf(v *state.View) *job.ArrayTask {
	if v.Job.Array == nil {
		return &noArray
	}
	return v.Job.Array
}

func appendPartition(b []byte, v *state.View) []byte {
	for i, p := range v.Job.Spec.Partitions {
		if i > 0 {
			b = append(b, ',')
		}
		b = api.AppendTSV(b, p)
	}
	return b
}

var flagNames = []struct {
	flag job.Flags
	name string
}{
	{job.Configuring, "CONFIGURING"},
	{job.Completing, "COMPLETING"},
	{job.Requeued, "REQUEUED"},
	{job.Held, "HELD"},
	{job.LaunchFailed, "LAUNCH_FAILED"},
	{job.SpecialExit, "SPECIAL_EXIT"},
	{job.Stopping, "STOPPING"},
	{job.Uncertain, "UNCERTAIN"},
}

func appendFlags(b []byte, v *state.View) []byte {
	if v.Job.Flags == 0 {
		return b
	}
	return append(b, strings.Join(flagsOf(v.Job.Flags), ",")...)
}

func flagsOf(f job.Flags) (names []string) {
	for _, x := range flagNames {
		if f&x.flag != 0 {
			names = append(names, x.name)
		}
	}
	return names
}

func reasonText(v *state.View) string {
	if v.Why.Code == "" {
		return ""
	}
	return v.Why.String()
}

func wholeSeconds(d time.Duration) int64 { return int64(d / time.Second) }

func mostNodes(s *job.Spec) int {
	n := 0
	for _, g := range s.Groups {
		n += g.Nodes.Max
	}
	return n
}

// nodeList is the nodes in rank order, each once.
func nodeList(claims []fleet.Claim) string {
	switch len(claims) {
	case 0:
		return ""
	case 1:
		return claims[0].Node
	}
	names := make([]string, 0, len(claims))
	for _, c := range claims {
		if !slices.Contains(names[max(0, len(names)-1):], c.Node) {
			names = append(names, c.Node)
		}
	}
	return hostlist.Compress(names)
}

func memoryPerNode(v *state.View) int64 {
	d := v.Job.Spec.Demand()
	return d.Memory / int64(max(d.Nodes, 1))
}

func memoryPerCPU(v *state.View) int64 {
	n, err := slurmfmt.ParseMemory(v.Job.Spec.Source.Given["mem-per-cpu"])
	if err != nil {
		return 0
	}
	return n
}

// commandLine is the script or the command as the user named it.
func commandLine(v *state.View) string {
	s := v.Job.Spec
	switch name := s.Source.File; {
	case s.Program.Kind == job.Direct:
		return strings.Join(s.Program.Args, " ")
	case name == "" || name == "-" || path.IsAbs(name):
		return name
	default:
		return path.Join(s.Source.Submit, name)
	}
}

// expandPattern is the name of a file with its patterns replaced.
func expandPattern(v *state.View, pattern, none string) string {
	if pattern == "" {
		return none
	}
	n := slurmfmt.Names{
		Job: uint64(v.Job.ID), ArrayJob: uint64(v.Job.ID), Task: slurmfmt.NotArray, JobName: v.Job.Spec.Name,
		User: v.Job.Spec.Owner.User, Step: "batch", Restarts: max(int(v.Job.Attempt)-1, 0),
	}
	if a := v.Job.Array; a != nil {
		n.ArrayJob, n.Task = uint64(a.Job), a.Index
	}
	if len(v.Claims) > 0 {
		n.Node, _, _ = strings.Cut(v.Claims[0].Node, ".")
	}
	name := slurmfmt.ExpandName(pattern, n)
	if !path.IsAbs(name) {
		name = path.Join(v.Job.Spec.WorkDir, name)
	}
	return name
}

func stderrOf(v *state.View) string {
	o := v.Job.Spec.Output
	if o.Stderr == "" {
		return expandPattern(v, o.Stdout, "")
	}
	return expandPattern(v, o.Stderr, "")
}

func statusMessage(v *state.View) string {
	if v.Message != "" {
		return v.Message
	}
	return v.Report.Message
}

// demand is what a job asks for, or holds, in all, as Slurm writes it.
type demand job.Demand

// appendGRES is what one node gives, as Slurm writes it: "gres/gpu:h100:8".
func (d demand) appendGRES(b []byte) []byte {
	if d.GPUs == 0 {
		return b
	}
	b = append(b, "gres/gpu:"...)
	if d.GPUType != "" {
		b = append(append(b, d.GPUType...), ':')
	}
	n := max(d.Nodes, 1)
	return strconv.AppendInt(b, int64((d.GPUs+n-1)/n), 10)
}

// appendTRES is the whole as Slurm writes it: "cpu=8,mem=64G,node=2,billing=8,gres/gpu=16".
func (d demand) appendTRES(b []byte) []byte {
	b = appendFloat(append(b, "cpu="...), d.CPUs)
	if d.Memory > 0 {
		b = appendMemory(append(b, ",mem="...), d.Memory)
	}
	b = strconv.AppendInt(append(b, ",node="...), int64(d.Nodes), 10)
	b = appendFloat(append(b, ",billing="...), d.CPUs)
	if d.GPUs > 0 {
		b = strconv.AppendInt(append(b, ",gres/gpu="...), int64(d.GPUs), 10)
	}
	return b
}

func appendFloat(b []byte, f float64) []byte { return strconv.AppendFloat(b, f, 'f', -1, 64) }

// appendMemory writes bytes in the largest of Slurm's units that keeps them whole:
// "64G", "1500M".
func appendMemory(b []byte, n int64) []byte {
	unit := 0
	for n >>= 10; n > 0 && n%1024 == 0 && unit < 3; n >>= 10 {
		unit++
	}
	return append(strconv.AppendInt(b, n, 10), "KMGT"[unit])
}

// pastAttempts is the column of a job's attempts before the last one.
func pastAttempts(v *state.View) string {
	var parts []string
	for i := range v.Past {
		p := &v.Past[i]
		parts = append(parts, fmt.Sprintf("%d %d %d %s %d %d %s", p.Attempt, p.Started/int64(time.Second), p.Ended/int64(time.Second), pastState(p), p.Exit.Status, p.Exit.Signal, p.Nodes))
	}
	return strings.Join(parts, ";")
}

// pastState is the state in which an attempt left the job, or REQUEUED if somebody asked for that.
func pastState(p *state.PastAttempt) string {
	switch p.Cause {
	case engine.Exited:
		if p.Exit.OK() {
			return job.Completed.String()
		}
		return job.Failed.String()
	case engine.TimedOut:
		return job.Timeout.String()
	case engine.OutOfMemory:
		return job.OutOfMemory.String()
	case engine.NodeLost:
		return job.NodeFail.String()
	case engine.Preempted:
		return job.Preempted.String()
	case engine.Cancelled:
		return job.Cancelled.String()
	}
	return "REQUEUED"
}
