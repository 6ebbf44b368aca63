package policy

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

// Parse reads a document. The error is a *spec.Error, which holds all that was found.
func Parse(file string, data []byte) (*account.Policy, error) {
	p, doc, err := readPolicy(file, data)
	if err != nil {
		return nil, err
	}
	if err := locateProblems(doc, p.Check()); err != nil {
		return nil, err
	}
	return p, nil
}

// Locate is the error about problems of a document that was read before, each with its line; nil: there
// are none. It is a *spec.Error.
func Locate(file string, data []byte, problems []account.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	_, doc, err := readPolicy(file, data)
	if err != nil {
		return err
	}
	return locateProblems(doc, problems)
}

func locateProblems(doc *yaml.Document, problems []account.Problem) error {
	var errs []*spec.Error
	for _, x := range problems {
		errs = append(errs, doc.Error(placeOf(doc.Root, x.Path), x.Path+": "+x.Message, x.Remedy))
	}
	slices.SortStableFunc(errs, func(a, b *spec.Error) int { return cmp.Or(a.Line-b.Line, a.Col-b.Col) })
	return spec.Join(errs[:min(len(errs), maxErrors)])
}

// readPolicy fills the types, without asking whether that makes sense together.
func readPolicy(file string, data []byte) (*account.Policy, *yaml.Document, error) {
	docs, err := yaml.ParseAll(spec.Source{Name: file, Data: data}, maxSize)
	p := &account.Policy{}
	switch {
	case err != nil:
		return nil, nil, err
	case len(docs) == 0: // no rules
		return p, &yaml.Document{Root: &yaml.Node{}}, nil
	}
	doc := docs[0]
	r := reader{doc: doc}
	if len(docs) > 1 {
		r.blamePlace(docs[1].Root.Place, "", "write all rules of the site in one", "a second document begins here")
	}
	switch doc.Root.Kind {
	case yaml.Mapping:
		r.readStruct("", doc.Root, reflect.ValueOf(p).Elem())
	default:
		r.blamePlace(yaml.Place{Line: 1, Col: 1}, "", "begin with accounts: or another field; docs/reference/queues.md has them all", "holds %s where the rules of a site are expected", doc.Root.Kind)
	}
	if err := spec.Join(r.errs); err != nil {
		return nil, nil, err
	}
	return p, doc, nil
}

// placeOf finds the value that a path names, or what is nearest above it.
func placeOf(n *yaml.Node, path string) yaml.Place {
	at := n.Place
	for path != "" {
		path = strings.TrimPrefix(path, ".")
		if i, rest, ok := entryOf(path); ok {
			if i >= len(n.Items) { // a single value stands for a list of one
				return at
			}
			n, path = n.Items[i], rest
			at = n.Place
			continue
		}
		var next *yaml.Node
		for _, f := range n.Fields { // names may have points and brackets in them
			if rest, ok := strings.CutPrefix(path, f.Name); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				next, path, at = f.Value, rest, f.Place
				if f.Value.Kind == yaml.Scalar {
					at = f.Value.Place
				}
				break
			}
		}
		if next == nil {
			return at
		}
		n = next
	}
	return at
}

// entryOf reads "[3]" at the beginning of a path.
func entryOf(path string) (i int, rest string, ok bool) {
	number, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
	if !ok || !strings.HasPrefix(path, "[") {
		return 0, "", false
	}
	i, err := strconv.Atoi(number)
	return i, rest, err == nil
}

// maxSize bounds a document: ten thousand users with limits of their own have room.
const maxSize = 4 << 20

// maxFloat is larger than any factor that means something.
const maxFloat = 1e15

// maxErrors bounds how many errors are kept: spec.Join shows ten.
const maxErrors = 100

// reader fills values by their types and collects what is wrong.
type reader struct {
	doc  *yaml.Document
	errs []*spec.Error
}

// spot is a value with where it stands.
type spot struct {
	*yaml.Node
	path string              // "accounts[2].limits.wall"
	at   yaml.Place          // of the field's name, or of the value in a list
	tag  reflect.StructTag   // of the field
	unit func() (unit, bool) // of an amount; nil: none
}

func (r *reader) failAt(v spot, remedy, format string, args ...any) {
	at := v.Place
	if v.Kind != yaml.Scalar || at.Len == 0 {
		at = v.at
	}
	r.blamePlace(at, v.path, remedy, format, args...)
}

func (r *reader) blamePlace(at yaml.Place, path, remedy, format string, args ...any) {
	if len(r.errs) < maxErrors {
		r.errs = append(r.errs, r.doc.Error(at, strings.TrimPrefix(path+": ", ": ")+fmt.Sprintf(format, args...), remedy))
	}
}

// readStruct reads a group of fields.
func (r *reader) readStruct(path string, n *yaml.Node, into reflect.Value) {
	fields := fieldsOf(into.Type())
	for _, f := range n.Fields {
		v := spot{Node: f.Value, path: strings.TrimPrefix(path+"."+f.Name, "."), at: f.Place}
		i := slices.IndexFunc(fields, func(x field) bool { return x.name == f.Name })
		if i < 0 {
			r.refuseUnknown(v, f.Name, fields)
			continue
		}
		v.tag = fields[i].tag
		if name := n.Get("name"); name != nil {
			v.unit = func() (unit, bool) { return unitOf(name.Text, f.Name), true }
		}
		r.readValue(v, into.Field(fields[i].index))
	}
}

func (r *reader) refuseUnknown(v spot, name string, fields []field) {
	message, remedy := "no such field", ""
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	if near := nearestName(name, names); near != "" {
		message += "; did you mean " + near + "?"
	} else {
		remedy = "fields: " + strings.Join(names, ", ")
	}
	if len(v.path) > 120 {
		v.path = v.path[:120] + "…"
	}
	r.blamePlace(v.at, v.path, remedy, "%s", message)
}

// readValue reads whatever its type says.
func (r *reader) readValue(v spot, into reflect.Value) {
	t := into.Type()
	switch {
	case t.Kind() == reflect.Pointer:
		if v.Kind == yaml.Null {
			r.failAt(v, "write a value, or leave the field out", "has no value")
			return
		}
		into.Set(reflect.New(t.Elem()))
		r.readValue(v, into.Elem())
	case t.Kind() == reflect.Struct:
		switch {
		case v.Kind == yaml.Null:
		case v.Kind == yaml.Mapping:
			r.readStruct(v.path, v.Node, into)
		default:
			r.failAt(v, "", "is %s where a group of fields belongs", v.Kind)
		}
	case t.Kind() == reflect.Slice:
		r.readList(v, into)
	case t.Kind() == reflect.Map:
		r.readMapping(v, into)
	case v.Kind != yaml.Scalar:
		if v.Kind == yaml.Null {
			r.failAt(v, "write a value, or leave the field out", "has no value")
			return
		}
		r.failAt(v, "", "is %s where %s belongs", v.Kind, formOf(t, v.tag))
	default:
		r.readScalar(v, into)
	}
}

// readList reads entries; a single value is a list of one, and a name alone stands for a
// group of fields with that name.
func (r *reader) readList(v spot, into reflect.Value) {
	items := v.Items
	switch v.Kind {
	case yaml.Null:
		return
	case yaml.Scalar:
		items = []*yaml.Node{v.Node}
	case yaml.Mapping:
		r.failAt(v, "begin each entry with a dash", "is a group of fields where a list belongs")
		return
	}
	into.Set(reflect.MakeSlice(into.Type(), len(items), len(items)))
	for i, n := range items {
		item := spot{Node: n, path: fmt.Sprintf("%s[%d]", v.path, i), at: n.Place, tag: v.tag}
		at := into.Index(i)
		if at.Kind() == reflect.Struct && n.Kind == yaml.Scalar && at.Type().Field(0).Name == "Name" {
			at = at.Field(0)
			item.path += ".name"
		}
		r.readValue(item, at)
	}
}

// readMapping reads amounts by name, in the order of the document.
func (r *reader) readMapping(v spot, into reflect.Value) {
	if v.Kind != yaml.Mapping {
		if v.Kind != yaml.Null {
			r.failAt(v, "write name: value for each, as cpu: 64", "is %s where names with values belong", v.Kind)
		}
		return
	}
	t := into.Type()
	into.Set(reflect.MakeMap(t))
	for _, f := range v.Fields {
		item := spot{Node: f.Value, path: v.path + "." + f.Name, at: f.Place, tag: v.tag}
		if what := tresName(f.Name); what != "" {
			r.blamePlace(f.Place, item.path, "names: "+tresForms, "%s", what)
			continue
		}
		item.unit = func() (unit, bool) { return unitOf(f.Name, lastOf(v.path)), true }
		e := reflect.New(t.Elem()).Elem()
		r.readValue(item, e)
		into.SetMapIndex(reflect.ValueOf(f.Name).Convert(t.Key()), e)
	}
}

func lastOf(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// readScalar reads one value.
func (r *reader) readScalar(v spot, into reflect.Value) {
	t := into.Type()
	if n, ok := wordOf(v.tag, v.Text); ok && !v.Quoted {
		into.SetInt(n)
		return
	}
	switch {
	case t == amountType:
		u := unit{name: "number"}
		if v.unit != nil {
			u, _ = v.unit()
		}
		a, err := u.parseAmount(v.Text)
		if err != "" {
			r.failAt(v, u.formsText(), "%q %s", shortenText(v.Text), err)
			return
		}
		into.SetInt(int64(a))
	case t == durationType:
		d, err := parseDuration(v.Text)
		if err != "" {
			r.failAt(v, "write 90s, 5m, 2h30m or 30d", "%q %s", shortenText(v.Text), err)
			return
		}
		into.SetInt(int64(d))
	case t.Kind() == reflect.String:
		r.readText(v, into)
	case t.Kind() == reflect.Bool:
		if v.Text != "true" && v.Text != "false" || v.Quoted {
			r.failAt(v, "write true or false", "%q is neither true nor false", shortenText(v.Text))
			return
		}
		into.SetBool(v.Text == "true")
	case t.Kind() == reflect.Float64:
		f, err := strconv.ParseFloat(v.Text, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || v.Quoted {
			r.failAt(v, "write a number, as 0.25", "%q is no number", shortenText(v.Text))
			return
		}
		if math.Abs(f) > maxFloat {
			r.failAt(v, "write a smaller one", "%s is larger than any factor", shortenText(v.Text))
			return
		}
		into.SetFloat(f)
	default:
		r.readNumber(v, into)
	}
}

func (r *reader) readText(v spot, into reflect.Value) {
	words := v.tag.Get("enum")
	switch {
	case words != "" && !slices.Contains(strings.Split(words, ","), v.Text):
		message := fmt.Sprintf("%q is not known here", shortenText(v.Text))
		if why, known := account.Instead(v.Text); known {
			r.failAt(v, why, "%s is not built", shortenText(v.Text))
			return
		}
		if near := nearestName(v.Text, strings.Split(words, ",")); near != "" {
			message += "; did you mean " + near + "?"
		}
		r.failAt(v, "words: "+strings.ReplaceAll(words, ",", ", "), "%s", message)
	case strings.ContainsFunc(v.Text, func(c rune) bool { return c < ' ' || c == 0x7f }) || !validText(v.Text):
		r.failAt(v, "write one line of plain text", "%q has characters that do not belong there", shortenText(v.Text))
	default:
		into.SetString(v.Text)
	}
}

func (r *reader) readNumber(v spot, into reflect.Value) {
	low, high := int64(0), int64(math.MaxInt64)
	switch into.Kind() {
	case reflect.Int32:
		low, high = math.MinInt32, math.MaxInt32
	case reflect.Uint32:
		high = math.MaxUint32
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	switch {
	case err != nil || v.Quoted:
		r.failAt(v, "write "+formOf(into.Type(), v.tag), "%q is not %s", shortenText(v.Text), formOf(into.Type(), v.tag))
	case n < low || n > high:
		r.failAt(v, fmt.Sprintf("write a number between %d and %d", low, high), "%d is not between %d and %d", n, low, high)
	case into.CanUint():
		into.SetUint(uint64(n))
	default:
		into.SetInt(n)
	}
}

// field is a field of a struct as documents name it.
type field struct {
	name  string
	index int
	tag   reflect.StructTag
	typ   reflect.Type
}

// fieldsOf lists the fields of a struct that documents have.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name != "" && name != "-" && f.IsExported() {
			out = append(out, field{name, i, f.Tag, f.Type})
		}
	}
	return out
}

var (
	amountType   = reflect.TypeFor[resource.Amount]()
	durationType = reflect.TypeFor[account.Duration]()
)

// formOf names what belongs into a field.
func formOf(t reflect.Type, tag reflect.StructTag) string {
	words := wordsOf(tag)
	form := "a text"
	switch {
	case t.Kind() == reflect.Pointer:
		return formOf(t.Elem(), tag)
	case t == amountType:
		form = "an amount"
	case t == durationType:
		form = "a duration"
	case t.Kind() == reflect.Bool:
		form = "true or false"
	case t.Kind() == reflect.Float64:
		form = "a number"
	case t.Kind() != reflect.String:
		form = "a whole number"
	}
	for _, w := range words {
		form += " or " + w.word
	}
	return form
}

// nearestName is the known name that the given one must stand for, or "".
func nearestName(name string, known []string) string {
	if len(name) > 40 {
		return ""
	}
	flat := func(s string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(s))
	}
	best, found := 1+min(2, len(name)/3), ""
	for _, k := range known {
		if d := getopt.Distance(flat(name), flat(k)); d < best {
			best, found = d, k
		}
	}
	return found
}

func shortenText(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
