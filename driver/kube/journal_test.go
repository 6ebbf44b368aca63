package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/appendlog"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestWhatCountsIsNotWrittenAnewForEach: a journal in which much counts is not written anew for each
// attempt that is forgotten, and does not grow for ever.
//
// Seen to fail with: a file that is written anew from a size on, whatever counts of it; one that
// never is.
func TestWhatCountsIsNotWrittenAnewForEach(t *testing.T) {
	name := filepath.Join(t.TempDir(), "kube")
	j, err := openJournal(name, "abcdef")
	if err != nil {
		t.Fatal(err)
	}
	defer j.close() //nolint:errcheck // it was written to
	stat := func() os.FileInfo {
		i, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	written, last := 0, stat()
	look := func() {
		if is := stat(); !os.SameFile(last, is) {
			written, last = written+1, is
		}
	}
	script := []byte(strings.Repeat("#", 64<<10))
	launch := func(n int) {
		l := launchOn(uint64(n), "n1")
		if err := j.appendEntry(&entry{Kind: launched, Ref: l.Ref, Launch: &order{Job: l.Job, Script: script}}); err != nil {
			t.Fatal(err)
		}
	}
	forget := func(n int) {
		if err := j.fenceAttempt(engine.Ref{Allocation: uint64(n), Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		look()
	}
	const live = 100
	for n := range live {
		launch(n + 1)
	}
	counts := stat().Size()
	if counts < compactAt*3/2 {
		t.Fatalf("%d bytes count, which is too little", counts)
	}
	for n := range 30 {
		launch(1000 + n)
		forget(1000 + n)
	}
	if written > 2 {
		t.Errorf("it was written anew %d times for 30 attempts that were forgotten", written)
	}
	for n := range 4 * live {
		launch(2000 + n)
		forget(2000 + n)
		if is := stat().Size(); is > 3*counts {
			t.Fatalf("of %d bytes that count it has %d", counts, is)
		}
	}
}

// TestACallThatCannotBeWrittenDown is made again by who called: nothing is certain of it. Else a job
// that is cancelled while the disk is full would run on.
//
// Seen to fail with: the error of the disk as it is.
func TestACallThatCannotBeWrittenDown(t *testing.T) {
	s := newStand(t, "n1")
	e := s.open(nil)
	l, other := launchOn(1, "n1"), engine.Ref{Allocation: 2, Attempt: 1}
	if err := e.Launch(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s.bound(1)
	full, err := appendlog.Open(filepath.Join(t.TempDir(), "full"), func([]byte) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	if err := full.Close(); err != nil {
		t.Fatal(err)
	}
	swap := func(f *appendlog.File) *appendlog.File {
		e.log.mu.Lock()
		defer e.log.mu.Unlock()
		was := e.log.file
		e.log.file = f
		return was
	}
	whole := swap(full)
	for what, err := range map[string]error{
		"a stop": e.Stop(t.Context(), l.Ref, engine.Stop{}), "a stop of what is not known": e.Stop(t.Context(), other, engine.Stop{}), "a forget": e.Forget(t.Context(), other),
	} {
		if fault.KindOf(err) != fault.Unavailable || fault.Remedy(err) == "" {
			t.Errorf("%s: %v, %v; %q", what, fault.KindOf(err), err, fault.Remedy(err))
		}
	}
	swap(whole)
	if err := e.Stop(t.Context(), l.Ref, engine.Stop{}); err != nil {
		t.Fatal(err)
	}
	until(t, "it is being ended", func() bool {
		r, err := e.Inspect(t.Context(), l.Ref)
		return err == nil && r.Phase >= engine.Ending
	})
}

// TestAnOldAttemptIsDropped: one that ends long after many younger ones is not kept for ever, though
// the floor of what is fenced has passed it: it would be in each file that is written anew, and come
// back with each driver. As long as it runs it is kept.
//
// Seen to fail with: a fence that adds nothing where the floor alone fences an attempt.
func TestAnOldAttemptIsDropped(t *testing.T) {
	name := filepath.Join(t.TempDir(), "kube")
	reopen := func() *journal {
		j, err := openJournal(name, "abcdef")
		if err != nil {
			t.Fatal(err)
		}
		j.fenced.Max = 4
		return j
	}
	ref := func(n uint64) engine.Ref { return engine.Ref{Allocation: n, Attempt: 1} }
	j := reopen()
	for _, e := range []*entry{
		{Kind: launched, Ref: ref(1), Launch: &order{Job: &job.Job{ID: 1}}},
		{Kind: ended, Ref: ref(1), Report: &engine.Report{Ref: ref(1), Phase: engine.Ended}},
		{Kind: launched, Ref: ref(2), Launch: &order{Job: &job.Job{ID: 2}}},
	} {
		if err := j.appendEntry(e); err != nil {
			t.Fatal(err)
		}
	}
	for n := uint64(3); n < 11; n++ {
		if err := j.fenceAttempt(ref(n)); err != nil {
			t.Fatal(err)
		}
	}
	if !j.isFenced(ref(1)) || !j.isFenced(ref(2)) || j.lives[ref(1)] == nil {
		t.Fatal("the floor has not passed what is kept")
	}
	for range 2 { // again it is no error
		if err := j.fenceAttempt(ref(1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, when := range []string{"at once", "reopened", "reopened, after it was written anew"} {
		if len(j.lives) != 1 || j.lives[ref(2)] == nil || !j.isFenced(ref(1)) {
			t.Errorf("%s: %d attempts are kept, fenced %t", when, len(j.lives), j.isFenced(ref(1)))
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
		j = reopen()
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}
