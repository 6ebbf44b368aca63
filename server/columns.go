package server

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// column appends a value of a job to a line of text.
type column func(b []byte, v *control.View) []byte

// columnsOf finds the columns of a request, with whether any needs the parts of a
// spec that lists usually leave out.
// Jobs that name no pool are of home.
func columnsOf(names []string, home string) (cols []column, which []string, whole bool, err error) {
	for _, n := range names {
		f, ok := columns[n]
		if slices.Contains(which, n) {
			return nil, nil, false, fault.New(fault.Invalid, "columns: %s is named twice", n).Advise("name each column once")
		}
		if !ok {
			return nil, nil, false, fault.New(fault.Invalid, "columns: there is no column %q", n).
				Advise("columns stand in docs/api.md; a client that is newer than this server needs a newer server")
		}
		if n == "pool" {
			f = str(func(v *control.View) string { return cmp.Or(v.Pool, v.Job.Spec.Pool, home) })
		}
		cols, which = append(cols, f), append(which, n)
		whole = whole || n == "memory_per_cpu"
	}
	return cols, which, whole, nil
}

func str(f func(*control.View) string) column {
	return func(b []byte, v *control.View) []byte { return api.AppendTSV(b, f(v)) }
}

func num(f func(*control.View) int64) column {
	return func(b []byte, v *control.View) []byte { return strconv.AppendInt(b, f(v), 10) }
}

func at(f func(*control.View) time.Time) column {
	return func(b []byte, v *control.View) []byte {
		t := f(v)
		if t.IsZero() {
			return append(b, '0')
		}
		return strconv.AppendInt(b, t.Unix(), 10)
	}
}

func yesNo(f func(*control.View) bool) column {
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

// columns has a function for every column of api.Columns.
var columns = map[string]column{
	"id":          num(func(v *control.View) int64 { return int64(v.Job.ID) }),
	"name":        appendName,
	"array_job":   num(func(v *control.View) int64 { return int64(arrayOf(v).Job) }),
	"array_task":  appendTask,
	"array_limit": num(func(v *control.View) int64 { return int64(arrayOf(v).MaxRunning) }),
	"het_size":    num(func(v *control.View) int64 { return int64(max(len(v.Job.Spec.Groups), 1)) }),
	"job_name":    str(func(v *control.View) string { return v.Job.Spec.Name }),
	"user":        str(func(v *control.View) string { return v.Job.Spec.Owner.User }),
	"uid":         num(func(v *control.View) int64 { return int64(v.Job.Spec.Owner.UID) }),
	"gid":         num(func(v *control.View) int64 { return int64(v.Job.Spec.Owner.GID) }),
	"account":     str(func(v *control.View) string { return v.Job.Spec.Account }),
	"qos":         str(func(v *control.View) string { return v.Job.Spec.QOS }),
	"pool":        str(func(v *control.View) string { return cmp.Or(v.Pool, v.Job.Spec.Pool) }),
	"partition":   appendPartition,
	"state":       func(b []byte, v *control.View) []byte { return append(b, v.Job.State.String()...) },
	"flags":       appendFlags,
	"reason":      str(func(v *control.View) string { return string(v.Why.Code) }),
	"reason_text": str(reasonText),
	"priority":    num(func(v *control.View) int64 { return v.Priority }),
	"nice":        num(func(v *control.View) int64 { return v.Job.Spec.Nice }),
	"submitted":   at(func(v *control.View) time.Time { return v.Job.Submitted }),
	"eligible":    at(func(v *control.View) time.Time { return v.Eligible }),
	"started":     at(func(v *control.View) time.Time { return v.Job.Started }),
	"ended":       at(func(v *control.View) time.Time { return v.Job.Ended }),
	"begin":       at(func(v *control.View) time.Time { return v.Job.Spec.Begin }),
	"deadline":    at(func(v *control.View) time.Time { return v.Job.Spec.Deadline }),
	"starts_by":   at(func(v *control.View) time.Time { return v.StartsBy }),
	"time_limit":  num(func(v *control.View) int64 { return seconds(v.Job.Spec.TimeLimit) }),
	"time_min":    num(func(v *control.View) int64 { return seconds(v.Job.Spec.TimeMin) }),
	"attempt":     num(func(v *control.View) int64 { return int64(v.Job.Attempt) }),
	"exit_status": num(func(v *control.View) int64 { return int64(v.Job.Exit.Status) }),
	"exit_signal": num(func(v *control.View) int64 { return int64(v.Job.Exit.Signal) }),
	"nodes_min":   num(func(v *control.View) int64 { return int64(holds(v).nodes) }),
	"nodes_max":   num(func(v *control.View) int64 { return int64(mostNodes(v.Job.Spec)) }),
	"node_list":   str(func(v *control.View) string { return nodeList(v.Claims) }),
	"req_nodes":   str(func(v *control.View) string { return hostlist.Compress(first(v).NodeList) }),
	"exc_nodes":   str(func(v *control.View) string { return hostlist.Compress(first(v).Exclude) }),
	"batch_host": str(func(v *control.View) string {
		if len(v.Claims) == 0 {
			return ""
		}
		return v.Claims[0].Node
	}),
	"tasks":          num(func(v *control.View) int64 { return int64(holds(v).tasks) }),
	"cpus":           func(b []byte, v *control.View) []byte { return appendFloat(b, holds(v).cpus) },
	"cpus_per_task":  num(func(v *control.View) int64 { return int64(max(first(v).CPUsPerTask, 1)) }),
	"tasks_per_node": num(func(v *control.View) int64 { return int64(first(v).TasksPerNode) }),
	"memory":         num(memoryPerNode),
	"memory_per_cpu": num(memoryPerCPU),
	"gpus":           num(func(v *control.View) int64 { return int64(holds(v).gpus) }),
	"gres":           func(b []byte, v *control.View) []byte { return holds(v).gres(b) },
	"tres":           func(b []byte, v *control.View) []byte { return holds(v).tres(b) },
	"features":       str(func(v *control.View) string { return first(v).Constraint.Text }),
	"licenses":       str(func(v *control.View) string { return v.Job.Spec.Licenses }),
	"reservation":    str(func(v *control.View) string { return v.Job.Spec.Reservation }),
	"dependency": str(func(v *control.View) string {
		if v.Job.Spec.Depends.IsZero() || v.Job.State != job.Pending {
			return ""
		}
		if v.Why.Code == "dependency" && v.Why.Want != "" {
			return v.Why.Want
		}
		return v.Job.Spec.Depends.String()
	}),
	"requeue":     yesNo(func(v *control.View) bool { return v.Job.Spec.Requeue }),
	"contiguous":  yesNo(func(v *control.View) bool { return first(v).Contiguous }),
	"exclusive":   yesNo(func(v *control.View) bool { return first(v).Exclusive }),
	"comment":     str(func(v *control.View) string { return v.Job.Spec.Comment }),
	"command":     str(command),
	"work_dir":    str(func(v *control.View) string { return v.Job.Spec.WorkDir }),
	"stdin":       str(func(v *control.View) string { return expanded(v, v.Job.Spec.Output.Stdin, "/dev/null") }),
	"stdout":      str(func(v *control.View) string { return expanded(v, v.Job.Spec.Output.Stdout, "") }),
	"stderr":      str(stderrOf),
	"submit_host": str(func(v *control.View) string { return v.Job.Spec.Source.Host }),
	"script_hash": str(func(v *control.View) string { return v.Job.Spec.Program.ScriptHash }),
	"message":     str(message),
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
	d := asked(v.Job.Spec)
	return d.memory / int64(max(d.nodes, 1))
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
