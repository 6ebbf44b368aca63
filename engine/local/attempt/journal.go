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
)

// Journal is a supervisor's append-only file of records, one JSON value a line.
// Records that could not be written stay in memory and go first with the next
// attempt to write. It is not safe for concurrent use.
type Journal struct {
	f       *os.File
	pending []byte
	end     int64 // bytes of whole records on disk
}

// reserve is how much disk space a journal takes at once, in bytes, where the
// file system can do that.
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
	// With room of its own the end of a job can be written on a full disk.
	_ = unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, reserve)
	return &Journal{f: f, end: int64(bytes.LastIndexByte(b, '\n') + 1)}, nil
}

// Add queues a record; Flush writes it.
func (j *Journal) Add(r Record) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.pending = append(append(j.pending, b...), '\n')
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

// ReadJournal folds a journal. A missing file is an empty state; a last line
// that was not written whole is skipped.
func ReadJournal(name string) (*State, error) {
	s := &State{}
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return s, nil
		} else if err != nil {
			return nil, err
		}
		var rec Record
		if err := json.Unmarshal(line, &rec); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		s.Apply(rec)
	}
}
