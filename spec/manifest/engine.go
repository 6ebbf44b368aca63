package manifest

import (
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// Use is what an engine does with one field of a document.
type Use struct {
	Path string
	Line int
	Mark fields.Mark
	Rule *fields.Rule
}

// Uses says for each field of a document that has a single value, or none, what an engine does
// with it, in the order of the document.
func (d *Document) Uses(engine fields.Engine) []Use {
	var out []Use
	w := walker{engine: engine, serving: d.serves(), leaf: func(way *step, n *yaml.Node, r *fields.Rule) {
		out = append(out, Use{Path: way.path(), Line: n.Place.Line, Mark: r.Of(engine, d.serves()), Rule: r})
	}}
	w.walkDocument(d)
	return out
}

// Check says which fields of a document an engine refuses, and which have no effect there. A
// field with a value that holds anyway (false, an empty list, the default of Kubernetes) is
// neither. The error is a *spec.Error with all refusals.
func (d *Document) Check(engine fields.Engine) ([]spec.Warning, error) {
	if d.Kind.Use == fields.Aside {
		return []spec.Warning{d.Warn("", "is not made: %s", d.Kind.Note)}, nil
	}
	var warnings []spec.Warning
	var errs []*spec.Error
	w := walker{engine: engine, serving: d.serves(), notable: func(way *step, f *fields.Field) {
		path := way.path()
		switch f.Rule.Of(engine, d.serves()) {
		case fields.Refused:
			errs = append(errs, d.failAt(d.Place(path), f.Rule.Remedy, shortPath(path)+" is refused"+d.onEngine(f.Rule, engine)+": "+f.Rule.Text))
		default:
			warnings = append(warnings, d.Warn(path, "has no effect%s: %s", d.onEngine(f.Rule, engine), f.Rule.Text))
		}
	}}
	w.walkDocument(d)
	return warnings, spec.Join(errs)
}

// onEngine names the engine where another one does something else with the field.
func (d *Document) onEngine(r *fields.Rule, engine fields.Engine) string {
	for e := range r.Marks {
		if r.Of(fields.Engine(e), d.serves()) != r.Of(engine, d.serves()) {
			return " on " + engine.String()
		}
	}
	return ""
}

// serves reports whether the document becomes a service, or a part of one.
func (d *Document) serves() bool { return d.Kind.Use == fields.Serving }

// walker visits the fields of a document whose form has been checked.
type walker struct {
	engine  fields.Engine
	serving bool
	leaf    func(way *step, n *yaml.Node, r *fields.Rule) // each value; may be nil
	notable func(way *step, f *fields.Field)              // each field that is refused or has no effect, the outermost; may be nil
}

func (w *walker) walkDocument(d *Document) {
	if d.Kind.Use == fields.Aside {
		w.walkValue(nil, d.root, &fields.Type{Form: fields.Raw}, fields.RuleOfAside(d.Kind))
		return
	}
	w.walkValue(nil, d.root, d.Kind.Type(), nil)
}

func (w *walker) walkValue(way *step, n *yaml.Node, t *fields.Type, r *fields.Rule) {
	deeper := t.Form == fields.Object || t.Form == fields.Map || t.Form == fields.List || t.Form == fields.Raw && n.Kind != yaml.Scalar
	if !deeper || n.Kind == yaml.Null || len(n.Fields)+len(n.Items) == 0 {
		if w.leaf != nil && way != nil {
			w.leaf(way, n, r)
		}
		return
	}
	inner := t.Elem
	if t.Form == fields.Raw {
		inner = t
	}
	for i, item := range n.Items {
		w.walkValue(&step{up: way, index: i}, item, inner, r)
	}
	for i := range n.Fields {
		f := &n.Fields[i]
		next := &step{up: way, name: f.Name}
		known := t.Find(f.Name)
		if t.Key != nil {
			known = t.Key(f.Name)
		}
		if known == nil {
			w.walkValue(next, f.Value, inner, r)
			continue
		}
		rule := r
		if known.Rule != nil {
			rule = known.Rule
			mark := rule.Of(w.engine, w.serving)
			if w.notable != nil && (mark == fields.Refused || mark == fields.NoEffect) {
				if !saysNothing(f.Value, known) {
					w.notable(next, known)
				}
				continue
			}
		}
		w.walkValue(next, f.Value, known.Type, rule)
	}
}

// saysNothing reports whether a value holds anyway, whether or not the field is honoured.
func saysNothing(n *yaml.Node, f *fields.Field) bool {
	switch n.Kind {
	case yaml.Null:
		return true
	case yaml.Scalar:
		if f.Default != "" && f.Type.Form == fields.Bool {
			_, json := resolveScalar(n)
			return json == f.Default
		}
		if f.Type.Form == fields.Bool {
			_, json := resolveScalar(n)
			return json == "false"
		}
		return n.Text == "" || f.Default != "" && n.Text == f.Default
	}
	return len(n.Fields)+len(n.Items) == 0
}
