package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/spec"
	specyaml "github.com/coxswain-sched/coxswain/spec/yaml"
)

// Load reads the named file, or the first of Files that exists if none is named,
// over the defaults, and checks it. It returns the file's name, "" if there is none.
func Load(name string) (Config, string, error) {
	names := []string{name}
	if name == "" {
		names = Files()
	}
	for _, n := range names {
		data, err := os.ReadFile(n)
		switch {
		case err == nil:
			c, err := Parse(n, data)
			return c, n, err
		case name == "" && errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, fs.ErrNotExist):
			return Config{}, n, fault.New(fault.Invalid, "%s: no such file", n).Advise("leave out --config for the defaults; docs/reference/configuration.md has every field")
		}
		return Config{}, n, fault.New(fault.KindOf(err), "read the configuration: %w", err)
	}
	c := Default()
	return c, "", c.checkRelations("", nil)
}

// Parse reads a file's contents over the defaults. Errors are *spec.Error, with
// line and column.
func Parse(name string, data []byte) (Config, error) {
	c := Default()
	if err := yaml.UnmarshalWithOptions(data, &c, yaml.Strict()); err != nil {
		return c, locateError(name, data, err)
	}
	var said any
	if err := yaml.Unmarshal(data, &said); err != nil {
		return c, locateError(name, data, err)
	}
	fillDefaults(reflect.ValueOf(&c).Elem(), reflect.ValueOf(Default()), said)
	if !hasValue(said, "jobs", "upload") {
		c.Jobs.Upload = min(c.Jobs.Upload, c.Jobs.Uploads)
	}
	return c, c.checkRelations(name, data)
}

// fillDefaults gives what stands in the file without a value its default: an empty file, a block
// of which every line is a comment. The decoder makes it zero.
func fillDefaults(v, defaults reflect.Value, said any) {
	fields, ok := said.(map[string]any)
	switch {
	case said == nil:
		v.Set(defaults)
	case ok && v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			if value, ok := fields[name]; ok {
				fillDefaults(v.Field(i), defaults.Field(i), value)
			}
		}
	}
}

// hasValue reports whether a field stands in the file with a value.
func hasValue(said any, path ...string) bool {
	for _, name := range path {
		fields, _ := said.(map[string]any)
		said = fields[name]
	}
	return said != nil
}

// valueError is a value that its type refuses, with its place.
type valueError struct {
	tok *token.Token
	err error
}

func (e *valueError) Error() string { return e.err.Error() }

// explainType says "int was used where mapping is expected" in plain words.
func explainType(message string) string {
	is, wanted, ok := strings.Cut(message, " was used where ")
	wanted, whole := strings.CutSuffix(wanted, " is expected")
	if !ok || !whole {
		return message
	}
	words := map[string]string{"mapping": "fields (name: value)", "sequence": "a list", "string": "a text", "int": "a number", "float": "a number", "bool": "true or false", "null": "nothing"}
	return "expected " + cmp.Or(words[wanted], wanted) + ", but this is " + cmp.Or(words[is], is)
}

func locateError(name string, data []byte, err error) error {
	var broken *yaml.SyntaxError
	if errors.As(err, &broken) { // the reader of jobs and rules says it in plain words
		if _, plain := specyaml.Parse(spec.Source{Name: name, Data: data}); plain != nil {
			return plain
		}
	}
	e := &spec.Error{File: name, Message: err.Error()}
	var tok *token.Token
	var ye yaml.Error
	var ve *valueError
	switch {
	case errors.As(err, &ve):
		tok = ve.tok
	case errors.As(err, &ye):
		tok, e.Message = ye.GetToken(), explainType(ye.GetMessage())
	}
	if tok == nil {
		return e
	}
	e.Line, e.Col, e.Len = tok.Position.Line, tok.Position.Column, len(tok.Value)
	if lines := strings.Split(string(data), "\n"); e.Line <= len(lines) {
		e.Text = lines[e.Line-1]
	}
	path := pathTo(strings.Split(string(data), "\n"), e.Line)
	var unknown *yaml.UnknownFieldError
	var wrong *yaml.TypeError
	switch {
	case errors.As(err, &unknown):
		if len(path) > 0 && path[len(path)-1] != tok.Value {
			path = append(path, tok.Value) // in a block that is one line
		}
		e.Message = fmt.Sprintf("%s: no such field", strings.Join(path, "."))
		if near := nearestWord(tok.Value, siblingFields(path)); near != "" {
			e.Message += "; did you mean " + near + "?"
		}
		e.Remedy = "docs/reference/configuration.md has every field; cox config show prints them with their values"
	case errors.As(err, &wrong):
		e.Message = fmt.Sprintf("%s: %q is not %s", strings.Join(path, "."), tok.Value, kindName(wrong.DstType))
	case ve != nil:
		e.Message = strings.Join(path, ".") + ": " + e.Message
	}
	return e
}

var keyLine = regexp.MustCompile(`^(\s*(?:- +)*)([A-Za-z_]+)\s*:`)

// pathTo is the path of the field on a line, from the indentation of the lines
// above it.
func pathTo(lines []string, line int) []string {
	var path []string
	indent := -1
	for i := min(line, len(lines)) - 1; i >= 0; i-- {
		m := keyLine.FindStringSubmatch(lines[i])
		if m == nil || indent >= 0 && len(m[1]) >= indent {
			continue
		}
		indent = len(m[1])
		path = append(path, m[2])
	}
	slices.Reverse(path)
	return path
}

// siblingFields are the fields beside the last one of a path.
func siblingFields(path []string) []string {
	t := reflect.TypeFor[Config]()
	for _, p := range path[:max(len(path)-1, 0)] {
		i := slices.Index(fieldNames(t), p)
		if i < 0 {
			return nil
		}
		if t = t.Field(i).Type; t.Kind() == reflect.Slice {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return nil
		}
	}
	return fieldNames(t)
}

func fieldNames(t reflect.Type) []string {
	var names []string
	for f := range t.Fields() {
		names = append(names, f.Tag.Get("yaml"))
	}
	return names
}

func kindName(t reflect.Type) string {
	if t == nil {
		return "what belongs here"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "a block of fields"
	}
	return "a text"
}

// nearestWord is the candidate with at most two changes, or "".
func nearestWord(word string, candidates []string) string {
	best, least := "", 3
	for _, c := range candidates {
		if d := getopt.Distance(word, c); d < least && 2*d <= len(c) {
			best, least = c, d
		}
	}
	return best
}
