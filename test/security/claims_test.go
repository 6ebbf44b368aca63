package security

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryClaimHasItsTest looks for the tests that SECURITY.md names.
func TestEveryClaimHasItsTest(t *testing.T) {
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	err = filepath.WalkDir("../..", func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(name)
		for _, f := range function.FindAllSubmatch(b, -1) {
			have[string(f[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllSubmatch(text, -1)
	if len(named) < 40 {
		t.Errorf("SECURITY.md names %d tests only", len(named))
	}
	for _, n := range named {
		if !have[string(n[1])] {
			t.Errorf("SECURITY.md names %s, which no package has: name the test that shows the claim now, or take the claim back", n[1])
		}
	}
	_, claims, _ := strings.Cut(string(text), "\n## Claims\n")
	claims, _, _ = strings.Cut(claims, "\n## ")
	for line := range strings.Lines(claims) {
		if strings.HasPrefix(line, "- ") && !strings.Contains(line, "`Test") {
			t.Errorf("SECURITY.md claims without a test: %s", line)
		}
	}
}
