package hardcase

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is what the import paths of our packages begin with.
const module = "github.com/coxswain-sched/coxswain/"

// code is a package as it is written, tests included.
type code struct {
	dir     string
	funcs   map[string][]*ast.FuncDecl // functions and methods, by their bare names
	imports map[string]string          // name → folder, of our own packages
}

// read reads the package of a folder, whatever system its files are for.
func read(t *testing.T, dir string) *code {
	t.Helper()
	c := &code{dir: dir, funcs: map[string][]*ast.FuncDecl{}, imports: map[string]string{}}
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if p, err := strconv.Unquote(i.Path.Value); err == nil && i.Name == nil && strings.HasPrefix(p, module) {
				c.imports[path.Base(p)] = strings.TrimPrefix(p, module)
			}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
				c.funcs[fn.Name.Name] = append(c.funcs[fn.Name.Name], fn)
			}
		}
	}
	return c
}

// library has the packages that were read, by their folders.
type library map[string]*code

func (l library) of(t *testing.T, dir string) *code {
	t.Helper()
	if l[dir] == nil {
		l[dir] = read(t, dir)
	}
	return l[dir]
}

// part is a place of the code in which names of subtests are looked for.
type part struct {
	in *code
	at ast.Node
}

// named finds the part of a test that has a name: what stands beside that string in a call (as
// in t.Run("Name", test)) or in an entry of a table ({"Name", test}, "Name": test), in the places
// themselves and in every function that they name. What is within a part of another name is not
// looked at: a path has to have all its names but those that are not written out, as versions.
// Where there is no such string, a file of testdata of that name will do.
func (l library) named(t *testing.T, from []part, name string) (found []part, ok bool) {
	t.Helper()
	seen := map[*ast.FuncDecl]bool{}
	for len(from) > 0 {
		p := from[0]
		from = from[1:]
		ast.Inspect(p.at, func(n ast.Node) bool {
			if names, rest := title(n); len(names) > 0 {
				if slices.Contains(names, name) {
					ok = true
					for _, r := range rest {
						found = append(found, part{p.in, r})
					}
				}
				return false
			}
			for _, next := range l.called(t, p.in, n) {
				if fn := next.at.(*ast.FuncDecl); !seen[fn] {
					seen[fn] = true
					from = append(from, part{next.in, fn.Body})
				}
			}
			return true
		})
	}
	return found, ok
}

// title is what a call or an entry of a table names, and what it says beside the names.
func title(n ast.Node) (names []string, rest []ast.Node) {
	var all []ast.Expr
	switch n := n.(type) {
	case *ast.CallExpr:
		all = n.Args
	case *ast.CompositeLit:
		all = n.Elts
	case *ast.KeyValueExpr:
		all = []ast.Expr{n.Key, n.Value}
	}
	runs := false
	for _, e := range all {
		if s, err := text(e); err == nil {
			names = append(names, s)
			continue
		}
		rest = append(rest, e)
		switch e.(type) {
		case *ast.FuncLit, *ast.Ident, *ast.SelectorExpr:
			runs = true
		}
	}
	if !runs {
		return nil, nil
	}
	return names, rest
}

func text(e ast.Expr) (string, error) {
	if b, ok := e.(*ast.BasicLit); ok && b.Kind == token.STRING {
		return strconv.Unquote(b.Value)
	}
	return "", strconv.ErrSyntax
}

// called are the functions and methods that a node names, of its own package or of another of ours.
func (l library) called(t *testing.T, in *code, n ast.Node) (out []part) {
	t.Helper()
	name := ""
	switch n := n.(type) {
	case *ast.Ident:
		name = n.Name
	case *ast.SelectorExpr:
		name = n.Sel.Name
		if x, ok := n.X.(*ast.Ident); ok && in.imports[x.Name] != "" {
			in = l.of(t, in.imports[x.Name])
		}
	}
	for _, fn := range in.funcs[name] {
		out = append(out, part{in, fn})
	}
	return out
}

// has tells whether a test has the part of a path, as Devices/Plugged/Ill.
func (l library) has(t *testing.T, dir, test, path string) bool {
	t.Helper()
	in := l.of(t, dir)
	var at []part
	for _, fn := range in.funcs[test] {
		at = append(at, part{in, fn.Body})
	}
	for name := range strings.SplitSeq(path, "/") {
		next, ok := l.named(t, at, name)
		if !ok {
			_, err := os.Stat(filepath.Join(root, dir, "testdata", name))
			return err == nil
		}
		at = next
	}
	return true
}
