// Package kittest holds the tests of a journal (engine/kit) that every driver passes with its own entries.
package kittest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/kit"
)

// Compatible checks a driver's journal against the files of an earlier version in a directory:
// the same entries give the bytes of DIR/journal, and that file, opened and rewritten, gives those of
// DIR/journal.rewritten, but for the order of the attempts. DIR/journal begins with the two entries of
// its first open.
func Compatible[E, L any](t *testing.T, dir string, open func(path, name string) (*kit.Journal[E, L], error)) {
	t.Helper()
	read := func(name string) []byte {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	before, path := read(filepath.Join(dir, "journal")), filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, before, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := open(path, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got, want := linesByAttempt(t, read(path)), linesByAttempt(t, read(filepath.Join(dir, "journal.rewritten"))); !slices.Equal(got, want) {
		t.Errorf("rewritten, the journal is\n%s\nnot\n%s", strings.Join(got, ""), strings.Join(want, ""))
	}

	path = filepath.Join(t.TempDir(), "journal")
	if j, err = open(path, j.Name()); err != nil {
		t.Fatal(err)
	}
	for _, line := range slices.Collect(bytes.Lines(before))[2:] {
		e, dec := new(E), json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if err := j.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := read(path); !bytes.Equal(got, before) {
		t.Errorf("written again, the journal is\n%s\nnot\n%s", got, before)
	}
}

// linesByAttempt splits a journal into lines and sorts them by attempt. Each one's lines keep their order.
func linesByAttempt(t *testing.T, text []byte) []string {
	t.Helper()
	type keyed struct {
		Ref  engine.Ref `json:"ref"`
		line string
	}
	var all []keyed
	for line := range bytes.Lines(text) {
		k := keyed{line: string(line)}
		if err := json.Unmarshal(line, &k); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		all = append(all, k)
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.Ref.Allocation, b.Ref.Allocation), cmp.Compare(a.Ref.Attempt, b.Ref.Attempt))
	})
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].line
	}
	return out
}
