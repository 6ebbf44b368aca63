package slurm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/appendlog"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestAJournalWhoseDiskFails: where a sync fails once the file is written anew, with all that was
// added, and that counts; where that fails too nothing counts until it does not.
//
// Seen to fail with: a sync, and an add, that do not write it anew.
func TestAJournalWhoseDiskFails(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j, err := openJournal(name, "c")
	if err != nil {
		t.Fatal(err)
	}
	var say []error // what the disk says, one after the other; then it is well
	asked := 0
	j.file.On(appendlog.Disk{File: func(f *os.File) (err error) {
		asked++
		if len(say) > 0 {
			err, say = say[0], say[1:]
		}
		return errors.Join(err, f.Sync())
	}})
	fence := func(n uint64) error { return j.fenceAttempt(engine.Ref{Allocation: n, Attempt: 1}) }

	say = []error{unix.EIO}
	if err := fence(1); err != nil {
		t.Errorf("with a file that was written anew: %v", err)
	}
	if asked != 2 {
		t.Errorf("the disk was asked %d times", asked)
	}
	say = []error{unix.EIO, unix.EIO, unix.EIO}
	for n := uint64(2); n < 4; n++ { // a sync and a file that is written anew; then that alone
		if err := fence(n); !errors.Is(err, unix.EIO) {
			t.Errorf("fence %d: %v", n, err)
		}
	}
	if j.isFenced(engine.Ref{Allocation: 3, Attempt: 1}) {
		t.Error("what was not added counts")
	}
	if err := fence(4); err != nil {
		t.Error(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if j, err = openJournal(name, ""); err != nil {
		t.Fatal(err)
	}
	defer j.close()
	for n, want := range []bool{1: true, 2: true, 3: false, 4: true} {
		if got := j.isFenced(engine.Ref{Allocation: uint64(n), Attempt: 1}); got != want {
			t.Errorf("fenced %d: %t", n, got)
		}
	}
}

// TestAFenceThatIsNotOnTheDisk: a call that is repeated is not told that an attempt never begins as
// long as a crash of the machine may lose the fence. Its nodes would be given to others, and its
// launch, if that comes late, be taken.
//
// Seen to fail with: a fence that counts as soon as it is noted in memory.
func TestAFenceThatIsNotOnTheDisk(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j, err := openJournal(name, "c")
	if err != nil {
		t.Fatal(err)
	}
	var bad error = unix.EIO
	asked := 0
	j.file.On(appendlog.Disk{File: func(f *os.File) error {
		asked++
		return errors.Join(bad, f.Sync())
	}})
	ref := engine.Ref{Allocation: 1, Attempt: 1}
	for n := range 3 {
		if err := j.fenceAttempt(ref); !errors.Is(err, unix.EIO) {
			t.Errorf("call %d: %v", n+1, err)
		}
	}
	bad = nil
	if err := os.Remove(name); err != nil { // what the disk has of it
		t.Fatal(err)
	}
	asked = 0
	for range 2 {
		if err := j.fenceAttempt(ref); err != nil {
			t.Error(err)
		}
	}
	if asked != 1 {
		t.Errorf("the disk was asked %d times for what is there since the first", asked)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if j, err = openJournal(name, ""); err != nil {
		t.Fatal(err)
	}
	defer j.close() //nolint:errcheck // nothing was written
	if !j.isFenced(ref) {
		t.Error("it is not fenced")
	}
}

// TestWhatCountsIsNotWrittenAnewForEach: a journal in which much counts is not written anew for each
// attempt that is forgotten, and does not grow for ever.
//
// Seen to fail with: a file that is written anew from a size on, whatever counts of it; one that
// never is.
func TestWhatCountsIsNotWrittenAnewForEach(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j, err := openJournal(name, "c")
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()                                                      //nolint:errcheck // it was written to
	j.file.On(appendlog.Disk{File: func(*os.File) error { return nil }}) // what is on it nobody asks here
	stat := func() os.FileInfo {
		i, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	script := []byte(strings.Repeat("#", 64<<10))
	launch := func(n int) {
		ref := engine.Ref{Allocation: uint64(n), Attempt: 1}
		if err := j.add(&entry{Kind: launched, Ref: ref, Launch: &order{Job: &job.Job{ID: job.ID(n)}, Script: script}}); err != nil {
			t.Fatal(err)
		}
	}
	written, last := 0, stat()
	forget := func(n int) {
		if err := j.fenceAttempt(engine.Ref{Allocation: uint64(n), Attempt: 1}); err != nil {
			t.Fatal(err)
		}
		if is := stat(); !os.SameFile(last, is) {
			written, last = written+1, is
		}
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
	for n := range 3 * live {
		launch(2000 + n)
		forget(2000 + n)
		if is := stat().Size(); is > 3*counts {
			t.Fatalf("of %d bytes that count it has %d", counts, is)
		}
	}
}

// TestAnOldAttemptIsDropped: one that ends long after many younger ones is not kept for ever, though
// the floor of what is fenced has passed it: it would be in each file that is written anew, and come
// back with each driver. As long as it runs it is kept.
//
// Seen to fail with: a fence that adds nothing where the floor alone fences an attempt.
func TestAnOldAttemptIsDropped(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	reopen := func() *journal {
		j, err := openJournal(name, "c")
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
		if err := j.add(e); err != nil {
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
