package upload

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIgnore: lines of a .coxignore, as git reads them.
//
// Seen to fail with: a pattern with a slash that is tried at every level; ** that is * alone.
func TestIgnore(t *testing.T) {
	for _, c := range []struct {
		lines, name string
		dir, want   bool
	}{
		{"*.o", "a/b.o", false, true},
		{"*.o", "a/b.oo", false, false},
		{"/x", "x", false, true},
		{"/x", "a/x", false, false},
		{"a/x", "a/x", false, true},
		{"a/x", "b/a/x", false, false},
		{"x/", "x", false, false},
		{"x/", "a/x", true, true},
		{"**/x/y", "a/b/x/y", false, true},
		{"a/**", "a/b/c", false, true},
		{"a/**", "a", true, false},
		{"a/**/z", "a/z", false, true},
		{"a/**/z", "a/b/c/z", false, true},
		{"a?c", "a/c", false, false},
		{"[ab]c", "bc", false, true},
		{"[!ab]c", "bc", false, false},
		{"a.b", "axb", false, false},
		{`\!x`, "!x", false, true},
		{"*\n!x", "x", false, false},
		{"!x\n*", "x", false, true},
		{"# x\n\n", "x", false, false},
	} {
		g, err := parseIgnore(c.lines)
		if err != nil || g.isIgnored(c.name, c.dir) != c.want {
			t.Errorf("%q on %s: %v %v", c.lines, c.name, !c.want, err)
		}
	}
	for _, wrong := range []string{"a\n/\n", "a\n[b\n"} {
		if _, err := parseIgnore(wrong); err == nil || !strings.HasPrefix(err.Error(), "2:") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestGitIgnore: each counts for its own directory, a deeper one outranks those above it, .coxignore
// outranks all, and what is fetched of a job has everything.
func TestGitIgnore(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		".gitignore": "*.log\nbuild/\n[\n", "a/.gitignore": "!keep.log\n/top\n", ".coxignore": "secret\n!want.log\n",
		"x.log": "", "want.log": "", "secret": "", "top": "", "build/out": "", "a/keep.log": "", "a/y.log": "", "a/top": "", "a/b/top": "", "b/keep.log": "", ".git/HEAD": "",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var sent, fetched bytes.Buffer
	if _, err := Pack(t.Context(), dir, &sent, 1<<20); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := PackTree(t.Context(), root, ".", &fetched); err != nil {
		t.Fatal(err)
	}
	const always = ".coxignore .gitignore a/.gitignore a/b/top a/keep.log "
	if got, want := filesOf(t, &sent), always+"top want.log"; got != want {
		t.Errorf("sent: %s, want %s", got, want)
	}
	if got, want := filesOf(t, &fetched), ".coxignore .git/HEAD .gitignore a/.gitignore a/b/top a/keep.log a/top a/y.log b/keep.log build/out secret top want.log x.log"; got != want {
		t.Errorf("fetched: %s, want %s", got, want)
	}
}
