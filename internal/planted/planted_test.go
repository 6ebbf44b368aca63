package planted

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// TestNoBugIsPlanted: an ordinary build has none of them, whatever the environment says.
func TestNoBugIsPlanted(t *testing.T) {
	t.Setenv("COX_PLANTED", "map_order")
	for _, b := range Bugs() {
		if b.On {
			t.Errorf("this build has a bug on purpose (%s): %s", b.Name, b.Does)
		}
	}
}

// TestEveryBugIsListed: each constant of off.go is in the list, under a name of its own.
//
// Seen to fail with: a constant that the list lacks, a name that is there twice.
func TestEveryBugIsListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "off.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			declared += len(v.Names)
		}
		return true
	})
	names := map[string]bool{}
	for _, b := range Bugs() {
		if names[b.Name] {
			t.Errorf("two bugs have the name %s", b.Name)
		}
		names[b.Name] = true
	}
	if declared == 0 || declared != len(names) {
		t.Errorf("%d bugs are declared, %d are listed", declared, len(names))
	}
}
