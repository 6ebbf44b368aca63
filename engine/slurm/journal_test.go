package slurm

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/lines"
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
	j.file.On(lines.Disk{File: func(f *os.File) (err error) {
		asked++
		if len(say) > 0 {
			err, say = say[0], say[1:]
		}
		return errors.Join(err, f.Sync())
	}})
	fence := func(n uint64) error { return j.fence(engine.Ref{Allocation: n, Attempt: 1}) }

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
