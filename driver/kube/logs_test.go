package kube

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// TestALogThatWasBegunAnew: a kubelet keeps a file of what a container prints up to a size, and then
// begins another, which is what it tells from then on. Who reads on has that from its beginning. What
// ends before its time, as where the connection from the kubelet is cut, is not shown a second time.
//
// Seen to fail with: the new file taken for the old one, of which nothing is new; less than there was
// taken for a new file.
func TestALogThatWasBegunAnew(t *testing.T) {
	s := newStand(t, "n1")
	var log, begins atomic.Value
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		if r.URL.Query().Get("timestamps") != "" {
			_, _ = io.WriteString(w, begins.Load().(string)+" much that was")
			return true
		}
		_, _ = io.WriteString(w, log.Load().(string))
		return true
	})
	e := s.open(nil)
	a := ran(e, 1)
	begins.Store("2026-01-01T00:00:00.1Z")
	log.Store("much that was printed before\n")
	out, err := e.OpenLog(t.Context(), job.Owner{}, e.logs.fileOf(a.ref))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for _, x := range []struct{ begins, log, want string }{
		{"2026-01-01T00:00:00.1Z", "much that was printed before\n", "much that was printed before\n"},
		{"2026-01-01T00:00:00.1Z", "much that was printed before\nmore\n", "more\n"},
		{"2026-01-01T00:00:00.1Z", "much that was", ""}, // cut
		{"2026-01-01T00:00:00.1Z", "much that was printed before\nmore\nand\n", "and\n"},
		{"2026-01-01T00:00:07.2Z", "anew\n", "anew\n"},
		{"2026-01-01T00:00:07.2Z", "anew\n", ""},
		{"2026-01-01T00:00:07.2Z", "anew\nand more\n", "and more\n"},
	} {
		begins.Store(x.begins)
		log.Store(x.log)
		if got, err := io.ReadAll(out); err != nil || string(got) != x.want {
			t.Errorf("%q, %v; want %q", got, err, x.want)
		}
	}
}

// TestALogThatBeganAsItWasOpened: when the log is opened nothing is in it yet, and what is read then is of a
// file that nobody knows; the kubelet begins another before it is read again. That one is shown from
// its beginning.
//
// Seen to fail with: the second file taken for the first, of which less has come.
func TestALogThatBeganAsItWasOpened(t *testing.T) {
	s := newStand(t, "n1")
	var log, begins atomic.Value
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		from := &log
		if r.URL.Query().Get("timestamps") != "" {
			from = &begins
		}
		_, _ = io.WriteString(w, from.Load().(string))
		return true
	})
	e := s.open(nil)
	begins.Store("")
	log.Store("much that was printed just then\n")
	out, err := e.OpenLog(t.Context(), job.Owner{}, e.logs.fileOf(ran(e, 1).ref))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for _, x := range []struct{ begins, log, want string }{
		{"", "much that was printed just then\n", "much that was printed just then\n"},
		{"2026-01-01T00:00:07.2Z anew", "anew\n", "anew\n"},
		{"2026-01-01T00:00:07.2Z anew", "anew\nand more\n", "and more\n"},
		{"2026-01-01T00:00:07.2Z anew", "anew\n", ""}, // cut
	} {
		begins.Store(x.begins)
		log.Store(x.log)
		if got, err := io.ReadAll(out); err != nil || string(got) != x.want {
			t.Errorf("%q, %v; want %q", got, err, x.want)
		}
	}
}

// TestALogThatWasBegunAnewBeforeItsEnd: a container's output is begun anew, and the attempt ends before it
// is read again. What is kept of it is shorter than what was read, and is shown from its beginning.
//
// Seen to fail with: read on behind its end.
func TestALogThatWasBegunAnewBeforeItsEnd(t *testing.T) {
	s := newStand(t, "n1")
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		_, _ = io.WriteString(w, "2026-01-01T00:00:00.1Z much that was printed before\n")
		return true
	})
	e := s.open(nil)
	file := e.logs.fileOf(ran(e, 1).ref)
	out, err := e.OpenLog(t.Context(), job.Owner{}, file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if got, err := io.ReadAll(out); err != nil || len(got) == 0 {
		t.Fatalf("%q, %v", got, err)
	}
	if err := os.WriteFile(file, []byte("the end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(out); err != nil || string(got) != "the end\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestLostLogIsNoOutput: what a kubelet says in the place of a log that it has no more is not kept as output.
//
// Seen to fail with: one of the sentences that kubelets use.
func TestLostLogIsNoOutput(t *testing.T) {
	s := newStand(t, "n1")
	var log atomic.Value
	s.answersBy(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/log") {
			return false
		}
		_, _ = io.WriteString(w, log.Load().(string))
		return true
	})
	e := s.open(nil)
	for i, x := range []struct {
		log  string
		kept bool
	}{
		{"unable to retrieve container logs for containerd://0a1b", false},
		{`failed to try resolving symlinks in path "/var/log/pods/default_cox-a-1-1-2_0a/main/0.log": lstat /var/log/pods/default_cox-a-1-1-2_0a/main/0.log: no such file or directory`, false},
		{"short\n", true},
		{`failed to try resolving symlinks in path "/data"`, true},
	} {
		a := ran(e, uint64(i+1))
		a.report.Started = time.Now()
		log.Store(x.log)
		e.keepLogOf(a, 0)
		got, err := os.ReadFile(e.logs.fileOf(a.ref))
		if x.kept && string(got) != x.log || !x.kept && err == nil {
			t.Errorf("%q: kept is %q, %v", x.log, got, err)
		}
	}
}
