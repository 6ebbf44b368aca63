package testcluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSweep: what a killed test left is removed; what lives, is young, is nobody's or has left more
// than can be removed stays.
//
// Seen to fail with: what its lab has left is not asked for; a lock that two can have.
func TestSweep(t *testing.T) {
	in := t.TempDir()
	old := time.Now().Add(-time.Hour)
	make := func(name string, at time.Time, locked bool) string {
		dir := filepath.Join(in, name)
		if err := os.MkdirAll(filepath.Join(dir, "spool"), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := claim(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(f.Name(), at, at); err != nil {
			t.Fatal(err)
		}
		if locked {
			t.Cleanup(func() { _ = f.Close() })
		} else if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dead, lives, young, other := make("cox-lab-1", old, false), make("cox-lab-2", old, true), make("cox-lab-3", time.Now(), false), make("elsewhere", old, false)
	kept := make("cox-lab-4", old, false)
	sweep(in, "cox-lab-", func(dir string) error {
		if dir == kept {
			return errors.New("something of it is still there")
		}
		return nil
	})
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the dead one is there: %v", err)
	}
	for _, dir := range []string{lives, young, other, kept} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
