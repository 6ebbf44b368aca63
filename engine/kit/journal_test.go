package kit

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/appendlog"
	"github.com/coxswain-sched/coxswain/engine/fence"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// testEntry is an entry of a driver that has one kind of its own, with a text.
type testEntry struct {
	Kind   Kind         `json:"kind"`
	Ref    engine.Ref   `json:"ref"`
	Name   string       `json:"name,omitempty"`
	Epoch  uint64       `json:"epoch,omitempty"`
	Text   []byte       `json:"text,omitempty"`
	Fenced *fence.Saved `json:"fenced,omitempty"`
}

type testJournal = Journal[testEntry, testEntry]

const testLaunch Kind = "launch"

func openTestJournal(t *testing.T, path, name string, durable bool) *testJournal {
	t.Helper()
	j, err := OpenJournal(path, name, Format[testEntry, testEntry]{
		Head: func(e *testEntry) Head {
			return Head{Kind: e.Kind, Ref: e.Ref, Name: e.Name, Epoch: e.Epoch, Fenced: e.Fenced}
		},
		Entry: func(h Head) *testEntry {
			return &testEntry{Kind: h.Kind, Ref: h.Ref, Name: h.Name, Epoch: h.Epoch, Fenced: h.Fenced}
		},
		Apply:   func(lives map[engine.Ref]*testEntry, e *testEntry) { lives[e.Ref] = e },
		Entries: func(_ engine.Ref, l *testEntry) []*testEntry { return []*testEntry{l} },
		Durable: durable,
	})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func testRef(n int) engine.Ref { return engine.Ref{Allocation: uint64(n), Attempt: 1} }

// inBothWays runs a test with entries that are on the disk at once, and with those that Sync brings there.
func inBothWays(t *testing.T, test func(t *testing.T, durable bool)) {
	t.Run("durable", func(t *testing.T) { test(t, true) })
	t.Run("synced later", func(t *testing.T) { test(t, false) })
}

// TestAJournalKeepsItsNameAndCountsItsEpochs: the name of the first open stays, and each open is an
// epoch later than the one before. What cannot be read is dropped with all behind it.
//
// Seen to fail with: the name of each open; an epoch that is not written.
func TestAJournalKeepsItsNameAndCountsItsEpochs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	for n, name := range []string{"first", "second", ""} {
		j := openTestJournal(t, path, name, true)
		if j.Name() != "first" || j.Epoch() != uint64(n+1) {
			t.Errorf("open %d: %q, epoch %d", n+1, j.Name(), j.Epoch())
		}
		if err := j.Append(&testEntry{Kind: testLaunch, Ref: testRef(n + 1)}); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(&testEntry{Kind: testLaunch, Ref: testRef(9)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{\n" + string(line) + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	j := openTestJournal(t, path, "", true)
	defer j.Close() //nolint:errcheck // nothing was written
	if lives := j.Lives(); len(lives) != 3 || lives[testRef(9)] != nil || j.Epoch() != 4 {
		t.Errorf("%v, epoch %d", slices.Collect(maps.Keys(lives)), j.Epoch())
	}
}

// TestAJournalWhoseDiskFails: where a sync fails once the file is written anew, with all that was
// added, and that counts; where that fails too nothing counts until it does not.
//
// Seen to fail with: a sync, and an append, that do not write it anew.
func TestAJournalWhoseDiskFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openTestJournal(t, path, "c", false)
	var say []error // what the disk says, one after the other; then it is well
	asked := 0
	j.On(appendlog.Disk{File: func(f *os.File) (err error) {
		asked++
		if len(say) > 0 {
			err, say = say[0], say[1:]
		}
		return errors.Join(err, f.Sync())
	}})

	say = []error{unix.EIO}
	if err := j.Fence(testRef(1)); err != nil {
		t.Errorf("with a file that was written anew: %v", err)
	}
	if asked != 2 {
		t.Errorf("the disk was asked %d times", asked)
	}
	say = []error{unix.EIO, unix.EIO, unix.EIO}
	for n := 2; n < 4; n++ { // a sync and a file that is written anew; then that alone
		if err := j.Fence(testRef(n)); !errors.Is(err, unix.EIO) {
			t.Errorf("fence %d: %v", n, err)
		}
	}
	if j.IsFenced(testRef(3)) {
		t.Error("what was not added counts")
	}
	if err := j.Fence(testRef(4)); err != nil {
		t.Error(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openTestJournal(t, path, "", false)
	defer j.Close() //nolint:errcheck // nothing was written
	for n, want := range []bool{1: true, 2: true, 3: false, 4: true} {
		if got := j.IsFenced(testRef(n)); got != want {
			t.Errorf("fenced %d: %t", n, got)
		}
	}
}

// TestADurableJournalWhoseDiskFails: an entry that the disk refused is not in the journal, and before
// the next entry the file is written anew.
//
// Seen to fail with: an append that does not write it anew.
func TestADurableJournalWhoseDiskFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := openTestJournal(t, path, "s", true)
	say := []error{unix.EIO, unix.EIO} // what the disk says, one after the other; then it is well
	asked := 0
	j.On(appendlog.Disk{File: func(f *os.File) (err error) {
		asked++
		if len(say) > 0 {
			err, say = say[0], say[1:]
		}
		return errors.Join(err, f.Sync())
	}})
	for n := 1; n < 3; n++ { // an entry, and a file that is written anew
		if err := j.Fence(testRef(n)); !errors.Is(err, unix.EIO) || fault.Remedy(err) == "" || !strings.Contains(err.Error(), path) {
			t.Errorf("fence %d: %v", n, err)
		}
	}
	if err := j.Fence(testRef(3)); err != nil {
		t.Error(err)
	}
	if asked != 4 { // that file, and the entry
		t.Errorf("the disk was asked %d times", asked)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openTestJournal(t, path, "", true)
	defer j.Close() //nolint:errcheck // nothing was written
	for n, want := range []bool{1: false, 2: false, 3: true} {
		if got := j.IsFenced(testRef(n)); got != want {
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
	inBothWays(t, func(t *testing.T, durable bool) {
		path := filepath.Join(t.TempDir(), "journal")
		j := openTestJournal(t, path, "c", durable)
		var bad error = unix.EIO
		asked := 0
		j.On(appendlog.Disk{File: func(f *os.File) error {
			asked++
			return errors.Join(bad, f.Sync())
		}})
		for n := range 3 {
			if err := j.Fence(testRef(1)); !errors.Is(err, unix.EIO) {
				t.Errorf("call %d: %v", n+1, err)
			}
		}
		bad = nil
		if err := os.Remove(path); err != nil { // what the disk has of it
			t.Fatal(err)
		}
		asked = 0
		for range 2 {
			if err := j.Fence(testRef(1)); err != nil {
				t.Error(err)
			}
		}
		want := 1 // the file that is written anew has it
		if durable {
			want = 2 // that file, and the entry
		}
		if asked != want {
			t.Errorf("the disk was asked %d times for what is there since the first call, not %d", asked, want)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = openTestJournal(t, path, "", durable)
		defer j.Close() //nolint:errcheck // nothing was written
		if !j.IsFenced(testRef(1)) {
			t.Error("it is not fenced")
		}
	})
}

// TestWhatCountsIsNotWrittenAnewForEach: a journal in which much counts is not written anew for each
// attempt that is forgotten, and does not grow for ever.
//
// Seen to fail with: a file that is written anew from a size on, whatever counts of it; one that
// never is.
func TestWhatCountsIsNotWrittenAnewForEach(t *testing.T) {
	inBothWays(t, func(t *testing.T, durable bool) {
		path := filepath.Join(t.TempDir(), "journal")
		j := openTestJournal(t, path, "c", durable)
		defer j.Close()                                                 //nolint:errcheck // it was written to
		j.On(appendlog.Disk{File: func(*os.File) error { return nil }}) // what is on it nobody asks here
		stat := func() os.FileInfo {
			i, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return i
		}
		script := []byte(strings.Repeat("#", 64<<10))
		launch := func(n int) {
			if err := j.Append(&testEntry{Kind: testLaunch, Ref: testRef(n), Text: script}); err != nil {
				t.Fatal(err)
			}
		}
		written, last := 0, stat()
		forget := func(n int) {
			if err := j.Fence(testRef(n)); err != nil {
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
		for n := range 4 * live {
			launch(2000 + n)
			forget(2000 + n)
			if is := stat().Size(); is > 3*counts {
				t.Fatalf("of %d bytes that count it has %d", counts, is)
			}
		}
	})
}

// TestAnOldAttemptIsDropped: one that ends long after many younger ones is not kept for ever, though
// the floor of what is fenced has passed it: it would be in each file that is written anew, and come
// back with each driver. As long as it runs it is kept.
//
// Seen to fail with: a fence that adds nothing where the floor alone fences an attempt.
func TestAnOldAttemptIsDropped(t *testing.T) {
	inBothWays(t, func(t *testing.T, durable bool) {
		path := filepath.Join(t.TempDir(), "journal")
		reopen := func() *testJournal {
			j := openTestJournal(t, path, "c", durable)
			j.fenced.Max = 4
			return j
		}
		j := reopen()
		for _, n := range []int{1, 2} {
			if err := j.Append(&testEntry{Kind: testLaunch, Ref: testRef(n)}); err != nil {
				t.Fatal(err)
			}
		}
		for n := 3; n < 11; n++ {
			if err := j.Fence(testRef(n)); err != nil {
				t.Fatal(err)
			}
		}
		if !j.IsFenced(testRef(1)) || !j.IsFenced(testRef(2)) || j.lives[testRef(1)] == nil {
			t.Fatal("the floor has not passed what is kept")
		}
		for range 2 { // again it is no error
			if err := j.Fence(testRef(1)); err != nil {
				t.Fatal(err)
			}
		}
		for _, when := range []string{"at once", "reopened", "reopened, after it was written anew"} {
			if len(j.lives) != 1 || j.lives[testRef(2)] == nil || !j.IsFenced(testRef(1)) {
				t.Errorf("%s: %d attempts are kept, fenced %t", when, len(j.lives), j.IsFenced(testRef(1)))
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = reopen()
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
