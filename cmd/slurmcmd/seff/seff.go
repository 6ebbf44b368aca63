// Package seff is seff of Slurm's contribs: how much of the CPU time and memory that a job had it
// used, in seff's own words and by its formulas (docs/reference/efficiency.md). What nobody measured
// is "unknown" here, where seff prints 0.
package seff

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/column"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/jobs"
	"github.com/coxswain-sched/coxswain/cmd/slurmcmd/stepusage"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/rusage"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
)

const usageText = `Usage: seff [Options] <Jobid>
       Options:
       -h    Help menu
       -v    Version
       -d    Debug mode: display raw Slurm data
`

// version is that of the seff whose output this is.
const version = "seff Version 2.1\n"

// Main is seff with its arguments. The result is its exit code.
func Main(args []string, stdio slurmcmd.Stdio) int {
	q := &query{Command: slurmcmd.Begin("seff", stdio)}
	return q.Finish(q.run(args))
}

type query struct{ *slurmcmd.Command }

func (q *query) run(args []string) error {
	debug := false
	var ids []string
	for _, a := range args {
		switch a {
		case "-v":
			q.Out.WriteString(version)
			q.Code = 1 // as seff does
			return nil
		case "-d":
			debug = true
		case "-h":
			q.Out.WriteString(usageText)
			q.Code = 1
			return nil
		default:
			if strings.HasPrefix(a, "-") {
				return slurmcmd.Textf("Unknown option: %s", strings.TrimLeft(a, "-"))
			}
			ids = append(ids, a)
		}
	}
	if len(ids) != 1 {
		q.Out.WriteString(usageText)
		q.Code = 1
		return nil
	}
	if _, err := slurmfmt.ParseJobID(ids[0]); err != nil {
		return q.notFound()
	}
	return q.reportJob(ids[0], debug)
}

func (q *query) notFound() error {
	fmt.Fprintln(q.Err, "Job not found.")
	q.Code = 2
	return nil
}

var columns = []column.Column{
	column.ID, column.Name, column.ArrayJob, column.State, column.Flags, column.User, column.GID, column.CPUs, column.NodesMin, column.Memory, column.MemoryPerCPU,
	column.Started, column.Ended, column.SuspendedAt, column.ResumedAt, column.SuspendedFor, column.ExitStatus, column.CancelledBy,
}

// reportJob finds the job, asks what it used, and prints.
func (q *query) reportJob(id string, debug bool) error {
	c, err := q.Client()
	if err != nil {
		return err
	}
	var want jobs.Want
	want.Add(columns...)
	rows, err := jobs.Get(c, "/v1/history", &want, q.Now, "ids", id)
	if slurmcmd.IsNotFound(err) || err == nil && rows.Len() == 0 {
		return q.notFound()
	}
	if err != nil {
		return err
	}
	r := rows.Row(0)
	cluster, err := q.ClusterName()
	if err != nil {
		return err
	}
	u, err := stepusage.Ask(c, string(r.AppendName(nil)))
	if err != nil {
		return err
	}
	f := figuresOf(r, u)
	if debug {
		fmt.Fprintf(q.Out, "Slurm data: JobID ArrayJobID User Group State Clustername Ncpus Nnodes Ntasks Reqmem PerNode Cput Walltime Mem ExitStatus\n")
		fmt.Fprintf(q.Out, "Slurm data: %d %s %s %s %s %s %d %d %d %d %d %d %d %d %d\n\n", r.Int(column.ID), f.arrayID, r.Text(column.User), slurmcmd.GroupName(uint32(r.Int(column.GID))),
			r.Base(), cluster, f.cpus, f.nodes, f.tasks, f.asked>>10, f.perNode(), int64(f.cpu/time.Second), f.elapsed, f.used>>10, r.Int(column.ExitStatus))
	}
	q.printReport(r, cluster, &f)
	return nil
}

// figures are what seff reckons with.
type figures struct {
	arrayID            string // empty: not of an array
	cpus, nodes, tasks int64
	elapsed            int64 // seconds
	cpu                time.Duration
	used, asked        int64 // bytes: of the step that used most, and in all
	most, average      int64 // bytes: of the tasks of that step
	perCPU             bool  // memory was asked for by CPU
	known              rusage.Quantity
}

func (f *figures) perNode() int {
	if f.perCPU {
		return 0
	}
	return 1
}

func figuresOf(r jobs.Row, u *api.Usage) figures {
	f := figures{cpus: max(r.Int(column.CPUs), 1), nodes: max(r.Int(column.NodesMin), 1), tasks: 1}
	if r.Int(column.ArrayJob) != 0 {
		f.arrayID = string(r.AppendName(nil))
	}
	f.asked = r.Int(column.Memory) * f.nodes
	f.perCPU = r.Int(column.MemoryPerCPU) > 0
	f.elapsed = max(r.Elapsed()-r.Int(column.SuspendedFor), 0)
	if u.Used != nil {
		f.cpu, f.known = u.Used.Total.CPUTime(), u.Used.Total.Known&rusage.CPU
	}
	for i := range u.Steps {
		s := u.Steps[i].Used
		if s == nil || !s.Sum.Has(rusage.Memory) {
			continue
		}
		f.known |= rusage.Memory
		if s.Sum.Memory > f.used && s.MaxMemory != nil {
			f.used, f.most, f.tasks = s.Sum.Memory, s.MaxMemory.Value, int64(s.Tasks)
			f.average = s.Sum.Memory / max(f.tasks, 1)
		}
	}
	return f
}

func (q *query) printReport(r jobs.Row, cluster string, f *figures) {
	say := func(format string, args ...any) { fmt.Fprintf(q.Out, format+"\n", args...) }
	say("Job ID: %d", r.Int(column.ID))
	if f.arrayID != "" {
		say("Array Job ID: %s", f.arrayID)
	}
	say("Cluster: %s", cluster)
	say("User/Group: %s/%s", r.Text(column.User), slurmcmd.GroupName(uint32(r.Int(column.GID))))
	state := r.Base()
	if state == job.Pending || state == job.Running {
		say("State: %s", state)
	} else {
		say("State: %s (exit code %d)", state, r.Int(column.ExitStatus))
	}
	if f.cpus == 1 {
		say("Cores: 1")
	} else {
		say("Nodes: %d", f.nodes)
		say("Cores per node: %d", f.cpus/f.nodes)
	}
	if state == job.Pending {
		say("Efficiency not available for jobs in the PENDING state.")
		return
	}
	had := f.elapsed * f.cpus
	if f.known&rusage.CPU != 0 {
		used := int64(math.Round(f.cpu.Seconds()))
		say("CPU Utilized: %s", spanText(used))
		say("CPU Efficiency: %.2f%% of %s core-walltime", percentOf(float64(used), float64(had)), spanText(had))
	} else {
		say("CPU Utilized: unknown")
		say("CPU Efficiency: unknown of %s core-walltime", spanText(had))
	}
	say("Job Wall-clock time: %s", spanText(f.elapsed))
	q.printMemory(f, say)
	if state == job.Running {
		say("The job runs: these are its figures so far.")
	}
}

func (q *query) printMemory(f *figures, say func(string, ...any)) {
	part, of := "node", f.nodes
	if f.perCPU {
		part, of = "core", f.cpus
	}
	all := fmt.Sprintf("%s (%s/%s)", sizeText(f.asked), sizeText(f.asked/of), part)
	switch {
	case f.known&rusage.Memory == 0:
		say("Memory Utilized: unknown")
		say("Memory Efficiency: unknown of %s", all)
	case f.asked == 0:
		say("Memory Utilized: %s", sizeText(f.used))
		say("Memory Efficiency: unknown, no memory was asked for")
	default:
		say("Memory Utilized: %s", sizeText(f.used))
		say("Memory Efficiency: %.2f%% of %s", percentOf(float64(f.used), float64(f.asked)), all)
	}
	if f.average > 0 && f.most > f.average {
		say("The task which had the largest memory consumption differs by %.02f%% from the average task max memory consumption", 100*float64(f.most)/float64(f.average))
	}
}

// percentOf is a part of a whole in per cent.
func percentOf(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return 100 * part / whole
}

// spanText is "1-02:03:04".
func spanText(seconds int64) string {
	text := fmt.Sprintf("%02d:%02d:%02d", seconds/3600%24, seconds/60%60, seconds%60)
	if days := seconds / 86400; days > 0 {
		text = strconv.FormatInt(days, 10) + "-" + text
	}
	return text
}

// sizeText is bytes as seff writes them: "3.10 GB".
func sizeText(n int64) string {
	if n < 1024 {
		return "0.00 MB"
	}
	f, unit := float64(n)/1024, 0
	for f >= 1024 && unit < 5 {
		f, unit = f/1024, unit+1
	}
	return fmt.Sprintf("%.2f %cB", f, "KMGTPE"[unit])
}
