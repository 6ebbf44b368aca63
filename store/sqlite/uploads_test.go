package sqlite_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store/sqlite"
)

// TestBackupHasWhatCameWithJobs: a job that waits needs its directory in a restored state, too;
// what came in part, or is no archive, nobody needs.
//
// Seen to fail with: a backup that has none of them; one that follows no link.
func TestBackupHasWhatCameWithJobs(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	submit(t, s, lead(t, s), 1, 1)
	const text = "an archive"
	sum := sha256.Sum256([]byte(text))
	name := hex.EncodeToString(sum[:])
	must(t, os.MkdirAll(filepath.Join(dir, "uploads", "1000"), 0o700))
	must(t, os.MkdirAll(filepath.Join(dir, "uploads", "1001"), 0o700))
	for file, has := range map[string]string{name: text, "part-12": "an arch"} {
		must(t, os.WriteFile(filepath.Join(dir, "uploads", "1000", file), []byte(has), 0o600))
	}
	larger := filepath.Join(t.TempDir(), "larger") // on another disk
	must(t, os.Rename(filepath.Join(dir, "uploads"), larger))
	must(t, os.Symlink(larger, filepath.Join(dir, "uploads")))
	to := filepath.Join(t.TempDir(), "backup")
	must(t, s.Backup(t.Context(), to))
	found, err := filepath.Glob(filepath.Join(to, "uploads", "*", "*"))
	file := filepath.Join(to, "uploads", "1000", name)
	if err != nil || len(found) != 1 || found[0] != file {
		t.Fatalf("the backup has %v, %v; want %s alone", found, err, file)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		t.Errorf("it has %q, %v", got, err)
	}
	if _, err := sqlite.Verify(t.Context(), to); err != nil {
		t.Error(err)
	}
	must(t, os.WriteFile(file, []byte("An archive"), 0o600))
	if _, err := sqlite.Verify(t.Context(), to); fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), name) {
		t.Errorf("one that is damaged: %v", err)
	}
}
