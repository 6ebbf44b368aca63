package scontrol

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/fleet"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/slurmjson"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

func nullText(b []byte) string {
	if len(b) == 0 {
		return "(null)"
	}
	return string(b)
}

// jobLines describe a job, in Slurm's order, with the lines of -d.
func (s *command) jobLines(r jobs.Row, details []string) []string {
	at := func(t int64, none string) string { return string(r.AppendTime(nil, t, none)) }
	state := r.Base()
	long, _ := r.StateWords()
	limit := "UNLIMITED"
	if n := r.Int(column.TimeLimit); n > 0 {
		limit = string(jobs.AppendLongSpan(nil, n))
	}
	timeMin := "N/A"
	if n := r.Int(column.TimeMin); n > 0 {
		timeMin = string(jobs.AppendLongSpan(nil, n))
	}
	end := at(r.End(), "Unknown")
	qos := r.Text(column.QOS)
	if qos == "" {
		qos = "normal"
	}
	memory := "MinMemoryNode=" + minMemory(r.Int(column.Memory))
	if n, perCPU := r.Memory(); perCPU {
		memory = "MinMemoryCPU=" + minMemory(n)
	}
	over := "OK"
	if r.Is(column.Exclusive) {
		over = "NO"
	}
	lines := []string{
		jobHead(r),
		fmt.Sprintf("UserId=%s(%d) GroupId=%s(%d) MCS_label=N/A", r.Bytes(column.User), r.Int(column.UID), slurmcmd.GroupName(uint32(r.Int(column.GID))), r.Int(column.GID)),
		fmt.Sprintf("Priority=%d Nice=%d Account=%s QOS=%s", r.Priority(), r.Int(column.Nice), nullText(r.Bytes(column.Account)), qos),
		fmt.Sprintf("JobState=%s Reason=%s Dependency=%s", long, r.ReasonWord(), nullText(r.Bytes(column.Dependency))),
		fmt.Sprintf("Requeue=%d Restarts=%d BatchFlag=%d Reboot=0 ExitCode=%d:%d", r.Int(column.Requeue), r.Restarts(), boolDigit(len(r.Bytes(column.ScriptHash)) > 0), r.Int(column.ExitStatus), r.Int(column.ExitSignal)),
		fmt.Sprintf("RunTime=%s TimeLimit=%s TimeMin=%s", jobs.AppendLongSpan(nil, r.Elapsed()), limit, timeMin),
		fmt.Sprintf("SubmitTime=%s EligibleTime=%s", at(r.Int(column.Submitted), "Unknown"), at(r.Int(column.Eligible), "Unknown")),
		"AccrueTime=" + at(r.Int(column.Eligible), "Unknown"),
		fmt.Sprintf("StartTime=%s EndTime=%s Deadline=%s", at(r.Start(), "Unknown"), end, at(r.Int(column.Deadline), "N/A")),
		"SuspendTime=None SecsPreSuspend=0 LastSchedEval=Unknown Scheduler=Main",
		fmt.Sprintf("Partition=%s AllocNode:Sid=%s:0", r.Bytes(column.Partition), nullText(r.Bytes(column.SubmitHost))),
		fmt.Sprintf("ReqNodeList=%s ExcNodeList=%s", nullText(r.Bytes(column.ReqNodes)), nullText(r.Bytes(column.ExcNodes))),
		"NodeList=" + string(r.Nodes()),
	}
	if h := r.Bytes(column.BatchHost); len(h) > 0 {
		lines = append(lines, "BatchHost="+string(h))
	}
	lines = append(lines,
		fmt.Sprintf("NumNodes=%d NumCPUs=%d NumTasks=%d CPUs/Task=%d ReqB:S:C:T=0:0:*:*", max(r.Int(column.NodesMin), 1), r.Int(column.CPUs), max(r.Int(column.Tasks), 1), max(r.Int(column.CPUsPerTask), 1)),
		"TRES="+r.Text(column.TRES),
		fmt.Sprintf("Socks/Node=* NtasksPerN:B:S:C=%d:0:*:* CoreSpec=*", r.Int(column.TasksPerNode)))
	lines = append(lines, details...)
	lines = append(lines,
		fmt.Sprintf("MinCPUsNode=%d %s MinTmpDiskNode=0", max(r.Int(column.CPUsPerTask), 1)*max(r.Int(column.TasksPerNode), 1), memory),
		fmt.Sprintf("Features=%s DelayBoot=00:00:00", nullText(r.Bytes(column.Features))))
	if res := r.Bytes(column.Reservation); len(res) > 0 {
		lines = append(lines, "Reservation="+string(res))
	}
	lines = append(lines,
		fmt.Sprintf("OverSubscribe=%s Contiguous=%d Licenses=%s Network=(null)", over, r.Int(column.Contiguous), nullText(r.Bytes(column.Licenses))),
		"Command="+nullText(r.Script()), "WorkDir="+r.Text(column.WorkDir))
	if c := r.Bytes(column.Comment); len(c) > 0 {
		lines = append(lines, "Comment="+string(c))
	}
	lines = append(lines, "StdErr="+r.Text(column.Stderr), "StdIn="+r.Text(column.Stdin), "StdOut="+r.Text(column.Stdout))
	if g := r.Bytes(column.GRES); len(g) > 0 {
		lines = append(lines, "TresPerNode="+string(g))
	}
	if why := r.Bytes(column.ReasonText); len(why) > 0 && state == job.Pending {
		lines = append(lines, "Why="+string(why)) // ours: the sentence behind Reason
	}
	if m := r.Bytes(column.Message); len(m) > 0 {
		lines = append(lines, "Message="+string(m)) // ours
	}
	return append(lines, "Power=")
}

// jobHead is the first line, with the array or heterogeneous job that it belongs to.
func jobHead(r jobs.Row) string {
	id := fmt.Sprintf("JobId=%d", r.Number())
	if array := r.Int(column.ArrayJob); array > 0 {
		id += fmt.Sprintf(" ArrayJobId=%d ArrayTaskId=%s", array, r.Bytes(column.ArrayTask))
		if n := r.Int(column.ArrayLimit); n > 0 {
			id += fmt.Sprintf(" ArrayTaskThrottle=%d", n)
		}
	}
	if k := r.Part(); k >= 0 {
		id += fmt.Sprintf(" HetJobId=%d HetJobOffset=%d", r.Int(column.ID), k)
	}
	return id + " JobName=" + r.Text(column.JobName)
}

func minMemory(n int64) string {
	if n == 0 {
		return "0"
	}
	return slurmfmt.FormatMemory(n)
}

func boolDigit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// nodeLines describe a node.
func nodeLines(n *fleet.Node, parts []fleet.Partition) []string {
	features := nullText([]byte(strings.Join(n.Features, ",")))
	state := strings.Join(slurmjson.StateWords(n), "+")
	address := n.Address
	if address == "" {
		address = n.Name
	}
	arch, load := "", "N/A"
	if n.KnowsSystem() {
		arch, load = "Arch="+n.Arch+" ", strconv.FormatFloat(n.Load, 'f', 2, 64)
	}
	lines := []string{
		fmt.Sprintf("NodeName=%s %sCoresPerSocket=%d ", n.Name, arch, n.Cores()),
		fmt.Sprintf("CPUAlloc=%d CPUEfctv=%d CPUTot=%d CPULoad=%s", n.CPUsUsed, n.CPUs, n.CPUs, load),
		"AvailableFeatures=" + features,
		"ActiveFeatures=" + features,
		"Gres=" + nullText([]byte(n.GRES)),
		fmt.Sprintf("NodeAddr=%s NodeHostName=%s Version=24.11", address, n.Name),
	}
	if n.KnowsSystem() {
		lines = append(lines, "OS="+n.OS+" ")
	}
	lines = append(lines,
		fmt.Sprintf("RealMemory=%d AllocMem=%d FreeMem=%d Sockets=%d Boards=1", n.Memory>>20, n.MemoryUsed>>20, max(n.Memory-n.MemoryUsed, 0)>>20, n.Sockets),
		fmt.Sprintf("State=%s ThreadsPerCore=1 TmpDisk=%d Weight=1 Owner=N/A MCS_label=N/A", state, n.Disk>>20),
		"Partitions="+strings.Join(partitionsOf(n.Name, parts), ",")+" ")
	if n.KnowsSystem() {
		lines = append(lines, "BootTime="+n.Booted.Local().Format("2006-01-02T15:04:05"))
	}
	lines = append(lines, "CfgTRES="+n.TRES(), "AllocTRES="+n.TRESUsed())
	if n.GRESUsed != "" {
		lines = append(lines, "GresUsed="+n.GRESUsed)
	}
	if n.Why != "" && n.State != "up" {
		line := "Reason=" + n.Why
		if !n.Since.IsZero() {
			line += fmt.Sprintf(" [%s@%s]", n.By, n.Since.Local().Format("2006-01-02T15:04:05"))
		}
		lines = append(lines, line)
	}
	return lines
}

func partitionsOf(node string, parts []fleet.Partition) (out []string) {
	for i := range parts {
		if slices.Contains(parts[i].Nodes, node) {
			out = append(out, parts[i].Name)
		}
	}
	return out
}

// partitionLines describe a partition.
func partitionLines(p *fleet.Partition, nodes []fleet.Node) []string {
	sum := p.Sum(nodes)
	limit := func(n int64, none string) string {
		if n == 0 {
			return none
		}
		return string(jobs.AppendLongSpan(nil, n))
	}
	def := "NO"
	if p.Default {
		def = "YES"
	}
	return []string{
		"PartitionName=" + p.Name,
		"AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL",
		"AllocNodes=ALL Default=" + def + " QoS=N/A",
		"DefaultTime=" + limit(p.DefaultTime, "NONE") + " DisableRootJobs=NO ExclusiveUser=NO GraceTime=0 Hidden=NO",
		"MaxNodes=UNLIMITED MaxTime=" + limit(p.TimeLimit, "UNLIMITED") + " MinNodes=0 LLN=NO MaxCPUsPerNode=UNLIMITED",
		"Nodes=" + hostlist.Compress(p.Nodes),
		"PriorityJobFactor=1 PriorityTier=1 RootOnly=NO ReqResv=NO OverSubscribe=NO",
		"OverTimeLimit=NONE PreemptMode=OFF",
		fmt.Sprintf("State=%s TotalCPUs=%d TotalNodes=%d SelectTypeParameters=NONE", strings.ToUpper(p.State), sum.CPUs, sum.Nodes),
		"JobDefaults=(null)",
		"DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED",
		"TRES=" + sum.TRES(),
	}
}
