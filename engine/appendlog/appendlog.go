// Package appendlog is the file in which a driver keeps its attempts: lines that are appended until
// the file is rewritten with those that still count. Their meaning is the driver's.
//
// Guarantees: one process at a time has a file open. A line is in the file whole or not at all:
// Open drops the part of a line that a crash of the machine has left. After an error of
// Add or AddNow the line is not in the file; if it cannot be cut off, that is tried again
// before the next line and when the file is closed. A crash before that may leave it to the
// process that opens the file next. Rewrite leaves either the old file or the new one, on the disk.
//
// A disk that could not write reports it once, and keeps the pages as if it had: a second sync
// succeeds (PostgreSQL's fsyncgate). So after a failed Sync or AddNow, and when the name of a
// rewritten file cannot be synced, the file is in doubt: nothing is added, and no line counts as on
// the disk, until a Rewrite has replaced the file.
//
// A File is safe for concurrent use; the lines are in the order of the calls.
package appendlog

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

	"github.com/coxswain-sched/coxswain/model/fault"
)

// File is an open file of lines.
type File struct {
	name string
	disk Disk
	turn sync.Mutex // of the disk; held before mu

	mu     sync.Mutex
	f      *os.File
	end    int64 // behind the last line, bytes
	synced int64 // up to here it is on the disk
	tail   bool  // something of a line that was not added may be behind the end
	doubt  error // why it is not known what is on the disk; nil: it is
	closed bool  // the name may be another's file
}

// Disk is how files and directories are brought to the disk; a nil function is the real way. Tests
// have it fail.
type Disk struct {
	File func(*os.File) error
	Dir  func(name string) error
}

// On has the file use a disk. It is called before the file is used.
func (f *File) On(d Disk) *File {
	f.disk = d
	return f
}

// Open opens or creates a file and calls f for each line, without its end, in order. The first
// that f cannot read (false), and all behind it, are dropped. fault.Conflict: somebody has it open.
func Open(name string, f func(line []byte) bool) (*File, error) {
	file, err := openLocked(name)
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

// openLocked opens or creates a file and locks it.
func openLocked(name string) (*os.File, error) {
	for {
		file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, err
		}
		there, err := tryLock(file, name)
		if err == nil && there {
			return file, nil
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

// tryLock locks an open file. there is whether the name is still this file's: it is not where the
// file was written anew before it was locked.
func tryLock(file *os.File, name string) (there bool, err error) {
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
func (f *File) Add(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.add(line, nil)
}

// AddNow writes a line, without its end, to the disk.
func (f *File) AddNow(line []byte) error {
	f.turn.Lock() // else a Sync at the same time could be told of what was lost, and this one of nothing
	defer f.turn.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	do := f.disk.File
	if do == nil {
		do = func(file *os.File) error { return unix.Fdatasync(int(file.Fd())) }
	}
	return f.add(line, do)
}

// add writes a line, and brings it to the disk if it is told how. The caller holds the lock.
func (f *File) add(line []byte, sync func(*os.File) error) error {
	if f.doubt != nil {
		return f.doubtError()
	}
	if err := f.cutTail(); err != nil {
		return err
	}
	n, err := f.f.WriteAt(append(slices.Clip(line), '\n'), f.end)
	if err == nil && sync != nil {
		err = sync(f.f)
		f.doubt = err
	}
	if err != nil {
		f.tail = true   // a part of it may be there, whatever n says
		_ = f.cutTail() // if it cannot be, it is before the next line
		return err
	}
	if f.end += int64(n); sync != nil {
		f.synced = f.end
	}
	return nil
}

// Doubt is why it is not known what of the file is on the disk; nil: it is known.
func (f *File) Doubt() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.doubt
}

// doubtError refuses what would not be certain. The caller holds the lock.
func (f *File) doubtError() error {
	return fault.New(fault.Unavailable, "%s: the disk failed, and what of the file is on it is not known until it is written anew: %w", f.name, f.doubt).
		Advise("look at the disk of the state directory")
}

// cutTail takes out what may be there of a line that was not added. The caller holds the lock.
func (f *File) cutTail() error {
	if !f.tail {
		return nil
	}
	err := f.f.Truncate(f.end)
	f.tail = err != nil
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
	is, end := f.f, f.end
	done, err := is != was || f.synced >= upTo, f.doubt // what is written anew is on the disk
	if err != nil {
		err = f.doubtError()
	}
	f.mu.Unlock()
	if err != nil || done {
		return err
	}
	do := f.disk.File
	if do == nil {
		do = (*os.File).Sync
	}
	err = do(is)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.f != is { // closed, as it was written anew
		if f.doubt != nil {
			return f.doubtError()
		}
		return nil
	}
	if err != nil {
		f.doubt = err
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
// the new one goes on; one that was in doubt is so still.
func (f *File) Rewrite(text []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return os.ErrClosed
	}
	next, err := os.OpenFile(f.name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	file, dir := f.disk.File, f.disk.Dir
	if file == nil {
		file = (*os.File).Sync
	}
	if dir == nil {
		dir = syncDir
	}
	_, err = next.Write(text)
	if err = errors.Join(err, unix.Flock(int(next.Fd()), unix.LOCK_EX|unix.LOCK_NB), file(next)); err == nil {
		err = os.Rename(next.Name(), f.name)
	}
	if err != nil {
		return errors.Join(err, next.Close(), os.Remove(next.Name()))
	}
	_ = f.f.Close()
	f.f, f.end, f.synced, f.tail = next, int64(len(text)), int64(len(text)), false
	f.doubt = dir(filepath.Dir(f.name))
	return f.doubt
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
	f.closed = true
	err := f.cutTail()
	// A child of this process that is between its fork and its exec has the file open too.
	return errors.Join(err, unix.Flock(int(f.f.Fd()), unix.LOCK_UN), f.f.Close())
}
