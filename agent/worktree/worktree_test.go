package worktree

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// one is an archive, whatever is asked for.
type one []byte

func (o one) Open(uint32, string) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(o)), nil
}

// archiveOf is an archive of files by their content.
func archiveOf(t *testing.T, files map[string]string) one {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if _, err := upload.Pack(t.Context(), dir, &b, 1<<20); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func jobIn(dir string) *job.Job {
	return &job.Job{ID: 7, Spec: &job.Spec{Owner: job.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, Upload: &job.Upload{Digest: "d", Dir: dir}}}
}

// TestNamesInTheTree: those below the directory lead into the tree, whatever they are; all others stay.
func TestNamesInTheTree(t *testing.T) {
	s := &Store{Dir: "/w"}
	for _, c := range []struct{ dir, name, want string }{
		{"/home/a", "/home/a", "/w/7"},
		{"/home/a", "/home/a/", "/w/7"},
		{"/home/a", "/home/a/b/c", "/w/7/b/c"},
		{"/home/a", "/home/a/../../etc", "/w/7/etc"},
		{"/home/a", "/home/ab", "/home/ab"},
		{"/home/a", "/home", "/home"},
		{"/home/a", "out.txt", "out.txt"},
		{"/home/a", "", ""},
		{"/", "/x", "/w/7/x"},
	} {
		j := jobIn(c.dir)
		j.Spec.WorkDir, j.Spec.Output.Stderr, j.Spec.Source.Submit = c.name, c.name, c.name
		got := s.InTree(j).Spec
		if got.WorkDir != c.want || got.Output.Stderr != c.want || got.Source.Submit != c.want || got.Upload != nil {
			t.Errorf("%s in %s: %+v, want %s", c.name, c.dir, got, c.want)
		}
		if j.Spec.WorkDir != c.name || j.Spec.Upload == nil {
			t.Errorf("%s: the job itself was changed: %+v", c.name, j.Spec)
		}
	}
	env := []string{"A=/home/a", "PWD=/home/a/b"}
	if got := s.Env(jobIn("/home/a"), env); !slices.Equal(got, []string{"A=/home/a", "PWD=/w/7/b"}) || env[1] != "PWD=/home/a/b" {
		t.Errorf("%q of %q", got, env)
	}
}

// TestATreeIsMadeOnce: a second attempt has what the first one wrote.
func TestATreeIsMadeOnce(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Archives: archiveOf(t, map[string]string{"a": "as sent"})}
	j := jobIn("/x")
	if err := s.Make(j); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.Path(7), "a")
	if err := os.WriteFile(file, []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Make(j); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "changed" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestWhatIsTooLarge: leaves nothing, and is told from a disk that is full.
func TestWhatIsTooLarge(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Room: 4 << 10, Archives: archiveOf(t, map[string]string{"a": "1", "b": "2"})}
	if err := s.Make(jobIn("/x")); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(s.Dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestDiscard: a tree goes, also one that a process died over, and what a link in it leads to stays.
func TestDiscard(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Archives: archiveOf(t, map[string]string{"a": "1"})}
	other := filepath.Join(t.TempDir(), "keep")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Make(jobIn("/x")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"9.gone", ".part-8-x", "no-number"} {
		if err := os.Mkdir(filepath.Join(s.Dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Dir(other), filepath.Join(s.Path(7), "link")); err != nil {
		t.Fatal(err)
	}
	ids, err := s.Kept(t.Context())
	if slices.Sort(ids); err != nil || !slices.Equal(ids, []job.ID{7, 9}) {
		t.Errorf("kept %v, %v", ids, err)
	}
	for _, id := range []job.ID{7, 9, 11} {
		if err := s.Discard(id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := s.SweepPartial(); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(s.Dir)
	if err != nil || len(left) != 1 || left[0].Name() != "no-number" {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a link was followed: %v", err)
	}
}

// TestTopIsGivenLast: as long as something below it is root's, nobody else gets into a tree.
func TestTopIsGivenLast(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	var given []string
	if err := giveTree(dir, func(name string) error { given = append(given, name); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(given) != 3 || given[2] != dir {
		t.Errorf("given in this order: %q", given)
	}
	given = nil
	if err := giveTree(dir, func(name string) error { given = append(given, name); return os.ErrPermission }); err == nil || slices.Contains(given, dir) {
		t.Errorf("after an error: %q, %v", given, err)
	}
}

// TestAPipeInPlaceOfADirectory: is an error, and nobody waits for its other end.
func TestAPipeInPlaceOfADirectory(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "p")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := PackFiles(t.Context(), pipe, ".", jobIn("/x"), io.Discard); err == nil {
		t.Error("packed")
	}
}

// TestRoomOfOneTreeIsNotGivenTwice: a tree that is being made has its room, though it has written nothing.
func TestRoomOfOneTreeIsNotGivenTwice(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	most, err := s.reserveRoom()
	if err != nil {
		t.Skip(err) // the disk is full
	}
	s.due = max(s.due, 1<<62) // more than other processes give back meanwhile
	if _, err := s.reserveRoom(); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("a second one: %v", err)
	}
	s.due = most
	if s.releaseRoom(most); s.due != 0 {
		t.Errorf("%d bytes stay due", s.due)
	}
}
