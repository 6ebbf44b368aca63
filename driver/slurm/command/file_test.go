package command_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestAFileElsewhere is read whole, in parts, and further when it has grown.
//
// Seen to fail with: an offset that is one byte off; an end that stays an end.
func TestAFileElsewhere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "it's a log")
	want := bytes.Repeat([]byte("a line\x00of \xff bytes\n"), 40_000)
	if err := os.WriteFile(name, want, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := command.OpenFile(t.Context(), &command.Here{}, name)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%d bytes, want %d, %v", len(got), len(want), err)
	}
	more, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := more.WriteString("the last line"); err != nil {
		t.Fatal(err)
	}
	if err := more.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); err != nil || string(got) != "the last line" {
		t.Errorf("%q, %v", got, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	for name, kind := range map[string]fault.Kind{name + ".none": fault.NotFound, filepath.Dir(name): fault.Invalid, "log": fault.Invalid} {
		if _, err := command.OpenFile(t.Context(), &command.Here{}, name); fault.KindOf(err) != kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}
