package pmix

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheckLoader: a program whose loader is missing, as in images without glibc, is told from
// one that can be started.
func TestCheckLoader(t *testing.T) {
	const shell = "/bin/sh"
	if err := CheckLoader(shell); err != nil {
		t.Fatalf("%s: %v", shell, err)
	}
	text, err := os.ReadFile(shell)
	if err != nil {
		t.Fatal(err)
	}
	moved := bytes.Replace(text, []byte("/ld-"), []byte("/no-"), 1)
	if bytes.Equal(moved, text) {
		t.Skipf("%s is static", shell)
	}
	name := filepath.Join(t.TempDir(), "cox-pmix")
	if err := os.WriteFile(name, moved, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := CheckLoader(name); err == nil || !strings.Contains(err.Error(), "the job's image has no glibc (/lib") {
		t.Errorf("without a loader: %v", err)
	}
	if err := CheckLoader(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a helper that is not there passes")
	}
}
