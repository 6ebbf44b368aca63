package server

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// appendColumn appends a value of a job to a line of text.
type appendColumn func(b []byte, v *control.View) []byte

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
				Advise("columns stand in docs/api.md; a client that is newer than this server needs a newer server")
		}
		f := columns[col]
		if col == column.Pool {
			f = str(func(v *control.View) string { return cmp.Or(v.Pool, v.Job.Spec.Pool, home) })
		}
		cols, which = append(cols, f), append(which, n)
		whole = whole || col == column.MemoryPerCPU
	}
	return cols, which, whole, nil
}

func str(f func(*control.View) string) appendColumn {
	return func(b []byte, v *control.View) []byte { return api.AppendTSV(b, f(v)) }
}

func num(f func(*control.View) int64) appendColumn {
	return func(b []byte, v *control.View) []byte { return strconv.AppendInt(b, f(v), 10) }
}

func at(f func(*control.View) time.Time) appendColumn {
	return func(b []byte, v *control.View) []byte {
		t := f(v)
		if t.IsZero() {
			return append(b, '0')
		}
		return strconv.AppendInt(b, t.Unix(), 10)
	}
}

func yesNo(f func(*control.View) bool) appendColumn {
	return func(b []byte, v *control.View) []byte {
		if f(v) {
			return append(b, '1')
		}
		return append(b, '0')
	}
}

func first(v *control.View) *job.TaskGroup {
	if len(v.Job.Spec.Groups) == 0 {
		return &job.TaskGroup{}
	}
	return &v.Job.Spec.Groups[0]
}

// columns has a function for every column.
var columns = [column.Count]appendColumn{
	column.ID:         num(func(v *control.View) int64 { return int64(v.Job.ID) }),
	column.Name:       appendName,
	column.ArrayJob:   num(func(v *control.View) int64 { return int64(arrayOf(v).Job) }),
	column.ArrayTask:  appendTask,
	column.ArrayLimit: num(func(v *control.View) int64 { return int64(arrayOf(v).MaxRunning) }),
	column.HetSize:    num(func(v *control.View) int64 { return int64(max(len(v.Job.Spec.Groups), 1)) }),
	column.JobName:    str(func(v *control.View) string { return v.Job.Spec.Name }),
	column.User:       str(func(v *control.View) string { return v.Job.Spec.Owner.User }),
	column.UID:        num(func(v *control.View) int64 { return int64(v.Job.Spec.Owner.UID) }),
	column.GID:        num(func(v *control.View) int64 { return int64(v.Job.Spec.Owner.GID) }),
	column.Account:    str(func(v *control.View) string { return v.Job.Spec.Account }),
	column.QOS:        str(func(v *control.View) string { return v.Job.Spec.QOS }),
	column.Pool:       str(func(v *control.View) string { return cmp.Or(v.Pool, v.Job.Spec.Pool) }),
	column.Partition:  appendPartition,
	column.State:      func(b []byte, v *control.View) []byte { return append(b, v.Job.State.String()...) },
	column.Flags:      appendFlags,
	column.Reason:     str(func(v *control.View) string { return string(v.Why.Code) }),
	column.ReasonText: str(reasonText),
	column.Priority:   num(func(v *control.View) int64 { return v.Priority }),
	column.Nice:       num(func(v *control.View) int64 { return v.Job.Spec.Nice }),
	column.Submitted:  at(func(v *control.View) time.Time { return v.Job.Submitted }),
	column.Eligible:   at(func(v *control.View) time.Time { return v.Eligible }),
	column.Started:    at(func(v *control.View) time.Time { return v.Job.Started }),
	column.Ended:      at(func(v *control.View) time.Time { return v.Job.Ended }),
	column.Begin:      at(func(v *control.View) time.Time { return v.Job.Spec.Begin }),
	column.Deadline:   at(func(v *control.View) time.Time { return v.Job.Spec.Deadline }),
	column.StartsBy:   at(func(v *control.View) time.Time { return v.StartsBy }),
	column.TimeLimit:  num(func(v *control.View) int64 { return seconds(v.Job.Spec.TimeLimit) }),
	column.TimeMin:    num(func(v *control.View) int64 { return seconds(v.Job.Spec.TimeMin) }),
	column.Attempt:    num(func(v *control.View) int64 { return int64(v.Job.Attempt) }),
	column.ExitStatus: num(func(v *control.View) int64 { return int64(v.Job.Exit.Status) }),
	column.ExitSignal: num(func(v *control.View) int64 { return int64(v.Job.Exit.Signal) }),
	column.NodesMin:   num(func(v *control.View) int64 { return int64(holds(v).Nodes) }),
	column.NodesMax:   num(func(v *control.View) int64 { return int64(mostNodes(v.Job.Spec)) }),
	column.NodeList:   str(func(v *control.View) string { return nodeList(v.Claims) }),
	column.ReqNodes:   str(func(v *control.View) string { return hostlist.Compress(first(v).NodeList) }),
	column.ExcNodes:   str(func(v *control.View) string { return hostlist.Compress(first(v).Exclude) }),
	column.BatchHost: str(func(v *control.View) string {
		if len(v.Claims) == 0 {
			return ""
		}
		return v.Claims[0].Node
	}),
	column.Tasks:        num(func(v *control.View) int64 { return int64(holds(v).Tasks) }),
	column.CPUs:         func(b []byte, v *control.View) []byte { return appendFloat(b, holds(v).CPUs) },
	column.CPUsPerTask:  num(func(v *control.View) int64 { return int64(max(first(v).CPUsPerTask, 1)) }),
	column.TasksPerNode: num(func(v *control.View) int64 { return int64(first(v).TasksPerNode) }),
	column.Memory:       num(memoryPerNode),
	column.MemoryPerCPU: num(memoryPerCPU),
	column.GPUs:         num(func(v *control.View) int64 { return int64(holds(v).GPUs) }),
	column.GRES:         func(b []byte, v *control.View) []byte { return holds(v).gres(b) },
	column.TRES:         func(b []byte, v *control.View) []byte { return holds(v).tres(b) },
	column.Features:     str(func(v *control.View) string { return first(v).Constraint.Text }),
	column.Licenses:     str(func(v *control.View) string { return v.Job.Spec.Licenses }),
	column.Reservation:  str(func(v *control.View) string { return v.Job.Spec.Reservation }),
	column.Dependency: str(func(v *control.View) string {
		if v.Job.Spec.Depends.IsZero() || v.Job.State != job.Pending {
			return ""
		}
		if v.Why.Code == "dependency" && v.Why.Want != "" {
			return v.Why.Want
		}
		return v.Job.Spec.Depends.String()
	}),
	column.Requeue:    yesNo(func(v *control.View) bool { return v.Job.Spec.Requeue }),
	column.Contiguous: yesNo(func(v *control.View) bool { return first(v).Contiguous }),
	column.Exclusive:  yesNo(func(v *control.View) bool { return first(v).Exclusive }),
	column.Comment:    str(func(v *control.View) string { return v.Job.Spec.Comment }),
	column.Command:    str(command),
	column.WorkDir:    str(func(v *control.View) string { return v.Job.Spec.WorkDir }),
	column.Stdin:      str(func(v *control.View) string { return expanded(v, v.Job.Spec.Output.Stdin, "/dev/null") }),
	column.Stdout:     str(func(v *control.View) string { return expanded(v, v.Job.Spec.Output.Stdout, "") }),
	column.Stderr:     str(stderrOf),
	column.SubmitHost: str(func(v *control.View) string { return v.Job.Spec.Source.Host }),
	column.ScriptHash: str(func(v *control.View) string { return v.Job.Spec.Program.ScriptHash }),
	column.Message:    str(message),
}

func appendName(b []byte, v *control.View) []byte {
	a := v.Job.Array
	if a == nil {
		return strconv.AppendUint(b, uint64(v.Job.ID), 10)
	}
	b = append(strconv.AppendUint(b, uint64(a.Job), 10), '_')
	return strconv.AppendUint(b, uint64(a.Index), 10)
}

func appendTask(b []byte, v *control.View) []byte {
	if v.Job.Array == nil {
		return b
	}
	return strconv.AppendUint(b, uint64(v.Job.Array.Index), 10)
}

var noArray job.ArrayTask

func arrayOf(v *control.View) *job.ArrayTask {
	if v.Job.Array == nil {
		return &noArray
	}
	return v.Job.Array
}

func appendPartition(b []byte, v *control.View) []byte {
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
	{job.Stopping, "STOPPING"},
	{job.Uncertain, "UNCERTAIN"},
}

func appendFlags(b []byte, v *control.View) []byte {
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

func reasonText(v *control.View) string {
	if v.Why.Code == "" {
		return ""
	}
	return v.Why.String()
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

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

func memoryPerNode(v *control.View) int64 {
	d := v.Job.Spec.Demand()
	return d.Memory / int64(max(d.Nodes, 1))
}

func memoryPerCPU(v *control.View) int64 {
	n, err := slurmfmt.ParseMemory(v.Job.Spec.Source.Given["mem-per-cpu"])
	if err != nil {
		return 0
	}
	return n
}

// command is the script or the command as the user named it.
func command(v *control.View) string {
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

// expanded is the name of a file with its patterns replaced.
func expanded(v *control.View, pattern, none string) string {
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

func stderrOf(v *control.View) string {
	o := v.Job.Spec.Output
	if o.Stderr == "" {
		return expanded(v, o.Stdout, "")
	}
	return expanded(v, o.Stderr, "")
}

func message(v *control.View) string {
	if v.Message != "" {
		return v.Message
	}
	return v.Report.Message
}
