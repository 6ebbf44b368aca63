package policy

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/queues.md, the pages beside it and the schema anew")

// TestDocs: the pages of the rules have every field, and the worked examples can be applied.
func TestDocs(t *testing.T) {
	parts := Documents()
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
	for page, marks := range map[string][]string{
		"queues.md": {"slurm-site", "kueue-site", "document"}, "queues-accounts.md": {"accounts"}, "queues-scheduling.md": {"scheduling"},
	} {
		name := "../docs/reference/" + page
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, mark := range marks {
			head, rest, ok := bytes.Cut(text, []byte("<!-- "+mark+" -->\n"))
			_, tail, ok2 := bytes.Cut(rest, []byte("<!-- end -->"))
			if !ok || !ok2 {
				t.Fatalf("%s has no marks <!-- %s --> and <!-- end -->", name, mark)
			}
			text = bytes.Join([][]byte{head, []byte("<!-- " + mark + " -->\n" + parts[mark] + "<!-- end -->"), tail}, nil)
		}
		same(t, name, text)
	}
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
