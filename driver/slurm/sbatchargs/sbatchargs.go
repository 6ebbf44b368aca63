// Package sbatchargs puts a job in sbatch's terms: its script, the script's arguments, and the
// options of sbatch's command line, for each component of a heterogeneous job.
//
// The model. A batch script of the user's stays what it was, but for directives that must not
// count, which become comments; any other job becomes a script with directives for all that
// it asks for. Options outrank directives: they say what the job has by now. Where the nodes
// are chosen by the caller, options pin the job to them.
//
// Guarantees: the same job gives the same bytes, at the submission and in a preview before it.
// What Slurm has no words for is refused, never left out. Amounts are rounded up to Slurm's
// units.
//
// It does no I/O and knows no cluster. It adds neither the lock (driver/slurm/script) nor the
// pool's own options nor the comment with the tag: the engine does.
package sbatchargs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/containeropt"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// Settings is what a pool says of all its jobs.
type Settings struct {
	Options []string // sbatch's, for every job; what they name is not said again. The caller adds them
	Placed  bool     // the nodes are chosen by the caller; else slurmctld chooses
	Avoid   []string // nodes that slurmctld is not to choose, beside those that a job excludes itself

	Containers ContainerRuntime // how the nodes run images; empty: pyxis
}

// Job is a job as sbatch takes it: a script, its arguments, and options, which outrank the
// script's directives.
type Job struct {
	Script     []byte
	Args       []string
	Options    []string
	Components [][]string // the options of each further component of a heterogeneous job
	Notes      []string   // what was changed in a batch script, for people
}

// Form is the job.Source.Form of a batch script.
const Form = "sbatch"

// Build makes a job's script and options. A batch script stays what it was (rewrite.go); any
// other job becomes one, with directives for all that it asks for. Where the caller chooses the
// nodes, no claims means that they are not chosen yet. It refuses, as fault.Unsupported and
// with the field's name, what Slurm has no words for.
func (c Settings) Build(j *job.Job, ref engine.Ref, claims []fleet.Claim, script []byte) (*Job, error) {
	if j.Spec.Program.Kind == job.Pods {
		var err error
		if j, script, err = c.Containers.podsAsBatch(j, script); err != nil {
			return nil, err
		}
	}
	if err := checkExpressible(j.Spec, c.Placed); err != nil {
		return nil, err
	}
	if err := c.Containers.checkContainer(j.Spec); err != nil {
		return nil, err
	}
	w := &Job{Args: j.Spec.Program.Args, Options: append(c.sharedOptions(j), streamOptions(j)...)}
	groups := j.Spec.Groups
	var of [][]string // options of each group that Slurm is told on its command line
	var err error
	switch {
	case c.Placed && claims == nil: // where it runs is not known yet
		of = make([][]string, len(groups))
	case c.Placed:
		for i := range groups {
			here, err := pinOptions(nil, &groups[i], ofGroup(claims, i))
			if err != nil {
				return nil, err
			}
			of = append(of, here)
		}
	case len(groups) > 1:
		if of, err = c.groupOptions(j.Spec); err != nil {
			return nil, err
		}
	}
	if j.Spec.Source.Form == Form && j.Spec.Program.Kind == job.Batch {
		w.keepScript(j.Spec, script, len(of) > 0)
	} else {
		err = c.writeScript(w, j, ref, script, len(of) > 0)
	}
	if err != nil {
		return nil, err
	}
	if len(c.Avoid) > 0 && !c.Placed {
		if of, err = c.avoidNodes(groups, of); err != nil {
			return nil, err
		}
	}
	for i, opts := range of {
		if i == 0 {
			w.Options = append(w.Options, opts...)
		} else {
			w.Components = append(w.Components, append(c.sharedOptions(j), opts...))
		}
	}
	return w, nil
}

// checkExpressible refuses what Slurm has no words for. Where we choose the nodes most needs none.
func checkExpressible(s *job.Spec, placed bool) error {
	refuse := func(what, remedy string, fields ...string) error {
		return engine.About(fault.New(fault.Unsupported, "%s cannot be said to Slurm", what).Advise("%s", remedy), fields...)
	}
	const elsewhere = ", or name a pool whose nodes Coxswain chooses"
	if s.Upload != nil {
		return refuse("a working directory that comes with the job", "leave --upload out, or name a pool that takes it; on Slurm an administrator sets upload_dir", "upload")
	}
	if s.Pod != nil {
		return refuse("what is asked of pods", "leave kubernetes (or --pods) out, or name a pool of Kubernetes", "kubernetes")
	}
	for i := range s.Groups { // sbatch would read such a file where it runs
		for name, list := range map[string][]string{"nodelist": s.Groups[i].NodeList, "exclude": s.Groups[i].Exclude} {
			if slices.ContainsFunc(list, func(n string) bool { return strings.Contains(n, "/") }) {
				return refuse("a file with names of nodes", "name the nodes, or write --nodefile", name)
			}
		}
	}
	if placed {
		return nil
	}
	switch {
	case s.Within != 0 || s.Wish != (job.Wish{}):
		return refuse("together", "leave it out"+elsewhere, "together")
	case len(s.Levels) > 0 && !slices.ContainsFunc(s.Groups, func(g job.TaskGroup) bool { return g.Within != 0 || g.Wishes.Within.N != 0 }):
		return refuse("the name of a level", "leave it out"+elsewhere, "together", "within")
	}
	for i := range s.Groups {
		switch g := &s.Groups[i]; {
		case g.Within != 0:
			return refuse("within", "write switches: 1 with switches_for, which Slurm waits for at most as long as the site allows"+elsewhere, "within")
		case g.Wishes.Within != (job.Wish{}):
			return refuse("within_for", "write switches: 1 with switches_for"+elsewhere, "within_for")
		case g.Switches != 0:
			return refuse("switches without switches_for", "add switches_for: Slurm gives such a limit up after the site's max_switch_wait"+elsewhere, "switches")
		case len(g.Wishes.GPUs) > 0 || g.Wishes.GPUsFor != 0:
			return refuse("gpu_types", "name one type with the number of GPUs"+elsewhere, "gpu_types", "gpu_types_for")
		case g.Elastic:
			return refuse("elastic", "give a fixed number of nodes", "elastic")
		}
	}
	return nil
}

// directiveSpec is a job without what is not for directives to say: what Coxswain sees to, and what
// options say. Amounts are rounded up to what Slurm counts in.
func (c Settings) directiveSpec(s *job.Spec) *job.Spec {
	p := &job.Spec{
		Name: s.Name, Account: s.Account, QOS: s.QOS, Partitions: s.Partitions, Reservation: s.Reservation, TimeLimit: ceilMinutes(s.TimeLimit), TimeMin: ceilMinutes(s.TimeMin),
		Nice: s.Nice, Requeue: c.adoptsRequeued(s), Signal: s.Signal, Licenses: s.Licenses, Mail: s.Mail, Groups: slices.Clone(s.Groups), WorkDir: s.WorkDir,
		Owner: s.Owner, Program: job.Program{Kind: job.Batch, ScriptName: s.Program.ScriptName},
		Source: job.Source{Form: "slurm", Submit: s.WorkDir, Given: map[string]string{}},
	}
	if how, given := s.Source.Given["exclusive"]; given {
		p.Source.Given["exclusive"] = how
	}
	for name, clear := range map[string]func(){
		"account": func() { p.Account = "" }, "qos": func() { p.QOS = "" }, "partition": func() { p.Partitions = nil }, "reservation": func() { p.Reservation = "" },
	} {
		if c.HasOption(name) {
			clear()
		}
	}
	for i := range p.Groups {
		g := &p.Groups[i]
		g.Name, g.Tasks.Min = "", 0
		for _, v := range []*resource.Vector{&g.PerNode.Vector, &g.PerTask.Vector, &g.PerDevice} {
			v.CPU, v.Memory, v.Disk = roundUp(v.CPU, resource.OneCPU), roundUp(v.Memory, resource.MiB), roundUp(v.Disk, resource.MiB)
		}
		if n := cpusPerTask(g); n > 1 {
			g.CPUsPerTask = n
		}
		perTask(g)
	}
	return p
}

// perTask says memory of tasks by node, or by CPU, as Slurm has it.
func perTask(g *job.TaskGroup) {
	if g.PerTask.Memory == 0 || g.AllMemory {
		return
	}
	if g.TasksPerNode > 0 && g.PerNode.Memory == 0 && g.PerDevice.Memory == 0 && g.PerTask.Memory%resource.Amount(max(cpusPerTask(g), 1)) != 0 {
		g.PerNode.Memory, g.PerTask.Memory = g.PerTask.Memory.Mul(g.TasksPerNode), 0
		return
	}
	n := resource.Amount(max(cpusPerTask(g), 1))
	g.PerTask.CPU = max(g.PerTask.CPU, resource.OneCPU)
	g.PerTask.Memory = roundUp(g.PerTask.Memory.DivUp(n), resource.MiB).Mul(int(n))
}

func roundUp(a, unit resource.Amount) resource.Amount {
	if a == resource.Unlimited {
		return a
	}
	return a.DivUp(unit).Mul(int(unit))
}

func ceilMinutes(d time.Duration) time.Duration {
	return (d + time.Minute - 1) / time.Minute * time.Minute
}

// renderDirectives is a job's directives above a script, with what cannot be said exactly refused.
func renderDirectives(p *job.Spec, form string, script []byte) ([]byte, error) {
	text, warnings := sbatch.Render(p, script)
	if len(warnings) > 0 && form != "" {
		w := warnings[0]
		return nil, engine.About(fault.New(fault.Unsupported, "what the job asks for cannot be said to Slurm: %s", strings.TrimSpace(w.Option+" "+w.Message)).
			Advise("ask for it in another way, or name a pool whose nodes Coxswain chooses"), strings.TrimPrefix(w.Option, "--"))
	}
	return text, nil
}

// groupOptions are the options for what each group of a job asks for.
func (c Settings) groupOptions(s *job.Spec) ([][]string, error) {
	p := c.directiveSpec(s)
	p.Source.Given = nil
	// Its name and output are those that sbatch gives what has none, and are said for all.
	bare := &job.Spec{Name: "job", Output: job.Output{Stdout: "slurm-%j.out"}, WorkDir: p.WorkDir, Owner: p.Owner, Program: p.Program, Source: p.Source, Groups: p.Groups, TimeMin: p.TimeMin, TimeLimit: p.TimeLimit, Licenses: p.Licenses, Mail: p.Mail}
	text, err := renderDirectives(bare, s.Source.Form, []byte("#!/bin/sh\n"))
	if err != nil {
		return nil, err
	}
	read, err := sbatch.Read(spec.Source{Name: "job", Data: text})
	if err != nil {
		return nil, fault.New(fault.Internal, "%w", err)
	}
	var out [][]string
	for _, component := range read.Components {
		var opts []string
		for i := range component {
			if d := &component[i]; !slices.Contains(always, d.Option) {
				opts = append(opts, formatOption(d.Option, d.Value, d.HasValue))
			}
		}
		out = append(out, opts)
	}
	for len(out) < len(s.Groups) {
		out = append(out, nil)
	}
	return out, nil
}

func formatOption(name, value string, has bool) string {
	if !has {
		return "--" + name
	}
	return "--" + name + "=" + value
}

// writeScript makes a script of a job that did not come as one. pinned: what its groups ask for is
// said in options.
func (c Settings) writeScript(w *Job, j *job.Job, ref engine.Ref, script []byte, pinned bool) error {
	s := j.Spec
	p := c.directiveSpec(s)
	for i, file := range outputPatterns(j) {
		*[]*string{&p.Output.Stdout, &p.Output.Stderr}[i] = file
	}
	if pinned {
		p.Groups = []job.TaskGroup{{}}
	}
	switch s.Program.Kind {
	case job.Direct:
		script, w.Args = c.directScript(s), nil
	case job.BareAllocation:
		script, w.Args = []byte(allocationScript), nil
	case job.Batch:
		switch {
		case s.Image == "":
		case c.Containers.isCommand():
			script = c.Containers.boxedScript(s, script)
		default: // pyxis has sbatch run the script inside
			w.Options = append(w.Options, containeropt.Words(s.Image, containerOf(s))...)
		}
	}
	form := s.Source.Form
	if pinned {
		form = "" // options say it
	}
	text, err := renderDirectives(p, form, script)
	if err != nil {
		return err
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	var b bytes.Buffer
	b.Write(first)
	b.WriteByte('\n')
	for _, line := range scriptHeader(j, ref) {
		b.WriteString("# " + oneLine(line) + "\n")
	}
	b.Write(rest)
	w.Script = b.Bytes()
	return nil
}

// scriptHeader says in a script what job it is and where it comes from.
func scriptHeader(j *job.Job, ref engine.Ref) []string {
	s := j.Spec
	what := fmt.Sprintf("Job %d of Coxswain, attempt %s", j.ID, ref)
	if a := j.Array; a != nil {
		what += fmt.Sprintf(", task %d of array %d", a.Index, a.Job)
	}
	var from []string
	if s.Source.Form != "" {
		from = append(from, "form "+s.Source.Form)
	}
	if s.Source.File != "" {
		from = append(from, "file "+s.Source.File)
	}
	if s.Source.Host != "" || s.Source.Submit != "" {
		from = append(from, "submitted from "+strings.TrimPrefix(s.Source.Host+":"+s.Source.Submit, ":"))
	}
	out := []string{what + "."}
	if len(from) > 0 {
		out = append(out, "It came as "+strings.Join(from, ", ")+"; the directives below were made of that.")
	}
	for i := range s.Groups {
		if name := s.Groups[i].Name; name != "" {
			out = append(out, fmt.Sprintf("Group %d is %s.", i, name))
		}
	}
	return out
}

// oneLine is a text without line ends and other characters that a comment cannot have.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
}

// EndWell and EndBadly are the signals by which the script of an allocation ends with 0 and with 1.
const (
	EndWell  = 15
	EndBadly = 12
)

// allocationScript keeps an allocation in which clients start steps, until it is cancelled.
const allocationScript = `#!/bin/sh

# Nothing runs here: this keeps the nodes for steps that are started from outside.
trap 'kill "$pause"; exit 0' TERM
trap 'kill "$pause"; exit 1' USR2
while :; do
	sleep 3600 &
	pause=$!
	wait "$pause"
done
`

// directScript is the script of a job whose tasks run a command. srun of 22.05 takes the number of
// CPUs of a task not from the job, and without a word of components it runs in the first.
func (c Settings) directScript(s *job.Spec) []byte {
	var b strings.Builder
	b.WriteString("srun")
	if n := len(s.Groups); n > 1 {
		fmt.Fprintf(&b, " --het-group=0-%d", n-1)
	} else if n == 1 && cpusPerTask(&s.Groups[0]) > 1 {
		fmt.Fprintf(&b, " --cpus-per-task=%d", cpusPerTask(&s.Groups[0]))
	}
	if s.KillOnBadExit {
		b.WriteString(" --kill-on-bad-exit=1")
	}
	boxed := s.Image != "" && c.Containers.isCommand()
	if !boxed {
		for _, w := range containeropt.Words(s.Image, containerOf(s)) {
			b.WriteString(" " + shellWord(w))
		}
	}
	for _, w := range s.Program.Step {
		b.WriteString(" " + shellWord(w))
	}
	if boxed {
		return c.Containers.directScript(s, b.String())
	}
	for _, w := range s.Program.Args {
		b.WriteString(" " + shellWord(w))
	}
	return []byte("#!/bin/sh\n\n# Every task runs this.\nexec " + b.String() + "\n")
}

// containerOf is how the container of a command runs: with the working directory of the job mounted,
// where its form is not Slurm's.
func containerOf(s *job.Spec) *job.Container {
	c := job.Container{}
	if s.Container != nil {
		c = *s.Container
	}
	if s.Image == "" || s.Source.Form == Form || s.Source.Form == podForm || c.WorkDir != "" {
		return &c
	}
	c.WorkDir = s.WorkDir
	if !slices.ContainsFunc(c.Mounts, func(m job.Mount) bool { return m.Target == s.WorkDir }) {
		c.Mounts = append(slices.Clip(c.Mounts), job.Mount{Source: s.WorkDir, Target: s.WorkDir})
	}
	return &c
}

// shellWord makes one word of a text for a shell.
func shellWord(s string) string {
	plain := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=:,+@%", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
