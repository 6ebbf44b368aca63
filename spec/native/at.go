package native

import (
	"slices"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// At is an error about the first of the fields that is given, by their names or by those of
// sbatch's options for them, where it stands: for what turns out about a job when its text has
// been read. If none stands at the top, it is about the text as a whole.
func At(src spec.Source, message, remedy string, fields ...string) *spec.Error {
	whole := &spec.Error{File: src.Name, Message: message, Remedy: remedy}
	doc, err := yaml.Parse(src)
	if err != nil {
		return whole
	}
	p := &parser{doc: doc, file: src.Name}
	for _, name := range fields {
		for _, f := range doc.Root.Fields {
			if slices.ContainsFunc(topFields, func(t field[draft]) bool { return t.name == f.Name && (t.name == name || t.sbatch == name) }) {
				p.fail(value{Node: f.Value, path: f.Name, name: f.Name, at: f.Place}, remedy, "%s", message)
				return p.errs[0]
			}
		}
	}
	return whole
}
