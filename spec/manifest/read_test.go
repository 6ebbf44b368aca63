package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
)

var update = flag.Bool("update", false, "write the golden files anew")

var engines = []fields.Engine{fields.Local, fields.Slurm, fields.Kubernetes}

func readTestdata(t *testing.T, path string) (*File, []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read(filepath.Base(path), data)
	if err != nil {
		t.Fatal(err)
	}
	return f, data
}

func documentFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v: only %d documents", err, len(files))
	}
	return files
}

// TestDocuments compares what was read of each document of testdata, and what each engine does
// with its fields, with a golden file.
func TestDocuments(t *testing.T) {
	for _, path := range documentFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, _ := readTestdata(t, path)
			var out bytes.Buffer
			for _, d := range f.Documents {
				writeReading(t, &out, d)
			}
			compareGolden(t, strings.TrimSuffix(path, ".yaml")+".golden", out.Bytes())
		})
	}
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", path, firstDifference(string(want), string(got)))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines instead of %d", len(g), len(w))
}

func writeReading(t *testing.T, out *bytes.Buffer, d *Document) {
	fmt.Fprintf(out, "== %s, line %d, %s\n", d.Label(), d.Line, d.Kind.APIVersion())
	raw, err := json.Marshal(d.Object)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(dropEmpty(value)); err != nil {
		t.Fatal(err)
	}
	for i, u := range d.Uses(fields.Local) {
		fmt.Fprintf(out, "%c%c%c %s\n", u.Mark, d.Uses(fields.Slurm)[i].Mark, d.Uses(fields.Kubernetes)[i].Mark, u.Path)
	}
	for _, engine := range engines {
		warnings, err := d.Check(engine)
		for _, w := range warnings {
			fmt.Fprintf(out, "%s: %s\n", engine, w)
		}
		if err != nil {
			fmt.Fprintf(out, "%s: %v\n", engine, err)
		}
	}
}

// dropEmpty leaves out what is not given.
func dropEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if x = dropEmpty(x); x == nil {
				delete(v, k)
			} else {
				v[k] = x
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = dropEmpty(v[i])
		}
		if len(v) == 0 {
			return nil
		}
	case string:
		if v == "" {
			return nil
		}
	case bool:
		if !v {
			return nil
		}
	}
	return v
}

// TestNothingIsPassedOver reads each document with a plain reader of YAML, and compares the
// fields that it has with those that were read: each has a mark for each engine.
func TestNothingIsPassedOver(t *testing.T) {
	for _, path := range documentFiles(t) {
		f, data := readTestdata(t, path)
		var have []string
		in := yaml.NewDecoder(bytes.NewReader(data))
		n := 0
		for {
			var v any
			if err := in.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if v == nil {
				continue
			}
			n++
			if m, ok := v.(map[string]any); ok && m["kind"] == "List" {
				for i, item := range m["items"].([]any) {
					have = leafPaths(fmt.Sprintf("%d.%d ", n, i+1), item, have)
				}
				continue
			}
			have = leafPaths(fmt.Sprintf("%d.0 ", n), v, have)
		}
		for _, engine := range engines {
			var got []string
			for _, d := range f.Documents {
				for _, u := range d.Uses(engine) {
					if !strings.ContainsRune("y>~n", rune(u.Mark)) {
						t.Errorf("%s: %s has mark %q", path, u.Path, u.Mark)
					}
					if u.Line == 0 || u.Rule.Text == "" {
						t.Errorf("%s: %s has no line or no sentence", path, u.Path)
					}
					got = append(got, fmt.Sprintf("%d.%d %s", d.Number, d.Item, u.Path))
				}
			}
			slices.Sort(have)
			slices.Sort(got)
			if !slices.Equal(have, got) {
				t.Errorf("%s: %v", path, firstDifference(strings.Join(have, "\n"), strings.Join(got, "\n")))
			}
		}
	}
}

// leafPaths are the paths of all values without fields or entries.
func leafPaths(path string, v any, out []string) []string {
	head, rest, _ := strings.Cut(path, " ")
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			out = leafPaths(head+" "+Join(rest, k), x, out)
		}
		if len(v) > 0 {
			return out
		}
	case []any:
		for i, x := range v {
			out = leafPaths(fmt.Sprintf("%s[%d]", path, i), x, out)
		}
		if len(v) > 0 {
			return out
		}
	}
	return append(out, path)
}

// TestObjectsFitTheTable compares the structs with the table: each field of a struct is in the
// table with a form that fits, and each field that an engine honours is in a struct.
func TestObjectsFitTheTable(t *testing.T) {
	c := objectComparison{t: t, seen: map[string]bool{}, found: map[string]bool{}}
	for _, k := range fields.Kinds {
		newObject := objects[k.Type().Name]
		if newObject == nil {
			t.Errorf("%s of %s has no object", k.Name, k.APIVersion())
			continue
		}
		c.compareObject(k.Name, reflect.TypeOf(newObject()).Elem(), k.Type())
	}
	for field, found := range c.found {
		if !found {
			t.Errorf("%s is in no type of the table", field)
		}
	}
}

type objectComparison struct {
	t     *testing.T
	seen  map[string]bool // a struct with a type of the table
	found map[string]bool // a field of a struct that is in one of its types
}

// formsOf are the forms that a value of Go can be filled from.
func formsOf(of reflect.Type) []fields.Form {
	switch {
	case of == quantityType:
		return []fields.Form{fields.Quantity}
	case of == intOrStringType:
		return []fields.Form{fields.IntOrString}
	case of == bytesType:
		return []fields.Form{fields.Bytes}
	}
	return map[reflect.Kind][]fields.Form{
		reflect.Struct: {fields.Object}, reflect.String: {fields.Text, fields.Word}, reflect.Bool: {fields.Bool}, reflect.Int32: {fields.Integer, fields.FileMode},
		reflect.Int64: {fields.Integer}, reflect.Slice: {fields.List}, reflect.Map: {fields.Map},
	}[of.Kind()]
}

func (c *objectComparison) compareObject(path string, of reflect.Type, have *fields.Type) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if !slices.Contains(formsOf(of), have.Form) {
		c.t.Errorf("%s is %s in its struct and %s in the table", path, of, have.Name)
		return
	}
	if of.Kind() == reflect.Int32 && have.Form == fields.Integer && (have.Most > 1<<31-1 || have.Least < -1<<31) {
		c.t.Errorf("%s: %s is larger than an int32", path, have.Name)
	}
	key := of.String() + " " + have.Name
	switch {
	case have.Form == fields.List:
		c.compareObject(path+"[]", of.Elem(), have.Elem)
	case have.Form == fields.Map:
		c.compareObject(path+".*", of.Elem(), have.Elem)
	case have.Form == fields.Object && !c.seen[key]:
		c.seen[key] = true
		l := layoutOf(of)
		for name, index := range l.fields {
			f := have.Find(name)
			c.found[of.String()+"."+name] = c.found[of.String()+"."+name] || f != nil
			if f != nil {
				c.compareObject(path+"."+name, of.FieldByIndex(index).Type, f.Type)
			}
		}
		for _, f := range have.Fields {
			if f.Rule != nil && f.Rule.Marks[fields.Local] == fields.Honoured && l.fields[f.Name] == nil {
				c.t.Errorf("%s.%s is honoured, and %s does not have it", path, f.Name, of)
			}
		}
	}
}
