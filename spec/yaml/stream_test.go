package yaml

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec"
)

var open = Limits{Size: 1 << 20, Depth: 24, Aliases: true}

// TestAliasesAreTheirAnchors reads aliases and merge keys: a field of the mapping itself wins, and
// of two that are merged the first.
func TestAliasesAreTheirAnchors(t *testing.T) {
	docs, err := ParseStream(spec.Source{Name: "a", Data: []byte(`
base: &base {a: 1, b: 2}
more: &more {b: 3, c: 4}
one: *base
two: {<<: *base, a: 9}
three:
  <<: [*more, *base]
text: !!str 12
---
other: 1
`)}, open)
	if err != nil || len(docs) != 2 {
		t.Fatal(docs, err)
	}
	root := docs[0].Root
	if root.Get("one") != root.Get("base") {
		t.Error("an alias is not the node of its anchor")
	}
	for _, x := range []struct{ field, want string }{{"two", "a=9 b=2 "}, {"three", "b=3 c=4 a=1 "}} {
		got := ""
		for _, f := range root.Get(x.field).Fields {
			got += f.Name + "=" + f.Value.Text + " "
		}
		if got != x.want {
			t.Errorf("%s is %s, want %s", x.field, got, x.want)
		}
	}
	if n := root.Get("text"); !n.Quoted || n.Text != "12" {
		t.Errorf("!!str is %+v", n)
	}
}

// TestAliasesAreBounded refuses aliases that stand for more than a computer has room for, that
// contain themselves, or that are too deep, each with its line.
func TestAliasesAreBounded(t *testing.T) {
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 12; i++ {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	wide := "a: &a {" + strings.Repeat("x: 1, ", 1) + "y: [" + strings.Repeat("1, ", 5000) + "]}\nb: [" + strings.Repeat("*a, ", 60) + "]\n"
	deep := "a: &a " + strings.Repeat("{b: ", 15) + "1" + strings.Repeat("}", 15) + "\nc: " + strings.Repeat("{b: ", 10) + "*a" + strings.Repeat("}", 10) + "\n"
	for _, x := range []struct{ name, text, want string }{
		{"bomb", bomb, "aliases (*) stand for more than 200000 values"},
		{"wide", wide, "aliases (*) stand for more than 200000 values"},
		{"long text", "a: &a " + strings.Repeat("x", 10_000) + "\nb: [" + strings.Repeat("*a, ", 500) + "]\n", "aliases (*) stand for more than 4 MiB of text"},
		{"long names", "a: &a {" + strings.Repeat("x", 10_000) + ": 1}\nb: [" + strings.Repeat("*a, ", 500) + "]\n", "aliases (*) stand for more than 4 MiB of text"},
		{"NUL", "{\"a\": 1}\x00{\"b\": 2}", "control characters"},
		{"deep", deep, "more than 24 levels"},
		{"itself", "a: &a {b: *a}\n", "an alias (*) of the value that it is a part of"},
		{"unknown", "a: *b\n", "an alias (*) of a name that no anchor (&) has"},
		{"other document", "a: &b 1\n---\na: *b\n", "an alias (*) of a name that no anchor (&) has"},
		{"merged text", "a: {<<: b}\n", "a merge key (<<) of a value"},
		{"tag", "a: !secret b\n", "tags (!) are not read"},
		{"twice", "a: 1\nb: {c: 1, c: 2}\n", "c is given twice, first in line 2"},
	} {
		_, err := ParseStream(spec.Source{Name: "f", Data: []byte(x.text)}, open)
		if err == nil || !strings.Contains(err.Error(), x.want) || !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestMergesAreLinear merges a small mapping many times into a large one.
func TestMergesAreLinear(t *testing.T) {
	var text strings.Builder
	text.WriteString("a: &a {x: 1}\nb:\n  <<: [" + strings.Repeat("*a, ", 20_000) + "]\n")
	for i := range 5000 {
		fmt.Fprintf(&text, "  f%d: 1\n", i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	docs, err := ParseStream(spec.Source{Name: "a", Data: []byte(text.String())}, open)
	runtime.ReadMemStats(&after)
	if err != nil || len(docs[0].Root.Get("b").Fields) != 5001 {
		t.Fatal(err)
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 200 {
		t.Errorf("%d MiB", used)
	}
}
