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

// may lists, for the packages whose place matters most, the packages of the
// project that they may import; everything below a listed folder is meant too. A
// package that is not listed is free. Everybody may import internal/planted, which
// has constants only.
var may = map[string][]string{
	"resource":   {},
	"reason":     {},
	"fault":      {},
	"hostlist":   {"fault"},
	"slurmfmt":   {"hostlist", "fault"},
	"job":        {"resource", "reason"},
	"fleet":      {"resource"},
	"account":    {"account", "resource", "slurmfmt"},
	"eligible":   {"job", "reason"},
	"ledger":     {"job", "fleet", "resource", "fault"},
	"event":      {},
	"store":      {"fault", "store"},
	"sched":      {"resource", "reason", "job", "fleet", "account", "eligible", "sched"},
	"engine":     {"engine", "job", "fleet", "resource", "reason", "fault", "hostlist", "slurmfmt", "launch", "step", "spec", "api/frame", "internal/image", "upload", "auth/peer"}, // auth/peer: who is at the other end of a socket; upload: a directory that comes with a job is unpacked in its pods; spec: engine/slurm/rest reads a script's directives, which slurmrestd does not; api/frame: how a command's streams go into a pod; internal/image: engine/kube/lab makes images
	"step":       {"step", "job", "fleet", "resource", "fault", "hostlist", "slurmfmt", "engine/local/visible", "auth/peer"},
	"spec":       {"spec", "job", "resource", "fault", "hostlist", "slurmfmt"},
	"admit":      {"account", "job", "fault", "fleet", "reason", "resource", "sched/limit", "slurmfmt"}, // sched/limit: what is resolved for the core is resolved for the door; fleet: what a part by memory is of the devices that there are
	"advise":     {"engine", "job", "fleet", "fault", "resource", "spec", "hostlist", "slurmfmt"},
	"dispatch":   {"engine", "fault", "job"},
	"upload":     {"fault"},
	"reconcile":  {"engine", "ledger", "job", "fault"},
	"control":    {"account", "advise", "dispatch", "eligible", "engine", "event", "fault", "fleet", "hostlist", "job", "ledger", "reason", "reconcile", "resource", "sched", "slurmfmt", "snapshot", "store"},
	"snapshot":   {"account", "fault", "fleet", "job", "reason", "sched"}, // it reads what people hand it, so its errors have remedies
	"api":        {"account", "api", "job", "fleet", "reason", "resource", "fault", "hostlist", "slurmfmt"},
	"auth":       {"auth", "fault", "job"},
	"config":     {"account", "fault", "hostlist", "resource", "spec"},
	"policy":     {"account", "fault", "hostlist", "policy", "resource", "slurmfmt", "spec"},
	"provenance": {"job", "fault"},
	"notify":     {"job", "fault"},
	"health":     {"engine"},
	"show":       {"account", "api", "show", "fault", "fleet", "hostlist", "job", "reason", "resource", "slurmfmt"},
	"face":       {"account", "api", "face", "fault", "hostlist", "job", "reason", "slurmfmt", "spec"},
}

// never lists imports from outside that have no place in the pure packages.
var never = []string{"net/http", "os/exec", "database/sql", "log/slog", "k8s.io/", "math/rand", "modernc.org/"}

var pure = []string{"account", "resource", "reason", "job", "fleet", "eligible", "ledger", "sched"}

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
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata"):
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

func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func TestImportsPointOneWay(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		top, _, _ := strings.Cut(s.dir, "/")
		allowed, ruled := may[top]
		for _, imp := range s.ast.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if own, ok := strings.CutPrefix(path, module); ok {
				if ruled && own != "internal/planted" && !slices.ContainsFunc(allowed, func(a string) bool { return within(own, a) }) {
					t.Errorf("%s/%s imports %s; %s may import only %v", s.dir, s.file, own, top, allowed)
				}
				continue
			}
			if slices.Contains(pure, top) && slices.ContainsFunc(never, func(n string) bool { return strings.HasPrefix(path, n) }) {
				t.Errorf("%s/%s imports %s: %s is pure", s.dir, s.file, path, top)
			}
		}
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
