package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/getopt"
)

// ReadSettings reads the settings of a pool into a struct with JSON tags. What the struct
// does not know is refused, with the nearest name that it does; so is what is there twice.
func ReadSettings(settings json.RawMessage, into any) error {
	if s := bytes.TrimSpace(settings); len(s) == 0 || string(s) == "null" {
		return nil
	}
	if err := refuseUnknownFields(settings, reflect.TypeOf(into), ""); err != nil {
		return err
	}
	err := json.Unmarshal(settings, into)
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fault.New(fault.Invalid, "settings: %s: %s is not %s", kind.Field, kind.Value, wordOf(kind.Type)).Advise("write %s there%s", wordOf(kind.Type), likeThis(kind.Field, kind.Type))
	}
	if err != nil {
		return fault.New(fault.Invalid, "settings: %w", err)
	}
	return nil
}

// refuseUnknownFields refuses fields that a type does not have.
func refuseUnknownFields(raw json.RawMessage, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil // what it holds is judged when it is read
	}
	have, err := fieldsOf(raw)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return fault.New(fault.Invalid, "settings: they end too early").Advise(`write an object: {"name": value}`)
	case err != nil && path == "":
		return fault.New(fault.Invalid, "settings: %w", err).Advise(`write an object: {"name": value}`)
	case err != nil:
		return nil // it is of another type: told when it is read
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = f.Type
		}
	}
	seen := map[string]bool{}
	for _, f := range have {
		field, ok := fields[f.name]
		switch {
		case !ok:
			return noField(path+f.name, f.name, slices.Sorted(maps.Keys(fields)))
		case seen[f.name]:
			return fault.New(fault.Invalid, "settings: %s is there twice", path+f.name).Advise("leave one of them")
		}
		seen[f.name] = true
		if err := refuseUnknownFields(f.value, field, path+f.name+"."); err != nil {
			return err
		}
	}
	return nil
}

func noField(path, name string, fields []string) error {
	best, least := "", 3
	for _, k := range fields {
		if d := getopt.Distance(strings.ToLower(name), k); d < least {
			best, least = k, d
		}
	}
	there := "there are " + strings.Join(fields, ", ")
	if len(fields) == 0 {
		there = "this kind of engine has no settings"
	}
	if best == "" {
		return fault.New(fault.Invalid, "settings: there is no field %.70s", path).Advise("%s", there)
	}
	return fault.New(fault.Invalid, "settings: there is no field %.70s; did you mean %s?", path, best).Advise("%s", there)
}

// settingField is one of an object, in the order in which they are written.
type settingField struct {
	name  string
	value json.RawMessage
}

func fieldsOf(raw json.RawMessage) (out []settingField, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	first, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if first != json.Delim('{') {
		return nil, errors.New("this is no object")
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		f := settingField{name: name.(string)} // the decoder takes no other key
		if err := dec.Decode(&f.value); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("there is more behind its end")
	}
	return out, nil
}

func wordOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "such a number"
}

// likeThis is how a list or an object stands on a command line; empty: for other types, and for
// what is in another setting.
func likeThis(field string, t reflect.Type) string {
	value := ""
	switch {
	case strings.Contains(field, "."):
	case t.Kind() == reflect.Struct || t.Kind() == reflect.Map:
		value = `{"NAME":"VALUE"}`
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		value = `[{"NAME":"VALUE"}]`
	case t.Kind() == reflect.Slice:
		value = `["VALUE"]`
	}
	if value == "" {
		return ""
	}
	return ", in JSON: --set '" + field + "=" + value + "'"
}
