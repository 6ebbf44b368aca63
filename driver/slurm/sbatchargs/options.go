package sbatchargs

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// ofGroup are the claims of one of a job's groups.
func ofGroup(claims []fleet.Claim, group int) []fleet.Claim {
	return slices.DeleteFunc(slices.Clone(claims), func(c fleet.Claim) bool { return c.Group != group })
}

// sharedOptions are the options that all components of a job have.
func (c Settings) sharedOptions(j *job.Job) []string {
	spec := j.Spec
	var out []string
	add := func(name, value string) { out = append(out, "--"+name+"="+value) }
	add("job-name", cmp.Or(spec.Name, spec.Program.ScriptName, "sbatch"))
	out = append(out, c.OwnershipOptions(j)...)
	if spec.TimeLimit > 0 { // in whole minutes to Slurm; the driver sees to the rest
		add("time", strconv.FormatInt(int64((spec.TimeLimit+time.Minute-1)/time.Minute), 10))
	}
	if spec.TimeLimit == 0 && spec.Source.Given["time"] != "" {
		add("time", "UNLIMITED")
	}
	if spec.Nice != 0 || spec.Source.Given["nice"] != "" {
		add("nice", strconv.FormatInt(spec.Nice, 10))
	}
	if s := spec.Signal; s != nil {
		at := ""
		if s.BatchOnly {
			at = "B:"
		}
		add("signal", fmt.Sprintf("%s%d@%d", at, s.Signal, int(s.Before.Seconds())))
	}
	// What Slurm puts back is taken over where it places jobs itself; pinned ones are placed anew.
	if c.AdoptsRequeued(j) {
		return append(out, "--requeue")
	}
	return append(out, "--no-requeue")
}

// OwnershipOptions are the options that say whose a job is, and in which part of the cluster,
// but for those that the pool's options name.
func (c Settings) OwnershipOptions(j *job.Job) []string {
	spec := j.Spec
	var out []string
	for name, value := range map[string]string{"account": spec.Account, "qos": spec.QOS, "partition": strings.Join(spec.Partitions, ","), "reservation": spec.Reservation} {
		if value != "" && !c.HasOption(name) {
			out = append(out, "--"+name+"="+value)
		}
	}
	slices.Sort(out)
	return out
}

// HasOption reports whether the pool's options name an option, without its "--".
func (c Settings) HasOption(name string) bool {
	return slices.ContainsFunc(c.Options, func(o string) bool { return strings.HasPrefix(o, "--"+name+"=") })
}

// pinOptions are the options that put a job where it is to run.
func pinOptions(out []string, g *job.TaskGroup, claims []fleet.Claim) ([]string, error) {
	var names []string
	var memory resource.Amount
	tasks, whole := 0, false
	per, devices := map[string]int{}, map[string]int{}
	for _, c := range claims {
		if !slices.Contains(names, c.Node) {
			names = append(names, c.Node)
		}
		per[c.Node] += c.Tasks
		devices[c.Node] += len(c.Devices)
		tasks += c.Tasks
		memory = max(memory, c.Take.Memory)
		whole = whole || c.Whole
	}
	for _, n := range names {
		if devices[n] != devices[names[0]] {
			return nil, fault.New(fault.Unsupported, "%d devices on %s and %d on %s: Slurm is asked for the same number on each node", devices[names[0]], names[0], devices[n], n)
		}
	}
	out = append(out, fmt.Sprintf("--nodes=%d", len(names)), "--nodelist="+strings.Join(names, ","), fmt.Sprintf("--ntasks=%d", max(tasks, 1)))
	if len(names) > 1 && !slices.ContainsFunc(names, func(n string) bool { return per[n] != per[names[0]] }) {
		out = append(out, fmt.Sprintf("--ntasks-per-node=%d", max(per[names[0]], 1)))
	}
	if c := cpusPerTask(g); c > 1 {
		out = append(out, fmt.Sprintf("--cpus-per-task=%d", c))
	}
	if whole {
		out = append(out, "--exclusive")
	}
	switch {
	case g.AllMemory:
		out = append(out, "--mem=0")
	case memory > 0:
		out = append(out, fmt.Sprintf("--mem=%dM", memory.DivUp(resource.MiB)))
	}
	if n := devices[names[0]]; n > 0 {
		out = append(out, fmt.Sprintf("--gres=%s:%d", gresName(g), n))
	}
	return out, nil
}

// gresName is what the devices of a group are called in --gres: one kind, of one type or any.
func gresName(g *job.TaskGroup) string {
	for _, r := range []resource.Requirements{g.PerNode, g.PerTask, g.Total} {
		if len(r.Devices) > 0 {
			d := r.Devices[0]
			if d.Type != "" {
				return d.KindOf() + ":" + d.Type
			}
			return d.KindOf()
		}
	}
	return "gpu"
}

func cpusPerTask(g *job.TaskGroup) int {
	return max(g.CPUsPerTask, int(g.PerTask.CPU.DivUp(resource.OneCPU)))
}

// AdoptsRequeued reports whether the next attempt takes over a job that Slurm put back into its
// queue: where Slurm places jobs itself, and it is one job to Slurm.
func (c Settings) AdoptsRequeued(j *job.Job) bool {
	return c.adoptsRequeued(j.Spec)
}

func (c Settings) adoptsRequeued(s *job.Spec) bool {
	return s.Requeue && !c.Placed && len(s.Groups) == 1
}

// avoidNodes adds to the options of each group that slurmctld is not to choose some nodes. sbatch counts the last
// --exclude alone, so it has those of the job and of the pool's options, too.
func (c Settings) avoidNodes(groups []job.TaskGroup, of [][]string) ([][]string, error) {
	keep := c.Avoid
	for _, o := range c.Options {
		list, ok := strings.CutPrefix(o, "--exclude=")
		if !ok {
			continue
		}
		names, err := hostlist.Expand(list)
		if err != nil || strings.Contains(list, "/") {
			return nil, fault.New(fault.Unsupported, "the pool's option %s names a file, and sbatch is to keep off nodes that other pools own, too", o).Advise("name the nodes in that option")
		}
		keep = append(slices.Clone(keep), names...)
	}
	if of == nil {
		of = make([][]string, 1)
	}
	for i := range of {
		all := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(keep), groups[i].Exclude...))))
		of[i] = append(of[i], "--exclude="+hostlist.Compress(all))
	}
	return of, nil
}
