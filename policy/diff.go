package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
)

// Change is what is different about one thing: an account, a QOS, the weights.
type Change struct {
	Kind string // the field of the policy: "accounts", "qos", "priority"
	Name string // of the account, QOS, …; empty: the field as a whole
	Verb string // "added", "changed", "removed"
	// Lines are single fields, "- limits.group.gpu: 8" before "+ limits.group.gpu: 16".
	Lines []string
}

// String is the change as a sentence.
func (c Change) String() string {
	if c.Name == "" {
		return c.Kind + " is " + c.Verb
	}
	return singular[c.Kind] + " " + c.Name + " is " + c.Verb
}

// singular names one entry of a field.
var singular = map[string]string{
	"accounts": "account", "qos": "QOS", "partitions": "partition", "flavors": "flavour", "licenses": "licence", "reservations": "reservation", "budgets": "budget",
}

// Diff lists what makes one policy of another, in the order of the fields, entries by
// their order in the new one and then those that are gone. Equal policies differ in
// nothing, and unlike ones in something.
func Diff(before, after *account.Policy) []Change {
	if before == nil {
		before = &account.Policy{}
	}
	a, b := reflect.ValueOf(before).Elem(), reflect.ValueOf(after).Elem()
	var out []Change
	for _, f := range fieldsOf(a.Type()) {
		x, y := a.Field(f.index), b.Field(f.index)
		if f.typ.Kind() == reflect.Slice && f.typ.Elem().Kind() == reflect.Struct {
			out = append(out, diffEntries(f, x, y)...)
			continue
		}
		if c, ok := diffValue(f, x, y); ok {
			out = append(out, c)
		}
	}
	if len(out) == 0 && string(Write(before)) != string(Write(after)) {
		out = append(out, Change{Kind: "the order of entries", Verb: "changed"})
	}
	return out
}

// diffEntries compares lists by the names in them.
func diffEntries(f field, before, after reflect.Value) (out []Change) {
	old, now := byName(before), byName(after)
	for i := range after.Len() {
		name := keyOf(after.Index(i))
		c := Change{Kind: f.name, Name: name, Verb: "added"}
		was, known := old[name]
		if known {
			c.Verb = "changed"
		}
		c.Lines = diffLines("", f, was, now[name])
		if !known || len(c.Lines) > 0 {
			out = append(out, c)
		}
	}
	for i := range before.Len() {
		name := keyOf(before.Index(i))
		if _, known := now[name]; !known {
			out = append(out, Change{Kind: f.name, Name: name, Verb: "removed", Lines: diffLines("", f, old[name], reflect.Value{})})
		}
	}
	return out
}

func diffValue(f field, before, after reflect.Value) (Change, bool) {
	c := Change{Kind: f.name, Verb: "changed", Lines: diffLines("", f, before, after)}
	if k := before.Kind(); k != reflect.Struct && k != reflect.Map && k != reflect.Pointer { // one value, which has no other name
		said := func(v reflect.Value) reflect.Value {
			if isOmitted(v) {
				return reflect.Value{}
			}
			return v
		}
		c.Lines = diffLines(f.name, f, said(before), said(after))
	}
	switch {
	case isOmitted(before):
		c.Verb = "added"
	case isOmitted(after):
		c.Verb = "removed"
	}
	return c, len(c.Lines) > 0
}

func byName(list reflect.Value) map[string]reflect.Value {
	m := map[string]reflect.Value{}
	for i := range list.Len() {
		m[keyOf(list.Index(i))] = list.Index(i)
	}
	return m
}

// keyOf is the name of an entry: its first field.
func keyOf(v reflect.Value) string { return v.Field(0).String() }

// leaf is one field with a value, written.
type leaf struct{ path, text string }

func (l leaf) String() string {
	if l.text == "" {
		return l.path
	}
	return l.path + ": " + l.text
}

// diffLines compares two values field by field, with their paths below one. An invalid one has no
// fields.
func diffLines(path string, f field, before, after reflect.Value) (out []string) {
	var old, now []leaf
	if before.IsValid() {
		old = appendLeaves(old, path, f, before, "")
	}
	if after.IsValid() {
		now = appendLeaves(now, path, f, after, "")
	}
	text := map[string]string{}
	for _, l := range old {
		text[l.path] = l.text
	}
	kept := map[string]bool{}
	for _, l := range now {
		was, known := text[l.path]
		kept[l.path] = true
		if known && was == l.text {
			continue
		}
		if known {
			out = append(out, "- "+leaf{l.path, was}.String())
		}
		out = append(out, "+ "+l.String())
	}
	for _, l := range old {
		if !kept[l.path] {
			out = append(out, "- "+l.String())
		}
	}
	return out
}

// appendLeaves takes a value apart. of is the name of what amounts are of.
func appendLeaves(out []leaf, path string, f field, v reflect.Value, of string) []leaf {
	for v.Kind() == reflect.Pointer {
		if v = v.Elem(); v.Kind() == reflect.Struct && v.IsZero() {
			return append(out, leaf{path, "{}"})
		}
	}
	switch {
	case v.Kind() == reflect.Struct:
		if name := v.FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String {
			of = name.String()
		}
		for i, f := range fieldsOf(v.Type()) {
			if fv := v.Field(f.index); !(isOmitted(fv) && !isAlwaysWritten(f)) && (i > 0 || fv.Kind() != reflect.String) {
				out = appendLeaves(out, strings.TrimPrefix(path+"."+f.name, "."), f, fv, of)
			}
		}
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		var order []string
		for i := range v.Len() {
			e := v.Index(i)
			name := keyOf(e)
			order = append(order, name)
			at := fmt.Sprintf("%s %s", path, name)
			n := len(out)
			if out = appendLeaves(out, at, f, e, of); len(out) == n {
				out = append(out, leaf{at, ""})
			}
		}
		if v.Type().Elem().NumField() > 0 && v.Type().Elem().Field(0).Name != "Name" {
			out = append(out, leaf{path + " in order", strings.Join(order, ", ")})
		}
	case v.Kind() == reflect.Map:
		for _, k := range sortedKeys(v) {
			e := v.MapIndex(reflect.ValueOf(k).Convert(v.Type().Key()))
			out = appendLeaves(out, path+"."+k, field{name: f.name, tag: f.tag}, e, k)
		}
	default:
		text, _ := flowOf(f, v, of)
		out = append(out, leaf{path, text})
	}
	return out
}

// Summary counts changes by what they do: "2 added, 1 changed".
func Summary(list []Change) string {
	var parts []string
	for _, verb := range []string{"added", "changed", "removed"} {
		n := 0
		for _, c := range list {
			if c.Verb == verb {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verb))
		}
	}
	if len(parts) == 0 {
		return "nothing changes"
	}
	return strings.Join(parts, ", ")
}

// Names lists the names of one kind of change.
func Names(list []Change, kind, verb string) (out []string) {
	for _, c := range list {
		if c.Kind == kind && c.Verb == verb {
			out = append(out, c.Name)
		}
	}
	slices.Sort(out)
	return out
}
