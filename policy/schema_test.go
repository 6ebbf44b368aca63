package policy

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/account"
)

func compiled(t testing.TB) *jsonschema.Schema {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("queues.json", v); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("queues.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemaTakesWhatIsWritten: an editor does not mark a document that is right. The
// document is read by another reader of YAML than ours.
func TestSchemaTakesWhatIsWritten(t *testing.T) {
	s := compiled(t)
	rapid.Check(t, func(t *rapid.T) {
		text := Write(anyPolicy().Draw(t, "policy"))
		b, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s\n%v", b, err)
		}
		if err := s.Validate(v); err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
	})
}

func TestSchemaRefuses(t *testing.T) {
	s := compiled(t)
	for _, text := range []string{`{"acounts":[]}`, `{"accounts":[{"parent":"x"}]}`, `{"priority":{"age":-1}}`, `{"fair_share":{"reset":"sometimes"}}`, `{"accounts":[{"name":"a","shares":"many"}]}`} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if s.Validate(v) == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// TestEveryFieldSaysWhatItIs: a field without a word about it would be one without
// documentation.
func TestEveryFieldSaysWhatItIs(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var walk func(reflect.Type)
	walk = func(ty reflect.Type) {
		for ty.Kind() == reflect.Pointer || ty.Kind() == reflect.Slice || ty.Kind() == reflect.Map {
			ty = ty.Elem()
		}
		if ty.Kind() != reflect.Struct || seen[ty] {
			return
		}
		seen[ty] = true
		for i := range ty.NumField() {
			f := ty.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if f.IsExported() && (name == "" || f.Tag.Get("json") == "" || len(f.Tag.Get("doc")) < 4) {
				t.Errorf("%s.%s: needs json, yaml and doc tags", ty, f.Name)
			}
			_ = wordsOf(f.Tag) // panics if they are wrong
			walk(f.Type)
		}
	}
	walk(reflect.TypeFor[account.Policy]())
	if len(seen) < 12 {
		t.Errorf("only %d types", len(seen))
	}
}
