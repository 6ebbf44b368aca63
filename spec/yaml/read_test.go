package yaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/spec"
)

// plainForm is a document as JSON: every scalar is text.
func plainForm(n *Node) any {
	switch n.Kind {
	case Scalar:
		return n.Text
	case List:
		out := []any{}
		for _, i := range n.Items {
			out = append(out, plainForm(i))
		}
		return out
	case Mapping:
		out := map[string]any{}
		for _, f := range n.Fields {
			out[f.Name] = plainForm(f.Value)
		}
		return out
	}
	return nil
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// taken are documents and what they hold.
var taken = []struct{ src, want string }{
	{"", `null`},
	{"# only a comment\n", `null`},
	{"---\na: 1\n", `{"a":"1"}`},
	{"a: 1\n...\n", `{"a":"1"}`},
	{"\ufeffa: 1\r\nb: 2\r\n", `{"a":"1","b":"2"}`},
	{"# c\nname:   träin x # hi\n", `{"name":"träin x"}`},
	{"a: no\nb: 010\nc: 0x1F\nd: 1.50\n", `{"a":"no","b":"010","c":"0x1F","d":"1.50"}`},
	{"a: ~\nb:\nc: null\nd: '~'\n", `{"a":null,"b":null,"c":null,"d":"~"}`},
	{"a: {b: c, d: }\n", `{"a":{"b":"c","d":null}}`},
	{"a: [1, 'b c', \"d\\ne\",\n  f g , # comment\n]\n", `{"a":["1","b c","d\ne","f g"]}`},
	{`{"a": 1, "b":[1,2],"c":{}}`, `{"a":"1","b":["1","2"],"c":{}}`},
	{"a:\n- b: 1\n  c: 2\n- - x\n  - y\n-\nd: e\n", `{"a":[{"b":"1","c":"2"},["x","y"],null],"d":"e"}`},
	{"a:\n  - x\n  -\n    b: c\n", `{"a":["x",{"b":"c"}]}`},
	{"a: b\n c\n\n d\n", `{"a":"b c\nd"}`},
	{"a: h100:2\nb: http://x/#y\nc: a#b\n", `{"a":"h100:2","b":"http://x/#y","c":"a#b"}`},
	{"a: -5\nb: ?x\nc: :x\nd: --x\n", `{"a":"-5","b":"?x","c":":x","d":"--x"}`},
	{"a: 'it''s'\nb: \"\\x41\\u00e9\\U0001F600\\\"\"\n", `{"a":"it's","b":"Aé😀\""}`},
	{"a: \"x\\\n   y\n\n  z\"\n", `{"a":"xy\nz"}`},
	{"a: \"#\\n\\0\"\n", "{\"a\":\"#\\n\\u0000\"}"},
	{"\"a b\": 1\n'c: d' : 2\n", `{"a b":"1","c: d":"2"}`},
	{"a: |\n  #!/bin/sh\n\n  echo a  \n  \techo\n   b\n\n\nz: 1\n", `{"a":"#!/bin/sh\n\necho a  \n\techo\n b\n","z":"1"}`},
	{"a: |-\n  x\n\nb: |+\n  x\n\n\nc: |2\n   x\n", `{"a":"x","b":"x\n\n\n","c":" x\n"}`},
	{"a: |\n\n\n    x\nb: |\n", `{"a":"\n\nx\n","b":""}`},
	{"a:\n- |\n  x\n  y\n- z\n", `{"a":["x\ny\n","z"]}`},
	{"a:\n  b: | # comment\n    x\n  # comment\n  c: 1\n", `{"a":{"b":"x\n","c":"1"}}`},
	{"a: >\n  x\n  y\n\n  z\n\n    more\n  w\n", `{"a":"x y\nz\n\n  more\nw\n"}`},
	{"a: >-\n  x\n  y\n", `{"a":"x y"}`},
	{"a: |\n  x: [1\n  - y # no comment\n  \"\n", `{"a":"x: [1\n- y # no comment\n\"\n"}`},
	{"a: |\n  x", `{"a":"x\n"}`},
}

func TestReads(t *testing.T) {
	for _, c := range taken {
		d, err := Parse(spec.Source{Name: "f", Data: []byte(c.src)})
		if err != nil {
			t.Errorf("%q: %v", c.src, err)
			continue
		}
		if got := asJSON(t, plainForm(d.Root)); got != c.want {
			t.Errorf("%q\n got %s\nwant %s", c.src, got, c.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"a: &x 1\n", "f:1:anchors (&) are not read\n      a: &x 1\n         ^\n"},
		{"a: *x\n", "f:1:aliases (*) are not read"},
		{"a: &x 1\nb: *x\n", "f:1:anchors (&) are not read"},
		{"a: [*x,*x]\n", "f:1:aliases (*) are not read\n      a: [*x,*x]\n          ^\n"},
		{"a: !!binary x\n", "f:1:tags (!) are not read"},
		{"&a b: 1\n", "f:1:anchors"},
		{"a:\n  <<: {b: c}\n", "f:2:merge keys (<<)"},
		{"a: {<<: b}\n", "f:1:merge keys (<<)"},
		{"? [a]\n: b\n", "f:1:complex keys"},
		{"a: 1\n---\nb: 2\n", "f:3:a second document stands here"},
		{"a: 1\nb: 2\na: 3\n", "f:3:a is given twice, first in line 1\n      a: 3\n      ^\n"},
		{"a: {b: 1, b: 2}\n", "f:1:b is given twice"},
		{"a:\n\tb: 1\n", "indent with blanks, not tabs"},
		{"a: |\n  x\n\ty\n", "indent with blanks, not tabs"},
		{"a: b: c\n", `put the value into quotes: a: "…"`},
		{"a: b\n  c: d\n", "f:2:this field is indented below a line that already has a value"},
		{"a: - b\n", "f:1:an entry of a list cannot follow a name on the same line"},
		{"a: 'x\n", "a text in quotes has no quote at its end"},
		{"a: \"\\q\"\n", "f:1:this text in double quotes has a \\ before"},
		{"a: [1\n", "f:1:a list that begins with [ has no ]"},
		{"a: [,]\n", "f:1:a value is missing here, or a [ or { has no end"},
		{"a: 'b' c\n", "f:1:something follows the end of a value\n      a: 'b' c\n             ^"},
		{"b: 2\na:1\n", "f:2:this line, or the one above it, has no colon after a name\n      a:1\n      ^\n  write name: value"},
		{"a: 1\n- b\n", "f:2:the indentation of this line matches no field above it"},
		{"a:\n    b: 1\n  c: 2\n", "f:3:the indentation of this line matches no field above it"},
		{"a: @x\n", "f:1:this value begins with a character that needs quotes"},
		{"a: x\x00y\n", "control characters are not allowed"},
		{"a: \xff\n", "invalid leading UTF-8"},
	} {
		_, err := Parse(spec.Source{Name: "f", Data: []byte(c.src)})
		var e *spec.Error
		if !errors.As(err, &e) || !strings.Contains(strings.Replace(err.Error(), fmt.Sprintf(":%d: ", e.Col), ":", 1), c.want) {
			t.Errorf("%q\n got %v\nwant %s", c.src, err, c.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	d, err := Parse(spec.Source{Data: []byte("ä: x\nb:\n  - c: 'd e'\n    f: [g, h i]\n")})
	if err != nil {
		t.Fatal(err)
	}
	item := d.Root.Get("b").Items[0]
	for _, c := range []struct {
		got, want Place
	}{
		{d.Root.Fields[0].Value.Place, Place{1, 5, 1}},
		{d.Root.Fields[1].Place, Place{2, 1, 1}},
		{item.Fields[0].Place, Place{3, 5, 1}},
		{item.Get("c").Place, Place{3, 8, 5}},
		{item.Get("f").Items[1].Place, Place{4, 12, 3}},
	} {
		if c.got != c.want {
			t.Errorf("%+v, want %+v", c.got, c.want)
		}
	}
}

// hostile are texts that have made readers of YAML slow, large or dead.
func hostile() map[string]string {
	const n = MaxSize - 64
	fill := func(s string) string { return strings.Repeat(s, n/len(s)) }
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
	fields := strings.Builder{}
	for i := range 80000 {
		fmt.Fprintf(&fields, "k%d: v\n", i)
	}
	return map[string]string{
		"bomb": bomb, "deep flow": strings.Repeat("[", 100000), "deep braces": strings.Repeat("{a: ", 100000),
		"deep closed": strings.Repeat("[", 100000) + strings.Repeat("]", 100000), "dashes": fill("- "), "questions": fill("? "),
		"colons": fill(": "), "fields": fields.String(), "huge plain": "a: " + fill("x"), "huge number": "a: " + fill("1"),
		"huge quoted": "a: \"" + fill("x") + "\"", "escapes": "a: \"" + fill("\\n") + "\"", "open quote": "a: \"" + fill("x\n"),
		"open quotes": fill("a\"\n"), "blank literal": "a: |\n" + fill(" \n"), "literal": "a: |\n" + fill("  x\n"),
		"folded": "a: >\n" + fill("  x\n\n"), "folded deeper": "a: >\n" + fill("   x\n\n"), "flow": "a: [" + fill("1,") + "]",
		"flow fields": "a: {" + fill("b,") + "}", "flow nulls": "a: [" + fill("~,") + "]", "list": "a:\n" + fill("- 1\n"),
		"same field": fill("a: b\n"), "comments": fill("# c\n") + "a: 1\n", "blank lines": fill("\n"), "blanks": fill(" "),
		"tabs": fill("\t"), "carriage returns": fill("\r\n"), "plain lines": "a: b\n" + fill("  x\n"), "plain gaps": "a: b\n" + fill("\n"),
		"plain gaps often": fill("a:\n b\n\n\n\n"), "markers": fill("---\n"), "anchors": fill("&a "), "tags": fill("!a "), "aliases": "a: [" + fill("*a,") + "]",
		"long key": fill("k") + ": 1", "quoted key": "\"" + fill("k") + "\": 1", "headers": fill("a: |9\n"), "one line": fill("a"),
		"hashes": "a: " + fill("a#"), "lists of lists": fill("-\n -\n  -\n"), "over size": strings.Repeat("x", MaxSize+1),
	}
}

// TestHostileTextIsCheap: whatever a text holds, reading it takes little time and
// memory: no more than some dozens of bytes for each of its own.
func TestHostileTextIsCheap(t *testing.T) {
	for name, text := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		from := time.Now()
		d, err := Parse(spec.Source{Name: name, Data: []byte(text)})
		took := time.Since(from)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; took > time.Minute || used > 400<<20 {
			t.Errorf("%s: %d bytes took %v and %d MiB", name, len(text), took, used>>20)
		}
		if d == nil == (err == nil) {
			t.Errorf("%s: neither a document nor an error", name)
		}
		if err != nil && len(err.Error()) > 1000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

func TestHostileTextIsRefusedByName(t *testing.T) {
	texts := hostile()
	for name, want := range map[string]string{
		"bomb": "anchors", "deep flow": "no more than 16 levels", "deep braces": "no more than 16 levels", "deep closed": "no more than 16 levels", "dashes": "no more than 16 levels",
		"aliases": "aliases", "over size": "larger than 1024 KiB", "same field": "given twice",
	} {
		if _, err := Parse(spec.Source{Data: []byte(texts[name])}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range taken {
		f.Add(c.src)
	}
	for _, c := range []string{"a: &x 1", "a: |2-\n   x\n", "a: [\"b\n c\", {d: e}]", "- - - a\n    b", "? a"} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(spec.Source{Name: "f", Data: []byte(text)})
		if err != nil {
			var e *spec.Error
			if !errors.As(err, &e) || e.Message == "" || e.Line < 0 || e.Col > len(e.Text)+1 {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		var walk func(n *Node)
		walk = func(n *Node) {
			if p := n.Place; p.Line < 1 || p.Line > len(d.at)+1 || p.Col < 1 || p.Col-1+p.Len > len(d.Line(p.Line))+1 {
				t.Fatalf("%q: a %s at %+v", text, n.Kind, n.Place)
			}
			for _, i := range n.Items {
				walk(i)
			}
			for _, x := range n.Fields {
				walk(x.Value)
			}
		}
		walk(d.Root)
	})
}

// TestParseAll: several documents, each with its place in the text.
func TestParseAll(t *testing.T) {
	docs, err := ParseAll(spec.Source{Name: "x", Data: []byte("# first\n---\na: 1\n---\n---\n# nothing\n---\n- b\n...\n")}, 100)
	if err != nil || len(docs) != 2 {
		t.Fatal(len(docs), err)
	}
	if got := asJSON(t, plainForm(docs[0].Root)) + asJSON(t, plainForm(docs[1].Root)); got != `{"a":"1"}["b"]` {
		t.Error(got)
	}
	if p := docs[1].Root.Items[0].Place; p.Line != 8 || docs[1].Line(p.Line) != "- b" {
		t.Errorf("%+v", p)
	}
	for _, bad := range []string{"a: 1\n---\na: &x 1\n", "a: 1\n---\na: [1\n", "a: 1\na: 2\n"} {
		var e *spec.Error
		if _, err := ParseAll(spec.Source{Name: "x", Data: []byte(bad)}, 100); !errors.As(err, &e) || e.Line == 0 {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := ParseAll(spec.Source{Name: "x", Data: make([]byte, 101)}, 100); err == nil {
		t.Error("too large a text is read")
	}
}
