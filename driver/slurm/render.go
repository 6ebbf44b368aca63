package slurm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/step/env"
	"github.com/coxswain-sched/coxswain/driver/slurm/script"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// renderSubmission is an attempt as it is handed over: the job as words says it, with its lock
// added (driver/slurm/script).
func (e *Engine) renderSubmission(a *attempt) (*site.Submission, error) {
	o := a.order
	w := a.sbatch
	if w == nil {
		var err error
		if w, err = e.buildSbatchJob(o.Job, a.ref, o.Claims, o.Script); err != nil {
			return nil, err
		}
	}
	s := &site.Submission{
		Script: script.Wrap(w.script, &a.guard), Args: w.args, Env: jobEnvironment(o, &a.guard), Dir: o.Job.Spec.WorkDir,
		Options: append(append(slices.Clone(e.cfg.Options), w.options...), "--comment="+jobComment(a)), User: a.user,
	}
	for _, of := range w.more {
		s.Components = append(s.Components, append(append(slices.Clone(e.cfg.Options), of...), "--comment="+jobComment(a)))
	}
	return s, nil
}

// jobComment is what an attempt's job has for a comment: its tag, and what the user says.
func jobComment(a *attempt) string {
	if text := a.order.Job.Spec.Comment; text != "" {
		return a.tag + " " + text
	}
	return a.tag
}

// jobEnvironment is a job's: what --export lets through of the submission's, what is set last,
// and our own. What sbatch would read for its own options is left out, for these were read
// when the job was submitted here, and so is how often another job was put back. --export other than ALL has slurmd add what a login sets,
// as sbatch has it.
func jobEnvironment(o *order, g *script.Guard) []string {
	spec := o.Job.Spec
	base := slices.DeleteFunc(slices.Clone(o.Env), func(v string) bool {
		return strings.HasPrefix(v, "SBATCH_")
	})
	out := env.Exported(base, spec.Env.Export)
	if x := spec.Env.Export; x != "" && x != "NIL" && !slices.Contains(strings.Split(x, ","), "ALL") {
		out = append(out, "SLURM_GET_USER_ENV=1")
	}
	out = slices.DeleteFunc(append(out, spec.Env.Set...), func(v string) bool {
		return strings.HasPrefix(v, "SLURM_RESTART_COUNT=") // the lock's name has it
	})
	return append(out, identityVariables(o.Job, g)...)
}

// identityVariables are variables that say what the job is here, and which task of its array it is:
// to slurmctld it is a job of its own.
func identityVariables(j *job.Job, g *script.Guard) []string {
	out := []string{fmt.Sprintf("COX_JOB_ID=%d", j.ID), "COX_ATTEMPT=" + g.Dir + ":" + g.Ref.String()}
	if a := j.Array; a != nil {
		for _, v := range []struct {
			name  string
			value uint64
		}{{"JOB_ID", uint64(a.Job)}, {"TASK_ID", uint64(a.Index)}, {"TASK_COUNT", uint64(a.Count)}, {"TASK_MIN", uint64(a.Min)}, {"TASK_MAX", uint64(a.Max)}, {"TASK_STEP", uint64(a.Step)}} {
			out = append(out, fmt.Sprintf("SLURM_ARRAY_%s=%d", v.name, v.value))
		}
	}
	return out
}

// ofGroup are the claims of one of a job's groups.
func ofGroup(claims []fleet.Claim, group int) []fleet.Claim {
	return slices.DeleteFunc(slices.Clone(claims), func(c fleet.Claim) bool { return c.Group != group })
}

// sharedOptions are the options that all components of a job have.
func (e *Engine) sharedOptions(j *job.Job) []string {
	spec := j.Spec
	var out []string
	add := func(name, value string) { out = append(out, "--"+name+"="+value) }
	add("job-name", cmp.Or(spec.Name, spec.Program.ScriptName, "sbatch"))
	out = append(out, e.ownershipOptions(j)...)
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
	if e.canAdoptRequeued(j) {
		return append(out, "--requeue")
	}
	return append(out, "--no-requeue")
}

// ownershipOptions are the options that say whose a job is, and in which part of the cluster.
func (e *Engine) ownershipOptions(j *job.Job) []string {
	spec := j.Spec
	var out []string
	for name, value := range map[string]string{"account": spec.Account, "qos": spec.QOS, "partition": strings.Join(spec.Partitions, ","), "reservation": spec.Reservation} {
		if value != "" && !hasOption(e.cfg.Options, name) {
			out = append(out, "--"+name+"="+value)
		}
	}
	slices.Sort(out)
	return out
}

// hasOption reports whether an option stands among others.
func hasOption(opts []string, name string) bool {
	return slices.ContainsFunc(opts, func(o string) bool { return strings.HasPrefix(o, "--"+name+"=") })
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
