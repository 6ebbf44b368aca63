package policy

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/coxswain-sched/coxswain/model/account"
)

// accountFields are the fields of the document that docs/reference/queues-accounts.md has; the
// others are in docs/reference/queues-scheduling.md.
var accountFields = map[string]bool{"accounts": true, "qos": true}

// Documents are the tables of docs/reference/queues.md ("document"), queues-accounts.md
// ("accounts") and queues-scheduling.md ("scheduling"): every field of a document with its form
// and meaning, a table for each group of fields.
func Documents() map[string]string {
	root := fieldsOf(reflect.TypeFor[account.Policy]())
	top := document{pageOf: func(f field) string {
		if accountFields[f.name] {
			return "queues-accounts.md"
		}
		return "queues-scheduling.md"
	}}
	top.writeTable(root)
	accounts, scheduling := document{seen: map[reflect.Type]bool{}}, document{seen: map[reflect.Type]bool{}}
	for _, f := range root {
		switch {
		case !isGroup(f.typ):
		case accountFields[f.name]:
			accounts.writeGroup(f)
		default:
			scheduling.writeGroup(f)
		}
	}
	return map[string]string{"document": top.b.String(), "accounts": accounts.b.String(), "scheduling": scheduling.b.String()}
}

// document writes the tables of one page, of each type once.
type document struct {
	b      strings.Builder
	seen   map[reflect.Type]bool
	pageOf func(field) string // page with the table of a group of fields; nil: this one
}

// writeGroup writes the table of a group of fields, and those of the groups in it.
func (d *document) writeGroup(group field) {
	t := elementType(group.typ)
	if d.seen[t] {
		return
	}
	d.seen[t] = true
	about := group.tag.Get("doc")
	fmt.Fprintf(&d.b, "## %s\n\n%s.\n\n", headings()[t], strings.ToUpper(about[:1])+about[1:])
	fields := fieldsOf(t)
	d.writeTable(fields)
	d.b.WriteByte('\n')
	for _, f := range fields {
		if isGroup(f.typ) {
			d.writeGroup(f)
		}
	}
}

func (d *document) writeTable(fields []field) {
	d.b.WriteString("| field | form | meaning |\n|---|---|---|\n")
	for _, f := range fields {
		page := ""
		if d.pageOf != nil {
			page = d.pageOf(f)
		}
		fmt.Fprintf(&d.b, "| `%s` | %s | %s |\n", f.name, strings.ReplaceAll(shownForm(f, page), "|", `\|`), f.tag.Get("doc"))
	}
}

// headings are those of the tables of groups, of each type one: the name of its field, with that of the group
// above where another type has the name.
var headings = sync.OnceValue(func() map[reflect.Type]string {
	out, taken := map[reflect.Type]string{}, map[string]bool{}
	var note func(above string, fields []field)
	note = func(above string, fields []field) {
		var fresh []field
		for _, f := range fields {
			t := elementType(f.typ)
			if !isGroup(f.typ) || out[t] != "" {
				continue
			}
			fresh = append(fresh, f)
			if out[t] = f.name; taken[f.name] {
				out[t] = above + "." + f.name
			}
			taken[out[t]] = true
		}
		for _, f := range fresh {
			note(f.name, fieldsOf(elementType(f.typ)))
		}
	}
	note("", fieldsOf(reflect.TypeFor[account.Policy]()))
	return out
})

// anchorOf is the link to a group's table in a page.
func anchorOf(f field, page string) string {
	name := headings()[elementType(f.typ)]
	return "[" + name + "](" + page + "#" + strings.ReplaceAll(name, ".", "") + ")"
}

// elementType is what a list, a pointer or a mapping is of.
func elementType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

func isGroup(t reflect.Type) bool { return elementType(t).Kind() == reflect.Struct }

// shownForm is how a field is written; a group has its table in a page, or in this one.
func shownForm(f field, page string) string {
	words := strings.ReplaceAll(f.tag.Get("enum"), ",", ", ")
	switch {
	case f.typ.Kind() == reflect.Map && f.typ.Elem() == amountType:
		return "{cpu: 64, memory: 2TiB, gpu: 8}"
	case f.typ.Kind() == reflect.Map:
		return "{cpu: 1, gpu: 8}"
	case isGroup(f.typ) && f.typ.Kind() == reflect.Slice:
		if elementType(f.typ).Field(0).Name == "Name" {
			return "list of " + anchorOf(f, page) + ", or of names"
		}
		return "list of " + anchorOf(f, page)
	case isGroup(f.typ):
		return strings.Replace(anchorOf(f, page), "["+headings()[elementType(f.typ)]+"]", "[fields]", 1)
	case f.typ.Kind() == reflect.Slice && words != "":
		return "list of: " + words
	case f.typ.Kind() == reflect.Slice:
		return "list of names"
	case words != "":
		return words
	}
	return formOf(f.typ, f.tag)
}
