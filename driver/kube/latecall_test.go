package kube_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
)

// succeed closes a driver and opens another on a copy of what it has written down: the old one's
// calls that are under way may still be done.
func (w *weather) succeed(t *testing.T, old *noted) *noted {
	t.Helper()
	root := t.TempDir()
	text, err := os.ReadFile(filepath.Join(old.root, "kube"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "kube"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	e := w.open(t, w.l.Kubeconfig(), root)
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	return e
}

// lateCalls: creates and bindings of a driver that is gone are done after its successor has done
// the same, or has given the attempt up. Nothing runs twice, nothing comes back.
//
// Seen to fail with: a pod of an attempt that is not known left where it is.
func (w *weather) lateCalls(t *testing.T) {
	for _, c := range []struct{ name, part string }{{"Create", "/pods"}, {"Bind", "/binding"}} {
		t.Run(c.name, func(t *testing.T) {
			tp := newTap(t, w.l, w.plain)
			old := w.open(t, tp.file, t.TempDir())
			if _, err := old.Nodes(t.Context()); err != nil {
				t.Fatal(err)
			}
			late := tp.keep(func(q *http.Request) bool {
				return q.Method == http.MethodPost && strings.HasSuffix(q.URL.Path, c.part)
			})
			for n := range uint64(2) {
				if err := old.Launch(t.Context(), launch(n+1, "#!/bin/sh\n", "h1", "h2")); err != nil {
					t.Fatal(err)
				}
			}
			for range 4 {
				<-late.held
			}
			given := engine.Ref{Allocation: 2, Attempt: 1}
			if err := old.Stop(t.Context(), given, engine.Stop{}); err != nil {
				t.Fatal(err)
			}
			e := w.succeed(t, old)
			first := engine.Ref{Allocation: 1, Attempt: 1}
			r := await(t, e, first, "running", func(r engine.Report) bool { return r.Phase == engine.Running })
			if g := gone(t, e, given); g.Cause != engine.Stopped {
				t.Errorf("%+v", g)
			}
			if err := e.Forget(t.Context(), given); err != nil {
				t.Fatal(err)
			}
			late.release()
			if all := w.h.pods(t, r.Native); !slices.Equal(all, []string{"0 h1", "1 h2"}) {
				t.Errorf("pods %q", all)
			}
			w.h.end(t, r, 9)
			w.exits(t, e, first, 9)
		})
	}
}

// lateDelete: a driver that is gone had been told to end an attempt; what it deletes late is
// that attempt's alone.
func (w *weather) lateDelete(t *testing.T) {
	tp := newTap(t, w.l, w.plain)
	old := w.open(t, tp.file, t.TempDir())
	r := w.run(t, old, 1, "h1", "h2")
	late := tp.keep(func(q *http.Request) bool {
		return q.Method == http.MethodDelete && strings.Contains(q.URL.Path, "/pods/")
	})
	if err := old.Stop(t.Context(), r.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		<-late.held
	}
	e := w.succeed(t, old)
	if r := gone(t, e, r.Ref); r.Cause != engine.Stopped {
		t.Errorf("%+v", r)
	}
	next := launch(1, "#!/bin/sh\n", "h1", "h2")
	next.Ref.Attempt, next.Job.Attempt = 2, 2
	again := begin(t, e, next)
	late.release()
	if all := w.h.pods(t, again.Native); !slices.Equal(all, []string{"0 h1", "1 h2"}) {
		t.Errorf("pods %q", all)
	}
	w.h.end(t, again, 10)
	w.exits(t, e, again.Ref, 10)
}
