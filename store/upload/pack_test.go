package upload

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// tree makes files below a directory: a name that ends in / is a directory, a content that
// begins with -> a symbolic link.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil { //nolint:gosec // a test's
			t.Fatal(err)
		}
		var err error
		if to, link := strings.CutPrefix(content, "->"); link {
			err = os.Symlink(to, full)
		} else if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(full, 0o755) //nolint:gosec // a test's
		} else {
			err = os.WriteFile(full, []byte(content), 0o644) //nolint:gosec // a test's
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// look are the files below a directory, as tree takes them, with their permissions.
func look(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch info.Mode().Type() {
		case fs.ModeDir:
			out[rel+"/"] = info.Mode().Perm().String()
		case fs.ModeSymlink:
			to, err := os.Readlink(name)
			out[rel] = "->" + to
			return err
		default:
			text, err := os.ReadFile(name)
			out[rel] = info.Mode().Perm().String() + " " + string(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestThereAndBack: a directory has the same files after it was packed and unpacked: contents,
// permissions, times, links as they are written, and not what is left out; and the same bytes
// come of it twice.
//
// Seen to fail with: permissions of directories that are not given at the end; the last rule of
// .coxignore that does not decide; times that are left out.
func TestThereAndBack(t *testing.T) {
	dir := tree(t, map[string]string{
		"train.py": "print()", "run/a b/ü": "x", "empty/": "", "out": "->/etc/passwd", "near": "->run/../train.py", "nowhere": "->gone",
		".git/HEAD": "x", "sub/.git/config": "x", "data/big.bin": "x", "data/small.txt": "x", "keep.bin": "k", "a/cache/x": "x", "cache/x": "x", "logs/1.log": "x",
		".coxignore": "# what is not needed\n*.bin\n!keep.bin\n/cache/\nlogs/\n",
	})
	if err := os.Chmod(filepath.Join(dir, "train.py"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "run"), 0o500); err != nil { //nolint:gosec // a test's
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "run"), 0o700) }) //nolint:gosec // a test's
	if err := os.Chtimes(filepath.Join(dir, "train.py"), time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()

	var first, second bytes.Buffer
	p, err := Pack(t.Context(), dir, &first, 1<<20)
	if err != nil || p.Files != 9 || p.Left != 1 {
		t.Fatalf("%+v %v", p, err)
	}
	if _, err := Pack(t.Context(), dir, &second, 1<<20); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("packed twice: %v, the same: %v", err, bytes.Equal(first.Bytes(), second.Bytes()))
	}
	back := t.TempDir()
	if err := Unpack(&first, back, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(back, "run"), 0o700) }) //nolint:gosec // a test's
	want := map[string]string{
		"train.py": "-rwxr-x--- print()", "run/": "-r-x------", "run/a b/": "-rwxr-xr-x", "run/a b/ü": "-rw-r--r-- x", "empty/": "-rwxr-xr-x",
		"out": "->/etc/passwd", "near": "->run/../train.py", "nowhere": "->gone", "sub/": "-rwxr-xr-x", "data/": "-rwxr-xr-x",
		"data/small.txt": "-rw-r--r-- x", "keep.bin": "-rw-r--r-- k", "a/": "-rwxr-xr-x", "a/cache/": "-rwxr-xr-x", "a/cache/x": "-rw-r--r-- x",
		".coxignore": "-rw-r--r-- # what is not needed\n*.bin\n!keep.bin\n/cache/\nlogs/\n",
	}
	got := look(t, back)
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%s is %q, want %q", name, got[name], w)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("beside these: %v", got)
	}
	if info, err := os.Stat(filepath.Join(back, "train.py")); err != nil || info.ModTime().Unix() != 1e9 {
		t.Errorf("%v %v", info, err)
	}
}

// filesOf are the names of the files of an archive, sorted.
func filesOf(t *testing.T, archive io.Reader) string {
	t.Helper()
	dir := t.TempDir()
	if err := Unpack(archive, dir, 0); err != nil {
		t.Fatal(err)
	}
	var all []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, err = filepath.Rel(dir, name)
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestPackTooMuch: an archive that grows too large ends early, and the largest files are named.
//
// Seen to fail with: a bound that bounds nothing.
func TestPackTooMuch(t *testing.T) {
	dir := tree(t, map[string]string{"a": "x", "z": "y"})
	noise := make([]byte, 200<<10)
	for i := range noise {
		noise[i] = byte(i * i >> 3 * i)
	}
	if err := os.WriteFile(filepath.Join(dir, "weights.bin"), noise, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Pack(t.Context(), dir, io.Discard, 10)
	if fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "weights.bin (200 KiB)") || !strings.Contains(fault.Remedy(err), IgnoreFile) {
		t.Errorf("%v; %s", err, fault.Remedy(err))
	}
}

// manyEntries is a directory of so many empty files, which counts how many are asked for at once.
type manyEntries struct {
	fs.ReadDirFile
	left, most int
}

func (d *manyEntries) ReadDir(n int) ([]fs.DirEntry, error) {
	d.most = max(d.most, n)
	if n <= 0 || d.left < n {
		n = d.left
	}
	if n == 0 {
		return nil, io.EOF
	}
	d.left -= n
	return make([]fs.DirEntry, n), nil
}

// TestLargeDirectories: a directory of a job is read in batches, and nothing of it is missed.
//
// Seen to fail with: ReadDir(-1); an end at the first batch.
func TestLargeDirectories(t *testing.T) {
	many, got := &manyEntries{left: 100_000}, 0
	err := readBatches(many, func(list []fs.DirEntry) error {
		if len(list) > dirBatch {
			t.Fatalf("%d entries at once", len(list))
		}
		got += len(list)
		return nil
	})
	if err != nil || got != 100_000 || many.most != dirBatch {
		t.Errorf("%d entries, at most %d at once: %v", got, many.most, err)
	}
	files := map[string]string{}
	for i := range 2*dirBatch + 7 {
		files[fmt.Sprintf("d/%05d", i)] = "x"
	}
	root, err := os.OpenRoot(tree(t, files))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	packed, err := PackTree(t.Context(), root, ".", io.Discard)
	if err != nil || packed.Files != len(files) {
		t.Errorf("%d of %d files are packed: %v", packed.Files, len(files), err)
	}
}
