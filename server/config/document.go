package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Document is docs/reference/configuration.md's table of all fields: name, type, default and
// meaning.
func Document() string {
	var b strings.Builder
	b.WriteString("| field | value | default | meaning |\n|---|---|---|---|\n")
	documentFields(&b, "", reflect.ValueOf(Default()))
	return b.String()
}

func documentFields(b *strings.Builder, prefix string, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := prefix + f.Tag.Get("yaml")
		elem, list := f.Type, f.Type.Kind() == reflect.Slice
		if list {
			elem = elem.Elem()
		}
		doc := f.Tag.Get("doc")
		switch {
		case elem.Kind() == reflect.Struct && list:
			fmt.Fprintf(b, "| `%s` | list of blocks | none | %s |\n", name, doc)
			documentFields(b, name+"[].", reflect.New(elem).Elem())
		case elem.Kind() == reflect.Struct:
			fmt.Fprintf(b, "| `%s` | block | | %s |\n", name, doc)
			documentFields(b, name+".", v.Field(i))
		default:
			fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", name, typeName(f.Type), defaultText(name, v.Field(i)), doc)
		}
	}
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[Duration]():
		return "duration"
	case t == reflect.TypeFor[Bytes]():
		return "size"
	case t.Kind() == reflect.Slice:
		return "list of texts"
	case t.Kind() == reflect.Map:
		return "block"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int:
		return "number"
	}
	return "text"
}

// defaultText leaves out what depends on who asks: its documentation says it.
func defaultText(name string, v reflect.Value) string {
	if name == "state.dir" || name == "listen.socket" || v.IsZero() && (v.Kind() == reflect.Slice || v.Kind() == reflect.String || v.Kind() == reflect.Map) {
		return ""
	}
	return fmt.Sprintf("`%v`", v.Interface())
}
