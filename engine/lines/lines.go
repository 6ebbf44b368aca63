// Package lines is the file in which a driver keeps its attempts: lines that are added at the
// end, until it is written anew with those that still count. What a line says is the driver's.
//
// Guarantees: one process at a time has a file open. A line is in it whole or not at all: what a
// machine that crashed has left of one is dropped when the file is opened. After an error of
// Add or AddNow the line is not in the file. Rewrite leaves either the old file or the new one,
// on the disk. A File is safe for concurrent use; the lines are in the order of the calls.
package lines

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/fault"
)

// File is an open file of lines.
type File struct {
	name string
	turn sync.Mutex // of the disk, for Sync

	mu     sync.Mutex
	f      *os.File
	end    int64 // behind the last line, bytes
	synced int64 // up to here it is on the disk
}

// Open opens or creates a file and calls f for each line, without its end, in order. The first
// that f cannot read (false), and all behind it, are dropped. fault.Conflict: somebody has it open.
func Open(name string, f func(line []byte) bool) (*File, error) {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fault.New(fault.Conflict, "%s is in use by another cox server", name), file.Close())
	}
	out := &File{name: name, f: file}
	r := bufio.NewReaderSize(file, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if !f(line[:len(line)-1]) {
			break // of a machine that crashed
		}
		out.end += int64(len(line))
	}
	if err := file.Truncate(out.end); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return out, nil
}

// Add writes a line, without its end. It is on the disk after the next Sync.
func (f *File) Add(line []byte) error { return f.add(line, false) }

// AddNow writes a line, without its end, to the disk.
func (f *File) AddNow(line []byte) error { return f.add(line, true) }

func (f *File) add(line []byte, now bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.f.WriteAt(append(slices.Clip(line), '\n'), f.end)
	if err == nil && now {
		err = unix.Fdatasync(int(f.f.Fd()))
	}
	if err != nil {
		_ = f.f.Truncate(f.end) // a part of it may be there, whatever n says
		return err
	}
	if f.end += int64(n); now {
		f.synced = f.end
	}
	return nil
}

// Sync brings to the disk what was added before. Callers at once share one turn of the disk.
func (f *File) Sync() error {
	f.mu.Lock()
	was, upTo := f.f, f.end
	f.mu.Unlock()
	f.turn.Lock()
	defer f.turn.Unlock()
	f.mu.Lock()
	is, end, done := f.f, f.end, f.f != was || f.synced >= upTo // what is written anew is on the disk
	f.mu.Unlock()
	if done {
		return nil
	}
	if err := is.Sync(); err != nil && !errors.Is(err, os.ErrClosed) { // closed: it was written anew
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.f == is {
		f.synced = max(f.synced, end)
	}
	return nil
}

// Size is that of the file, in bytes.
func (f *File) Size() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.end
}

// Rewrite has a file with this text, whole lines, each with its end, take the place of the old
// one. The text has what still counts of all lines that were added. After an error the old file or
// the new one goes on.
func (f *File) Rewrite(text []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next, err := os.OpenFile(f.name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	_, err = next.Write(text)
	if err = errors.Join(err, unix.Flock(int(next.Fd()), unix.LOCK_EX|unix.LOCK_NB), next.Sync()); err == nil {
		err = os.Rename(next.Name(), f.name)
	}
	if err != nil {
		return errors.Join(err, next.Close(), os.Remove(next.Name()))
	}
	_ = f.f.Close()
	f.f, f.end, f.synced = next, int64(len(text)), int64(len(text))
	return syncDir(filepath.Dir(f.name))
}

// syncDir has a new name in a directory be on the disk.
func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Close closes the file, for others to open.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	// A child of this process that is between its fork and its exec has the file open too.
	return errors.Join(unix.Flock(int(f.f.Fd()), unix.LOCK_UN), f.f.Close())
}
