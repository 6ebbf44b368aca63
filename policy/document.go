package policy

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
)

// Document is the tables of docs/reference/queues.md: every field of a document with its form
// and meaning, a table for each group of fields.
func Document() string {
	var b strings.Builder
	d := document{b: &b, seen: map[reflect.Type]bool{}}
	d.writeGroup("", "The document", reflect.TypeFor[account.Policy]())
	return b.String()
}

// document writes tables, of each type once.
type document struct {
	b    *strings.Builder
	seen map[reflect.Type]bool
}

func (d *document) writeGroup(title, about string, t reflect.Type) {
	if d.seen[t] {
		return
	}
	d.seen[t] = true
	if title == "" {
		title = "queues.yaml"
	}
	fmt.Fprintf(d.b, "### %s\n\n%s.\n\n| field | form | meaning |\n|---|---|---|\n", title, strings.ToUpper(about[:1])+about[1:])
	var inner []field
	for _, f := range fieldsOf(t) {
		fmt.Fprintf(d.b, "| `%s` | %s | %s |\n", f.name, strings.ReplaceAll(shownForm(f), "|", `\|`), f.tag.Get("doc"))
		if isGroup(f.typ) {
			inner = append(inner, f)
		}
	}
	d.b.WriteByte('\n')
	for _, f := range inner {
		d.writeGroup(f.name, f.tag.Get("doc"), elementType(f.typ))
	}
}

// elementType is what a list, a pointer or a mapping is of.
func elementType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

func isGroup(t reflect.Type) bool { return elementType(t).Kind() == reflect.Struct }

// shownForm is how a field is written.
func shownForm(f field) string {
	words := strings.ReplaceAll(f.tag.Get("enum"), ",", ", ")
	switch {
	case f.typ.Kind() == reflect.Map && f.typ.Elem() == amountType:
		return "{cpu: 64, memory: 2TiB, gpu: 8}"
	case f.typ.Kind() == reflect.Map:
		return "{cpu: 1, gpu: 8}"
	case isGroup(f.typ) && f.typ.Kind() == reflect.Slice:
		if elementType(f.typ).Field(0).Name == "Name" {
			return "list of [" + f.name + "](#" + f.name + "), or of names"
		}
		return "list of [" + f.name + "](#" + f.name + ")"
	case isGroup(f.typ):
		return "[fields](#" + f.name + ")"
	case f.typ.Kind() == reflect.Slice && words != "":
		return "list of: " + words
	case f.typ.Kind() == reflect.Slice:
		return "list of names"
	case words != "":
		return words
	}
	return formOf(f.typ, f.tag)
}
