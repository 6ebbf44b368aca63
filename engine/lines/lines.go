// Package lines is the file in which a driver keeps its attempts: lines that are added at the
// end, until it is written anew with those that still count. What a line says is the driver's.
//
// Guarantees: one process at a time has a file open. A line is in it whole or not at all: what a
// machine that crashed has left of one is dropped when the file is opened. After an error of
// Add or AddNow the line is not in the file; where it cannot be taken out, that is tried again
// before the next one is added and when the file is closed, and who opens the file after a crash
// before that may find it. Rewrite leaves either the old file or the new one, on the disk: where
// the new one's name cannot be brought there, no line counts as on the disk until it is. A File is
// safe for concurrent use; the lines are in the order of the calls.
package lines

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
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
	turn sync.Mutex         // of the disk, for Sync
	dir  func(string) error // in place of syncDir; nil: that

	mu      sync.Mutex
	f       *os.File
	end     int64 // behind the last line, bytes
	synced  int64 // up to here it is on the disk
	tail    bool  // something of a line that was not added may be behind the end
	unnamed bool  // that the name is this file's may not be on the disk
}

// Open opens or creates a file and calls f for each line, without its end, in order. The first
// that f cannot read (false), and all behind it, are dropped. fault.Conflict: somebody has it open.
func Open(name string, f func(line []byte) bool) (*File, error) {
	file, err := take(name)
	if err != nil {
		return nil, err
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

// take opens or creates a file and locks it.
func take(name string) (*os.File, error) {
	for {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, err
		}
		there, err := lock(file, name)
		if err == nil && there {
			return file, nil
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

// lock locks an open file. there is whether the name is still this file's: it is not where the
// file was written anew before it was locked.
func lock(file *os.File, name string) (there bool, err error) {
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false, fault.New(fault.Conflict, "%s is in use by another cox server", name)
	}
	own, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(own, named), err
}

// Add writes a line, without its end. It is on the disk after the next Sync.
func (f *File) Add(line []byte) error { return f.add(line, false) }

// AddNow writes a line, without its end, to the disk.
func (f *File) AddNow(line []byte) error { return f.add(line, true) }

func (f *File) add(line []byte, now bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.cut(); err != nil {
		return err
	}
	if now {
		if err := f.named(); err != nil {
			return err
		}
	}
	n, err := f.f.WriteAt(append(slices.Clip(line), '\n'), f.end)
	if err == nil && now {
		err = unix.Fdatasync(int(f.f.Fd()))
	}
	if err != nil {
		f.tail = true // a part of it may be there, whatever n says
		_ = f.cut()   // if it cannot be, it is before the next line
		return err
	}
	if f.end += int64(n); now {
		f.synced = f.end
	}
	return nil
}

// cut takes out what may be there of a line that was not added. The caller holds the lock.
func (f *File) cut() error {
	if !f.tail {
		return nil
	}
	err := f.f.Truncate(f.end)
	f.tail = err != nil
	return err
}

// named brings the name of a file that was written anew to the disk, if it may not be there. The
// caller holds the lock.
func (f *File) named() error {
	if !f.unnamed {
		return nil
	}
	do := syncDir
	if f.dir != nil {
		do = f.dir
	}
	err := do(filepath.Dir(f.name))
	f.unnamed = err != nil
	return err
}

// Sync brings to the disk what was added before. Callers at once share one turn of the disk.
func (f *File) Sync() error {
	f.mu.Lock()
	was, upTo := f.f, f.end
	f.mu.Unlock()
	f.turn.Lock()
	defer f.turn.Unlock()
	f.mu.Lock()
	err := f.named()
	is, end, done := f.f, f.end, f.f != was || f.synced >= upTo // what is written anew is on the disk
	f.mu.Unlock()
	if err != nil || done {
		return err
	}
	err = is.Sync()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.f != is { // closed, as it was written anew
		return f.named()
	}
	if err != nil {
		return err
	}
	f.synced = max(f.synced, end)
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
	f.f, f.end, f.synced, f.tail, f.unnamed = next, int64(len(text)), int64(len(text)), false, true
	return f.named()
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
	err := f.cut()
	// A child of this process that is between its fork and its exec has the file open too.
	return errors.Join(err, unix.Flock(int(f.f.Fd()), unix.LOCK_UN), f.f.Close())
}
