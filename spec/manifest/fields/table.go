package fields

import (
	"embed"
	"fmt"
	"math"
	"strings"
	"sync"
)

// Engine is what runs the pods of a manifest.
type Engine uint8

// The engines, in the order of the marks.
const (
	Local Engine = iota
	Slurm
	Kubernetes
	engineCount
)

// String names the engine within a sentence.
func (e Engine) String() string { return [...]string{"this machine", "Slurm", "Kubernetes"}[e] }

// Mark is what an engine does with a field.
type Mark byte

// The marks.
const (
	Honoured Mark = 'y'
	Passed   Mark = '>' // the pod gets it as it is
	NoEffect Mark = '~' // with a warning
	Refused  Mark = 'n'
)

// Rule is what the engines do with a field and with what stands in it.
type Rule struct {
	Marks  [engineCount]Mark
	Serve  [engineCount]Mark // in a service; zero: as Marks
	Text   string            // a sentence without its full stop
	Remedy string            // empty where nothing is refused or without effect
}

// Of returns what an engine does with the field, in a service or in other work.
func (r *Rule) Of(engine Engine, serving bool) Mark {
	if m := r.Serve[engine]; serving && m != 0 {
		return m
	}
	return r.Marks[engine]
}

// Form is the shape of a value.
type Form uint8

// The forms.
const (
	Object Form = iota // the fields that the type lists
	List
	Map // fields of any name
	Text
	Word // one of Type.Words
	Bool
	Integer  // from Type.Least to Type.Most
	FileMode // of a file
	Number   // a fraction too
	Quantity
	IntOrString
	Duration
	Time
	Bytes // base64
	Raw   // anything
)

// Type is the type of a field.
type Type struct {
	Name        string // as the table names it
	Form        Form
	Elem        *Type    // of a List or a Map
	Words       []string // of a Word
	Least, Most int64    // of an Integer
	Fields      []Field  // of an Object

	// Key, of a Map, finds the names that have a rule of their own; nil: there are none.
	Key func(name string) *Field

	index map[string]int
	base  *Type // whose fields it has, too; nil: it has its own alone
}

// Field is one field of an Object.
type Field struct {
	Name     string
	Type     *Type
	Required bool
	Default  string // a value with which the field says nothing; empty: none
	Rule     *Rule  // nil: that of the field it stands in
}

func (t *Type) addField(f Field) {
	t.index[f.Name] = len(t.Fields)
	t.Fields = append(t.Fields, f)
}

// inheritFields adds the fields of the base that the type does not have itself.
func (t *Type) inheritFields() {
	if t.base == nil {
		return
	}
	for _, f := range t.base.Fields {
		if t.Find(f.Name) == nil {
			t.addField(f)
		}
	}
	t.base = nil
}

// Find returns the field of a name, nil if there is none.
func (t *Type) Find(name string) *Field {
	if i, ok := t.index[name]; ok {
		return &t.Fields[i]
	}
	return nil
}

//go:embed *.tbl
var tables embed.FS

// types are the groups of fields by name. The table is part of the program: a fault in it is
// found by the tests and panics.
var types = sync.OnceValue(func() map[string]*Type {
	b := &builder{types: map[string]*Type{}}
	names, err := tables.ReadDir(".")
	if err != nil {
		panic(err)
	}
	var texts []string
	for _, n := range names {
		text, err := tables.ReadFile(n.Name())
		if err != nil {
			panic(err)
		}
		texts = append(texts, string(text))
		b.declareTypes(n.Name(), string(text))
	}
	for i, n := range names {
		b.readFields(n.Name(), texts[i])
	}
	for _, t := range b.types {
		t.inheritFields()
	}
	b.types["PodSpec"].Find("nodeSelector").Type.Key = selectorField
	for _, name := range []string{"labels", "annotations"} {
		b.types["ObjectMeta"].Find(name).Type.Key = b.types["labels"].Find
	}
	for _, name := range []string{"limits", "requests"} {
		b.types["ResourceRequirements"].Find(name).Type.Key = resourceField
	}
	return b.types
})

type builder struct{ types map[string]*Type }

// declareTypes makes the groups of a table without their fields, so that tables can name each
// other's.
func (b *builder) declareTypes(file, text string) {
	for l := range strings.Lines(text) {
		name, ok := strings.CutPrefix(strings.TrimSpace(l), "type ")
		if !ok || l[0] == ' ' {
			continue
		}
		name, _, _ = strings.Cut(name, " = ")
		if b.types[name] != nil {
			panic(fmt.Sprintf("%s: type %s is given twice", file, name))
		}
		b.types[name] = &Type{Name: name, Form: Object, index: map[string]int{}}
	}
}

func (b *builder) readFields(file, text string) {
	var t *Type
	n := 0
	for l := range strings.Lines(text) {
		n++
		line := strings.TrimSpace(l)
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case l[0] != ' ':
			name, base, derived := strings.Cut(strings.TrimPrefix(line, "type "), " = ")
			if t = b.types[name]; derived {
				t.base = b.types[base]
			}
		default:
			f, err := b.readField(line)
			if err == nil && t.Find(f.Name) != nil {
				err = fmt.Errorf("field %s is given twice", f.Name)
			}
			if err != nil {
				panic(fmt.Sprintf("%s:%d: %v", file, n, err))
			}
			t.addField(f)
		}
	}
}

func (b *builder) readField(line string) (Field, error) {
	name, rest, _ := strings.Cut(line, " ")
	word, rest, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	f := Field{Name: name}
	word, f.Default, _ = strings.Cut(word, "=")
	if before, ok := strings.CutSuffix(word, "!"); ok {
		word, f.Required = before, true
	}
	var err error
	if f.Type, err = b.typeOf(word); err != nil {
		return f, err
	}
	if rest = strings.TrimSpace(rest); rest == "" {
		return f, nil
	}
	marks, text, ok := strings.Cut(rest, " ")
	work, serve, both := strings.Cut(marks, "/")
	if !ok || !isMarks(work) || both && !isMarks(serve) {
		return f, fmt.Errorf("%q are no marks with a sentence", rest)
	}
	f.Rule = &Rule{}
	for i := range work {
		f.Rule.Marks[i] = Mark(work[i])
		if both {
			f.Rule.Serve[i] = Mark(serve[i])
		}
	}
	text, remedy, _ := strings.Cut(text, " | ")
	f.Rule.Text, f.Rule.Remedy = strings.TrimSpace(text), strings.TrimSpace(remedy)
	if f.Rule.Remedy == "" && strings.ContainsAny(marks, "~n") {
		return f, fmt.Errorf("%s has no remedy", name)
	}
	return f, nil
}

func isMarks(s string) bool { return len(s) == int(engineCount) && strings.Trim(s, "y>~n") == "" }

// scalars are the types that have no fields.
var scalars = map[string]*Type{
	"string": {Form: Text}, "bool": {Form: Bool}, "mode": {Form: FileMode}, "float": {Form: Number}, "quantity": {Form: Quantity},
	"intstr": {Form: IntOrString}, "duration": {Form: Duration}, "time": {Form: Time}, "bytes": {Form: Bytes}, "raw": {Form: Raw},
	"int32": {Form: Integer, Least: math.MinInt32, Most: math.MaxInt32},
	"int64": {Form: Integer, Least: math.MinInt64, Most: math.MaxInt64},
	"count": {Form: Integer, Least: 0, Most: math.MaxInt32},
	"port":  {Form: Integer, Least: 1, Most: 65535},
}

func (b *builder) typeOf(word string) (*Type, error) {
	if t, ok := scalars[word]; ok {
		named := *t
		named.Name = word
		return &named, nil
	}
	if inner, ok := cutBoth(word, "[", "]"); ok {
		elem, err := b.typeOf(inner)
		return &Type{Name: word, Form: List, Elem: elem}, err
	}
	if inner, ok := cutBoth(word, "{", "}"); ok {
		elem, err := b.typeOf(inner)
		return &Type{Name: word, Form: Map, Elem: elem}, err
	}
	if strings.Contains(word, "|") {
		return &Type{Name: word, Form: Word, Words: strings.FieldsFunc(word, func(r rune) bool { return r == '|' })}, nil
	}
	if t := b.types[word]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("there is no type %s", word)
}

func cutBoth(s, before, after string) (string, bool) {
	s, ok := strings.CutPrefix(s, before)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(s, after)
}
