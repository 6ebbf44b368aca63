package attempt

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
)

// Journal is a slot's append-only file of records, one JSON value a line. It holds
// the attempt that sits, and what is left of those before. Records that could not
// be written stay in memory and go first with the next attempt to write. A disk that
// could not take what it was given says so once and is well when it is asked again:
// after that all of the file is written again. Where the file does not have it any more
// either, Anew does that from the state. It is not safe for concurrent use.
type Journal struct {
	name    string
	f       *os.File
	pending []byte
	end     int64 // bytes of whole records that were written
	sum     hash.Hash
	lost    []byte       // what was written and may not be on the disk, for it failed: all
	bad     error        // why that cannot be written again; nil: it can
	owed    bool         // a Flush that was to make durable failed: the next one is to
	disk    func() error // in place of f.Sync; nil: that
}

// reserve is how much disk space a journal takes at once, in bytes, where the
// file system can do that; with more than half of it used it begins anew with the
// next attempt.
const reserve = 32 << 10

// OpenJournal opens or creates a journal for appending. A last line that was not
// written whole is dropped.
func OpenJournal(name string) (*Journal, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	j := &Journal{name: name, f: f, end: int64(bytes.LastIndexByte(b, '\n') + 1), sum: sha256.New()}
	j.sum.Write(b[:j.end])
	j.reserveSpace()
	return j, nil
}

// reserveSpace takes room, so that the end of a job can be written on a full disk.
func (j *Journal) reserveSpace() {
	_ = unix.Fallocate(int(j.f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, reserve)
}

// Begin queues that an attempt sits down. Everything that was before may go: the
// engine has it.
func (j *Journal) Begin(r Record) error {
	if j.end > reserve/2 || j.bad != nil {
		if err := j.f.Truncate(0); err != nil {
			return err
		}
		j.end, j.lost, j.bad, j.owed = 0, nil, nil, false
		j.sum.Reset()
		j.reserveSpace()
	}
	r.Kind = KindTake
	return j.Add(r)
}

// Add queues a record; Flush writes it.
func (j *Journal) Add(r Record) error {
	b, err := appendLine(j.pending, r)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.pending = b
	return nil
}

// Flush writes what is queued, and makes it durable if sync is set, or was in a call
// that failed and none has done it since. After an error everything that was not
// written stays queued.
func (j *Journal) Flush(sync bool) error {
	j.owed = j.owed || sync
	if err := j.rewriteLost(); err != nil {
		return err
	}
	if len(j.pending) > 0 {
		// A failed write may have left a part of a line: the next one starts
		// over at the same place.
		if _, err := j.f.WriteAt(j.pending, j.end); err != nil {
			return err
		}
		j.end += int64(len(j.pending))
		j.sum.Write(j.pending)
		j.pending = j.pending[:0]
	}
	if !j.owed {
		return nil
	}
	do := j.f.Sync
	if j.disk != nil {
		do = j.disk
	}
	if err := do(); err != nil {
		j.readWritten()
		return err
	}
	j.owed = false
	return nil
}

// readWritten takes what was written out of the file, as long as the kernel has it: it may drop what it
// could not bring to the disk.
func (j *Journal) readWritten() {
	b := make([]byte, j.end)
	_, err := j.f.ReadAt(b, 0)
	if sum := sha256.Sum256(b); err == nil && !bytes.Equal(sum[:], j.sum.Sum(nil)) {
		err = errors.New("it is not what was written")
	}
	if err != nil {
		j.bad = fmt.Errorf("%s: the disk failed, and what stood in the journal cannot be read again: %w", j.name, err)
		return
	}
	j.lost = b
}

// rewriteLost writes what was lost.
func (j *Journal) rewriteLost() error {
	if j.bad != nil || j.lost == nil {
		return j.bad
	}
	if _, err := j.f.WriteAt(j.lost, 0); err != nil {
		return err
	}
	j.lost = nil
	return nil
}

// On has the journal made durable by f in place of its file's Sync; nil: by that. Tests have it fail.
func (j *Journal) On(f func() error) { j.disk = f }

// Bad reports whether what was written is lost, and cannot be written again: every Flush fails,
// until Begin or Anew.
func (j *Journal) Bad() bool { return j.bad != nil }

// Anew has a file with an attempt and its state, and nothing else, take the place of the journal's.
// The state has everything that was added for the attempt, and is durable after nil. The old file
// stays until the new one is on the disk; after an error the journal is as it was, or Bad.
func (j *Journal) Anew(ref engine.Ref, s *State) error {
	next := &Journal{name: j.name, sum: sha256.New(), disk: j.disk}
	now := time.Now()
	for _, r := range []Record{{Kind: KindTake, Ref: ref, Time: now}, {Kind: KindState, Time: now, State: s}} {
		if err := next.Add(r); err != nil {
			return err
		}
	}
	var err error
	if next.f, err = os.OpenFile(j.name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return err
	}
	next.reserveSpace()
	if err = next.Flush(true); err == nil {
		err = os.Rename(j.name+".new", j.name)
	}
	if err != nil {
		return errors.Join(err, next.Close(), os.Remove(j.name+".new"))
	}
	_ = j.f.Close() // nothing of it counts
	*j = *next
	if err := syncDir(filepath.Dir(j.name)); err != nil {
		j.bad = fmt.Errorf("%s: the disk failed, and a journal that was written anew may not have its name: %w", j.name, err)
	}
	return j.bad
}

// syncDir has a new name in a directory be on the disk.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close closes the file.
func (j *Journal) Close() error { return j.f.Close() }

// ReadJournal folds what a journal says of an attempt, if that was the last to sit
// there; else, and if the file is missing, sat is false and the state empty. A last
// line that was not written whole is skipped.
func ReadJournal(name string, ref engine.Ref) (s *State, sat bool, err error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return &State{}, false, nil
	} else if err != nil {
		return nil, false, err
	}
	defer f.Close()
	s = &State{}
	var sits engine.Ref
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, false, err
		}
		var rec Record
		if err := json.Unmarshal(line, &rec); err != nil {
			return nil, false, fmt.Errorf("%s: %w", name, err)
		}
		if !rec.Whole() {
			return nil, false, fmt.Errorf("%s: a record of kind %s is not complete", name, rec.Kind)
		}
		if rec.Kind == KindTake {
			sits = rec.Ref
		}
		s.Apply(rec)
	}
	if sits != ref {
		return &State{}, false, nil
	}
	return s, true, nil
}
