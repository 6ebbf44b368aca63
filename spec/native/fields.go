package native

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// jobFields are the fields of a job as a whole, in the order in which Render writes
// them. topFields adds those of a group, for jobs with one.
var jobFields = []field[draft]{
	{name: "version", form: form{text: "v1", schema: func() schema { return schema{"const": "v1"} }}, doc: "the version of this form", also: []string{"apiVersion"}, set: setVersion},
	{name: "name", form: aText, doc: "name of the job; the file's name if not given", sbatch: "job-name", set: text(func(d *draft) *string { return &d.spec.Name })},
	{name: "comment", form: aText, doc: "free text", sbatch: "comment", also: []string{"description"}, set: text(func(d *draft) *string { return &d.spec.Comment })},
	{name: "account", form: aText, doc: "who pays", sbatch: "account", also: []string{"project"}, set: text(func(d *draft) *string { return &d.spec.Account })},
	{name: "qos", form: aText, doc: "quality of service", sbatch: "qos", set: text(func(d *draft) *string { return &d.spec.QOS })},
	{name: "partition", form: aList, doc: "where it may run; several: any of them", sbatch: "partition", also: []string{"partitions", "queue", "pool"}, set: func(p *parser, d *draft, v value) { d.spec.Partitions = p.list(v) }},
	{name: "reservation", form: aText, doc: "a reservation to run in", sbatch: "reservation", set: text(func(d *draft) *string { return &d.spec.Reservation })},
	{name: "licenses", form: aList, doc: "licences to hold, name or name:count", sbatch: "licenses", also: []string{"licences"}, set: func(p *parser, d *draft, v value) { d.spec.Licenses = strings.Join(p.list(v), ",") }},
	{name: "time", form: aDuration, doc: "limit of the run time", sbatch: "time", also: []string{"time_limit", "timelimit", "walltime", "timeout"}, set: func(p *parser, d *draft, v value) { d.spec.TimeLimit = p.duration(v) }},
	{name: "time_min", form: aDuration, doc: "the limit may be lowered to this if it can start earlier so", sbatch: "time-min", set: func(p *parser, d *draft, v value) { d.spec.TimeMin = p.duration(v) }},
	{name: "begin", form: aWhen, doc: "not before this time", sbatch: "begin", also: []string{"start"}, set: func(p *parser, d *draft, v value) { d.spec.Begin = p.when(v) }},
	{name: "deadline", form: aWhen, doc: "must have ended by this time", sbatch: "deadline", set: func(p *parser, d *draft, v value) { d.spec.Deadline = p.when(v) }},
	{name: "hold", form: aBool, doc: "wait until it is released", sbatch: "hold", also: []string{"held"}, set: boolean(func(d *draft) *bool { return &d.spec.Held })},
	{name: "nice", form: aNumber(-maxNice, maxNice), doc: "is subtracted from the priority", sbatch: "nice", set: func(p *parser, d *draft, v value) { d.spec.Nice = p.number(v, -maxNice, maxNice) }},
	{name: "priority", form: aNumber(0, maxPriority), doc: "asked for; larger goes first", sbatch: "priority", set: func(p *parser, d *draft, v value) { d.spec.Priority = p.number(v, 0, maxPriority) }},
	{name: "depends", form: aDepends, doc: "what must have happened to other jobs; all of a list, any of a text with ?", sbatch: "dependency", also: []string{"depends_on", "after", "needs"}, set: setDepends},
	{name: "depends_fail", form: aBool, doc: "end the job if depends can never be met, instead of letting it wait", sbatch: "kill-on-invalid-dep", set: setDependsFail},
	{name: "array", form: aArray, doc: "run once for each index: 0-15, 1-9:2, 1,5,7; %4 or max_running: at most 4 at a time", sbatch: "array", also: []string{"indices"}, set: setArray},
	{name: "requeue", form: aBool, doc: "may run again from its beginning", sbatch: "requeue", also: []string{"restart", "retry"}, set: boolean(func(d *draft) *bool { return &d.spec.Requeue })},
	{name: "signal", form: form{text: "[B:]USR1[@seconds]", schema: scalar}, doc: "sent that long before the time limit; B: to the script alone", sbatch: "signal", set: setSignal},
	{name: "mail", form: aMail, doc: "when to write to whom", sbatch: "mail-type", also: []string{"notify", "mail_type", "mail_user", "email"}, set: setMail},
	{name: "image", form: aText, doc: "container image of every task", also: []string{"container", "container_image"}, set: text(func(d *draft) *string { return &d.spec.Image })},
	{name: "workdir", form: aText, doc: "directory it runs in; that of the submission if not given", sbatch: "chdir", also: []string{"working_dir", "directory", "cwd"}, set: setWorkDir},
	{name: "output", form: aText, doc: "file of the output, with % patterns; none: nowhere", sbatch: "output", also: []string{"stdout", "log", "logs"}, set: fileName(func(d *draft) *string { return &d.spec.Output.Stdout })},
	{name: "error", form: aText, doc: "file of the error output; together with output if not given", sbatch: "error", also: []string{"stderr"}, set: fileName(func(d *draft) *string { return &d.spec.Output.Stderr })},
	{name: "input", form: aText, doc: "file of the standard input", sbatch: "input", also: []string{"stdin"}, set: fileName(func(d *draft) *string { return &d.spec.Output.Stdin })},
	{name: "append", form: aBool, doc: "add to the output files instead of replacing them", sbatch: "open-mode", set: boolean(func(d *draft) *bool { return &d.spec.Output.Append })},
	{name: "env", form: aEnv, doc: "variables to set, NAME: value", also: []string{"environment", "variables"}, set: setEnv},
	{name: "export", form: aList, doc: "what is taken over of the submission's environment: all (as without it), none, nil, or names; NAME=value sets one", sbatch: "export", also: []string{"inherit"}, set: setExport},
	{name: "kill_on_bad_exit", form: aBool, doc: "with command: one failed task ends the job (true if not given)", also: []string{"fail_fast"}, set: boolean(func(d *draft) *bool { return &d.spec.KillOnBadExit })},
	{name: "groups", form: form{text: "[{fields of a group}, …]", schema: listOf(object(groupFields), 1, maxGroups)}, doc: "several groups of unlike tasks that start together; the fields of a group stand in them", also: []string{"components", "tasks_groups", "hetjob"}, set: setGroups},
	{name: "command", form: form{text: "text for sh -c, or [program, argument, …]", schema: aList.schema}, doc: "every task runs it", also: []string{"cmd", "run", "exec"}, set: setCommand},
	{name: "script", form: form{text: "text, after |", schema: func() schema { return schema{"type": "string", "minLength": 1} }}, doc: "runs once, on the first node; starts tasks by srun. Without a first line #! it is for bash", sbatch: "wrap", also: []string{"batch"}, set: setScript},
	{name: "args", form: form{text: "[text, …]", schema: listOf(scalar, 0, 0)}, doc: "arguments of the script", also: []string{"arguments", "script_args"}, set: setArgs},
}

// topFields are the fields of a document.
var topFields = allFields()

func allFields() []field[draft] {
	out := slices.Clone(jobFields)
	for _, f := range groupFields {
		if f.name == "name" {
			continue
		}
		set := f.set
		out = append(out, field[draft]{name: f.name, form: f.form, doc: f.doc, sbatch: f.sbatch, also: f.also, set: func(p *parser, d *draft, v value) {
			d.flat.given[f.name] = v
			set(p, &d.flat, v)
		}})
	}
	return out
}

// Bounds, which are Slurm's.
const (
	maxNice     = 2147483645
	maxPriority = 1<<32 - 2
	maxGroups   = 128
)

// Forms of single fields.
var (
	aDepends = form{text: "afterok:7, [afterok:7, singleton]", schema: aList.schema}
	aArray   = form{text: "0-15%4, {indices, max_running}", schema: anyOf(aWhen.schema, object(arrayFields))}
	aMail    = form{text: "end,fail, [end, fail], {types, to}", schema: anyOf(aList.schema, object(mailFields))}
	aEnv     = form{text: "{NAME: value, …}", schema: envSchema}
)

func text(to func(*draft) *string) func(*parser, *draft, value) {
	return func(p *parser, d *draft, v value) { *to(d), _ = p.line(v) }
}

func boolean(to func(*draft) *bool) func(*parser, *draft, value) {
	return func(p *parser, d *draft, v value) { *to(d) = p.boolean(v) }
}

func fileName(to func(*draft) *string) func(*parser, *draft, value) {
	return func(p *parser, d *draft, v value) {
		name, _ := p.line(v)
		if strings.EqualFold(name, "none") {
			name = "/dev/null"
		}
		*to(d) = name
	}
}

func setVersion(p *parser, _ *draft, v value) {
	if s, ok := p.text(v); ok && s != "v1" {
		p.fail(v, "write version: v1, or leave it out", "%q is not a version that is known", short(s))
	}
}

// when reads a time of begin or deadline.
func (p *parser) when(v value) time.Time {
	s, ok := p.line(v)
	if !ok {
		return time.Time{}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t
	}
	t, err := slurmfmt.ParseWhen(s, p.opts.Now)
	if err != nil {
		p.slurm(v, err, "forms: "+aWhen.text+", 2026-01-31T18:00:00Z")
	}
	return t
}

func setDepends(p *parser, d *draft, v value) {
	var parts []string
	for _, item := range p.items(v) {
		s, ok := p.line(item)
		if !ok {
			return
		}
		if _, err := sbatch.ParseDependency(s); err != nil {
			p.slurm(item, err, "forms: afterok:7, afterany:7:8, after:7+10 (minutes), aftercorr:7, singleton")
			return
		}
		if v.Kind == yaml.List && strings.Contains(s, "?") {
			p.fail(item, "write depends: afterok:7?afterok:8", "cannot have ? in a list: all entries of a list must hold")
			return
		}
		parts = append(parts, s)
	}
	dep, err := sbatch.ParseDependency(strings.Join(parts, ","))
	if err != nil {
		p.fail(v, "", "%s", err)
		return
	}
	dep.KillIfNever = d.spec.Depends.KillIfNever
	d.spec.Depends = dep
}

func setDependsFail(p *parser, d *draft, v value) {
	kill := p.boolean(v)
	d.spec.Depends.KillIfNever = &kill
}

// arrayDraft is the long form of an array.
type arrayDraft struct {
	indices value
	max     uint32
}

var arrayFields = []field[arrayDraft]{
	{name: "indices", form: form{text: "0-15, 1-9:2, 1,5,7", schema: aWhen.schema}, doc: "the indices", set: func(_ *parser, a *arrayDraft, v value) { a.indices = v }},
	{name: "max_running", form: aNumber(1, slurmfmt.MaxArraySize), doc: "how many may run at once", also: []string{"limit", "parallel"}, set: func(p *parser, a *arrayDraft, v value) {
		a.max = uint32(p.number(v, 1, slurmfmt.MaxArraySize))
	}},
}

func setArray(p *parser, d *draft, v value) {
	a := arrayDraft{indices: v}
	if v.Kind == yaml.Mapping {
		a.indices = value{}
		decode(p, v.path, v.Node, arrayFields, &a)
		if a.indices.Node == nil {
			p.fail(v, "write array: {indices: 0-15}", "has no indices")
			return
		}
	}
	s, ok := p.line(a.indices)
	if !ok {
		return
	}
	if a.max > 0 {
		if strings.Contains(s, "%") {
			p.fail(a.indices, "leave out one of them", "has a %% beside max_running")
			return
		}
		s += fmt.Sprintf("%%%d", a.max)
	}
	list, err := slurmfmt.ParseArray(s, p.opts.MaxArraySize)
	if err != nil {
		p.slurm(a.indices, err, "forms: "+slurmfmt.ArrayForms)
		return
	}
	d.spec.Array = &job.ArraySpec{Text: s, Indices: list.Indices(), MaxRunning: list.MaxRunning, Step: 1}
	if len(list.Ranges) == 1 {
		d.spec.Array.Step = list.Ranges[0].Step
	}
}

func setSignal(p *parser, d *draft, v value) {
	s, ok := p.line(v)
	if !ok {
		return
	}
	sig, err := slurmfmt.ParseSignal(s)
	if err != nil {
		p.slurm(v, err, "forms: "+slurmfmt.SignalForms)
		return
	}
	d.spec.Signal = &job.SignalSpec{Signal: sig.Number, Before: sig.Before, BatchOnly: sig.BatchOnly}
}

// mailTypes are the events that can be written of; ALL is the first six.
var mailTypes = []string{
	"BEGIN", "END", "FAIL", "REQUEUE", "INVALID_DEPEND", "STAGE_OUT",
	"TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS",
}

var mailFields = []field[job.Mail]{
	{name: "types", form: aList, doc: "begin, end, fail, requeue, invalid_depend, stage_out, time_limit, time_limit_90, _80, _50, array_tasks, all", also: []string{"on", "events", "type"}, set: setMailTypes},
	{name: "to", form: aText, doc: "user or address; the submitting user if not given", also: []string{"user", "address"}, set: func(p *parser, m *job.Mail, v value) { m.To, _ = p.line(v) }},
}

func setMail(p *parser, d *draft, v value) {
	m := &job.Mail{}
	if v.Kind == yaml.Mapping {
		decode(p, v.path, v.Node, mailFields, m)
	} else {
		setMailTypes(p, m, v)
	}
	if len(m.Types) == 0 && len(p.errs) == 0 {
		p.fail(v, "write mail: [end, fail]", "says no event")
	}
	d.spec.Mail = m
}

func setMailTypes(p *parser, m *job.Mail, v value) {
	asked := map[string]bool{}
	for _, t := range p.list(v) {
		t = strings.ToUpper(t)
		asked[t] = true
		known := t == "ALL"
		for i, k := range mailTypes {
			known = known || k == t
			if t == "ALL" && i < 6 {
				asked[k] = true
			}
		}
		if !known {
			p.fail(v, "events: "+strings.ToLower(strings.Join(mailTypes, ", "))+", all", "%q is no event", short(t))
			return
		}
	}
	for _, k := range mailTypes {
		if asked[k] {
			m.Types = append(m.Types, k)
		}
	}
}

func setWorkDir(p *parser, d *draft, v value) {
	dir, ok := p.line(v)
	if !ok {
		return
	}
	if !path.IsAbs(dir) {
		dir = path.Join(p.opts.Dir, dir)
	}
	d.spec.WorkDir = dir
}

func setEnv(p *parser, d *draft, v value) {
	if v.Kind != yaml.Mapping {
		p.fail(v, "write NAME: value, one a line below env:", "is %s where variables are expected", v.Kind)
		return
	}
	for _, f := range v.Fields {
		e := value{Node: f.Value, path: "env." + f.Name, name: f.Name, at: f.Place}
		if err := variableName(f.Name); err != nil {
			p.blame(f.Place, "env", "", "%q %s", short(f.Name), err)
			continue
		}
		s := ""
		if f.Value.Kind != yaml.Null {
			var ok bool
			if s, ok = p.text(e); !ok {
				continue
			}
		}
		d.spec.Env.Set = append(d.spec.Env.Set, f.Name+"="+s)
	}
}

func variableName(s string) error {
	if s == "" || strings.ContainsAny(s, " \t\n\r\x00\"'=") || s[0] >= '0' && s[0] <= '9' {
		return errors.New("is not the name of a variable")
	}
	return nil
}

func setExport(p *parser, d *draft, v value) {
	var parts []string
	for _, item := range p.items(v) {
		s, ok := p.line(item)
		if !ok {
			return
		}
		parts = append(parts, s)
		for name := range strings.SplitSeq(s, ",") {
			name, _, _ = strings.Cut(name, "=")
			if err := variableName(name); err != nil && !strings.ContainsAny(s, `"'`) { // quotes protect commas
				p.fail(item, "write all, none, nil, names, or NAME=value", "%q %s", short(name), err)
				return
			}
		}
	}
	d.spec.Env.Export = exportWord(strings.Join(parts, ","))
}

// exportWord is a list of variables; what stands for all or none is in capitals.
func exportWord(s string) string {
	if word := strings.ToUpper(s); word == "ALL" || word == "NONE" || word == "NIL" {
		return word
	}
	return s
}

func setCommand(p *parser, d *draft, v value) {
	if v.Kind != yaml.List {
		s, ok := p.text(v)
		if ok && strings.TrimSpace(s) == "" {
			p.fail(v, "", "is empty")
		}
		d.spec.Program.Args = []string{"/bin/sh", "-c", s}
		return
	}
	d.spec.Program.Args = p.texts(v)
	if len(d.spec.Program.Args) > 0 && d.spec.Program.Args[0] == "" {
		p.fail(v, "", "begins with an empty word: no program has that name")
	}
}

// texts reads a list of texts, which may be empty ones.
func (p *parser) texts(v value) []string {
	if v.Kind != yaml.List {
		p.fail(v, "write [a, b]", "is %s where a list is expected", v.Kind)
		return nil
	}
	var out []string
	for _, item := range p.items(v) {
		if s, ok := p.text(item); ok {
			out = append(out, s)
		}
	}
	return out
}

func setArgs(p *parser, d *draft, v value) { d.spec.Program.Args = p.texts(v) }

func setScript(p *parser, d *draft, v value) {
	s, ok := p.text(v)
	switch {
	case !ok:
	case strings.TrimSpace(s) == "":
		p.fail(v, "write script: | and the lines of the script below it, indented", "is empty")
	case strings.HasPrefix(s, "#!"):
		d.script = []byte(s)
	default:
		d.script = []byte("#!/bin/bash\n" + s)
	}
}

func setGroups(p *parser, d *draft, v value) {
	if v.Kind != yaml.List {
		p.fail(v, "write - before the fields of each group", "is %s where a list of groups is expected", v.Kind)
		return
	}
	items := p.items(v)
	if len(items) > maxGroups {
		p.fail(v, "", "has %d groups, more than %d", len(items), maxGroups)
		return
	}
	names := map[string]bool{}
	for _, item := range items {
		g := groupDraft{given: map[string]value{}, at: item}
		if item.Kind != yaml.Mapping {
			p.fail(item, "write the fields of the group", "is %s where a group is expected", item.Kind)
			continue
		}
		for _, f := range item.Fields {
			g.given[f.Name] = value{Node: f.Value, path: item.path + "." + f.Name, name: f.Name, at: f.Place}
		}
		decode(p, item.path, item.Node, groupFields, &g)
		if n := g.group.Name; n != "" && names[n] {
			p.fail(g.given["name"], "", "%q is the name of another group", short(n))
		}
		names[g.group.Name] = true
		d.groups = append(d.groups, g)
	}
}
