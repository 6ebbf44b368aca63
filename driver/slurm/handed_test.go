package slurm

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
)

// removals notes which directories are removed.
type removals struct{ dirs []string }

func (*removals) Put(context.Context, string, string, map[string][]byte) error { return nil }

func (r *removals) Remove(_ context.Context, _, dir string) error {
	r.dirs = append(r.dirs, dir)
	return nil
}

// TestHandedTwice: each directory with the values of an attempt's secrets is removed at its end, also that of a job
// which it was to take over and did not, and one that an earlier version noted.
//
// Seen to fail with: a note that replaces the one before.
func TestHandedTwice(t *testing.T) {
	gone := &removals{}
	e := &Engine{cfg: Config{Root: t.TempDir(), Secrets: gone}}
	ref := engine.Ref{Allocation: 1, Attempt: 1}
	if err := os.Mkdir(e.handedDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(e.handedDir(), ref.String())
	if err := os.WriteFile(name, []byte(`{"dir":"/earlier"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/spare", "/own", "/own"} {
		if err := e.noteHanded(ref, handedSecrets{"ada", dir}); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.removeHandedSecrets(t.Context(), ref.String()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(gone.dirs, []string{"/earlier", "/spare", "/own"}) {
		t.Errorf("removed: %q", gone.dirs)
	}
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("the note is left: %v", err)
	}
}
