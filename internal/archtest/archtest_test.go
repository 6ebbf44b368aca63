// Package archtest keeps the structure of the repository as the design says: which
// package may import which, and that every package explains itself. It has tests
// only.
package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/coxswain-sched/coxswain/"

// floors are the folders at the root, from the ground up. A package imports its own folder and
// folders of lower floors, so no arrow points up; within a floor the folders do not know each
// other, but for those of beside. docs/explanation/architecture.md explains each floor.
var floors = [][]string{
	{"model", "internal"},
	{"engine", "api", "auth", "store", "sched"},
	{"agent", "spec", "control", "sim"},
	{"driver", "policy", "service", "web"},
	{"server", "gateway"},
	{"cmd", "test", "examples"},
}

// beside lists the folders of one floor that may be imported from the same floor.
var beside = map[string][]string{
	"control": {"spec"}, // control/intake makes jobs of texts
	"test":    {"cmd"},  // the tests of whole servers speak Slurm's commands too
}

// never lists imports from outside that have no place in the pure packages.
var never = []string{"net/http", "os/exec", "database/sql", "log/slog", "k8s.io/", "math/rand", "modernc.org/"}

var pure = []string{"model", "sched"}

// floorOf returns the number of a folder's floor, -1 where it has none.
func floorOf(folder string) int {
	return slices.IndexFunc(floors, func(f []string) bool { return slices.Contains(f, folder) })
}

type source struct {
	dir  string // slash-separated, from the root of the repository
	file string
	ast  *ast.File
	test bool
}

func sources(t *testing.T) []source {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var out []source
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() && path != root:
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return filepath.SkipDir // a module of its own
			}
			return nil
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		out = append(out, source{filepath.ToSlash(dir), filepath.Base(path), f, strings.HasSuffix(path, "_test.go")})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 20 {
		t.Fatalf("found only %d Go files below %s", len(out), root)
	}
	return out
}

func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		top, _, _ := strings.Cut(s.dir, "/")
		floor := floorOf(top)
		if floor < 0 {
			t.Errorf("%s/%s: folder %s has no floor; give it one in archtest and in docs/explanation/architecture.md", s.dir, s.file, top)
		}
		for _, imp := range s.ast.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if own, ok := strings.CutPrefix(path, module); ok {
				folder, _, _ := strings.Cut(own, "/")
				if folder != top && floorOf(folder) >= floor && !slices.Contains(beside[top], folder) {
					t.Errorf("%s/%s imports %s, which is not on a lower floor than %s", s.dir, s.file, own, top)
				}
				continue
			}
			if slices.Contains(pure, top) && slices.ContainsFunc(never, func(n string) bool { return strings.HasPrefix(path, n) }) {
				t.Errorf("%s/%s imports %s: %s is pure", s.dir, s.file, path, top)
			}
		}
	}
}

// TestFewFoldersAtTheRoot holds the number of folders at the root that a newcomer has to take in.
func TestFewFoldersAtTheRoot(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "bin" {
			folders = append(folders, e.Name())
		}
	}
	if len(folders) > 23 || len(folders) < 10 {
		t.Errorf("%d folders at the root, of at most 23: %v", len(folders), folders)
	}
}

func TestEveryPackageExplainsItself(t *testing.T) {
	explained := map[string]bool{}
	for _, s := range sources(t) {
		if s.test && s.dir != "internal/archtest" {
			continue
		}
		explained[s.dir] = explained[s.dir] || s.ast.Doc != nil && len(s.ast.Doc.Text()) > 40
	}
	for dir, ok := range explained {
		if !ok {
			t.Errorf("package %s has no package comment (model, guarantees, what it does not do)", dir)
		}
	}
}

func TestNoPackageWithAnEmptyName(t *testing.T) {
	for _, s := range sources(t) {
		name := s.dir[strings.LastIndex(s.dir, "/")+1:]
		if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "manager", "types", "misc", "interfaces", "adapters"}, name) {
			t.Errorf("package %s: the name says nothing", s.dir)
		}
	}
}
