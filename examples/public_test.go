package examples

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A publicScript is a line of manifest.tsv; docs/reference/public-scripts.md explains its columns.
type publicScript struct {
	path, dir, source string
	env, args         string // words of the shell
	setup             string // a shell command, run in dir first
	exit              string // a number, or "nonzero"
	expect            []expectation
	packages, needs   string
	seconds           int // that it takes on an idle machine
}

// An expectation is a text that must stand count times in the files of a pattern,
// or, where the pattern is stderr, in what cox itself printed.
type expectation struct {
	files string
	count int
	text  string
}

func parseManifest(text string) ([]publicScript, error) {
	var scripts []publicScript
	lines := bufio.NewScanner(strings.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		if line := lines.Text(); line == "" || line[0] == '#' {
			continue
		}
		f := strings.Split(lines.Text(), "\t")
		if len(f) != 12 {
			return nil, fmt.Errorf("manifest.tsv:%d: %d columns, not 12", number, len(f))
		}
		seconds, err := strconv.Atoi(f[10])
		if err != nil {
			return nil, fmt.Errorf("manifest.tsv:%d: seconds: %w", number, err)
		}
		scripts = append(scripts, publicScript{
			path: f[0], dir: f[1], source: f[2], env: f[3], args: f[4], setup: f[5], exit: f[6],
			expect: parseExpectations(f[7]), packages: f[8], needs: f[9], seconds: seconds,
		})
	}
	return scripts, lines.Err()
}

// parseExpectations reads "FILES: [COUNTx ]TEXT | TEXT ; FILES: TEXT".
func parseExpectations(text string) []expectation {
	var all []expectation
	for group := range strings.SplitSeq(text, " ; ") {
		files, texts, ok := strings.Cut(group, ":")
		if !ok {
			continue
		}
		for want := range strings.SplitSeq(texts, " | ") {
			e := expectation{files: strings.TrimSpace(files), count: 1, text: strings.TrimSpace(want)}
			if number, rest, ok := strings.Cut(e.text, "x "); ok {
				if n, err := strconv.Atoi(number); err == nil {
					e.count, e.text = n, rest
				}
			}
			all = append(all, e)
		}
	}
	return all
}

func TestParseManifest(t *testing.T) {
	scripts, err := parseManifest("# path\t…\n" +
		"o+r/a.sh\ta\to/r:a.sh@1\tX=1\t7\t\t0\ta-*.out: 4x rank | done: ok ; stderr: x y\tgcc\t\t5\tshows\n")
	if err != nil || len(scripts) != 1 {
		t.Fatalf("%v, %v", scripts, err)
	}
	want := []expectation{{"a-*.out", 4, "rank"}, {"a-*.out", 1, "done: ok"}, {"stderr", 1, "x y"}}
	if got := scripts[0].expect; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := parseManifest("a\tb\n"); err == nil {
		t.Error("a line of two columns was taken")
	}
}

// TestPublicScripts runs unmodified scripts of other projects to their end. They
// stand in the folder that COX_PUBLIC_SCRIPTS names, not in the repository.
func TestPublicScripts(t *testing.T) {
	folder := os.Getenv("COX_PUBLIC_SCRIPTS")
	if folder == "" {
		t.Skip("COX_PUBLIC_SCRIPTS names no folder; docs/reference/public-scripts.md says what belongs in it")
	}
	text, err := os.ReadFile(filepath.Join(folder, "manifest.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := parseManifest(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		t.Run(script.path, func(t *testing.T) {
			script.run(t, cox(t), folder)
		})
	}
}

// run copies the script's repository, prepares it, runs the script with cox and
// compares the outcome.
func (s publicScript) run(t *testing.T, bin, folder string) {
	repository, name, _ := strings.Cut(s.path, "/")
	root := filepath.Join(t.TempDir(), repository)
	if err := os.CopyFS(root, os.DirFS(filepath.Join(folder, repository))); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, s.dir)
	if s.setup != "" {
		setup := exec.Command("sh", "-ec", s.setup)
		setup.Dir = dir
		if out, err := setup.CombinedOutput(); err != nil {
			t.Fatalf("setup: %v (needs %s)\n%s", err, s.packages, out)
		}
	}
	var env []string
	for assignment := range strings.FieldsSeq(s.env) {
		env = append(env, strings.ReplaceAll(assignment, "$PWD", dir))
	}
	argv := append([]string{bin, "run", filepath.Join(root, name)}, strings.Fields(s.args)...)
	limit := time.Duration(s.seconds)*4*time.Second + time.Minute
	got := run(t, limit, dir, env, argv...)
	if want, err := strconv.Atoi(s.exit); s.exit == "nonzero" && got.code == 0 || err == nil && got.code != want {
		t.Errorf("exit code %d, not %s", got.code, s.exit)
	}
	for _, want := range s.expect {
		text := got.output
		if want.files != "stderr" {
			text = readMatching(t, dir, want.files)
		}
		if strings.Count(text, want.text) < want.count {
			t.Errorf("%s: %q stands less than %d times in\n%s", want.files, want.text, want.count, text)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s", s.source, got.output)
	}
}
