package yaml

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec"
)

// treeText writes a tree with all that is known of its nodes. Where nothing is written, the library's
// place is that of what follows, so it is left out.
func treeText(b *strings.Builder, n *Node) {
	if n.Kind == Null {
		b.WriteString("null\n")
		return
	}
	fmt.Fprintf(b, "%v %v %q %v\n", n.Kind, n.Place, n.Text, n.Quoted)
	for _, i := range n.Items {
		b.WriteString("- ")
		treeText(b, i)
	}
	for _, f := range n.Fields {
		fmt.Fprintf(b, "%q %v: ", f.Name, f.Place)
		treeText(b, f.Value)
	}
}

// compareReaders reads a text with the library alone, and as it is read otherwise. plain: that no
// library was needed is expected.
func compareReaders(t *testing.T, text string, plain bool) {
	t.Helper()
	src := spec.Source{Name: "f", Data: []byte(text)}
	got, err := parseStream(src, open, true)
	want, wantErr := parseStream(src, open, false)
	if err != nil || wantErr != nil {
		// The library says of some faults only in which part of the text they are.
		if (err == nil) != (wantErr == nil) || !strings.Contains(text, "---") && err.Error() != wantErr.Error() {
			t.Fatalf("%q: %v, the library says %v", text, err, wantErr)
		}
		return
	}
	var a, b strings.Builder
	for _, d := range got {
		treeText(&a, d.Root)
	}
	for _, d := range want {
		treeText(&b, d.Root)
	}
	if a.String() != b.String() {
		t.Fatalf("%q:\n%s\nthe library reads\n%s", text, a.String(), b.String())
	}
	if !plain {
		return
	}
	d, _ := openDocument(src, open)
	parts, ok := d.splitParts()
	for _, p := range parts {
		if _, read := d.readPart(p, ok); !read {
			t.Errorf("%q is not read as plain", text)
		}
	}
}

// plainTexts are texts that need no library.
var plainTexts = []string{
	"", "\n", "# only\n", "a: 1\n", "a: 1", "---\na: 1\n---\n---\nb: 2\n", "a:\n  b: c\n", "a:\n- b\n- c\n", "a:\n  - b: 1\n    c: 2\n  -\n    d: 3\n  - e\nf: g\n",
	"- a\n- b: c\n  d: e\n-\n- - x\n  - y\n", "a: 'b c' # d\nb: \"x\"\n\"c d\": e\n", "a: b c d # e\n", "a: b#c\n", "a: [1, 'x', {b: c, d: []}]\nb: {}\n", "a: |\n  x\n    y\n\n  z\nb: 1\n",
	"a: |-\n  x\n\n\nb: 1\n", "- |\n x\n- y\n", "a:\n  # comment\n  b: 1\n# other\nc: 2\n", "a: ~\nb: null\nc:\nd: Null\n", "a: -1\nb: --nodes=4\nc: [-1, --x]\n", "a: ü ñ # ö\nb: 1\n",
	"a.b/c: x\n", "a: http://x/y\n", "a: x:y\n", "key:   spaced\n", "a:\n    deep: 1\n    er:\n         more: 2\nb: 1\n",
	`{"a": 1, "b": [true, null, "x\n\u00e9"], "c": {}}`, "{\n \"a\": [\n  {\"b\": -1.5e3}\n ]\n}\n", "a: \"\"\nb: ''\n", "a: $(x) ${y} %z\n", "- a: |\n    t\n  b: 1\n",
}

// otherTexts need the library, or are refused.
var otherTexts = []string{
	"a: b\n  c\n", "a: \"x\\n\"\n", "a: 'it''s'\n", "a: >\n  x\n", "a: &b 1\nc: *b\n", "a: b: c\n", "a:\n b: 1\n  c: 2\n", "a:\n  b: 1\n c: 2\n", "a: [1,\n  2]\n", "a: {b: 1\n", "a: !!str 1\n",
	"? a\n: b\n", "a: 1\na: 2\n", "\ta: 1\n", "a:\t1\n", "a: 1\n...\nb: 1\n", "%YAML 1.2\n---\na: 1\n", "--- a\n", "a: |2\n   x\n", "a: |\n\n  x\n", "a: |+\n  x\n\n", "- a\nb: 1\n", "a: 1\n- b\n", "a\n", "a: @b\n",
	"a: - b\n", "a: [a: b]\n", "a: {b}\n", "a: [b c, 'd' e]\n", "a: \"b\" c\n", "a: 'b'c\n", "a: #b\n", "<<: {a: 1}\n", "{\"a\": 1,}", "{\"a\": 01}", "{\"a\": 1} x", "{\"a\": \"\t\"}", "{\"a\": 1, \"a\": 2}", "{a: 1}\n", "[1]\n",
	"a: |\n  x\n y\n", "a:\n  - b\n c: 1\n", "a: b\n- c\n", "a: 'b\n  c'\n", "a: ?b\n", "a: -\n", "a: ---\n", "a: | # c\n  x\n", "a:\n  'x'\n", "a: \u0085b\n", "a: b \u2028c\n", "a: x #\n", "a: :b\n", "a: b:\n",
	"a: [b:c]\n", "a: [1 ,2]\n", "a: {b: }\n", "a: {b: c,}\n", "a: [c,,]\n", "a: ,b\n", "a: [\"b\"c]\n", "a: {\"b\":c}\n", "a: |\n\tx\n", "a: |\n  x\n  \ty\n", "- - a\n  b\n", "a: 1 \n \nb: 2\n", "a: | \n  x\n", "a:  |\n  x\n     \n  y\n",
	"a: |\n  x\n      \nb: 1\n", "a: 'x' #c\n", "a: {b: c} # d\n", "a: {b: c} d\n", "1: 2\n", "true: x\n", "a : b\n", "\"a\" : b\n", "a:b\n", "- a:b\n", "-a: b\n", "- -a: b\n", "a: [-]\n", "a: [- b]\n", "a: [b #c\n]\n",
}

// TestPlainIsTheLibrary compares what is read without the library with what the library reads: the
// tree, with the places of all nodes, or the error.
func TestPlainIsTheLibrary(t *testing.T) {
	for _, text := range plainTexts {
		compareReaders(t, text, true)
	}
	for _, text := range otherTexts {
		compareReaders(t, text, false)
	}
	files, err := filepath.Glob("../manifest/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		compareReaders(t, string(data), false)
		lines := strings.SplitAfter(string(data), "\n")
		for i := range lines { // each line left out
			compareReaders(t, strings.Join(lines[:i], "")+strings.Join(lines[i+1:], ""), false)
		}
	}
}

func FuzzPlainIsTheLibrary(f *testing.F) {
	for _, text := range append(plainTexts, otherTexts...) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 4096 {
			compareReaders(t, text, false)
		}
	})
}
