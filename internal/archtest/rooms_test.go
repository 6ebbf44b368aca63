package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryFileHasItsPlace: the list in the doc.go of a package of many files names every file,
// and no file that is not there, so that whoever looks for a rule of the core, or for what the
// Kubernetes engine does, finds it.
//
// Seen to fail with: a file that is left out, and one that was renamed.
func TestEveryFileHasItsPlace(t *testing.T) {
	for pkg, frame := range map[string][]string{
		"sched":       {"doc.go", "api.go", "core.go"}, // need not be named
		"engine/kube": {"doc.go"},
	} {
		text, err := os.ReadFile(filepath.Join("../..", pkg, "doc.go"))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`\b[a-z]+\.go\b`).FindAllString(string(text), -1)
		files, err := filepath.Glob(filepath.Join("../..", pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pkg, len(files), err)
		}
		var there []string
		for _, f := range files {
			name := filepath.Base(f)
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			there = append(there, name)
			if !slices.Contains(named, name) && !slices.Contains(frame, name) {
				t.Errorf("%s/%s: doc.go does not say what it is about", pkg, name)
			}
		}
		for _, name := range named {
			if !slices.Contains(there, name) {
				t.Errorf("%s/doc.go names %s, which is not there", pkg, name)
			}
		}
	}
}
