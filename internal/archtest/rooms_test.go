package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEachRuleOfTheCoreHasItsPlace: the list in sched/doc.go names every file of the core,
// and no file that is not there, so that whoever looks for a rule finds it.
//
// Seen to fail with: a file that is left out, and one that was renamed.
func TestEachRuleOfTheCoreHasItsPlace(t *testing.T) {
	text, err := os.ReadFile("../../sched/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\b[a-z]+\.go\b`).FindAllString(string(text), -1)
	files, err := filepath.Glob("../../sched/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var there []string
	for _, f := range files {
		name := filepath.Base(f)
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		there = append(there, name)
		if !slices.Contains(named, name) && !slices.Contains([]string{"doc.go", "api.go", "core.go"}, name) {
			t.Errorf("sched/%s: doc.go does not say what it is about", name)
		}
	}
	for _, name := range named {
		if !slices.Contains(there, name) {
			t.Errorf("doc.go names %s, which is not there", name)
		}
	}
}
