package upload

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
)

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
