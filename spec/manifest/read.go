package manifest

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// File is a text of manifests that has been read.
type File struct {
	Name      string
	Documents []*Document // in the order of the text; the items of a List one by one
}

// Document is one object of a File.
type Document struct {
	Kind   *fields.Kind
	Name   string // metadata.name; empty if it has none
	Number int    // of its document in the text, from 1; comments alone are none
	Item   int    // in a List, from 1; 0: it is no item
	Line   int    // of its first field

	root  *yaml.Node
	text  *yaml.Document
	alone bool // the text has no other document
}

// maxErrors bounds how many errors are kept: spec.Join shows ten.
const maxErrors = 50

// Read reads a text of one or more documents in YAML or JSON. Every document has been checked
// against the form of its kind. The error is a *spec.Error with the faults of all documents.
func Read(name string, data []byte) (*File, error) {
	texts, err := yaml.ParseStream(spec.Source{Name: name, Data: data}, yaml.Limits{Size: MaxSize, Depth: MaxDepth, Aliases: true})
	if err != nil {
		return nil, err
	}
	r := &reader{file: &File{Name: name}}
	for i, text := range texts {
		r.readDocument(&Document{Number: i + 1, root: text.Root, text: text, alone: len(texts) == 1})
	}
	if len(r.errs) == 0 && len(r.file.Documents) == 0 {
		return nil, &spec.Error{File: name, Message: "the text has no manifest", Remedy: "write one with apiVersion, kind and metadata"}
	}
	if err := spec.Join(r.errs); err != nil {
		return nil, err
	}
	return r.file, nil
}

type reader struct {
	file *File
	errs []*spec.Error
}

func (r *reader) addErrors(errs ...*spec.Error) {
	r.errs = append(r.errs, errs[:min(len(errs), max(maxErrors-len(r.errs), 0))]...)
}

// readDocument reads an object, or the items of a List.
func (r *reader) readDocument(d *Document) {
	d.Line = d.root.Place.Line
	if d.root.Kind != yaml.Mapping {
		r.addErrors(d.Fail("", "write fields: apiVersion, kind, metadata and spec", "%s is no object", d.root.Kind))
		return
	}
	apiVersion, ok := r.readWord(d, "apiVersion", "such as batch/v1")
	kind, ok2 := r.readWord(d, "kind", "such as Job")
	if !ok || !ok2 {
		return
	}
	if meta := d.root.Get("metadata"); meta != nil {
		if n := meta.Get("name"); n != nil && n.Kind == yaml.Scalar {
			d.Name = n.Text
		}
	}
	items := d.root.Get("items")
	if strings.HasSuffix(kind, "List") && (items != nil || kind == "List") {
		r.readItems(d, kind, items)
		return
	}
	if d.Kind = fields.Find(apiVersion, kind); d.Kind == nil {
		why := fields.Refuse(apiVersion, kind)
		path := "apiVersion"
		if why.InKind {
			path = "kind"
		}
		e := d.failAt(d.Place(path), why.Remedy, why.Message)
		r.addErrors(e)
		return
	}
	if d.Kind.Type() != nil {
		r.addErrors(checkForm(d)...)
	}
	r.file.Documents = append(r.file.Documents, d)
}

// readWord reads a field of the head of a document.
func (r *reader) readWord(d *Document, name, example string) (string, bool) {
	n := d.root.Get(name)
	if n == nil || n.Kind == yaml.Null {
		r.addErrors(d.failAt(d.Place(""), "add "+name+": "+example+", or take the document out", "the document has no "+name))
		return "", false
	}
	if n.Kind != yaml.Scalar || n.Text == "" {
		r.addErrors(d.Fail(name, "write a name "+example, "%s is no name", n.Kind))
		return "", false
	}
	return n.Text, true
}

// readItems reads the objects of a List.
func (r *reader) readItems(d *Document, kind string, items *yaml.Node) {
	for _, f := range d.root.Fields {
		if f.Name != "apiVersion" && f.Name != "kind" && f.Name != "metadata" && f.Name != "items" {
			r.addErrors(d.failAt(f.Place, "a "+kind+" has items alone", f.Name+": no such field of a "+kind))
		}
	}
	switch {
	case d.Item != 0:
		r.addErrors(d.Fail("kind", "put its items into the list around it", "a list within a list"))
	case items == nil || items.Kind == yaml.Null:
	case items.Kind != yaml.List:
		r.addErrors(d.Fail("items", "write a list of objects", "%s is no list", items.Kind))
	default:
		for i, n := range items.Items {
			r.readDocument(&Document{Number: d.Number, Item: i + 1, root: n, text: d.text, alone: d.alone && len(items.Items) == 1})
		}
	}
}

// Label names the document in messages: "Job train", and with others in its text
// "document 3, Job train".
func (d *Document) Label() string {
	var parts []string
	if !d.alone {
		parts = append(parts, fmt.Sprintf("document %d", d.Number))
	}
	if d.Item > 0 {
		parts = append(parts, fmt.Sprintf("item %d", d.Item))
	}
	if d.Kind != nil {
		label := d.Kind.Label()
		if d.Name != "" {
			label += " " + shortText(d.Name)
		}
		parts = append(parts, label)
	}
	return strings.Join(parts, ", ")
}

// shortText cuts what is shown of a long text.
func shortText(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
