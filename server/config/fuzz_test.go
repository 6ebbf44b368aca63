package config

import (
	"bytes"
	"errors"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coxswain-sched/coxswain/internal/sweep"
	"github.com/coxswain-sched/coxswain/spec"
)

// judge reads a file of any bytes. What is taken can be shown, and means the same when
// that is read; what is refused is told with a place inside of the file.
func judge(t *testing.T, text []byte) {
	t.Helper()
	c, err := Parse("cox.yaml", text)
	if err != nil {
		var e *spec.Error
		if !errors.As(err, &e) || e.Message == "" {
			t.Fatalf("%q is refused with %T %v", text, err, err)
		}
		for _, e := range append([]*spec.Error{e}, e.Others...) {
			if e.Line > bytes.Count(text, []byte("\n"))+1 || e.Text != "" && (e.Col < 1 || e.Col-1+e.Len > len(e.Text)) {
				t.Fatalf("%q: %v is at line %d, %d bytes at %d of %q", text, err, e.Line, e.Len, e.Col, e.Text)
			}
		}
		return
	}
	shown, err := yaml.Marshal(c)
	if err != nil {
		t.Fatalf("%q cannot be shown: %v", text, err)
	}
	back, err := Parse("shown", shown)
	if err != nil {
		t.Fatalf("%q is shown as\n%s\nwhich is refused: %v", text, shown, err)
	}
	if d := cmp.Diff(c, back, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("%q is shown as\n%s\nwhich differs: %s", text, shown, d)
	}
}

const whole = `{"name":"lab","state":{"history":"90d","dir":"/s"},"listen":{"tcp":"none","socket":"/run/x"},"room":{"nodes":4,"memory":"64G","gpus_per_node":8},
"partitions":[{"name":"gpu","nodes":"v[1-2]","time_limit":"2d12h","default_time":"1h","default":true}],"accounts":[{"name":"nlp","users":["anna","ben"]}],
"notify":{"smtp":{"addr":"localhost:25"}},"log":{"level":"debug"}}`

// TestSweepOfFiles changes one place of a file at a time; JSON is YAML.
func TestSweepOfFiles(t *testing.T) {
	if _, err := Parse("cox.yaml", []byte(whole)); err != nil {
		t.Fatal(err)
	}
	for c := range sweep.JSON([]byte(whole)) {
		t.Run(c.What, func(t *testing.T) { judge(t, c.Doc) })
	}
}

// A file of any bytes is refused where it is wrong, or can be shown and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("name: lab\nroom:\n  nodes: 4  # four\npartitions:\n  - name: gpu\n    time_limit: 2d\n"))
	f.Add([]byte("state:\n  journal: 5x\n"))
	if b, err := yaml.Marshal(Default()); err == nil {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) < 8<<10 {
			judge(t, text)
		}
	})
}
