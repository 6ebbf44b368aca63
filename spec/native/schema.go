package native

import (
	"encoding/json"
	"fmt"
)

// Schema is the JSON Schema (draft 2020-12) of the form, for editors. The parser is
// stricter where a schema cannot say what is wrong, never more lenient.
func Schema() []byte {
	s := object(topFields)
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "A job of Coxswain"
	s["oneOf"] = []schema{{"required": []string{"script"}}, {"required": []string{"command"}}}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("spec/native: the schema is no JSON: %v", err)) // plain data: cannot happen
	}
	return append(out, '\n')
}

// object is the schema of a group of fields.
func object[T any](fields []field[T]) schema {
	properties := schema{}
	for _, f := range fields {
		p := schema{"description": f.doc}
		for k, v := range f.form.schema {
			p[k] = v
		}
		properties[f.name] = p
	}
	return schema{"type": "object", "properties": properties, "additionalProperties": false}
}

func gpuSchema() schema {
	one := schema{"anyOf": []schema{
		{"type": "integer", "minimum": 1, "maximum": maxCount},
		{"type": "string", "minLength": 1},
		object(gpuFields),
	}}
	return schema{"anyOf": []any{one, schema{"type": "array", "minItems": 1, "items": one}}}
}
