package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/coxswain-sched/coxswain/model/account"
)

// schema is a JSON Schema.
type schema map[string]any

// Schema is the JSON Schema (draft 2020-12) of a document, for editors. Parse is
// stricter where a schema cannot say what is wrong, never more lenient.
func Schema() []byte {
	s := schemaOf(reflect.TypeFor[account.Policy](), field{})
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "The rules of a site of Coxswain (queues.yaml)"
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("policy: the schema is no JSON: %v", err)) // plain data: cannot happen
	}
	return append(out, '\n')
}

// schemaOf is the form of a value in a field.
func schemaOf(t reflect.Type, f field) schema {
	if words := wordsOf(f.tag); len(words) > 0 && t.Kind() != reflect.Slice {
		var list []string
		for _, w := range words {
			list = append(list, w.word)
		}
		return schema{"anyOf": []schema{{"enum": list}, schemaOf(t, field{name: f.name})}}
	}
	switch {
	case t == amountType:
		return schema{"type": []string{"number", "string"}, "pattern": `^[0-9]+(\.[0-9]+)? ?([KMGTPE]i?)?[Bhd]?$`}
	case t == durationType:
		return schema{"type": []string{"integer", "string"}, "pattern": `^(0|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9.]+(ms|us|µs|ns|s))?)$`}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), f)
	case reflect.Struct:
		return schemaOfFields(t)
	case reflect.Slice:
		item := schemaOf(t.Elem(), f)
		if t.Elem().Kind() == reflect.Struct && t.Elem().Field(0).Name == "Name" {
			item = schema{"anyOf": []schema{{"type": "string", "description": "its name, where there is nothing else to say"}, item}}
		}
		if t.Elem().Kind() == reflect.String {
			return schema{"anyOf": []schema{{"type": "array", "items": item}, item}}
		}
		return schema{"type": "array", "items": item}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": schemaOf(t.Elem(), f)}
	case reflect.String:
		if words := f.tag.Get("enum"); words != "" {
			return schema{"enum": strings.Split(words, ",")}
		}
		return schema{"type": []string{"string", "number"}}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Int32:
		return schema{"type": "integer", "minimum": math.MinInt32, "maximum": math.MaxInt32}
	case reflect.Uint32:
		return schema{"type": "integer", "minimum": 0, "maximum": uint32(math.MaxUint32)}
	}
	return schema{"type": "integer", "minimum": 0}
}

func schemaOfFields(t reflect.Type) schema {
	properties, required := schema{}, []string(nil)
	for i, f := range fieldsOf(t) {
		s := schemaOf(f.typ, f)
		s["description"] = f.tag.Get("doc")
		properties[f.name] = s
		if i == 0 && f.typ.Kind() == reflect.String && isAlwaysWritten(f) {
			required = append(required, f.name)
		}
	}
	out := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// Count says how much there is in a policy: "3 accounts, 12 users, 1 QOS".
func Count(p *account.Policy) string {
	users := 0
	for i := range p.Accounts {
		users += len(p.Accounts[i].Users)
	}
	var parts []string
	add := func(n int, one, more string) {
		switch {
		case n == 1:
			parts = append(parts, "1 "+one)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %s", n, more))
		}
	}
	add(len(p.Accounts), "account", "accounts")
	add(users, "user", "users")
	add(len(p.QOS), "QOS", "QOS")
	add(len(p.Partitions), "partition", "partitions")
	add(len(p.Flavors), "flavour", "flavours")
	add(len(p.Licenses), "licence", "licences")
	add(len(p.Reservations), "reservation", "reservations")
	add(len(p.Handover.Pools), "pool that exchanges machines", "pools that exchange machines")
	if len(parts) == 0 {
		return "no accounts, QOS or partitions"
	}
	return strings.Join(parts, ", ")
}
