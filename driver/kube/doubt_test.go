package kube

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/appendlog"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestAJournalWhoseDiskFails: what it failed with is not in the journal, and before the next entry
// the file is written anew.
//
// Seen to fail with: an add that does not write it anew.
func TestAJournalWhoseDiskFails(t *testing.T) {
	name := filepath.Join(t.TempDir(), "journal")
	j, err := openJournal(name, "s")
	if err != nil {
		t.Fatal(err)
	}
	say := []error{unix.EIO, unix.EIO} // what the disk says, one after the other; then it is well
	asked := 0
	j.file.On(appendlog.Disk{File: func(f *os.File) (err error) {
		asked++
		if len(say) > 0 {
			err, say = say[0], say[1:]
		}
		return errors.Join(err, f.Sync())
	}})
	ref := func(n uint64) engine.Ref { return engine.Ref{Allocation: n, Attempt: 1} }
	for n := uint64(1); n < 3; n++ { // an entry, and a file that is written anew
		if err := j.fenceAttempt(ref(n)); !errors.Is(err, unix.EIO) || fault.Remedy(err) == "" {
			t.Errorf("fence %d: %v", n, err)
		}
	}
	if err := j.fenceAttempt(ref(3)); err != nil {
		t.Error(err)
	}
	if asked != 4 { // that file, and the entry
		t.Errorf("the disk was asked %d times", asked)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if j, err = openJournal(name, ""); err != nil {
		t.Fatal(err)
	}
	defer j.close()
	for n, want := range []bool{1: false, 2: false, 3: true} {
		if got := j.isFenced(ref(uint64(n))); got != want {
			t.Errorf("fenced %d: %t", n, got)
		}
	}
}
