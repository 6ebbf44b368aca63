package provenance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/job"
)

// patient is a policy under which a loaded machine is not too slow.
var patient = Policy{Timeout: 30 * time.Second}

// world is a place with a HOME of its own, so that nobody's git settings matter.
type world struct {
	t    *testing.T
	dir  string // the working copy
	home string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t, filepath.Join(base, "work"), filepath.Join(base, "home")}
	for _, d := range []string{w.dir, w.home} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) environ() []string {
	return []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir, cmd.Env = w.dir, w.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) write(name, text string) string {
	w.t.Helper()
	at := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o755); err != nil {
		w.t.Fatal(err)
	}
	return at
}

// commit makes a repository with one commit on the branch main.
func (w *world) commit() string {
	w.git("init", "-q", "-b", "main")
	w.write("train.py", "print(1)\n")
	w.git("add", ".")
	w.git("commit", "-q", "-m", "first")
	return w.git("rev-parse", "HEAD")
}

func (w *world) collect(dir string, files ...string) *job.Provenance {
	return Collect(w.t.Context(), Request{Dir: dir, Files: files, Environ: w.environ(), Policy: patient})
}

func TestGit(t *testing.T) {
	w := newWorld(t)
	first := w.commit()
	want := &job.Git{Root: w.dir, Commit: first, Branch: "main"}
	check := func(what string, dir string, want *job.Git, notes ...string) {
		t.Helper()
		p := w.collect(dir)
		if diff := cmp.Diff(want, p.Git); diff != "" {
			t.Errorf("%s: %v\n%s", what, p.Notes, diff)
		}
		if len(p.Notes) != len(notes) {
			t.Errorf("%s: notes %q", what, p.Notes)
		}
		for i := range min(len(notes), len(p.Notes)) {
			if !strings.Contains(p.Notes[i], notes[i]) {
				t.Errorf("%s: note %q, want %q", what, p.Notes[i], notes[i])
			}
		}
	}
	check("clean", w.dir, want)
	w.write("sub/dir/x", "")
	os.Remove(filepath.Join(w.dir, "sub/dir/x"))
	check("from below", filepath.Join(w.dir, "sub/dir"), want)

	w.write("new.py", "")
	dirty := *want
	dirty.Dirty = true
	check("untracked", w.dir, &dirty)
	os.Remove(filepath.Join(w.dir, "new.py"))
	w.write("train.py", "print(2)\n")
	check("changed", w.dir, &dirty)
	w.git("checkout", "-q", "train.py")

	w.git("remote", "add", "origin", "https://ada:s3cret@example.org/x/y.git?token=t")
	want.Remote = "https://example.org/x/y.git"
	check("remote", w.dir, want)

	w.git("pack-refs", "--all")
	check("packed references", w.dir, want)

	w.git("checkout", "-q", "--detach")
	want.Branch = ""
	check("no branch", w.dir, want)

	other := filepath.Join(filepath.Dir(w.dir), "other")
	w.git("worktree", "add", "-q", "-b", "feature/a", other)
	linked := *want
	linked.Root, linked.Branch = other, "feature/a"
	check("linked working copy", other, &linked)

	want.Branch = "main"
	w.git("checkout", "-q", "main")
	w.git("config", "include.path", "elsewhere")
	want.Dirty = true
	check("a configuration that includes", w.dir, want, "takes over other files")
}

func TestRepositoryWithoutACommit(t *testing.T) {
	w := newWorld(t)
	w.git("init", "-q", "-b", "main")
	p := w.collect(w.dir)
	if p.Git == nil || p.Git.Commit != "" || p.Git.Branch != "main" || p.Git.Dirty || len(p.Notes) != 1 {
		t.Errorf("%+v %q", p.Git, p.Notes)
	}
}

// TestNothingOfTheRepositoryRuns: monitors, hooks, pagers and filters that the
// repository names are not started. Seen to fail without the settings in status.go.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	w := newWorld(t)
	w.write(".gitattributes", "*.bin filter=evil\n*.dat filter=wicked\n")
	w.write("a.bin", "x\n")
	w.write("a.dat", "x\n")
	w.commit()
	mark := filepath.Join(w.home, "ran")
	evil := w.write("../evil.sh", "#!/bin/sh\necho \"$0 $*\" >>"+mark+"\ncat\n")
	for _, c := range [][2]string{
		{"core.fsmonitor", evil},
		{"core.hooksPath", filepath.Dir(evil)},
		{"core.pager", evil},
		{"diff.external", evil},
		{"filter.evil.clean", evil},
		{"filter.evil.process", evil},
		{"filter.evil.required", "true"},
		{"filter.wicked.clean", evil},
		{"core.sshCommand", evil},
	} {
		w.git("config", c[0], c[1])
	}
	w.write(".git/hooks/post-index-change", "#!/bin/sh\n"+evil+"\n")
	when := time.Now().Add(time.Hour)
	for _, f := range []string{"a.bin", "a.dat"} { // their content has to be looked at
		if err := os.Chtimes(filepath.Join(w.dir, f), when, when); err != nil {
			t.Fatal(err)
		}
	}
	p := w.collect(w.dir)
	if p.Git == nil || p.Git.Dirty || len(p.Notes) > 0 {
		t.Errorf("%+v %q", p.Git, p.Notes)
	}
	if said, err := os.ReadFile(mark); err == nil {
		t.Errorf("ran: %s", said)
	}
}

// fakeGit puts a program in git's place.
func fakeGit(t *testing.T, script string) (marks string) {
	t.Helper()
	dir := t.TempDir()
	marks = filepath.Join(dir, "started")
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\necho $$ >>"+marks+"\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return marks
}

func TestNoProcessOutsideOfARepository(t *testing.T) {
	marks := fakeGit(t, "exit 0")
	dir := t.TempDir()
	p := Collect(t.Context(), Request{Dir: dir, Policy: patient})
	if p.Git != nil || len(p.Notes) > 0 {
		t.Errorf("%+v", p)
	}
	if _, err := os.Stat(marks); err == nil {
		t.Error("git was started")
	}
}

func TestSlowGitIsLeftBehind(t *testing.T) {
	w := newWorld(t)
	commit := w.commit()
	pipe := filepath.Join(w.home, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() { // the pipe ends when nobody holds it any more
		f, err := os.Open(pipe)
		if err == nil {
			_, err = io.ReadAll(f)
			f.Close()
		}
		gone <- err
	}()
	fakeGit(t, "exec 9>"+pipe+"\nsleep 600 &\nsleep 600")
	from := time.Now()
	p := Collect(t.Context(), Request{Dir: w.dir, Environ: os.Environ(), Policy: Policy{Timeout: 2 * time.Second}})
	if took := time.Since(from); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	if len(p.Notes) == 0 || p.Git != nil && (p.Git.Commit != commit || !p.Git.Dirty) {
		t.Errorf("%+v %q", p.Git, p.Notes)
	}
	select {
	case err := <-gone:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("git and what it started live on")
	}
}

func TestOddRepositories(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		files map[string]string
		note  string
	}{
		"HEAD is nonsense":      {map[string]string{".git/HEAD": "hello"}, "form that is not known"},
		"HEAD is long":          {map[string]string{".git/HEAD": long}, "larger"},
		"HEAD climbs":           {map[string]string{".git/HEAD": "ref: refs/heads/../../../../etc/passwd"}, "form that is known"},
		"HEAD leads elsewhere":  {map[string]string{".git/HEAD": "ref: /etc/passwd"}, "form that is known"},
		"a branch is nonsense":  {map[string]string{".git/HEAD": "ref: refs/heads/a", ".git/refs/heads/a": "secret"}, "form that is not known"},
		"a branch goes round":   {map[string]string{".git/HEAD": "ref: refs/heads/a", ".git/refs/heads/a": "ref: refs/heads/a"}, "circles"},
		"a link leads nowhere":  {map[string]string{".git": "gitdir: nowhere"}, "no such file"},
		"a link is nonsense":    {map[string]string{".git": "hello"}, "no link"},
		"references in tables":  {map[string]string{".git/HEAD": "ref: refs/heads/.invalid", ".git/reftable/tables.list": ""}, "tables"},
		"git finds it broken":   {map[string]string{".git/HEAD": strings.Repeat("a", 40)}, "not a git repository"},
		"a filter's odd name":   {map[string]string{".git/HEAD": strings.Repeat("a", 40), ".git/config": "[filter \"a=b\"]\n"}, "strange name"},
		"a configuration grows": {map[string]string{".git/HEAD": strings.Repeat("a", 40), ".git/config": strings.Repeat("#\n", 1<<20)}, "larger"},
	} {
		w := newWorld(t)
		for f, text := range c.files {
			w.write(f, text)
		}
		p := w.collect(w.dir)
		if !strings.Contains(strings.Join(p.Notes, "\n"), c.note) || p.Git != nil && len(p.Git.Commit) > 40 {
			t.Errorf("%s: %+v %q", name, p.Git, p.Notes)
		}
	}
}

func TestRemoteWithoutCredentials(t *testing.T) {
	for from, want := range map[string]string{
		"https://github.com/a/b.git":            "https://github.com/a/b.git",
		"https://ghp_secret@github.com/a/b":     "https://github.com/a/b",
		"https://u:p@h:8443/a?access_token=x#y": "https://h:8443/a",
		"ssh://git:pw@host:22/a":                "ssh://git@host:22/a",
		"git@github.com:a/b.git":                "git@github.com:a/b.git",
		"user:pw@host:path":                     "host:path",
		"/srv/git/a.git":                        "/srv/git/a.git",
		"file:///srv/a.git":                     "file:///srv/a.git",
		"https://u:p@[::1/a":                    "",
		"":                                      "",
	} {
		if got := withoutCredentials(from); got != want {
			t.Errorf("%s: %s, want %s", from, got, want)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("a.py", "one")
	put("large", strings.Repeat("x", 2000))
	put("b.py", strings.Repeat("y", 600))
	put("c.py", strings.Repeat("z", 600))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte("one"))
	p := Collect(t.Context(), Request{
		Dir: dir, Files: []string{"a.py", "large", "pipe", "missing", ".", "b.py", "c.py", filepath.Join(dir, "a.py")},
		Policy: Policy{NoGit: true, Timeout: 30 * time.Second, MaxFile: 1000, MaxTotal: 1000},
	})
	var names []string
	for _, f := range p.Files {
		names = append(names, f.Name)
	}
	if !slices.Equal(names, []string{"a.py", "b.py"}) || p.Files[0].SHA256 != hex.EncodeToString(sum[:]) || p.Files[0].Size != 3 {
		t.Errorf("%+v", p.Files)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, want := range []string{"file large: not hashed: 2000 bytes", "file pipe: not hashed: is not a regular file", "file missing: not hashed: no such file", "file .: not hashed: is not a regular", "file c.py: not hashed: 600 bytes are more than the 397"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in\n%s", want, notes)
		}
	}
}

func TestWordsThatNameFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data.csv"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := Collect(t.Context(), Request{Dir: dir, Files: []string{"data.csv"}, Words: []string{"--lr", "0.1", ".", "data.csv", "", filepath.Join(dir, "none")}, Policy: patient})
	if len(p.Files) != 1 || len(p.Notes) > 0 {
		t.Errorf("%+v", p)
	}
	p = Collect(t.Context(), Request{Dir: dir, Words: []string{"python", "data.csv"}, Policy: patient})
	if len(p.Files) != 1 || p.Files[0].Name != "data.csv" || len(p.Notes) > 0 {
		t.Errorf("%+v", p)
	}
}

func TestTimeIsOver(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := Collect(ctx, Request{Dir: t.TempDir(), Files: []string{"a", "b"}})
	if p == nil || len(p.Files) > 0 || len(p.Notes) == 0 {
		t.Errorf("%+v", p)
	}
}

func TestManyFilesAreNotAllNamed(t *testing.T) {
	var files []string
	for i := range 5000 {
		files = append(files, strings.Repeat("x", i%9)+time.Duration(i).String())
	}
	p := Collect(t.Context(), Request{Dir: t.TempDir(), Files: files, Policy: patient})
	if len(p.Notes) > 2*maxNotes {
		t.Errorf("%d notes", len(p.Notes))
	}
}

func TestImage(t *testing.T) {
	pin := "sha256:" + strings.Repeat("0a", 32)
	for name, want := range map[string]string{"": "", "pytorch:latest": "", "docker://x/y@" + pin: pin, "x@sha256:short": ""} {
		p := Collect(t.Context(), Request{Image: name})
		if p.Image != want || (len(p.Notes) > 0) != (want == "" && name != "") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestEnvironmentPolicy(t *testing.T) {
	environ := []string{
		"PATH=/bin", "HOME=/root", "HF_TOKEN=x", "GITHUB_TOKEN=x", "AWS_SECRET_ACCESS_KEY=x", "DB_PASSWORD=x", "my_secret=x", "TOKENIZERS_PARALLELISM=false",
		"WANDB_API_KEY=x", "SSH_AUTH_SOCK=/x", "KEYBOARD=de", "A=b=c",
	}
	for _, c := range []struct {
		policy  EnvironmentPolicy
		dropped string
	}{
		{EnvironmentPolicy{}, ""},
		{EnvironmentPolicy{Filter: true}, "HF_TOKEN GITHUB_TOKEN AWS_SECRET_ACCESS_KEY DB_PASSWORD my_secret WANDB_API_KEY SSH_AUTH_SOCK"},
		{EnvironmentPolicy{Filter: true, Keep: []string{"HF_*", "wandb*", "*PASSWORD"}}, "GITHUB_TOKEN AWS_SECRET_ACCESS_KEY my_secret SSH_AUTH_SOCK"},
		{EnvironmentPolicy{Filter: true, Drop: []string{"*"}, Keep: []string{"PATH", "HOME"}}, "HF_TOKEN GITHUB_TOKEN AWS_SECRET_ACCESS_KEY DB_PASSWORD my_secret TOKENIZERS_PARALLELISM WANDB_API_KEY SSH_AUTH_SOCK KEYBOARD A"},
		{EnvironmentPolicy{Filter: true, Drop: []string{}}, ""},
	} {
		kept, dropped := c.policy.Apply(environ)
		if got := strings.Join(dropped, " "); got != c.dropped || len(kept)+len(dropped) != len(environ) {
			t.Errorf("%+v: dropped %s", c.policy, got)
		}
	}
	p := Collect(t.Context(), Request{Environ: environ, Policy: Policy{Environment: EnvironmentPolicy{Filter: true}}})
	if len(p.Notes) != 1 || strings.Contains(p.Notes[0], "=x") || !strings.Contains(p.Notes[0], "HF_TOKEN") {
		t.Errorf("%q", p.Notes)
	}
}
