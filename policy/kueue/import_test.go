package kueue

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/account"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/policy"
	"github.com/coxswain-sched/coxswain/sched/quota"
	"github.com/coxswain-sched/coxswain/spec"
	"github.com/coxswain-sched/coxswain/spec/yaml"
)

var update = flag.Bool("update", false, "write the rules and reports of testdata anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: -want +got\n%s", name, d)
	}
}

func site(t testing.TB) string {
	b, err := os.ReadFile(filepath.Join("testdata", "site.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestImport: the rules and the report of a site, as they were looked through; the
// core takes them.
func TestImport(t *testing.T) {
	p, report, err := Import([]File{{"site.yaml", site(t)}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	report.Write(&b, false)
	golden(t, "testdata/report.txt", b.String())
	out := policy.Write(p)
	golden(t, "testdata/queues.yaml", string(out))
	got, err := policy.Parse("queues.yaml", out)
	if err != nil {
		t.Fatalf("what was made cannot be applied: %v", err)
	}
	if _, err := quota.New(got); err != nil {
		t.Error(err)
	}
}

// TestNothingIsDropped: every value of the documents is in the report, once.
func TestNothingIsDropped(t *testing.T) {
	text := site(t)
	_, report, err := Import([]File{{"site.yaml", text}})
	if err != nil {
		t.Fatal(err)
	}
	docs, err := yaml.ParseAll(spec.Source{Name: "x", Data: []byte(text)}, maxSize)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range docs {
		n += len(newObject(&importer{}, "x", d.Root).order)
	}
	if len(report.Findings) != n || n < 60 {
		t.Errorf("%d findings about %d values", len(report.Findings), n)
	}
	for _, f := range report.Findings {
		if f.Verdict != policy.Kept && f.How == "" {
			t.Errorf("%s is %s, and nothing says why", f.What, f.Verdict)
		}
	}
}

func TestFilesThatAreNone(t *testing.T) {
	for _, text := range []string{"", "a: 1\n", "kind: Pod\nmetadata: {name: x}\n"} {
		if _, _, err := Import([]File{{"x.yaml", text}}); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := Import([]File{{"x.yaml", "a: [1\n"}}); fault.KindOf(err) != fault.Invalid {
		t.Error(err)
	}
}

// Any text is read without harm, and what is made can be written and read.
func FuzzImport(f *testing.F) {
	f.Add(site(f))
	f.Add("kind: List\nitems:\n  - kind: ClusterQueue\n    metadata: {name: a}\n    spec: {cohort: a}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 16<<10 {
			return
		}
		p, report, err := Import([]File{{"x", text}})
		if err != nil {
			return
		}
		out := policy.Write(p)
		if _, err := policy.Parse("x", out); err != nil && report.Count(policy.Refused) == 0 {
			t.Fatalf("%q is made\n%s\nwhich cannot be applied, and the report says nothing: %v", text, out, err)
		}
	})
}

// TestTheOrderStandsAtTheRoot: where all queues of a cohort have one strategy the root
// says it; where they do not, each strict one says it itself.
func TestTheOrderStandsAtTheRoot(t *testing.T) {
	queue := func(name, cohort, strategy string) string {
		return "---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueue\nmetadata: {name: " + name + "}\nspec: {cohort: " + cohort + ", queueingStrategy: " + strategy + "}\n"
	}
	text := queue("a", "same", "StrictFIFO") + queue("b", "same", "StrictFIFO") + queue("c", "mixed", "StrictFIFO") + queue("d", "mixed", "BestEffortFIFO") + queue("e", `""`, "StrictFIFO")
	p, _, err := Import([]File{{"q.yaml", text}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]account.QueueOrder{}
	for _, a := range p.Accounts {
		if a.Quota != nil && a.Quota.Order != account.OrderAbove {
			got[a.Name] = a.Quota.Order
		}
	}
	if want := (map[string]account.QueueOrder{"same": account.Strict, "c": account.Strict, "e": account.Strict}); !maps.Equal(got, want) {
		t.Errorf("orders %v, want %v", got, want)
	}
}
