package local_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/agent/asuser"
	"github.com/coxswain-sched/coxswain/driver/local"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// archives are archives of directories, by digest.
type archives map[string][]byte

func (a archives) Open(_ uint32, digest string) (io.ReadCloser, error) {
	b, ok := a[digest]
	if !ok {
		return nil, fault.New(fault.NotFound, "there is no archive %s", digest)
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

// packed is an archive of these headers, with a file's name as its content.
func packed(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, h.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// planUpload is a plan of a script in a directory that came along.
func planUpload(t *testing.T, e *local.Engine, o job.Owner, digest, script string) *engine.Launch {
	t.Helper()
	l := planFor(t, e, o, 1, script)
	l.Job.Spec.WorkDir, l.Job.Spec.Source.Submit = "/home/of/anna/proj/sub", "/home/of/anna/proj"
	l.Job.Spec.Upload = &job.Upload{Digest: digest, Dir: "/home/of/anna/proj"}
	l.Env = append(l.Env, "PWD=/home/of/anna/proj/sub")
	return l
}

// TestUploadedTreeBelongsToItsUser: with mode 0700, so that no other user gets into it; the job finds its
// files there, and what it writes can be fetched, read as its user.
func TestUploadedTreeBelongsToItsUser(t *testing.T) {
	have := archives{"d": packed(t,
		tar.Header{Name: "sub/", Typeflag: tar.TypeDir, Mode: 0o755}, tar.Header{Name: "sub/in.txt", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "tool", Typeflag: tar.TypeReg, Mode: 0o4755}, tar.Header{Name: "passwd", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})}
	e := userEngine(t, local.Config{Uploads: have})
	l := planUpload(t, e, anna, "d", "id -u; pwd; echo $SLURM_SUBMIT_DIR; cat in.txt; stat -c %a ../tool; echo done > out.txt; ln -s /etc etc; ln -s sub/out.txt ../good")
	succeeded(t, run(t, e, l))
	tree := filepath.Join(e.Root(), "work", l.Job.ID.String())
	b, err := os.ReadFile(filepath.Join(tree, "sub", "slurm-"+l.Job.ID.String()+".out"))
	if want := "61001\n" + tree + "/sub\n" + tree + "\nsub/in.txt755\n"; err != nil || string(b) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, b, want)
	}
	info, err := os.Stat(tree)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the tree has mode %v: %v", info.Mode(), err)
	}
	err = asuser.Do(asuser.User{UID: bert.UID, GID: bert.GID}, func() error {
		_, err := os.ReadFile(filepath.Join(tree, "tool"))
		return err
	})
	if !os.IsPermission(err) {
		t.Errorf("another user reads the tree: %v", err)
	}

	for _, c := range []struct {
		name  string
		kind  fault.Kind
		files string // none: it is refused
	}{
		{"sub/out.txt", 0, "out.txt=done\n"},
		{"good", 0, "good=done\n"},
		{".", 0, "good -> sub/out.txt passwd -> /etc/passwd etc -> /etc in.txt=sub/in.txt out.txt=done\n slurm-7.out=61001"},
		{"sub/etc/passwd", fault.Invalid, ""},
		{"sub/etc", fault.Invalid, ""},
		{"passwd", fault.Invalid, ""},
		{"../tool", fault.Invalid, ""},
		{"/etc/passwd", fault.Invalid, ""},
		{"nothing", fault.NotFound, ""},
	} {
		var archive bytes.Buffer
		err := e.PackFiles(t.Context(), l.Job, c.name, &archive)
		if c.files == "" {
			if fault.KindOf(err) != c.kind || archive.Len() > 0 {
				t.Errorf("%s: %v, %d bytes", c.name, err, archive.Len())
			}
			continue
		}
		dir := t.TempDir()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if err := upload.Unpack(&archive, dir, 0); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := listing(t, dir); !strings.HasPrefix(got, c.files) {
			t.Errorf("%s: %q, want %q", c.name, got, c.files)
		}
	}

	// A second attempt goes on in the same tree; the tree goes when the attempts are forgotten.
	ids, err := e.KeptUploads(t.Context())
	if err != nil || len(ids) != 1 || ids[0] != l.Job.ID {
		t.Errorf("kept: %v, %v", ids, err)
	}
	if err := e.DiscardUpload(t.Context(), l.Job.ID); fault.KindOf(err) != fault.Conflict {
		t.Errorf("discarded beside an attempt: %v", err)
	}
	if err := e.Forget(t.Context(), l.Ref); err != nil {
		t.Fatal(err)
	}
	if err := e.DiscardUpload(t.Context(), l.Job.ID); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Join(e.Root(), "work")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := e.PackFiles(t.Context(), l.Job, ".", io.Discard); fault.KindOf(err) != fault.NotFound {
		t.Errorf("fetched from nowhere: %v", err)
	}
}

// listing is what is in a directory, one after the other.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if to, err := os.Readlink(name); err == nil {
			all = append(all, d.Name()+" -> "+to)
			return nil
		}
		b, err := os.ReadFile(name)
		all = append(all, d.Name()+"="+string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

// TestUploadsThatCannotBe: nothing of the job runs, nothing is left, and nothing outside is touched.
func TestUploadsThatCannotBe(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }
	many := make([]tar.Header, 600)
	for i := range many {
		many[i] = file(strings.Repeat("d/", i%7) + time.Duration(i).String())
	}
	have := archives{
		"up": packed(t, file("../up")), "absolute": packed(t, file("/tmp/absolute")),
		"link":   packed(t, tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, file("l/through")),
		"device": packed(t, tar.Header{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}),
		"hard":   packed(t, tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}),
		"many":   packed(t, many...), "torn": packed(t, many...)[:100],
	}
	e := newEngine(t, local.Config{Uploads: have, UploadRoom: 2 << 20})
	for digest, kind := range map[string]fault.Kind{
		"up": fault.Invalid, "absolute": fault.Invalid, "link": fault.Invalid, "device": fault.Invalid, "hard": fault.Invalid,
		"many": fault.Invalid, "torn": fault.Invalid, "gone": fault.NotFound,
	} {
		l := plan(t, e, 1, "true")
		l.Job.Spec.Upload = &job.Upload{Digest: digest, Dir: l.Job.Spec.WorkDir}
		if err := e.Launch(t.Context(), l); fault.KindOf(err) != kind {
			t.Errorf("%s: %v, want %v", digest, err, kind)
		}
		if _, err := e.Inspect(t.Context(), l.Ref); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: something of it is here: %v", digest, err)
		}
		if left, err := os.ReadDir(filepath.Join(e.Root(), "work")); err != nil || len(left) > 0 {
			t.Errorf("%s: left %v, %v", digest, left, err)
		}
	}
}

// TestUploadDirOfOthers: what is in the directory of an administrator's choice stays as it is, and one that
// another user could exchange is refused.
func TestUploadDirOfOthers(t *testing.T) {
	dir := t.TempDir()
	other := filepath.Join(dir, "2025")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(other, 0o755)); err != nil {
		t.Fatal(err)
	}
	e := userEngine(t, local.Config{Uploads: archives{}, UploadDir: dir})
	if ids, err := e.KeptUploads(t.Context()); err != nil || len(ids) > 0 {
		t.Errorf("kept: %v, %v", ids, err)
	}
	if err := e.DiscardUpload(t.Context(), 2025); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	if err := os.Chown(dir, int(anna.UID), -1); err != nil {
		t.Fatal(err)
	}
	if _, err := e.KeptUploads(t.Context()); fault.KindOf(err) != fault.Permission {
		t.Errorf("in a directory of another user: %v", err)
	}
	if err := e.DiscardUpload(t.Context(), 2025); fault.KindOf(err) != fault.Permission {
		t.Errorf("discard in a directory of another user: %v", err)
	}
}
