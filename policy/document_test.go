package policy

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/queues.md and its schema anew")

// TestDocs: docs/reference/queues.md has every field, and the worked examples that can be
// applied.
func TestDocs(t *testing.T) {
	const name = "../docs/reference/queues.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{"fields": Document()}
	for _, site := range []string{"slurm-site", "kueue-site"} {
		b, err := os.ReadFile("../examples/rules/" + site + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(site+".yaml", b)
		if err != nil {
			t.Fatalf("the example cannot be applied: %v", err)
		}
		if again, err := Parse("again", Write(p)); err != nil || len(Diff(p, again)) > 0 {
			t.Errorf("%s: %v", site, err)
		}
		parts[site] = "```yaml\n" + string(b) + "```\n"
	}
	for mark, part := range parts {
		head, rest, ok := bytes.Cut(text, []byte("<!-- "+mark+" -->\n"))
		_, tail, ok2 := bytes.Cut(rest, []byte("<!-- end -->"))
		if !ok || !ok2 {
			t.Fatalf("%s has no marks <!-- %s --> and <!-- end -->", name, mark)
		}
		text = bytes.Join([][]byte{head, []byte("<!-- " + mark + " -->\n" + part + "<!-- end -->"), tail}, nil)
	}
	same(t, name, text)
	same(t, "../docs/reference/queues.schema.json", Schema())
}

func same(t *testing.T, name string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the code says (%v): go test ./policy -run TestDocs -update", name, err)
	}
}
