package native

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/slurmfmt"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

func textField[T any](to func(*T) *string) func(*parser, *T, value) {
	return func(p *parser, d *T, v value) { *to(d), _ = p.parseLine(v) }
}

func boolField[T any](to func(*T) *bool) func(*parser, *T, value) {
	return func(p *parser, d *T, v value) { *to(d) = p.parseBool(v) }
}

func fileName(to func(*draft) *string) func(*parser, *draft, value) {
	return func(p *parser, d *draft, v value) {
		name, _ := p.parseLine(v)
		if strings.EqualFold(name, "none") {
			name = "/dev/null"
		}
		*to(d) = name
	}
}

func setVersion(p *parser, _ *draft, v value) {
	if s, ok := p.parseText(v); ok && s != "v1" {
		p.failValue(v, "write version: v1, or leave it out", "%q is not a version that is known", shortName(s))
	}
}

// parseTime reads a time of begin or deadline.
func (p *parser) parseTime(v value) time.Time {
	s, ok := p.parseLine(v)
	if !ok {
		return time.Time{}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		if t.UTC().Year() > 2261 { // as ParseWhen says it
			p.failValue(v, "write an earlier time", "%q is later than the year 2261, the last one that is known here", shortName(s))
		}
		return t
	}
	t, err := slurmfmt.ParseWhen(s, p.opts.Now)
	if err != nil {
		p.failSlurmValue(v, err, "forms: "+aWhen.text+", 2026-01-31T18:00:00Z")
	}
	return t
}

func setDepends(p *parser, d *draft, v value) {
	var parts []string
	for _, item := range p.listItems(v) {
		s, ok := p.parseLine(item)
		if !ok {
			return
		}
		if _, err := sbatch.ParseDependency(s); err != nil {
			p.failSlurmValue(item, err, "forms: afterok:7, afterany:7:8, after:7+10 (minutes), aftercorr:7, singleton")
			return
		}
		if v.Kind == yaml.List && strings.Contains(s, "?") {
			p.failValue(item, "write depends: afterok:7?afterok:8", "cannot have ? in a list: all entries of a list must hold")
			return
		}
		parts = append(parts, s)
	}
	dep, err := sbatch.ParseDependency(strings.Join(parts, ","))
	if err != nil {
		p.failValue(v, "", "%s", err)
		return
	}
	dep.KillIfNever = d.spec.Depends.KillIfNever
	d.spec.Depends = dep
}

func setDependsFail(p *parser, d *draft, v value) {
	kill := p.parseBool(v)
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
		a.max = uint32(p.parseNumber(v, 1, slurmfmt.MaxArraySize))
	}},
}

func setArray(p *parser, d *draft, v value) {
	a := arrayDraft{indices: v}
	if v.Kind == yaml.Mapping {
		a.indices = value{}
		decodeFields(p, v.path, v.Node, arrayFields, &a)
		if a.indices.Node == nil {
			p.failValue(v, "write array: {indices: 0-15}", "has no indices")
			return
		}
	}
	s, ok := p.parseLine(a.indices)
	if !ok {
		return
	}
	if a.max > 0 {
		if strings.Contains(s, "%") {
			p.failValue(a.indices, "leave out one of them", "has a %% beside max_running")
			return
		}
		s += fmt.Sprintf("%%%d", a.max)
	}
	list, err := slurmfmt.ParseArray(s, p.opts.MaxArraySize)
	if err != nil {
		p.failSlurmValue(a.indices, err, "forms: "+slurmfmt.ArrayForms)
		return
	}
	d.spec.Array = &job.ArraySpec{Text: s, Indices: list.Indices(), MaxRunning: list.MaxRunning, Step: 1}
	if len(list.Ranges) == 1 {
		d.spec.Array.Step = list.Ranges[0].Step
	}
}

func setLicenses(p *parser, d *draft, v value) {
	var parts []string
	for _, item := range p.listItems(v) {
		s, ok := p.parseLine(item)
		if !ok {
			return
		}
		if v.Kind == yaml.List && len(v.Items) > 1 && strings.Contains(s, "|") {
			p.failValue(item, "write licenses: a:2|b", "cannot have | in a list: all entries of a list are held")
			return
		}
		if s == "" {
			p.failValue(item, "forms: "+sbatch.LicenseForms, "names no licence")
			return
		}
		s = strings.ReplaceAll(s, ", ", ",")
		if at, n, why := sbatch.LicenseFault(s); why != "" {
			if s != item.Text {
				at, n = 0, len(item.Text)
			}
			p.failPart(item, at, n, "forms: "+sbatch.LicenseForms, "%s", why)
			return
		}
		parts = append(parts, s)
	}
	d.spec.Licenses = strings.Join(parts, ",")
}

func setSignal(p *parser, d *draft, v value) {
	s, ok := p.parseLine(v)
	if !ok {
		return
	}
	sig, err := slurmfmt.ParseSignal(s)
	if err != nil {
		p.failSlurmValue(v, err, "forms: "+slurmfmt.SignalForms)
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
	{name: "to", form: aText, doc: "user or address; the submitting user if not given", also: []string{"user", "address"}, set: func(p *parser, m *job.Mail, v value) { m.To, _ = p.parseLine(v) }},
}

func setMail(p *parser, d *draft, v value) {
	m := &job.Mail{}
	if v.Kind == yaml.Mapping {
		decodeFields(p, v.path, v.Node, mailFields, m)
	} else {
		setMailTypes(p, m, v)
	}
	if len(m.Types) == 0 && len(p.errs) == 0 {
		p.failValue(v, "write mail: [end, fail]", "says no event")
	}
	d.spec.Mail = m
}

func setMailTypes(p *parser, m *job.Mail, v value) {
	asked := map[string]bool{}
	for _, t := range p.parseList(v) {
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
			p.failValue(v, "events: "+strings.ToLower(strings.Join(mailTypes, ", "))+", all", "%q is no event", shortName(t))
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
	dir, ok := p.parseLine(v)
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
		p.failValue(v, "write NAME: value, one a line below env:", "is %s where variables are expected", v.Kind)
		return
	}
	for _, f := range v.Fields {
		e := value{Node: f.Value, path: "env." + f.Name, name: f.Name, at: f.Place}
		if err := variableName(f.Name); err != nil {
			p.addError(f.Place, "env", "", "%q %s", shortName(f.Name), err)
			continue
		}
		s := ""
		if f.Value.Kind != yaml.Null {
			var ok bool
			if s, ok = p.parseText(e); !ok {
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
	for _, item := range p.listItems(v) {
		s, ok := p.parseLine(item)
		if !ok {
			return
		}
		parts = append(parts, s)
		for name := range strings.SplitSeq(s, ",") {
			name, _, _ = strings.Cut(name, "=")
			if name == "" && s != "" {
				continue // behind a comma at the end, as sbatch takes it
			}
			if err := variableName(name); err != nil && !strings.ContainsAny(s, `"'`) { // quotes protect commas
				p.failValue(item, "write all, none, nil, names, or NAME=value", "%q %s", shortName(name), err)
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

func setCommand(p *parser, d *draft, v value) { d.spec.Program.Args = p.parseWords(v) }

// parseWords reads a command: text for sh -c, or its words.
func (p *parser) parseWords(v value) []string {
	if v.Kind != yaml.List {
		s, ok := p.parseText(v)
		if ok && strings.TrimSpace(s) == "" {
			p.failValue(v, "", "is empty")
		}
		return []string{"/bin/sh", "-c", s}
	}
	words := p.parseTexts(v)
	if len(words) > 0 && words[0] == "" {
		p.failValue(v, "", "begins with an empty word: no program has that name")
	}
	return words
}

// parseTexts reads a list of texts, which may be empty ones.
func (p *parser) parseTexts(v value) []string {
	if v.Kind != yaml.List {
		p.failValue(v, "write [a, b]", "is %s where a list is expected", v.Kind)
		return nil
	}
	var out []string
	for _, item := range p.listItems(v) {
		if s, ok := p.parseText(item); ok {
			out = append(out, s)
		}
	}
	return out
}

func setArgs(p *parser, d *draft, v value) { d.spec.Program.Args = p.parseTexts(v) }

func setScript(p *parser, d *draft, v value) {
	s, ok := p.parseText(v)
	switch {
	case !ok:
	case strings.TrimSpace(s) == "":
		p.failValue(v, "write script: | and the lines of the script below it, indented", "is empty")
	case strings.HasPrefix(s, "#!"):
		d.script = []byte(s)
	default:
		d.script = []byte("#!/bin/bash\n" + s)
	}
}

func setGroups(p *parser, d *draft, v value) {
	if v.Kind != yaml.List {
		p.failValue(v, "write - before the fields of each group", "is %s where a list of groups is expected", v.Kind)
		return
	}
	items := p.listItems(v)
	if len(items) > maxGroups {
		p.failValue(v, "", "has %d groups, more than %d", len(items), maxGroups)
		return
	}
	names := map[string]bool{}
	for _, item := range items {
		g := groupDraft{given: map[string]value{}, at: item}
		if item.Kind != yaml.Mapping {
			p.failValue(item, "write the fields of the group", "is %s where a group is expected", item.Kind)
			continue
		}
		for _, f := range item.Fields {
			g.given[f.Name] = value{Node: f.Value, path: item.path + "." + f.Name, name: f.Name, at: f.Place}
		}
		decodeFields(p, item.path, item.Node, groupFields, &g)
		if n := g.group.Name; n != "" && names[n] {
			p.failValue(g.given["name"], "", "%q is the name of another group", shortName(n))
		}
		names[g.group.Name] = true
		d.groups = append(d.groups, g)
	}
}
