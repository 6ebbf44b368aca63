package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/internal/checkout"
)

// calm is the list of packages that the Makefile leaves out of make race.
var calm = regexp.MustCompile(`(?s)\nCALM\s*:=(.*?[^\\])\n`)

// TestCalmPackagesStartNoGoroutine: the race detector has nothing to find in a package that make race
// leaves out.
//
// Seen to fail with: ./engine/kit in CALM.
func TestCalmPackagesStartNoGoroutine(t *testing.T) {
	text, err := os.ReadFile(checkout.Path("Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := calm.FindStringSubmatch(string(text))
	if list == nil {
		t.Fatal("the Makefile has no CALM")
	}
	packages := strings.Fields(strings.ReplaceAll(list[1], "\\", " "))
	if len(packages) < 20 {
		t.Errorf("only %q", packages)
	}
	for _, p := range packages {
		files, err := filepath.Glob(checkout.Path(p, "*.go"))
		if err != nil || len(files) == 0 {
			t.Errorf("%s has no files: %v", p, err)
		}
		for _, f := range files {
			if why := findConcurrency(t, f); why != "" {
				t.Errorf("%s has %s: take the package out of CALM in the Makefile", f, why)
			}
		}
	}
}

// findConcurrency says what in a file a race detector is for; "": nothing.
func findConcurrency(t *testing.T, file string) (why string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range f.Imports {
		if path := strings.Trim(i.Path.Value, `"`); path == "sync" || strings.HasPrefix(path, "sync/") || strings.HasPrefix(path, "golang.org/x/sync") {
			why = "package " + path
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			why = "a go statement"
		case *ast.SelectorExpr:
			if n.Sel.Name == "Parallel" {
				why = "a parallel test"
			}
		}
		return true
	})
	return why
}
