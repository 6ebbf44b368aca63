package upload

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

// TestIgnore: lines of a .coxignore, as git reads them.
//
// Seen to fail with: a pattern with a slash that is tried at every level; ** that is * alone.
func TestIgnore(t *testing.T) {
	for _, c := range []struct {
		lines, name string
		dir, want   bool
	}{
		{"*.o", "a/b.o", false, true},
		{"*.o", "a/b.oo", false, false},
		{"/x", "x", false, true},
		{"/x", "a/x", false, false},
		{"a/x", "a/x", false, true},
		{"a/x", "b/a/x", false, false},
		{"x/", "x", false, false},
		{"x/", "a/x", true, true},
		{"**/x/y", "a/b/x/y", false, true},
		{"a/**", "a/b/c", false, true},
		{"a/**", "a", true, false},
		{"a/**/z", "a/z", false, true},
		{"a/**/z", "a/b/c/z", false, true},
		{"a?c", "a/c", false, false},
		{"[ab]c", "bc", false, true},
		{"[!ab]c", "bc", false, false},
		{"a.b", "axb", false, false},
		{`\!x`, "!x", false, true},
		{"*\n!x", "x", false, false},
		{"!x\n*", "x", false, true},
		{"# x\n\n", "x", false, false},
	} {
		g, err := parseIgnore(c.lines)
		if err != nil || g.isIgnored(c.name, c.dir) != c.want {
			t.Errorf("%q on %s: %v %v", c.lines, c.name, !c.want, err)
		}
	}
	for _, wrong := range []string{"a\n/\n", "a\n[b\n"} {
		if _, err := parseIgnore(wrong); err == nil || !strings.HasPrefix(err.Error(), "2:") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestGitIgnore: each counts for its own directory, a deeper one outranks those above it, .coxignore
// outranks all, and what is fetched of a job has everything.
func TestGitIgnore(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		".gitignore": "*.log\nbuild/\n[\n", "a/.gitignore": "!keep.log\n/top\n", ".coxignore": "secret\n!want.log\n",
		"x.log": "", "want.log": "", "secret": "", "top": "", "build/out": "", "a/keep.log": "", "a/y.log": "", "a/top": "", "a/b/top": "", "b/keep.log": "", ".git/HEAD": "",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var sent, fetched bytes.Buffer
	if _, err := Pack(t.Context(), dir, &sent, 1<<20); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := PackTree(t.Context(), root, ".", &fetched); err != nil {
		t.Fatal(err)
	}
	const always = ".coxignore .gitignore a/.gitignore a/b/top a/keep.log "
	if got, want := filesOf(t, &sent), always+"top want.log"; got != want {
		t.Errorf("sent: %s, want %s", got, want)
	}
	if got, want := filesOf(t, &fetched), ".coxignore .git/HEAD .gitignore a/.gitignore a/b/top a/keep.log a/top a/y.log b/keep.log build/out secret top want.log x.log"; got != want {
		t.Errorf("fetched: %s, want %s", got, want)
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

// archive is one of these things.
func archive(t *testing.T, all ...tar.Header) io.Reader {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range all {
		if h.Typeflag == tar.TypeReg {
			h.Size = 1
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			_, _ = w.Write([]byte("x"))
		}
	}
	_, _ = w.Close(), z.Close()
	return &b
}

// TestUnpackStaysInside: whatever an archive has in it, nothing is made outside of the
// directory, and nothing with a bit that gives rights.
//
// Seen to fail with: names that go through links; links of the kind that names the same file
// taken as files; files that are opened though they are there; modes that are taken whole.
func TestUnpackStaysInside(t *testing.T) {
	for what, all := range map[string][]tar.Header{
		"up":            {{Name: "../x", Typeflag: tar.TypeReg}},
		"up within":     {{Name: "a/../../x", Typeflag: tar.TypeReg}},
		"absolute":      {{Name: "/tmp/cox-upload-test-x", Typeflag: tar.TypeReg}},
		"by a link":     {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "l/x", Typeflag: tar.TypeReg}},
		"by a far link": {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, {Name: "l/cox-upload-test-x", Typeflag: tar.TypeReg}},
		"over a link":   {{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../x"}, {Name: "l", Typeflag: tar.TypeReg}},
		"hard link":     {{Name: "h", Typeflag: tar.TypeLink, Linkname: "../x"}},
		"device":        {{Name: "d", Typeflag: tar.TypeChar}},
		"pipe":          {{Name: "p", Typeflag: tar.TypeFifo}},
		"twice":         {{Name: "a", Typeflag: tar.TypeReg}, {Name: "a", Typeflag: tar.TypeReg}},
	} {
		top := t.TempDir()
		dir := filepath.Join(top, "dir")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Unpack(archive(t, all...), dir, 0); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v (%v)", what, err, fault.KindOf(err))
		}
		if left, _ := os.ReadDir(top); len(left) != 1 {
			t.Errorf("%s: %v", what, left)
		}
		if _, err := os.Lstat("/tmp/cox-upload-test-x"); err == nil {
			t.Errorf("%s: a file of /tmp was made", what)
		}
	}
	dir := t.TempDir()
	if err := Unpack(archive(t, tar.Header{Name: "a/s", Typeflag: tar.TypeReg, Mode: 0o6755}), dir, 0); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a", "s")); err != nil || info.Mode() != 0o755 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	whole, _ := io.ReadAll(archive(t, tar.Header{Name: "a", Typeflag: tar.TypeReg, Mode: 0o644}))
	for _, n := range []int{0, 5, len(whole) - 4} {
		if err := Unpack(bytes.NewReader(whole[:n]), t.TempDir(), 0); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%d bytes of %d: %v", n, len(whole), err)
		}
	}
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func put(s *Store, uid uint32, text string, needed ...string) error {
	return s.Put(uid, digestOf(text), int64(len(text)), strings.NewReader(text), func() map[Name]bool {
		out := map[Name]bool{}
		for _, d := range needed {
			out[Name{uid, d}] = true
		}
		return out
	})
}

// TestStore: an archive is there whole, under its owner's name alone, or not at all.
//
// Seen to fail with: one folder for all users; a digest that is not compared.
func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	s := NewStore(dir, 100, 1<<20)
	if err := put(s, 7, "archive"); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Touch(7, digestOf("archive")); n != 7 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if _, err := s.Touch(8, digestOf("archive")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("another user's: %v", err)
	}
	if _, err := s.Open(8, digestOf("archive")); fault.KindOf(err) != fault.NotFound || fault.Remedy(err) == "" {
		t.Errorf("another user's: %v", err)
	}
	f, err := s.Open(7, digestOf("archive"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); string(text) != "archive" || err != nil {
		t.Errorf("%q %v", text, err)
	}
	none := func() map[Name]bool { return nil }
	for what, err := range map[string]error{
		"short":    s.Put(7, digestOf("x"), 2, strings.NewReader("x"), none),
		"long":     s.Put(7, digestOf("x"), 1, strings.NewReader("xy"), none),
		"another":  s.Put(7, digestOf("x"), 1, strings.NewReader("y"), none),
		"no name":  s.Put(7, "../../etc/passwd", 1, strings.NewReader("y"), none),
		"too much": s.Put(7, digestOf("x"), 101, strings.NewReader("y"), none),
		"broken":   s.Put(7, digestOf("x"), 9, io.MultiReader(strings.NewReader("x"), broke{}), none),
	} {
		if err == nil {
			t.Errorf("%s: taken", what)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "7")); len(left) != 1 {
		t.Errorf("%v", left)
	}
	if s.comes[7] != 0 {
		t.Errorf("%d bytes are counted as under way", s.comes[7])
	}
}

// TestAnArchiveWhoseNameIsNotOnTheDisk is not there: sent again, it is taken again.
//
// Seen to fail with: one that stays, which the next Put finds and calls kept; the lock given back before.
func TestAnArchiveWhoseNameIsNotOnTheDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	s := NewStore(dir, 100, 1<<20)
	calls := 0
	s.sync = func(name string) error {
		if s.mu.TryLock() {
			s.mu.Unlock()
			t.Error("others may find it before its name is on the disk")
		}
		if calls++; name == dir && calls < 4 { // it says so once
			return errors.New("the disk failed")
		}
		return syncDir(name)
	}
	if err := put(s, 7, "archive"); err == nil {
		t.Error("it is kept")
	}
	if _, err := s.Touch(7, digestOf("archive")); fault.KindOf(err) != fault.NotFound {
		t.Errorf("it is there: %v", err)
	}
	calls = 3
	if err := put(s, 7, "archive"); err != nil || calls != 6 {
		t.Errorf("%v; directories were brought to the disk %d times", err, calls-3)
	}
}

// TestAnArchiveThatComesTwiceAtOnce: when the second is whole the first is there, and jobs count on
// it: it stays, whatever the disk says by then, and is kept from then on.
//
// Seen to fail with: a second that takes the first one's place (it goes with the sync that fails); one
// that leaves the first as old as it is.
func TestAnArchiveThatComesTwiceAtOnce(t *testing.T) {
	s := NewStore(filepath.Join(t.TempDir(), "uploads"), 100, 1<<20)
	digest := digestOf("archive")
	type sending struct {
		to   *io.PipeWriter
		done chan error
	}
	var both []sending
	for range 2 {
		from, to := io.Pipe()
		done := make(chan error, 1)
		go func() {
			err := s.Put(7, digest, 7, from, func() map[Name]bool { return nil })
			done <- errors.Join(err, from.Close()) // who still writes is not kept waiting
		}()
		if _, err := to.Write([]byte("arch")); err != nil { // it is read: it was not there
			t.Fatal(err)
		}
		both = append(both, sending{to, done})
	}
	end := func(x sending) error {
		_, err := x.to.Write([]byte("ive"))
		return errors.Join(err, x.to.Close(), <-x.done)
	}
	if err := end(both[0]); err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(time.Hour).Truncate(time.Second)
	s.now = func() time.Time { return later }
	s.sync = func(string) error { return errors.New("the disk failed") }
	if err := end(both[1]); err != nil {
		t.Errorf("the second: %v", err)
	}
	entries, err := os.ReadDir(s.userFolder(7))
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Name() != digest {
		t.Fatalf("there is %v", entries)
	}
	if info, err := entries[0].Info(); err != nil || !info.ModTime().Equal(later) {
		t.Errorf("%v: used at %s, not %s", err, info.ModTime(), later)
	}
	if s.comes[7] != 0 {
		t.Errorf("%d bytes are counted as under way", s.comes[7])
	}
}

// broke ends with an error.
type broke struct{}

func (broke) Read([]byte) (int, error) { return 0, fmt.Errorf("cut") }

// TestStoreHasBounds: a user has so much room; what no job needs makes way, the oldest first,
// and not what has just come. After a day it goes by itself.
//
// Seen to fail with: needed archives that make way; ones that have just come that do; small ones
// that count as their bytes alone.
func TestStoreHasBounds(t *testing.T) {
	s := NewStore(filepath.Join(t.TempDir(), "uploads"), 10, 128<<10+1)
	now := time.Now()
	s.now = func() time.Time { return now }
	past := func(d time.Duration) { now = now.Add(d) }
	for _, text := range []string{"aaaaaaaaaa", "bbbbbbbbbb"} {
		if err := put(s, 1, text); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Touch(1, digestOf(text)); err != nil {
			t.Fatal(err)
		}
		past(time.Second)
	}
	if err := put(s, 1, "cccccccccc"); fault.KindOf(err) != fault.Exhausted || fault.Remedy(err) == "" {
		t.Errorf("over what has just come: %v", err)
	}
	if err := put(s, 2, "cccccccccc"); err != nil {
		t.Errorf("another user's: %v", err)
	}
	past(time.Hour)
	if err := put(s, 1, "cccccccccc", digestOf("aaaaaaaaaa")); err != nil {
		t.Error(err)
	}
	_, a := s.Touch(1, digestOf("aaaaaaaaaa"))
	_, b := s.Touch(1, digestOf("bbbbbbbbbb"))
	if a != nil || fault.KindOf(b) != fault.NotFound || s.Used(1) != 128<<10 {
		t.Errorf("%v %v %d", a, b, s.Used(1))
	}
	past(2 * Stale)
	if err := s.Sweep(func() map[Name]bool { return map[Name]bool{{1, digestOf("aaaaaaaaaa")}: true} }); err != nil {
		t.Error(err)
	}
	if s.Used(1) != 64<<10 || s.Used(2) != 0 {
		t.Errorf("%d %d", s.Used(1), s.Used(2))
	}
}

// TestStoreLeavesRoomOnTheDisk: the journal lies on the same file system, so a part of it stays
// free, what is under way counted.
//
// Seen to fail with: a disk that is filled to the end; archives under way that are not counted.
func TestStoreLeavesRoomOnTheDisk(t *testing.T) {
	s := NewStore(filepath.Join(t.TempDir(), "uploads"), 100, 1<<20)
	free := int64(1<<30 + 9)
	s.disk = func(string) (int64, int64, error) { return free, 10 << 30, nil }
	err := put(s, 1, "aaaaaaaaaa")
	if fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "1 GiB") || fault.Remedy(err) == "" {
		t.Errorf("%v; %s", err, fault.Remedy(err))
	}
	free++
	within := error(nil)
	from := readerFunc(func(b []byte) (int, error) {
		within = put(s, 2, "b")
		return copy(b, "aaaaaaaaaa"), io.EOF
	})
	if err := s.Put(1, digestOf("aaaaaaaaaa"), 10, from, nil); err != nil {
		t.Error(err)
	}
	if fault.KindOf(within) != fault.Exhausted {
		t.Errorf("beside one that takes the rest: %v", within)
	}
	if n := s.due.Load(); n != 0 {
		t.Errorf("%d bytes are still to come", n)
	}
	for all, want := range map[int64]int64{2 << 30: 1 << 30, 100 << 30: 5 << 30, 1 << 40: 8 << 30} {
		if n := sparedBytes(all); n != want {
			t.Errorf("of %d bytes %d stay free, want %d", all, n, want)
		}
	}
	if free, all, err := diskSpace(t.TempDir()); err != nil || free < 0 || all < 0 {
		t.Errorf("%d %d %v", free, all, err)
	}
}

// TestSweepOfParts: what a server left in part that has ended goes at once, what is under way
// does not.
//
// Seen to fail with: parts that stay for a day; ones under way that go.
func TestSweepOfParts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "uploads")
	s := NewStore(dir, 100, 1<<20)
	left := filepath.Join(dir, "1", partial+"left")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	from := readerFunc(func(b []byte) (int, error) {
		if err := s.Sweep(func() map[Name]bool { return nil }); err != nil {
			t.Error(err)
		}
		return copy(b, "a"), io.EOF
	})
	if err := s.Put(1, digestOf("a"), 1, from, nil); err != nil {
		t.Error(err)
	}
	if all, err := os.ReadDir(filepath.Dir(left)); len(all) != 1 || all[0].Name() != digestOf("a") || len(s.parts) != 0 {
		t.Errorf("%v %v, %d are under way", all, err, len(s.parts))
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// header is an archive that ends after the header of a file.
func header(t *testing.T, h tar.Header) io.Reader {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if err := tar.NewWriter(z).WriteHeader(&h); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

// TestUnpackIsBounded: what is unpacked has no more room than it is given: an archive is a small part
// of what is in it. Each thing has a block at least.
//
// Seen to fail with: nothing counted; sizes alone, by which empty files take no room; a size to which
// a block is added first; directories around a name that are not counted.
func TestUnpackIsBounded(t *testing.T) {
	from := t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "zeros"), make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var large bytes.Buffer
	if _, err := Pack(t.Context(), from, &large, 1<<16); err != nil {
		t.Fatal(err)
	}
	var many []tar.Header
	for i := range 8 {
		many = append(many, tar.Header{Name: string(rune('a' + i)), Typeflag: tar.TypeDir})
	}
	for what, x := range map[string]struct {
		from func() io.Reader
		most int64
		ok   bool
	}{
		"a large file":              {func() io.Reader { return bytes.NewReader(large.Bytes()) }, 1<<20 - 1, false},
		"one that just fits":        {func() io.Reader { return bytes.NewReader(large.Bytes()) }, 1<<20 + 4096, true}, // with the directory
		"without a bound":           {func() io.Reader { return bytes.NewReader(large.Bytes()) }, 0, true},
		"many that are empty":       {func() io.Reader { return archive(t, many...) }, 7 * 4096, false},
		"a size beyond all numbers": {func() io.Reader { return header(t, tar.Header{Name: "huge", Size: 1<<63 - 1, Typeflag: tar.TypeReg}) }, 1 << 20, false},
		"directories around it":     {func() io.Reader { return archive(t, tar.Header{Name: "a/b/c/d/e", Typeflag: tar.TypeDir}) }, 4 * 4096, false},
		"and enough": {func() io.Reader {
			return archive(t, tar.Header{Name: "a/b/c/d/e", Typeflag: tar.TypeDir}, tar.Header{Name: "a/b/f", Typeflag: tar.TypeDir})
		}, 6 * 4096, true},
		"many that are empty, enough": {func() io.Reader { return archive(t, many...) }, 8 * 4096, true},
	} {
		dir := t.TempDir()
		err := Unpack(x.from(), dir, x.most)
		if x.ok != (err == nil) || err != nil && (fault.KindOf(err) != fault.Exhausted || !strings.Contains(fault.Remedy(err), "--tmp")) {
			t.Errorf("%s: %v (%s)", what, err, fault.Remedy(err))
		}
		if st, err := os.Stat(filepath.Join(dir, "zeros")); err == nil && !x.ok {
			t.Errorf("%s: %d bytes were written", what, st.Size())
		}
	}
}

// TestNamesAreBounded: what is remembered of an archive does not grow with it without end.
func TestNamesAreBounded(t *testing.T) {
	err := Unpack(header(t, tar.Header{Name: strings.Repeat("a/", longestName), Typeflag: tar.TypeDir}), t.TempDir(), 0)
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "name of 8192 bytes") {
		t.Errorf("a long name: %.100v", err)
	}
	u := unpacker{most: 1}
	name := strings.Repeat("a", longestName)
	for u.names <= mostNames-longestName-nameCost {
		if _, err := u.rememberName(name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := u.rememberName(name); fault.KindOf(err) != fault.Invalid {
		t.Errorf("%d bytes of names: %v", u.names, err)
	}
	u.most = 0
	if _, err := u.rememberName(name); err != nil {
		t.Errorf("without a bound: %v", err)
	}
}
