package fastclient_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/api/fastclient"
)

// plain makes of a Value what encoding/json makes of the same text.
func plain(v fastclient.Value, like any) any {
	switch like := like.(type) {
	case map[string]any:
		out := map[string]any{}
		for i, n := range v.Names() {
			out[n] = plain(v.Items()[i], like[n])
		}
		return out
	case []any:
		out := []any{}
		for i, item := range v.Items() {
			if i < len(like) {
				out = append(out, plain(item, like[i]))
			} else {
				out = append(out, item)
			}
		}
		return out
	case string:
		return v.Text()
	case float64:
		return v.Float()
	case bool:
		return v.Bool()
	}
	return nil
}

// TestParseAsEncodingJSON reads what encoding/json writes.
func TestParseAsEncodingJSON(t *testing.T) {
	leaf := rapid.OneOf(
		rapid.String().AsAny(), rapid.Float64Range(-1e15, 1e15).AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
	)
	tree := rapid.Deferred(func() *rapid.Generator[any] {
		return rapid.OneOf(leaf, rapid.SliceOfN(leaf, 0, 4).AsAny(),
			rapid.MapOfN(rapid.String(), rapid.OneOf(leaf, rapid.SliceOfN(leaf, 0, 3).AsAny()), 0, 4).AsAny())
	})
	rapid.Check(t, func(t *rapid.T) {
		text, err := json.Marshal(tree.Draw(t, "value"))
		if err != nil {
			t.Skip(err)
		}
		if rapid.Bool().Draw(t, "indent") {
			var v any
			_ = json.Unmarshal(text, &v)
			text, _ = json.MarshalIndent(v, " ", "\t")
		}
		var want any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		v, err := fastclient.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := plain(v, want); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %#v, want %#v", text, got, want)
		}
	})
}

// TestParseRefuses: what is no JSON is an error, and never a panic.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", " ", "{", "[", `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, "[1,]", `{,}`, `"`, `"\`, `"\u12`, `"\x"`, "tru", "nul", "1 2", "1.2.3", "-", "{1:2}",
		"\"a\nb\"", strings.Repeat("[", 100000),
	} {
		if v, err := fastclient.Parse([]byte(text)); err == nil {
			t.Errorf("%.20q is read as %v", text, v)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]byte(`{}[]",:\u0019truefalsn 1-.e`))).Draw(t, "text")
		v, err := fastclient.Parse(text)
		if json.Valid(text) && err != nil {
			t.Fatalf("%q is valid, but %v %v", text, v, err)
		}
	})
}

// TestEscapes reads every escape that a server may write.
func TestEscapes(t *testing.T) {
	v, err := fastclient.Parse([]byte(`{"a":"\"\\\/\b\f\n\r\té😀\ud83d!"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := v.Get("a").Text(), "\"\\/\b\f\n\r\té😀�!"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSubmitIsRead: the server's decoder reads what Submit writes.
func TestSubmitIsRead(t *testing.T) {
	text := rapid.String()
	rapid.Check(t, func(t *rapid.T) {
		mask := rapid.Uint32Range(0, 0o777).Draw(t, "umask")
		want := api.Submit{
			Form: api.FormSbatch, File: text.Draw(t, "file"), Text: text.Draw(t, "text"), Dir: text.Draw(t, "dir"), Host: text.Draw(t, "host"),
			Args: rapid.SliceOfN(text, 1, 3).Draw(t, "args"), ScriptArgs: rapid.SliceOfN(text, 1, 3).Draw(t, "script args"),
			Command: rapid.SliceOfN(text, 1, 3).Draw(t, "command"), Environ: rapid.SliceOfN(text, 1, 5).Draw(t, "environ"),
			Files: map[string]string{text.Draw(t, "name"): text.Draw(t, "contents"), "b": ""},
			Umask: &mask, Strict: rapid.Bool().Draw(t, "strict"), TestOnly: rapid.Bool().Draw(t, "test"),
		}
		var got api.Submit
		if err := json.Unmarshal(fastclient.Submit(&want), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
	})
}

// TestStringOfBytes: bytes that are no UTF-8, as environments have them, stay valid JSON.
func TestStringOfBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		var got string
		if err := json.Unmarshal(fastclient.AppendString(nil, in), &got); err != nil {
			t.Fatalf("%q: %v", in, err)
		}
		if want := strings.ToValidUTF8(in, "�"); utf8.ValidString(in) && got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestTable(t *testing.T) {
	var text []byte
	rows := [][]string{{"7", "a\tb\nc\\d", ""}, {"", "", ""}, {"8", "é\r", "x"}}
	for _, r := range rows {
		for i, c := range r {
			if i > 0 {
				text = append(text, '\t')
			}
			text = api.AppendTSV(text, c)
		}
		text = append(text, '\n')
	}
	tab, err := fastclient.NewTable(text, 3)
	if err != nil {
		t.Fatal(err)
	}
	if tab.Len() != len(rows) {
		t.Fatalf("%d rows, want %d", tab.Len(), len(rows))
	}
	for i, r := range rows {
		for k, want := range r {
			if got := string(tab.Cell(i, k)); got != want {
				t.Errorf("cell %d of row %d is %q, want %q", k, i, got, want)
			}
		}
	}
	if _, err := fastclient.NewTable(text, 2); err == nil {
		t.Error("a table with another number of columns is taken")
	}
	if none, err := fastclient.NewTable(nil, 3); err != nil || none.Len() != 0 {
		t.Errorf("an empty table: %v, %v", none.Len(), err)
	}
}

func TestQuery(t *testing.T) {
	got := fastclient.Query("/v1/jobs", "ids", "7_[1-4,9%2]", "users", "", "names", "a b&c=ü")
	if want := "/v1/jobs?ids=7_%5B1-4,9%252%5D&names=a%20b%26c%3D%C3%BC"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
