package attempt

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
)

// Journal is a seat's append-only file of records, one JSON value a line. It holds
// the attempt that sits, and what is left of those before. Records that could not
// be written stay in memory and go first with the next attempt to write. It is not
// safe for concurrent use.
type Journal struct {
	f       *os.File
	pending []byte
	end     int64 // bytes of whole records on disk
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
	j := &Journal{f: f, end: int64(bytes.LastIndexByte(b, '\n') + 1)}
	j.reserve()
	return j, nil
}

// reserve takes room, so that the end of a job can be written on a full disk.
func (j *Journal) reserve() {
	_ = unix.Fallocate(int(j.f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, reserve)
}

// Begin queues that an attempt sits down. Everything that was before may go: the
// engine has it.
func (j *Journal) Begin(r Record) error {
	if j.end > reserve/2 {
		if err := j.f.Truncate(0); err != nil {
			return err
		}
		j.end = 0
		j.reserve()
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

// Flush writes what is queued, and makes it durable if sync is set. After an
// error everything that was not written stays queued.
func (j *Journal) Flush(sync bool) error {
	if len(j.pending) > 0 {
		// A failed write may have left a part of a line: the next one starts
		// over at the same place.
		if _, err := j.f.WriteAt(j.pending, j.end); err != nil {
			return err
		}
		j.end += int64(len(j.pending))
		j.pending = j.pending[:0]
	}
	if sync {
		return j.f.Sync()
	}
	return nil
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
