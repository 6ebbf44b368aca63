package kube_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coxswain-sched/coxswain/driver/kube"
	"github.com/coxswain-sched/coxswain/driver/kube/settings"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store/upload"
)

// sent is a store whose archives break off, or wait, a few times first.
type sent struct {
	*upload.Store
	breaks atomic.Int32
	opened chan struct{} // one for each time
	hold   chan struct{} // until when what is opened gives nothing; nil: at once
}

func (s *sent) Open(uid uint32, digest string) (io.ReadCloser, error) {
	f, err := s.Store.Open(uid, digest)
	if err != nil {
		return nil, err
	}
	s.opened <- struct{}{}
	var r io.Reader = f
	if s.breaks.Add(-1) >= 0 {
		r = io.LimitReader(f, 1000)
	}
	if s.hold != nil {
		r = io.MultiReader(held{s.hold}, r)
	}
	return struct {
		io.Reader
		io.Closer
	}{r, f}, nil
}

// held gives nothing, and ends when it is let go.
type held struct{ until chan struct{} }

func (h held) Read([]byte) (int, error) {
	<-h.until
	return 0, io.EOF
}

// project packs a directory of a script, a file beside it, one of three MiB and what is not packed.
func project(t *testing.T) (*bytes.Buffer, *job.Upload) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"train.sh": "#!/bin/sh\necho rank $SLURM_PROCID in $PWD as $(id -u): $(cat conf/in)\necho mine >mine.$SLURM_PROCID\n", "conf/in": "given", ".git/HEAD": "x"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil { //nolint:gosec // a test's
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil { //nolint:gosec // a script
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "weights"), noise(3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := upload.Pack(t.Context(), dir, &archive, 8<<20); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(archive.Bytes())
	return &archive, &job.Upload{Digest: hex.EncodeToString(sum[:]), Size: int64(archive.Len()), Dir: "/home/nobody/proj"}
}

// laden is a job whose directory comes with it.
func laden(u *job.Upload, n uint64, script string, nodes ...string) *engine.Launch {
	l := launch(n, script, nodes...)
	l.Job.Spec.Owner = job.Owner{User: "nobody", UID: 65534, GID: 65534}
	l.Job.Spec.WorkDir, l.Job.Spec.Upload = u.Dir, u
	return l
}

// testUpload: what becomes of a directory that comes with a job.
func testUpload(t *testing.T, b *bench) {
	archive, u := project(t)
	s := &sent{Store: upload.NewStore(filepath.Join(t.TempDir(), "uploads"), 8<<20, 8<<20).On(plenty), opened: make(chan struct{}, 100)}
	if err := s.Put(65534, u.Digest, u.Size, archive, func() map[upload.Name]bool { return nil }); err != nil {
		t.Fatal(err)
	}
	c := b.config(t, t.TempDir())
	c.Terms.WorkDir, c.Uploads = settings.WorkDirUpload, s
	e := testDelivered(t, b, c, s, u)
	for len(s.opened) > 0 {
		<-s.opened
	}
	testNotDelivered(t, e, s, u)
	testNotLaden(t, e, u)
}

// testDelivered: it is in all pods before anything of the job runs, at its own path, as its owner's,
// whatever broke off on the way and though the driver was closed and opened in the middle. It returns
// the second driver.
func testDelivered(t *testing.T, b *bench, c kube.Config, s *sent, u *job.Upload) *kube.Engine {
	t.Helper()
	e, err := kube.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.clear(t, e) })
	l := laden(u, 1, "#!/bin/sh\nsrun ./train.sh | sort\nls -a | tr '\\n' ' '; stat -c %a:%u:%s weights train.sh | tr '\\n' ' '\n", "n1", "n2")
	s.breaks.Store(1)
	s.hold = make(chan struct{})
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	<-s.opened // its pod runs, and waits
	if r, err := e.Inspect(t.Context(), l.Ref); err != nil || !r.Started.IsZero() {
		t.Errorf("before its files are there: %v %+v", err, r)
	}
	closed, old := make(chan error), e
	go func() { closed <- old.Close() }()
	close(s.hold) // what was on its way ends with the driver
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	s.breaks.Store(1)
	if e, err = kube.New(c); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, l.Ref); !r.Exit.OK() || r.Cause != engine.Exited {
		t.Errorf("%+v", r)
	}
	if n := len(s.opened); n < 2 {
		t.Errorf("the archive was opened %d times after it broke off", n)
	}
	log := printed(t, e, l)
	for _, want := range []string{
		"rank 0 in /home/nobody/proj as 65534: given\nrank 1 in /home/nobody/proj as 65534: given\n", ". .. conf mine.0 ", "train.sh weights ",
		fmt.Sprintf("600:65534:%d 755:65534:", 3<<20),
	} {
		if !strings.Contains(log, want) {
			t.Errorf("no %q in\n%s", want, log)
		}
	}
	if strings.Contains(log, ".git") || strings.Contains(log, "mine.1") {
		t.Errorf("the first pod has\n%s", log)
	}
	return e
}

// testNotDelivered: one that is not kept any more ends its job with that reason, and a job that is
// ended while it waits for its own never begins.
func testNotDelivered(t *testing.T, e *kube.Engine, s *sent, u *job.Upload) {
	t.Helper()
	gonner := laden(&job.Upload{Digest: strings.Repeat("0", 64), Size: 10, Dir: u.Dir}, 2, "#!/bin/sh\n", "n1")
	if err := e.Launch(t.Context(), gonner); err != nil {
		t.Fatal(err)
	}
	if r := gone(t, e, gonner.Ref); r.Cause != engine.Refused || !strings.Contains(r.Message, "cox submit --upload") || !r.Started.IsZero() {
		t.Errorf("%+v", r)
	}
	s.hold = make(chan struct{})
	l := laden(u, 3, "#!/bin/sh\n", "n1", "n2")
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	<-s.opened
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	close(s.hold)
	if r := gone(t, e, l.Ref); r.Cause != engine.Stopped || !r.Started.IsZero() {
		t.Errorf("%+v", r)
	}
}

// testNotLaden: a job is refused with which no directory came, or whose directory would be in the
// place of what its image has.
func testNotLaden(t *testing.T, e *kube.Engine, u *job.Upload) {
	t.Helper()
	usr := &job.Upload{Digest: u.Digest, Size: 1, Dir: "/usr/x"}
	bare := laden(u, 4, "#!/bin/sh\n", "n1").Job.Spec
	bare.Upload = nil
	for what, spec := range map[string]*job.Spec{"nothing came with it": bare, "in the image's place": laden(usr, 5, "#!/bin/sh\n", "n1").Job.Spec} {
		if err := e.Admit(t.Context(), &engine.JobDraft{Spec: spec}); fault.KindOf(err) != fault.Invalid || fault.Remedy(err) == "" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// noise is what does not get smaller when it is packed.
func noise(n int) []byte {
	out, x := make([]byte, n), uint64(88172645463325252)
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = byte(x)
	}
	return out
}

// printed is what a job has printed.
func printed(t *testing.T, e *kube.Engine, l *engine.Launch) string {
	t.Helper()
	r, err := e.Inspect(t.Context(), l.Ref)
	if err != nil {
		t.Fatal(err)
	}
	name, err := engine.LogFile(r, "stdout", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := e.OpenLog(context.Background(), l.Job.Spec.Owner, name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// plenty is a disk with room for all that a test keeps there, whatever the machine's has.
func plenty(string) (free, all int64, err error) { return 1 << 40, 1 << 40, nil }
