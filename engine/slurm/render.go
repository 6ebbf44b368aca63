package slurm

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine/slurm/script"
	"github.com/coxswain-sched/coxswain/engine/slurm/site"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/fleet"
	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/resource"
	"github.com/coxswain-sched/coxswain/slurmfmt"
)

// submission is an attempt as it is handed over. A script stays what it was, with its lock
// added (engine/slurm/script): what the job asks for by now is said in options, which
// outrank its directives.
func (e *Engine) submission(a *attempt) (*site.Submission, error) {
	o := a.order
	opts, more, err := options(e, o.Job, o.Claims)
	if err != nil {
		return nil, err
	}
	spec := o.Job.Spec
	text, args := o.Script, spec.Program.Args
	if spec.Program.Kind == job.Direct {
		text, args = direct(spec.Program.Args), nil
	}
	s := &site.Submission{
		Script: script.Wrap(inert(text), &a.guard), Args: args, Env: append(slices.Clone(o.Env), numbers(o.Job, &a.guard)...), Dir: spec.WorkDir,
		Options: append(append(slices.Clone(e.cfg.Options), opts...), "--comment="+comment(a)),
	}
	for _, of := range more {
		s.Components = append(s.Components, append(append(slices.Clone(e.cfg.Options), of...), "--comment="+comment(a)))
	}
	s.User = a.user
	return s, nil
}

// comment is what an attempt's job has for a comment: its tag, and what the user says.
func comment(a *attempt) string {
	if text := a.order.Job.Spec.Comment; text != "" {
		return a.tag + " " + text
	}
	return a.tag
}

// direct is the script of a job whose tasks run a command.
func direct(command []string) []byte {
	var b bytes.Buffer
	b.WriteString("#!/bin/sh\nexec srun")
	for _, arg := range command {
		b.WriteString(" '" + strings.ReplaceAll(arg, "'", `'\''`) + "'")
	}
	b.WriteString("\n")
	return b.Bytes()
}

// ours are directives about when and how often a job begins: Coxswain has seen to these,
// and no option on the command line takes them back.
var ours = regexp.MustCompile(`^#SBATCH\s.*(?:^|\s)(?:-a|-H|-d|-b|--array|--hold|--dependency|--begin|--wait|-W|--test-only|--parsable|--clusters|-M)(?:[\s=]|\d|$)`)

// inert returns a script whose directives of that sort are comments.
func inert(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		if ours.Match(bytes.TrimRight(line, "\r\n")) {
			b.WriteByte('#')
		}
		b.Write(line)
	}
	return b.Bytes()
}

// numbers are variables that say what the job is here, and which task of its array it is:
// to slurmctld it is a job of its own.
func numbers(j *job.Job, g *script.Guard) []string {
	out := []string{fmt.Sprintf("COX_JOB_ID=%d", j.ID), "COX_ATTEMPT=" + g.Dir + ":" + g.Ref.String()}
	if a := j.Array; a != nil {
		out = append(out, fmt.Sprintf("SLURM_ARRAY_JOB_ID=%d", a.Job), fmt.Sprintf("SLURM_ARRAY_TASK_ID=%d", a.Index))
	}
	return out
}

// options are sbatch's for what a job asks for, and for where it is to run: those of the
// job, or of its first component, and those of the components behind it.
func options(e *Engine, j *job.Job, claims []fleet.Claim) (first []string, more [][]string, err error) {
	spec := j.Spec
	shared := e.shared(j)
	for i := range spec.Groups {
		of := slices.Clone(shared)
		if i == 0 {
			of = append(of, streams(j)...)
		}
		if e.cfg.Placed {
			of, err = pinned(of, &spec.Groups[i], ofGroup(claims, i))
		} else {
			of = delegated(of, &spec.Groups[i])
		}
		if err != nil {
			return nil, nil, err
		}
		if i == 0 {
			first = of
		} else {
			more = append(more, of)
		}
	}
	return first, more, nil
}

// ofGroup are the claims of one of a job's groups.
func ofGroup(claims []fleet.Claim, group int) []fleet.Claim {
	return slices.DeleteFunc(slices.Clone(claims), func(c fleet.Claim) bool { return c.Group != group })
}

// shared are the options that all components of a job have.
func (e *Engine) shared(j *job.Job) []string {
	spec := j.Spec
	var out []string
	add := func(name, value string) { out = append(out, "--"+name+"="+value) }
	add("job-name", cmp.Or(spec.Name, spec.Program.ScriptName, "sbatch"))
	out = append(out, e.belongs(j)...)
	if spec.TimeLimit > 0 { // in whole minutes to Slurm; the driver sees to the rest
		add("time", strconv.FormatInt(int64((spec.TimeLimit+time.Minute-1)/time.Minute), 10))
	}
	if spec.Nice != 0 {
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
	if e.adoptable(j) {
		return append(out, "--requeue")
	}
	return append(out, "--no-requeue")
}

// belongs are the options that say whose a job is, and in which part of the cluster.
func (e *Engine) belongs(j *job.Job) []string {
	spec := j.Spec
	var out []string
	for name, value := range map[string]string{"account": spec.Account, "qos": spec.QOS, "partition": strings.Join(spec.Partitions, ","), "reservation": spec.Reservation} {
		if value != "" && !said(e.cfg.Options, name) {
			out = append(out, "--"+name+"="+value)
		}
	}
	slices.Sort(out)
	return out
}

// streams are the options of a job's standard files.
func streams(j *job.Job) []string {
	spec := j.Spec
	var out []string
	add := func(name, value string) { out = append(out, "--"+name+"="+value) }
	files := outputs(j)
	add("output", slurmName(files[0]))
	if len(files) > 1 {
		add("error", slurmName(files[1]))
	}
	if spec.Output.Append || j.Attempt > 1 {
		add("open-mode", "append")
	} else {
		add("open-mode", "truncate")
	}
	if in := spec.Output.Stdin; in != "" {
		add("input", slurmName(in))
	}
	return out
}

// said reports whether an option stands among others.
func said(opts []string, name string) bool {
	return slices.ContainsFunc(opts, func(o string) bool { return strings.HasPrefix(o, "--"+name+"=") })
}

// pinned are the options that put a job where it is to run.
func pinned(out []string, g *job.TaskGroup, claims []fleet.Claim) ([]string, error) {
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
	if c := cpus(g); c > 1 {
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
		out = append(out, fmt.Sprintf("--gres=%s:%d", device(g), n))
	}
	return out, nil
}

// device is what the devices of a group are called in --gres: one kind, of one type or any.
func device(g *job.TaskGroup) string {
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

func cpus(g *job.TaskGroup) int {
	return max(g.CPUsPerTask, int(g.PerTask.CPU.DivUp(resource.OneCPU)))
}

// delegated are the options for what a job asks for, wherever it runs.
func delegated(out []string, g *job.TaskGroup) []string {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf("--"+format, args...)) }
	switch n := g.Nodes; {
	case n.Min > 0 && n.Max > n.Min:
		add("nodes=%d-%d", n.Min, n.Max)
	case n.Min > 0:
		add("nodes=%d", n.Min)
	}
	if g.Tasks.Want > 0 {
		add("ntasks=%d", g.Tasks.Want)
	}
	if g.TasksPerNode > 0 {
		add("ntasks-per-node=%d", g.TasksPerNode)
	}
	if c := cpus(g); c > 1 {
		add("cpus-per-task=%d", c)
	}
	switch tasks := max(g.TasksPerNode, 1); {
	case g.AllMemory:
		add("mem=0")
	case g.PerNode.Memory > 0:
		add("mem=%dM", g.PerNode.Memory.DivUp(resource.MiB))
	case g.PerTask.Memory > 0 && g.TasksPerNode > 0:
		add("mem=%dM", g.PerTask.Memory.Mul(tasks).DivUp(resource.MiB))
	case g.PerTask.Memory > 0:
		add("mem-per-cpu=%dM", g.PerTask.Memory.DivUp(resource.MiB*resource.Amount(max(cpus(g), 1))))
	}
	for name, r := range map[string]resource.Requirements{"gres": g.PerNode, "gpus-per-task": g.PerTask, "gpus": g.Total} {
		for _, d := range r.Devices {
			what := d.Type
			if name == "gres" {
				what = strings.TrimSuffix(d.KindOf()+":"+d.Type, ":")
			}
			add("%s=%s", name, strings.TrimPrefix(fmt.Sprintf("%s:%d", what, d.Count), ":"))
		}
	}
	if g.Exclusive {
		add("exclusive")
	}
	if len(g.NodeList) > 0 {
		add("nodelist=%s", strings.Join(g.NodeList, ","))
	}
	if len(g.Exclude) > 0 {
		add("exclude=%s", strings.Join(g.Exclude, ","))
	}
	return out
}

// outputs are the files of a job's output, absolute; %N alone is left for Slurm.
func outputs(j *job.Job) []string {
	spec := j.Spec
	n := slurmfmt.Names{
		Job: uint64(j.ID), ArrayJob: uint64(j.ID), Task: slurmfmt.NotArray, JobName: cmp.Or(spec.Name, spec.Program.ScriptName, "sbatch"), User: spec.Owner.User,
		Node: "%N", Step: "batch", Restarts: max(int(j.Attempt)-1, 0),
	}
	standard := "slurm-%j.out"
	if j.Array != nil {
		n.ArrayJob, n.Task, standard = uint64(j.Array.Job), j.Array.Index, "slurm-%A_%a.out"
	}
	name := func(pattern string) string {
		file := slurmfmt.ExpandName(pattern, n)
		if !filepath.IsAbs(file) {
			file = filepath.Join(spec.WorkDir, file)
		}
		return filepath.Clean(file)
	}
	out := []string{name(cmp.Or(spec.Output.Stdout, standard))}
	if spec.Output.Stderr != "" {
		if file := name(spec.Output.Stderr); file != out[0] {
			out = append(out, file)
		}
	}
	return out
}

// slurmName is a file's name as sbatch takes it for that and nothing else.
func slurmName(file string) string {
	return strings.ReplaceAll(strings.ReplaceAll(file, "%", "%%"), "%%N", "%N")
}
