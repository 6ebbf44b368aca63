package slurm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/job"
)

// TestFilesOfAnotherUser: a server that is not root reads for somebody else what is his or
// everybody's, and not what is its own alone.
//
// Seen to fail with: no look at the file's mode.
func TestFilesOfAnotherUser(t *testing.T) {
	me := uint32(os.Geteuid())
	for mode, want := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, nil, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		for owner, want := range map[uint32]bool{me + 1: want, me: true} {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := shared(f, job.Owner{User: "anna", UID: owner}); (err == nil) != want || err != nil && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%o, for %d: %v", mode, owner, err)
			}
			_ = f.Close()
		}
	}
}
