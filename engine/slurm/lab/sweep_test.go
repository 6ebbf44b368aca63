package lab

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What a killed test left is removed; what lives, is young or is nobody's stays.
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
	sweep(in)
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the dead one is there: %v", err)
	}
	for _, dir := range []string{lives, young, other} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
