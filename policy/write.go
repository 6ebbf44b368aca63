package policy

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// Write is the one form of a policy: fields in the order of docs/reference/queues.md, names of
// amounts by their order there, nothing that is the zero value. Parse reads the same
// policy from it.
func Write(p *account.Policy) []byte {
	w := &writer{}
	w.writeFields(reflect.ValueOf(p).Elem(), "")
	if w.b.Len() == 0 {
		return []byte("{}\n")
	}
	return []byte(w.b.String())
}

// width is how long a line may become before a group of fields is written over several.
const width = 100

// writer writes block style, and flow style where it is short and has no groups.
type writer struct {
	b      strings.Builder
	indent int
	dash   bool // the next field follows the dash of a list entry
}

func (w *writer) writeLine(text string) {
	if w.dash {
		w.dash = false
	} else {
		w.b.WriteString(strings.Repeat("  ", w.indent))
	}
	w.b.WriteString(text + "\n")
}

// writeFields writes the fields of a struct that are not zero. of is the name of what
// amounts are of.
func (w *writer) writeFields(v reflect.Value, of string) {
	if name := v.FieldByName("Name"); name.IsValid() && name.Kind() == reflect.String {
		of = name.String()
	}
	for i, f := range fieldsOf(v.Type()) {
		fv := v.Field(f.index)
		if isOmitted(fv) && (i > 0 || f.name != "name") && !isAlwaysWritten(f) {
			continue
		}
		w.writeField(f, fv, of)
	}
}

// isAlwaysWritten reports whether a field is written also if it is zero: its tag has no
// omitempty.
func isAlwaysWritten(f field) bool {
	t := f.tag.Get("yaml")
	return !strings.Contains(t, ",omit")
}

// isOmitted reports whether a value says nothing.
func isOmitted(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	}
	return v.IsZero()
}

func (w *writer) writeField(f field, v reflect.Value, of string) {
	if flow, ok := flowOf(f, v, of); ok {
		lead := 2 * w.indent
		if len(f.name)+2+len(flow)+lead <= width || !spansLines(v) {
			w.writeLine(f.name + ": " + flow)
			return
		}
	}
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	w.writeLine(f.name + ":")
	w.indent++
	defer func() { w.indent-- }()
	switch v.Kind() {
	case reflect.Struct:
		w.writeFields(v, of)
	case reflect.Map:
		for _, k := range sortedKeys(v) {
			flow, _ := flowOf(field{name: f.name, tag: f.tag}, v.MapIndex(reflect.ValueOf(k).Convert(v.Type().Key())), k)
			w.writeLine(quoteText(k) + ": " + flow)
		}
	default:
		for i := range v.Len() {
			w.writeItem(f, v.Index(i), of)
		}
	}
}

// writeItem writes an entry of a list.
func (w *writer) writeItem(f field, v reflect.Value, of string) {
	w.b.WriteString(strings.Repeat("  ", w.indent) + "- ")
	w.dash = true
	if flow, ok := flowOf(field{name: f.name, tag: f.tag}, v, of); ok && (v.Kind() != reflect.Struct || 2*w.indent+2+len(flow) <= width) {
		w.writeLine(flow)
		return
	}
	w.indent++
	w.writeFields(v, of)
	w.indent--
}

// spansLines reports whether a value can be written over several lines.
func spansLines(v reflect.Value) bool {
	k := v.Kind()
	if k == reflect.Pointer {
		k = v.Elem().Kind()
	}
	return k == reflect.Slice || k == reflect.Map || k == reflect.Struct
}

// flowOf is a value on one line; false if it is of a kind that is not written so.
func flowOf(f field, v reflect.Value, of string) (string, bool) {
	t := v.Type()
	if v.CanInt() {
		for _, w := range wordsOf(f.tag) {
			if w.n == v.Int() {
				return w.word, true
			}
		}
	}
	switch {
	case t == amountType:
		return unitOf(of, f.name).formatAmount(resource.Amount(v.Int())), true
	case t == durationType:
		return formatDuration(account.Duration(v.Int())), true
	}
	switch t.Kind() {
	case reflect.Pointer:
		return flowOf(f, v.Elem(), of)
	case reflect.String:
		return quoteText(v.String()), true
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64), true
	case reflect.Struct:
		return flowStruct(v, of)
	case reflect.Map:
		return flowMap(f, v), true
	case reflect.Slice:
		return flowList(f, v, of)
	}
	return fmt.Sprint(v.Interface()), true
}

// flowStruct is a group of fields that has no groups in it; a name alone is a text.
func flowStruct(v reflect.Value, of string) (string, bool) {
	name := ""
	if n := v.FieldByName("Name"); n.IsValid() && n.Kind() == reflect.String {
		name, of = n.String(), n.String()
	}
	var parts []string
	for i, f := range fieldsOf(v.Type()) {
		fv := v.Field(f.index)
		if isOmitted(fv) && (i > 0 || f.name != "name") && !isAlwaysWritten(f) {
			continue
		}
		if k := fv.Kind(); k == reflect.Struct || k == reflect.Pointer && fv.Elem().Kind() == reflect.Struct {
			return "", false
		}
		flow, ok := flowOf(f, fv, of)
		if !ok {
			return "", false
		}
		parts = append(parts, f.name+": "+flow)
	}
	if len(parts) == 1 && name != "" && v.Type().Field(0).Name == "Name" {
		return quoteText(name), true
	}
	return "{" + strings.Join(parts, ", ") + "}", true
}

func flowMap(f field, v reflect.Value) string {
	var parts []string
	for _, k := range sortedKeys(v) {
		flow, _ := flowOf(field{name: f.name, tag: f.tag}, v.MapIndex(reflect.ValueOf(k).Convert(v.Type().Key())), k)
		parts = append(parts, quoteText(k)+": "+flow)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// flowList is a list of texts, or of names.
func flowList(f field, v reflect.Value, of string) (string, bool) {
	var parts []string
	for i := range v.Len() {
		e := v.Index(i)
		flow, ok := flowOf(field{name: f.name, tag: f.tag}, e, of)
		if !ok || e.Kind() == reflect.Struct && strings.HasPrefix(flow, "{") {
			return "", false
		}
		parts = append(parts, flow)
	}
	return "[" + strings.Join(parts, ", ") + "]", true
}

// sortedKeys are the names of a map in the order in which they are written.
func sortedKeys(v reflect.Value) []string {
	var out []string
	for _, k := range v.MapKeys() {
		out = append(out, k.String())
	}
	slices.SortFunc(out, func(a, b string) int {
		if x, y := tresRank(a), tresRank(b); x != y {
			return x - y
		}
		return strings.Compare(a, b)
	})
	return out
}

// tresRank orders names of countable things: known ones first.
func tresRank(name string) int {
	if i := slices.Index(tresKnown, name); i >= 0 {
		return 2 * i
	}
	if strings.HasPrefix(name, "gpu:") {
		return 2*slices.Index(tresKnown, "gpu") + 1
	}
	return 2 * len(tresKnown)
}

// quoteText is text that is read as itself, in flow style too and by other readers of YAML.
func quoteText(s string) string {
	plain := s != "" && !reserved[strings.ToLower(s)]
	letter := false
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			letter = true
		case r >= '0' && r <= '9' || r == '_' || r == '/':
		case i > 0 && (r == '-' || r == '.' || r == '@' || r == '+'):
		case i > 0 && i+1 < len(s) && r == ' ' && s[i+1] != ' ':
		default:
			plain = false
		}
	}
	if plain && letter && !looksNumeric(s) {
		return s
	}
	return strconv.Quote(s)
}

// reserved are plain texts that readers of YAML take for something else.
var reserved = maps.Collect(func(yield func(string, bool) bool) {
	for _, w := range []string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"} {
		if !yield(w, true) {
			return
		}
	}
})

// looksNumeric reports whether some reader of YAML may take the text for a number or time.
func looksNumeric(s string) bool {
	return s[0] >= '0' && s[0] <= '9' && strings.Trim(strings.ToLower(s), "0123456789abcdefox_.+-:") == ""
}
