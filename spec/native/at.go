package native

import (
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// At is an error about the first of the fields that is given, by their names ("route.host" is one of another
// field) or by those of
// sbatch's options for them, where it stands: for what turns out about a job when its text has
// been read. If none is given, or several groups give it, it is about the text as a whole.
func At(src spec.Source, message, remedy string, fields ...string) *spec.Error {
	whole := &spec.Error{File: src.Name, Message: message, Remedy: remedy}
	doc, err := yaml.Parse(src)
	if err != nil {
		return whole
	}
	p := &parser{doc: doc, file: src.Name}
	for _, name := range fields {
		var found []value
		name, below, _ := strings.Cut(name, ".")
		for _, f := range doc.Root.Fields {
			if isFieldName(documentFields, f.Name, name) {
				found = append(found, fieldBelow(value{Node: f.Value, path: f.Name, name: f.Name, at: f.Place}, below))
			}
			if f.Name != "groups" {
				continue
			}
			for _, item := range p.listItems(value{Node: f.Value, path: f.Name, name: f.Name, at: f.Place}) {
				for _, g := range item.Fields {
					if isFieldName(groupFields, g.Name, name) {
						found = append(found, value{Node: g.Value, path: item.path + "." + g.Name, name: g.Name, at: g.Place})
					}
				}
			}
		}
		if len(found) > 1 {
			return whole
		}
		if len(found) == 1 {
			p.failValue(found[0], remedy, "%s", message)
			return p.errs[0]
		}
	}
	return whole
}

// fieldBelow is the field of a mapping, or of one in it, that a path with dots names, as far as the text has it.
func fieldBelow(v value, path string) value {
	for path != "" && v.Kind == yaml.Mapping {
		name, rest, _ := strings.Cut(path, ".")
		i := slices.IndexFunc(v.Fields, func(f yaml.Field) bool { return f.Name == name })
		if i < 0 {
			return v
		}
		f := v.Fields[i]
		v, path = value{Node: f.Value, path: v.path + "." + f.Name, name: f.Name, at: f.Place}, rest
	}
	return v
}

// isFieldName reports whether a field of that name is what is meant by another, or by one of sbatch's
// options.
func isFieldName[T any](fields []field[T], given, meant string) bool {
	return slices.ContainsFunc(fields, func(t field[T]) bool { return t.name == given && (t.name == meant || t.sbatch == meant) })
}
