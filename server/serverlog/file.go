package serverlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Bounds of the log in files.
const (
	fileSize = 8 << 20  // bytes of a file
	oldFiles = 4        // that are kept beside the newest: NAME.1 is the youngest of them
	reserve  = 64 << 20 // free bytes that the log leaves to others; a sixteenth of the file system if that is less
	askAfter = 64 << 10 // bytes written between two looks at the free space
)

// File is a log in files: NAME, and NAME.1 to NAME.4 of what was written before. Together they
// hold at most 40 MiB. It is safe for concurrent use.
type File struct {
	name string
	size int64 // of a file
	room func(*os.File) (free, all uint64)

	mu    sync.Mutex
	f     *os.File
	n     int64  // bytes of f
	since int64  // bytes written since room was asked
	full  bool   // no room was left then
	left  uint64 // entries left out since the last one
}

// OpenFile opens a log to append to it, and creates it with mode 0600.
func OpenFile(name string) (*File, error) {
	l := &File{name: name, size: fileSize, room: fileSystemRoom}
	if err := l.openNewest(); err != nil {
		return nil, fault.New(fault.KindOf(err), "the server's log: %w", err)
	}
	return l, nil
}

func (l *File) openNewest() error {
	f, err := os.OpenFile(l.name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.f, l.n, l.since = f, st.Size(), askAfter
	return nil
}

// Write writes one entry. It never returns an error: an entry that finds no room is left out, and
// a line before the next entry says how many were left out.
func (l *File) Write(entry []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n > 0 && l.n+int64(len(entry)) > l.size {
		l.rotateFiles()
	}
	if l.since >= askAfter || l.full {
		free, all := l.room(l.f)
		l.since, l.full = 0, free < min(reserve, all/16)
	}
	if l.full {
		l.left++
		return len(entry), nil
	}
	if l.left > 0 {
		l.writeText([]byte("# the disk was full: " + strconv.FormatUint(l.left, 10) + " entries were left out\n"))
		l.left = 0
	}
	if !l.writeText(entry) {
		l.left++
	}
	return len(entry), nil
}

func (l *File) writeText(b []byte) bool {
	n, err := l.f.Write(b)
	l.n += int64(n)
	l.since += int64(n)
	return err == nil
}

// rotateFiles begins a new file. If that fails, it empties the newest file, so that the log stays
// within its bounds.
func (l *File) rotateFiles() {
	for i := oldFiles; i > 1; i-- {
		_ = os.Rename(l.oldName(i-1), l.oldName(i)) // one that is missing is no matter
	}
	old := l.f
	if err := os.Rename(l.name, l.oldName(1)); err != nil && !errors.Is(err, fs.ErrNotExist) || l.openNewest() != nil {
		if old.Truncate(0) == nil {
			l.n = 0
		}
		return
	}
	l.takeStandardFiles(old)
	_ = old.Close()
}

// takeStandardFiles moves standard output and standard error to the new file if they were the old
// one. A panic of the Go runtime goes there.
func (l *File) takeStandardFiles(old *os.File) {
	was, err := old.Stat()
	if err != nil {
		return
	}
	for _, std := range []*os.File{os.Stdout, os.Stderr} {
		if st, err := std.Stat(); err == nil && os.SameFile(st, was) {
			_ = unix.Dup3(int(l.f.Fd()), int(std.Fd()), 0)
		}
	}
}

func (l *File) oldName(i int) string { return fmt.Sprintf("%s.%d", l.name, i) }

// BeginFile begins a new file if the newest one is half full, so that what is written next is in
// one file. No other process may be writing to the log.
func (l *File) BeginFile() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n > l.size/2 {
		l.rotateFiles()
	}
}

// Close closes the newest file.
func (l *File) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}

// fileSystemRoom returns how many bytes of a file system any user may still write, and how many it has in all.
func fileSystemRoom(f *os.File) (free, all uint64) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil || st.Blocks == 0 {
		return 1, 0 // this file system does not say
	}
	return st.Bavail * uint64(st.Bsize), st.Blocks * uint64(st.Bsize)
}
