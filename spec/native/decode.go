package native

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/sbatch"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// field is one field of a group of fields that fills a T.
type field[T any] struct {
	name   string
	form   form
	doc    string
	sbatch string   // sbatch's option for it, without dashes; empty: it has none
	also   []string // names under which it is looked for
	set    func(p *parser, to *T, v value)
}

func (f field[T]) fieldName() string { return f.name }

// value is what was written for a field.
type value struct {
	*yaml.Node
	path string     // "groups[0].nodes"
	name string     // "nodes"
	at   yaml.Place // of the name, or of the value in a list
}

// parser collects what is found while one document is turned into a job.
type parser struct {
	opts     Options
	doc      *yaml.Document
	file     string
	warnings []spec.Warning
	errs     []*spec.Error
	names    job.Spec            // that hands out numbers for names of levels
	owners   map[string]bool     // names of the fields of a job as a whole
	services map[string]bool     // names of the fields of services, in the text of a job
	options  []*sbatch.Directive // laid over the document; see overlay.place

	container []*sbatch.Directive // options of the job's container
}

// maxErrors bounds how many errors are kept: spec.Join shows ten.
const maxErrors = 100

// failValue blames a value. The message completes "path: …".
func (p *parser) failValue(v value, remedy, format string, args ...any) {
	at := v.Place
	if v.Kind == yaml.List || v.Kind == yaml.Mapping || at.Len == 0 {
		at = v.at
	}
	p.addError(at, v.path, remedy, format, args...)
}

// failPart blames n bytes of a value's text from at.
func (p *parser) failPart(v value, at, n int, remedy, format string, args ...any) {
	place := v.Place
	if v.Quoted || place.Len != len(v.Text) || at+n > len(v.Text) {
		p.failValue(v, remedy, format, args...)
		return
	}
	p.addError(yaml.Place{Line: place.Line, Col: place.Col + at, Len: max(n, 1)}, v.path, remedy, format, args...)
}

func (p *parser) addError(at yaml.Place, path, remedy, format string, args ...any) {
	if d := p.optionAt(at); d != nil && len(p.errs) < maxErrors {
		p.errs = append(p.errs, d.Refuse(fmt.Errorf(format, args...), remedy))
		return
	}
	if len(p.errs) < maxErrors {
		p.errs = append(p.errs, p.doc.Error(at, strings.TrimPrefix(path+": ", ": ")+fmt.Sprintf(format, args...), remedy))
	}
}

// optionAt is the option that a place stands for, nil for a place of the document.
func (p *parser) optionAt(at yaml.Place) *sbatch.Directive {
	if at.Line < 0 {
		return p.options[-at.Line-1]
	}
	return nil
}

func (p *parser) addWarning(v value, format string, args ...any) {
	if d := p.optionAt(v.at); d != nil {
		p.warnings = append(p.warnings, spec.Warning{File: "command line", Option: "--" + d.Option, Message: fmt.Sprintf(format, args...)})
		return
	}
	p.warnings = append(p.warnings, spec.Warning{
		File: p.file, Line: v.at.Line, Col: v.at.Col, Option: v.path, Message: fmt.Sprintf(format, args...),
	})
}

// decodeFields reads a group of fields. path is empty, or ends where a name is to follow:
// "groups[0]".
func decodeFields[T any](p *parser, path string, n *yaml.Node, fields []field[T], to *T) {
	for _, f := range n.Fields {
		v := value{Node: f.Value, path: strings.TrimPrefix(path+"."+f.Name, "."), name: f.Name, at: f.Place}
		k := slices.IndexFunc(fields, func(x field[T]) bool { return x.name == f.Name })
		switch {
		case k < 0:
			p.failUnknown(v, path, fieldNames(fields))
		case f.Value.Kind == yaml.Null && !fields[k].form.empty:
			p.failValue(v, "write a value, or leave the field out", "has no value")
		default:
			fields[k].set(p, to, v)
		}
	}
}

// named are the names of a field: the first is the real one.
type named struct {
	name string
	also []string
}

func fieldNames[T any](fields []field[T]) []named {
	out := make([]named, len(fields))
	for i, f := range fields {
		out[i] = named{f.name, append(append([]string{f.sbatch}, f.also...), strings.ReplaceAll(f.name, "_", ""))}
	}
	return out
}

func (p *parser) failUnknown(v value, path string, known []named) {
	message, remedy := "no such field", ""
	name := v.name
	v.path = shortName(v.path)
	switch near := nearestName(name, known); {
	case path == "" && p.services[name]:
		message, remedy = "no job has this field: it belongs to a service", "add kind: service"
	case path != "" && p.owners[name]:
		message += " here: it belongs to the job as a whole"
	case near != "":
		message += "; did you mean " + near + "?"
	default:
		all := make([]string, len(known))
		for i, k := range known {
			all[i] = k.name
		}
		remedy = "fields: " + strings.Join(all, ", ")
	}
	p.addError(v.at, v.path, remedy, "%s", message)
}

// shortName cuts what is shown of a long name.
func shortName(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// nearestName is the known name that the given one must stand for, or "".
func nearestName(name string, known []named) string {
	if len(name) > 40 {
		return ""
	}
	flat := strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(name))
	best, found := 1+min(2, len(flat)/3), ""
	for _, k := range known {
		for _, n := range append([]string{k.name}, k.also...) {
			n = strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(n))
			if n == "" {
				continue
			}
			if d := getopt.Distance(flat, n); d < best {
				best, found = d, k.name
			}
		}
	}
	return found
}
