package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/coxswain-sched/coxswain/spec/manifest/fields"
)

var update = flag.Bool("update", false, "write the golden files anew")

var engines = []fields.Engine{fields.Local, fields.Slurm, fields.Kubernetes}

func readTestdata(t *testing.T, path string) (*File, []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read(filepath.Base(path), data)
	if err != nil {
		t.Fatal(err)
	}
	return f, data
}

func documentFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v: only %d documents", err, len(files))
	}
	return files
}

// TestDocuments compares what was read of each document of testdata, and what each engine does
// with its fields, with a golden file.
func TestDocuments(t *testing.T) {
	for _, path := range documentFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f, _ := readTestdata(t, path)
			var out bytes.Buffer
			for _, d := range f.Documents {
				writeReading(t, &out, d)
			}
			compareGolden(t, strings.TrimSuffix(path, ".yaml")+".golden", out.Bytes())
		})
	}
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", path, firstDifference(string(want), string(got)))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("%d lines instead of %d", len(g), len(w))
}

func writeReading(t *testing.T, out *bytes.Buffer, d *Document) {
	fmt.Fprintf(out, "== %s, line %d, %s\n", d.Label(), d.Line, d.Kind.APIVersion())
	if err := json.Indent(out, d.JSON(""), "", " "); err != nil {
		t.Fatal(err)
	}
	out.WriteByte('\n')
	for i, u := range d.Uses(fields.Local) {
		fmt.Fprintf(out, "%c%c%c %s\n", u.Mark, d.Uses(fields.Slurm)[i].Mark, d.Uses(fields.Kubernetes)[i].Mark, u.Path)
	}
	for _, engine := range engines {
		warnings, err := d.Check(engine)
		for _, w := range warnings {
			fmt.Fprintf(out, "%s: %s\n", engine, w)
		}
		if err != nil {
			fmt.Fprintf(out, "%s: %v\n", engine, err)
		}
	}
}

// TestNothingIsPassedOver reads each document with a plain reader of YAML, and compares the
// fields that it has with those that were read: each has a mark for each engine.
func TestNothingIsPassedOver(t *testing.T) {
	for _, path := range documentFiles(t) {
		f, data := readTestdata(t, path)
		var have []string
		in := yaml.NewDecoder(bytes.NewReader(data))
		n := 0
		for {
			var v any
			if err := in.Decode(&v); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if v == nil {
				continue
			}
			n++
			if m, ok := v.(map[string]any); ok && m["kind"] == "List" {
				for i, item := range m["items"].([]any) {
					have = leafPaths(fmt.Sprintf("%d.%d ", n, i+1), item, have)
				}
				continue
			}
			have = leafPaths(fmt.Sprintf("%d.0 ", n), v, have)
		}
		for _, engine := range engines {
			var got []string
			for _, d := range f.Documents {
				for _, u := range d.Uses(engine) {
					if !strings.ContainsRune("y>~n", rune(u.Mark)) {
						t.Errorf("%s: %s has mark %q", path, u.Path, u.Mark)
					}
					if u.Line == 0 || u.Rule.Text == "" {
						t.Errorf("%s: %s has no line or no sentence", path, u.Path)
					}
					got = append(got, fmt.Sprintf("%d.%d %s", d.Number, d.Item, u.Path))
				}
			}
			slices.Sort(have)
			slices.Sort(got)
			if !slices.Equal(have, got) {
				t.Errorf("%s: %v", path, firstDifference(strings.Join(have, "\n"), strings.Join(got, "\n")))
			}
		}
	}
}

// leafPaths are the paths of all values without fields or entries.
func leafPaths(path string, v any, out []string) []string {
	head, rest, _ := strings.Cut(path, " ")
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			out = leafPaths(head+" "+Join(rest, k), x, out)
		}
		if len(v) > 0 {
			return out
		}
	case []any:
		for i, x := range v {
			out = leafPaths(fmt.Sprintf("%s[%d]", path, i), x, out)
		}
		if len(v) > 0 {
			return out
		}
	}
	return append(out, path)
}

// TestClaimsOfPods: a claim within another object needs neither apiVersion nor kind, as in Kubernetes, whose own
// examples have none.
func TestClaimsOfPods(t *testing.T) {
	const text = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {a: b}}\n  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}\n" +
		"  volumeClaimTemplates: [{metadata: {name: www}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]\n"
	f, err := Read("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Documents[0].Check(fields.Kubernetes); err == nil || !strings.Contains(err.Error(), "f:7:3: StatefulSet web: spec.volumeClaimTemplates is refused") {
		t.Errorf("%v", err)
	}
}
