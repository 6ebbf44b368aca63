package native

import (
	"encoding/json"
	"fmt"
)

// schema is a JSON Schema.
type schema map[string]any

// Schema is the JSON Schema (draft 2020-12) of the form, for editors. The parser is
// stricter where a schema cannot say what is wrong, never more lenient.
func Schema() []byte {
	s := objectSchema(documentFields)()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "A job or a service of Coxswain"
	s["if"] = schema{"properties": schema{"kind": schema{"const": kindService}}, "required": []string{"kind"}}
	s["then"] = schema{"required": []string{"ports"}, "properties": noFields(notForServices)}
	s["else"] = schema{"properties": noFields(serviceFields)}
	s["oneOf"] = []schema{{"required": []string{"script"}}, {"required": []string{"command"}}}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("spec/native: the schema is no JSON: %v", err)) // plain data: cannot happen
	}
	return append(out, '\n')
}

// noFields says that a document has none of these fields.
func noFields[T interface{ fieldName() string }](fields []T) schema {
	none := schema{}
	for _, f := range fields {
		none[f.fieldName()] = false
	}
	return none
}

// objectSchema makes the schema of a group of fields.
func objectSchema[T any](fields []field[T]) func() schema {
	return func() schema {
		properties := schema{}
		for _, f := range fields {
			p := schema{"description": f.doc}
			for k, v := range f.form.schema() {
				p[k] = v
			}
			properties[f.name] = p
		}
		return schema{"type": "object", "properties": properties, "additionalProperties": false}
	}
}

func scalarSchema() schema { return schema{"type": []string{"string", "number", "boolean"}} }

func patternSchema(p string) func() schema {
	return func() schema { return schema{"type": "string", "pattern": p} }
}

func integerSchema(least, most int64) func() schema {
	return func() schema { return schema{"type": "integer", "minimum": least, "maximum": most} }
}

func anyOf(forms ...func() schema) func() schema {
	return func() schema {
		var list []schema
		for _, f := range forms {
			list = append(list, f())
		}
		return schema{"anyOf": list}
	}
}

// listOf is a list of least to most entries; 0 is no bound.
func listOf(item func() schema, least, most int) func() schema {
	return func() schema {
		s := schema{"type": "array", "items": item()}
		if least > 0 {
			s["minItems"] = least
		}
		if most > 0 {
			s["maxItems"] = most
		}
		return s
	}
}

func envSchema() schema {
	return schema{
		"type": "object", "propertyNames": schema{"pattern": `^[^0-9\s="'][^\s="']*$`},
		"additionalProperties": schema{"type": []string{"string", "number", "boolean", "null"}},
	}
}

func gpuSchema() schema {
	text := func() schema { return schema{"type": "string", "minLength": 1} }
	one := anyOf(aCount.schema, text, objectSchema(gpuFields))
	return anyOf(one, listOf(one, 1, 0))()
}
