package native

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/launcher"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// Options say what stands around a job. The zero value is usable.
type Options struct {
	Owner job.Owner
	Host  string // where it is submitted
	Dir   string // directory it is submitted from, absolute

	Now          time.Time // for begin and deadline; zero: time.Now()
	MaxArraySize uint32    // array indices stay below it; 0: slurmfmt.MaxArraySize
	Mail         bool      // mail can be sent from here
	// Webhook says why jobs may not have this webhook; nil: none is sent from here.
	Webhook    func(url string) error
	ScriptArgs []string // from the command line: they replace the file's args
	Args       []string // options of sbatch from the command line: they replace the file's fields

	// ReadFile reads the file of --nodefile. If nil the option is refused.
	ReadFile func(name string) ([]byte, error)
}

// defaultOutput are the files of a script that names none.
const (
	defaultOutput      = "slurm-%j.out"
	defaultArrayOutput = "slurm-%A_%a.out"
)

// Parse reads a job and, if it is a script that runs, the script. Warnings come in
// the order of lines and also with an error. The error is a *spec.Error, which holds
// all that was found.
func Parse(src spec.Source, opts Options) (s *job.Spec, script []byte, warnings []spec.Warning, err error) {
	doc, err := yaml.Parse(src)
	if err != nil {
		return nil, nil, nil, err
	}
	return ParseDocument(doc, src.Name, opts)
}

// ParseDocument is Parse for a text that yaml.Parse has taken apart.
func ParseDocument(doc *yaml.Document, file string, opts Options) (s *job.Spec, script []byte, warnings []spec.Warning, err error) {
	if kind := doc.Root.Get("kind"); IsService(doc) {
		return nil, nil, nil, doc.Error(kind.Place, "a service is not a job", "submit it: cox submit FILE; cox run FILE runs it here until Ctrl-C")
	}
	d, warnings, err := parseDocument(doc, file, opts)
	if err != nil {
		return nil, nil, warnings, err
	}
	return d.spec, d.script, warnings, nil
}

// parseDocument reads a job or, of kind: service, a service.
func parseDocument(doc *yaml.Document, file string, opts Options) (*draft, []spec.Warning, error) {
	if opts.Now.IsZero() {
		opts.Now = time.Now()
	}
	if opts.MaxArraySize == 0 {
		opts.MaxArraySize = slurmfmt.MaxArraySize
	}
	p := &parser{opts: opts, doc: doc, file: file, owners: map[string]bool{}, services: map[string]bool{}}
	for _, f := range jobFields {
		p.owners[f.name] = true
	}
	for _, f := range serviceFields {
		p.services[f.name] = !IsService(doc)
	}
	if len(opts.Args) > 0 {
		p.doc = p.layOptions(doc, opts.Args)
	}
	d := p.parseJob(file)
	p.layContainer(d.spec, p.container)
	if d.service != nil {
		p.finishService(d, file)
	}
	slices.SortStableFunc(p.warnings, func(a, b spec.Warning) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	return d, p.warnings, spec.Join(p.errs)
}

// draft is a job while its fields are read.
type draft struct {
	spec   *job.Spec
	script []byte

	launcher launcher.Kind // empty: none
	flat     groupDraft    // the fields of a group that stand at the top
	groups   []groupDraft

	together time.Duration // how long that is insisted on

	service  *service.Spec      // nil: it is a job
	schedule *schedule.Settings // nil: it runs once
	portUses []value            // places of the document that name a port of it

	given map[string]value // what was written, by name
}

func (p *parser) parseJob(name string) *draft {
	d := &draft{spec: &job.Spec{Owner: p.opts.Owner, WorkDir: p.opts.Dir}, given: map[string]value{}}
	root := p.doc.Root
	if root.Kind != yaml.Mapping {
		p.addError(yaml.Place{Line: 1, Col: 1, Len: 0}, "", "begin with name: NAME, then what it needs and what it runs", "holds %s where the fields of a job are expected", root.Kind)
		return d
	}
	for _, f := range root.Fields {
		d.given[f.Name] = value{Node: f.Value, path: f.Name, name: f.Name, at: f.Place}
	}
	d.flat.given = map[string]value{}
	fields := workFields
	if IsService(p.doc) {
		d.beginService()
		fields = documentFields
	}
	decodeFields(p, "", root, fields, d)
	p.finishJob(d, name)
	return d
}

// finishJob settles what fields decide together.
func (p *parser) finishJob(d *draft, file string) {
	s := d.spec
	base := path.Base(file)
	if file == "" || file == "-" {
		base = "job"
	}
	if s.Name == "" {
		s.Name = strings.TrimSuffix(strings.TrimSuffix(base, ".yaml"), ".yml")
	}
	p.settleProgram(d, base)
	p.settleGroups(d)
	p.settleLauncher(d, base)
	if v, ok := d.given["time_min"]; ok && s.TimeLimit > 0 && s.TimeMin > s.TimeLimit {
		p.failValue(v, "", "is longer than the time limit, %s", formatDuration(s.TimeLimit))
	}
	if v, ok := d.given["deadline"]; ok && !s.Deadline.IsZero() && !s.Deadline.After(p.opts.Now) {
		p.failValue(v, "", "is over: it is %s", p.opts.Now.Format(time.RFC3339))
	}
	if v, ok := d.given["array"]; ok && len(s.Groups) > 1 {
		p.failValue(v, "submit one such job for each index", "cannot be combined with several groups")
	}
	if v, ok := d.given["depends_fail"]; ok && s.Depends.IsZero() {
		p.failValue(v, "say what it depends on by depends:", "needs depends")
	}
	p.warnNoEffect(d)
	s.Source = job.Source{Form: "native", File: file, Host: p.opts.Host, Submit: p.opts.Dir, Given: givenOptions(d), Lines: lineRange(p.doc.Root)}
}

// lineRange are the first and the last line on which a field begins.
func lineRange(root *yaml.Node) [2]int {
	own := slices.DeleteFunc(slices.Clone(root.Fields), func(f yaml.Field) bool { return f.Place.Line < 0 })
	if len(own) == 0 {
		return [2]int{}
	}
	return [2]int{own[0].Place.Line, own[len(own)-1].Place.Line}
}

// settleProgram settles what runs and where its output goes.
func (p *parser) settleProgram(d *draft, base string) {
	s := d.spec
	script, hasScript := d.given["script"]
	command, hasCommand := d.given["command"]
	args, hasArgs := d.given["args"]
	switch {
	case hasScript && hasCommand:
		p.failValue(command, "say one of them", "script and command exclude each other: script runs once, on the first node, command in every task")
		return
	case !hasScript && !hasCommand:
		p.addError(yaml.Place{Line: 1, Col: 1}, "", "add command: COMMAND for every task, or script: | and the lines of a script for the first node", "nothing to run")
		return
	case hasArgs && hasCommand:
		p.failValue(args, "put them into command: [COMMAND, ARGUMENT, …]", "belongs to script")
		return
	}
	s.Program.Kind = job.Direct
	_, killSaid := d.given["kill_on_bad_exit"]
	if hasCommand {
		s.KillOnBadExit = s.KillOnBadExit || !killSaid
		return
	}
	s.Program.Kind, s.Program.ScriptName = job.Batch, base
	if p.opts.ScriptArgs != nil {
		s.Program.Args = p.opts.ScriptArgs
	}
	if killSaid {
		p.addWarning(d.given["kill_on_bad_exit"], "has no effect with script: srun has an option of that name")
	}
	p.defaultOutputs(s)
	for i, line := range strings.Split(string(d.script), "\n") {
		if strings.HasPrefix(line, "#SBATCH") {
			p.addWarning(script, "has a line #SBATCH (its line %d), which is not read here: write the fields of this file", i+1)
			break
		}
	}
}

// defaultOutputs names the file of a script that names none.
func (p *parser) defaultOutputs(s *job.Spec) {
	if s.Output.Stdout != "" {
		return
	}
	s.Output.Stdout = defaultOutput
	if s.Array != nil {
		s.Output.Stdout = defaultArrayOutput
	}
}

// settleGroups settles the task groups.
func (p *parser) settleGroups(d *draft) {
	list := d.groups
	if v, ok := d.given["groups"]; !ok {
		list = []groupDraft{d.flat}
	} else {
		for name, top := range d.flat.given {
			p.failValue(top, "move it into the groups that it is for", "%s stands beside groups (line %d)", name, v.at.Line)
		}
	}
	for i := range list {
		d.spec.Groups = append(d.spec.Groups, p.settleGroup(&list[i]))
	}
	if v, given := d.given["together_for"]; given && d.spec.Within == 0 {
		p.failValue(v, "add together:", "is for together, which is not given")
	} else if given {
		d.spec.Wish, d.spec.Within = job.Wish{N: d.spec.Within, For: d.together}, 0
	}
	d.spec.Levels = p.names.Levels
}
