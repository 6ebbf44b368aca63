package manifest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// step is one step of the way to a value. The path is only written for a message.
type step struct {
	up    *step
	name  string // of a field
	index int    // of an entry, if name is empty
	typ   *fields.Type
}

func (s *step) path() string {
	if s == nil {
		return ""
	}
	if s.name == "" {
		return s.up.path() + "[" + strconv.Itoa(s.index) + "]"
	}
	return Join(s.up.path(), s.name)
}

// checker compares a document with the form of its kind.
type checker struct {
	doc  *Document
	errs []*spec.Error
}

// checkForm returns what is wrong with a document: fields that its kind does not have, that are
// missing, or whose value is of another type.
func checkForm(d *Document) []*spec.Error {
	c := &checker{doc: d}
	c.checkValue(nil, d.root, d.root.Place, d.Kind.Type())
	return c.errs
}

// addError blames a place.
func (c *checker) addError(at yaml.Place, path, remedy, format string, args ...any) {
	if len(c.errs) >= maxErrors {
		return
	}
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = shortPath(path) + ": " + message
	}
	c.errs = append(c.errs, c.doc.failAt(at, remedy, message))
}

// shortPath cuts a long path in front: its end says most.
func shortPath(path string) string {
	if len(path) > 160 {
		return "…" + strings.ToValidUTF8(path[len(path)-159:], "")
	}
	return path
}

// checkValue checks one value; at is where its field or entry stands.
func (c *checker) checkValue(way *step, n *yaml.Node, at yaml.Place, t *fields.Type) {
	if n.Kind == yaml.Null || t.Form == fields.Raw {
		return
	}
	switch t.Form {
	case fields.Object:
		if n.Kind != yaml.Mapping {
			c.failForm(way, n, at, "a group of fields", fieldExample(t))
			return
		}
		c.checkObject(way, n, at, t)
		c.checkPart(way, n, at, t)
	case fields.Map:
		if n.Kind != yaml.Mapping {
			c.failForm(way, n, at, "a group of fields", "write NAME: value below it")
			return
		}
		for i := range n.Fields {
			f := &n.Fields[i]
			c.checkValue(&step{up: way, name: f.Name}, f.Value, f.Place, t.Elem)
		}
		if way != nil && way.typ != nil && way.typ.Name == "ResourceRequirements" {
			c.checkResources(way, n)
		}
	case fields.List:
		if n.Kind != yaml.List {
			c.failForm(way, n, at, "a list", "begin each entry with - on a line of its own")
			return
		}
		for i, item := range n.Items {
			place := item.Place
			if item.Kind == yaml.Null && t.Elem.Form != fields.Text {
				c.addError(at, (&step{up: way, index: i}).path(), "write a value behind the -, or take the entry out", "the entry is empty")
				continue
			}
			c.checkValue(&step{up: way, index: i}, item, place, t.Elem)
		}
	default:
		if n.Kind != yaml.Scalar {
			c.failForm(way, n, at, scalarText(t), "write one value")
			return
		}
		c.checkScalar(way, n, at, t)
	}
}

// checkResources checks the names of resources that a container asks for.
func (c *checker) checkResources(way *step, n *yaml.Node) {
	for i := range n.Fields {
		f := &n.Fields[i]
		if _, ok := fields.FindDevice(f.Name); ok {
			continue
		}
		path := (&step{up: way, name: f.Name}).path()
		if near := fields.NearestDevice(f.Name); near != "" {
			c.addError(f.Place, path, "write "+near+": "+shortText(f.Value.Text), "Kubernetes has no such resource; did you mean %s?", near)
			continue
		}
		c.addError(f.Place, path, "write cpu, memory, ephemeral-storage, or the name of a device such as nvidia.com/gpu", "Kubernetes has no such resource")
	}
}

// fieldExample says which fields a group has.
func fieldExample(t *fields.Type) string {
	names := t.Names()
	if len(names) == 0 {
		return "write {}"
	}
	const most = 6
	if len(names) > most {
		return "fields of it are " + strings.Join(names[:most], ", ") + " …"
	}
	return "its fields are " + strings.Join(names, ", ")
}

func (c *checker) failForm(way *step, n *yaml.Node, at yaml.Place, want, remedy string) {
	c.addError(at, way.path(), remedy, "%s is expected here, not %s", want, nodeText(n))
}

// nodeText says what a node is.
func nodeText(n *yaml.Node) string {
	if n.Kind != yaml.Scalar {
		return n.Kind.String()
	}
	kind, _ := resolveScalar(n)
	if kind == aText {
		return "a text"
	}
	return kind.String()
}

func (c *checker) checkObject(way *step, n *yaml.Node, at yaml.Place, t *fields.Type) {
	for i := range n.Fields {
		f := &n.Fields[i]
		known := t.Find(f.Name)
		if known == nil {
			c.failUnknown(way, f, t)
			continue
		}
		c.checkValue(&step{up: way, name: f.Name, typ: t}, f.Value, f.Place, known.Type)
	}
	for i := range t.Fields {
		f := &t.Fields[i]
		if !f.Required {
			continue
		}
		if v := n.Get(f.Name); v == nil || v.Kind == yaml.Null {
			place := at
			if way == nil && len(n.Fields) > 0 {
				place = n.Fields[0].Place
			}
			c.addError(place, way.path(), addRemedy(f), "it has no %s, which is required", f.Name)
		}
	}
}

// addRemedy says how to add a field that is missing.
func addRemedy(f *fields.Field) string {
	switch f.Type.Form {
	case fields.Object:
		return "add " + f.Name + ": below it; " + fieldExample(f.Type)
	case fields.List:
		return "add " + f.Name + ": below it, with an entry (-) at least"
	case fields.Word:
		return "add " + f.Name + ": " + f.Type.Words[0]
	}
	return "add " + f.Name + ": a value"
}

// failUnknown names a field that its group does not have, and the one that is meant.
func (c *checker) failUnknown(way *step, f *yaml.Field, t *fields.Type) {
	path := (&step{up: way, name: f.Name}).path()
	for s := way; s != nil; s = s.up {
		if s.typ != nil && s.typ.Find(f.Name) != nil {
			owner := s.up.path()
			if owner == "" {
				owner = "the document itself"
			}
			c.addError(f.Place, path, "move it out: "+Join(s.up.path(), f.Name), "no such field here; it belongs to %s", owner)
			return
		}
	}
	if near := fields.Nearest(f.Name, t.Names()); near != "" {
		c.addError(f.Place, path, "write "+near+":", "no such field; did you mean %s?", near)
		return
	}
	if inner := t.PathOf(f.Name); inner != "" {
		c.addError(f.Place, path, "move it into "+strings.TrimPrefix(way.path()+"."+inner, "."), "no such field here; it belongs to %s", inner)
		return
	}
	c.addError(f.Place, path, fieldExample(t), "no such field")
}

// scalarText names what a field takes.
func scalarText(t *fields.Type) string {
	switch t.Form {
	case fields.Text, fields.Word:
		return "a text"
	case fields.Bool:
		return "true or false"
	case fields.Integer, fields.FileMode:
		return "a whole number"
	case fields.Number:
		return "a number"
	case fields.Quantity:
		return "an amount"
	case fields.IntOrString:
		return "a number or a text"
	case fields.Duration:
		return "a duration"
	case fields.Time:
		return "a time"
	}
	return "a text in base64"
}

// checkScalar checks a single value.
func (c *checker) checkScalar(way *step, n *yaml.Node, at yaml.Place, t *fields.Type) {
	kind, json := resolveScalar(n)
	remedy := ""
	switch t.Form {
	case fields.Text:
		if kind != aText {
			if remedy = fmt.Sprintf("put it into quotes: %q", shortText(n.Text)); c.doc.Kind.Name == "Secret" {
				remedy = "put it into quotes"
			}
		}
	case fields.Word:
		c.checkWord(way, n, t)
		return
	case fields.Bool:
		if kind != aBool {
			remedy = "write true or false, without quotes"
		}
	case fields.Integer:
		c.checkInteger(way, n, at, t, kind, json)
		return
	case fields.FileMode:
		if i, err := strconv.ParseInt(json, 10, 64); kind != anInteger || err != nil || i < 0 || i > 0o7777 {
			remedy = "write a mode such as 0644, without quotes"
		}
	case fields.Number:
		if kind != anInteger && kind != aFraction {
			remedy = "write a number such as 0.5, without quotes"
		}
	case fields.Quantity:
		if kind == aBool || !isQuantity(n.Text) {
			remedy = "write an amount such as 2, 500m or 64Gi"
		}
	case fields.IntOrString:
		if kind != anInteger && kind != aText {
			remedy = "write a number, or a text such as 25% or the name of a port"
		}
	case fields.Duration:
		if _, err := time.ParseDuration(n.Text); kind != aText || err != nil {
			remedy = "write a duration such as 30s, 10m or 1h30m"
		}
	case fields.Time:
		if _, err := time.Parse(time.RFC3339, n.Text); err != nil {
			remedy = "write a time such as 2026-01-31T12:00:00Z"
		}
	case fields.Bytes:
		if _, err := base64.StdEncoding.DecodeString(strings.NewReplacer("\n", "", "\r", "").Replace(n.Text)); err != nil {
			c.addError(valuePlace(n, at), way.path(), "encode it (base64 -w0), or write it as a text in stringData of a Secret or data of a ConfigMap", "the value is not in base64")
			return
		}
	}
	if remedy != "" {
		c.addError(valuePlace(n, at), way.path(), remedy, "%s is expected here, not %s", scalarText(t), shownValue(n, kind))
	}
}

// valuePlace is the place of a value, or of its field where the value goes over lines.
func valuePlace(n *yaml.Node, at yaml.Place) yaml.Place {
	if n.Place.Len > 0 {
		return n.Place
	}
	return at
}

func shownValue(n *yaml.Node, kind scalarKind) string {
	if kind == aText {
		return fmt.Sprintf("%q", shortText(n.Text))
	}
	return kind.String()
}

func (c *checker) checkWord(way *step, n *yaml.Node, t *fields.Type) {
	if slices.Contains(t.Words, n.Text) || n.Text == "" {
		return
	}
	remedy := "write " + strings.Join(t.Words, " or ")
	if len(t.Words) > 5 {
		remedy = "write one of " + strings.Join(t.Words, ", ")
	}
	if near := fields.Nearest(n.Text, t.Words); near != "" {
		c.addError(n.Place, way.path(), remedy, "%q is none of its words; did you mean %s?", shortText(n.Text), near)
		return
	}
	c.addError(n.Place, way.path(), remedy, "%q is none of its words", shortText(n.Text))
}

func (c *checker) checkInteger(way *step, n *yaml.Node, at yaml.Place, t *fields.Type, kind scalarKind, json string) {
	if kind != anInteger {
		remedy := "write a whole number"
		if _, err := strconv.ParseInt(n.Text, 10, 64); err == nil {
			remedy = "write it without quotes: " + n.Text
		}
		c.addError(valuePlace(n, at), way.path(), remedy, "a whole number is expected here, not %s", shownValue(n, kind))
		return
	}
	i, err := strconv.ParseInt(json, 10, 64)
	if err != nil || i < t.Least || i > t.Most {
		c.addError(valuePlace(n, at), way.path(), fmt.Sprintf("write a number from %d to %d", t.Least, t.Most), "%s is out of range", shortText(n.Text))
	}
}
