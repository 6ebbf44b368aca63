package scontrol

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

// showJob describes the allocation as scontrol show job does: the fields that the
// processes of a job may know, in Slurm's order.
func showJob(a *step.Alloc, o scontrolOptions) string {
	var lines []string
	line := func(fields ...string) {
		var have []string
		for _, f := range fields {
			if f != "" {
				have = append(have, f)
			}
		}
		lines = append(lines, strings.Join(have, " "))
	}
	line("JobId="+a.Job.String(), arrayFields(a), "JobName="+a.Name)
	line(fmt.Sprintf("UserId=%s(%d)", a.Owner.User, a.Owner.UID), fmt.Sprintf("GroupId=(%d)", a.Owner.GID))
	line("Account="+orNull(a.Account), "QOS="+orNull(a.QOS))
	line("JobState=RUNNING", "Reason=None", "Dependency="+orNull(a.Given["dependency"]))
	line(fmt.Sprintf("Requeue=%d", asDigit(a.Requeue)), fmt.Sprintf("Restarts=%d", a.Attempt-1), fmt.Sprintf("BatchFlag=%d", asDigit(!a.Direct)), "ExitCode=0:0")
	line("RunTime="+slurmfmt.FormatTimeLimit(max(time.Since(a.Started).Truncate(time.Second), time.Second)), "TimeLimit="+slurmfmt.FormatTimeLimit(a.TimeLimit))
	line("SubmitTime=" + formatTime(a.Submitted))
	line("StartTime="+formatTime(a.Started), "EndTime="+formatTime(a.End()))
	line("Partition="+orNull(a.Partition), "AllocNode:Sid="+orNull(a.SubmitHost))
	line("NodeList=" + hostlist.CompressInOrder(nodeNames(a)))
	line("BatchHost=" + a.Nodes[0].Name)
	cpus, memory, gpus, tasks := totalsOf(a)
	line(fmt.Sprintf("NumNodes=%d", len(a.Nodes)), fmt.Sprintf("NumCPUs=%d", cpus), fmt.Sprintf("NumTasks=%d", tasks), fmt.Sprintf("CPUs/Task=%d", max(a.Groups[0].CPUsPerTask, 1)))
	tres := fmt.Sprintf("TRES=cpu=%d,mem=%dM,node=%d", cpus, memory, len(a.Nodes))
	if gpus > 0 {
		tres += fmt.Sprintf(",gres/gpu=%d", gpus)
	}
	line(tres)
	if o.details {
		for _, g := range a.Groups {
			for _, p := range g.Parts {
				line("  Nodes="+a.Nodes[p.Node].Name, fmt.Sprintf("CPUs=%d", p.CPUs), fmt.Sprintf("Mem=%d", p.MemoryMB), gresField(a, p))
			}
		}
	}
	line("Features="+orNull(a.Given["constraint"]), "Licenses="+orNull(a.Licenses))
	line("Command=" + orNull(a.Command))
	line("WorkDir=" + a.WorkDir)
	line("StdErr=" + outputName(a, a.Output.Stderr, a.Output.Stdout))
	line("StdIn=" + outputName(a, a.Output.Stdin, "/dev/null"))
	line("StdOut=" + outputName(a, a.Output.Stdout, ""))
	if o.oneLine {
		return strings.Join(lines, " ") + "\n"
	}
	return strings.Join(lines, "\n   ") + "\n\n"
}

// arrayFields names the array that the job is a task of, or "".
func arrayFields(a *step.Alloc) string {
	if a.Array == nil {
		return ""
	}
	return fmt.Sprintf("ArrayJobId=%d ArrayTaskId=%d", a.Array.Job, a.Array.Index)
}

// nodeNames lists the allocation's nodes by rank.
func nodeNames(a *step.Alloc) []string {
	var names []string
	for _, n := range a.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// totalsOf sums what the allocation has.
func totalsOf(a *step.Alloc) (cpus int, memoryMB int64, gpus, tasks int) {
	for _, g := range a.Groups {
		tasks += g.Tasks
		for _, p := range g.Parts {
			cpus, memoryMB, gpus = cpus+p.CPUs, memoryMB+p.MemoryMB, gpus+len(p.Devices)
		}
	}
	return cpus, memoryMB, gpus, tasks
}

// gresField describes the devices of a part.
func gresField(a *step.Alloc, p step.Part) string {
	if len(p.Devices) == 0 {
		return "GRES="
	}
	list := step.DeviceIndices(p.Devices)
	name := "gpu"
	if typ := p.Devices[0].Type; typ != "" {
		name += ":" + typ
	}
	return fmt.Sprintf("GRES=%s:%d(IDX:%s)", name, len(p.Devices), list)
}

// outputName expands the name of one of the batch script's files.
func outputName(a *step.Alloc, name, otherwise string) string {
	if name == "" {
		name = otherwise
	}
	if name == "" {
		name = "slurm-%j.out"
		if a.Array != nil {
			name = "slurm-%A_%a.out"
		}
	}
	n := step.FileNames(a, &step.Info{})
	n.Node, n.Step = a.Nodes[0].Name, "batch"
	name = slurmfmt.ExpandName(name, n)
	if !filepath.IsAbs(name) {
		name = filepath.Join(a.WorkDir, name)
	}
	return name
}

func orNull(s string) string {
	if s == "" {
		return "(null)"
	}
	return s
}

func asDigit(b bool) int {
	if b {
		return 1
	}
	return 0
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return "Unknown"
	}
	return t.Local().Format("2006-01-02T15:04:05")
}
