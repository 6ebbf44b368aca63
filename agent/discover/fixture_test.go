package discover

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// tree reads a file system out of testdata: text before the first title says
// what machine it is, "-- name --" begins a file, "-- name -> target --" is a
// link. (File names with colons cannot be kept as files in a Go module.)
func tree(t *testing.T, name string) fstest.MapFS {
	t.Helper()
	out := fstest.MapFS{}
	var file *fstest.MapFile
	for line := range strings.Lines(recorded(t, name+".txtar")) {
		title, isTitle := strings.CutPrefix(strings.TrimSuffix(line, " --\n"), "-- ")
		from, to, link := strings.Cut(title, " -> ")
		switch {
		case isTitle && link:
			out[from] = &fstest.MapFile{Data: []byte(to), Mode: fs.ModeSymlink | 0o777}
		case isTitle:
			file = &fstest.MapFile{Mode: 0o444}
			out[title] = file
		case file != nil:
			file.Data = append(file.Data, line...)
		}
	}
	return out
}

func recorded(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// answer is what a program does.
type answer struct {
	out string
	err error
}

// programs is a Runner over answers by the beginning of the command line; the
// longest beginning counts. A program without an answer is not installed.
type programs map[string]answer

func (p programs) runner(calls *[]string) Runner {
	return func(_ context.Context, name string, args ...string) ([]byte, error) {
		line := strings.Join(append([]string{name}, args...), " ")
		if calls != nil {
			*calls = append(*calls, line)
		}
		best, found := "", false
		for prefix := range p {
			if strings.HasPrefix(line, prefix) && (!found || len(prefix) > len(best)) {
				best, found = prefix, true
			}
		}
		if !found {
			return nil, exec.ErrNotFound
		}
		return []byte(p[best].out), p[best].err
	}
}

// environment is a LookupEnv.
func environment(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		return v, ok
	}
}

// look runs Look over a fixture with nothing of the real machine in it.
func look(t *testing.T, fsys fs.FS, p programs, env map[string]string) (Machine, []Note) {
	t.Helper()
	m, notes, err := Look(t.Context(), Options{
		FS: fsys, Run: p.runner(nil), LookupEnv: environment(env), Executable: "/opt/cox/cox", NumCPU: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	return m, notes
}

// wantNotes compares the notes with the beginnings wanted, in order.
func wantNotes(t *testing.T, notes []Note, want ...string) {
	t.Helper()
	for i := range max(len(notes), len(want)) {
		switch {
		case i >= len(want):
			t.Errorf("note not expected: %s", notes[i])
		case i >= len(notes):
			t.Errorf("note missing: %s…", want[i])
		case !strings.HasPrefix(notes[i].String(), want[i]):
			t.Errorf("note %d: %s\nwant:   %s…", i, notes[i], want[i])
		}
		if i < len(notes) && strings.ContainsAny(notes[i].String(), "\n\t") {
			t.Errorf("note %d is not one line: %q", i, notes[i])
		}
	}
}
