// Package logfile writes output files of long lives, of which each may have a size and a number are kept,
// and reads such a file with what was rotated of it, as one.
//
// FILE.rotated-1 is what was FILE last, FILE.rotated-2 what was that before. A line is in one file as a
// whole, unless it is longer than a write. A reader that follows goes over rotations without a loss, as
// long as not more is rotated away than is kept.
package logfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// rotatedName is the name of the nth file before the present one.
func rotatedName(name string, n int) string { return fmt.Sprintf("%s.rotated-%d", name, n) }

// File is an output file that is rotated. It is safe for concurrent use.
type File struct {
	mu    sync.Mutex
	f     *os.File
	name  string
	size  int64
	limit int64 // 0: it is never rotated
	keep  int
	as    func(func() error) error // runs what opens and renames, as the file's owner; nil: as it is
}

// Wrap takes over an open file, to which is appended. Limit is in bytes.
func Wrap(f *os.File, name string, limit int64, keep int, as func(func() error) error) *File {
	out := &File{f: f, name: name, limit: limit, keep: keep, as: as}
	if info, err := f.Stat(); err == nil {
		out.size = info.Size()
	}
	return out
}

// Write appends, and rotates before the file would become too large.
func (l *File) Write(p []byte) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.limit > 0 && l.size > 0 && l.size+int64(len(p)) > l.limit {
		end := bytes.LastIndexByte(p[:max(0, min(int64(len(p)), l.limit-l.size))], '\n') + 1
		m, err := l.appendBytes(p[:end])
		if n += m; err != nil {
			return n, err
		}
		p = p[end:]
		if !l.rotateFile() {
			break
		}
	}
	m, err := l.appendBytes(p)
	return n + m, err
}

func (l *File) appendBytes(p []byte) (int, error) {
	n, err := l.f.Write(p)
	l.size += int64(n)
	return n, err
}

// rotateFile begins the file anew. Where it cannot, the present one goes on, and that is tried again once so
// much has come again.
func (l *File) rotateFile() bool {
	var next *os.File
	do := func() error {
		for i := l.keep; i > 1; i-- {
			if err := os.Rename(rotatedName(l.name, i-1), rotatedName(l.name, i)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		var err error
		if l.keep > 0 {
			err = os.Rename(l.name, rotatedName(l.name, 1))
		} else {
			err = os.Remove(l.name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		next, err = os.OpenFile(l.name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o666)
		return err
	}
	var err error
	if l.as != nil {
		err = l.as(do)
	} else {
		err = do()
	}
	l.size = 0
	if err != nil {
		return false
	}
	if info, err := l.f.Stat(); err == nil {
		_ = next.Chmod(info.Mode().Perm())
		if owner, group, ok := ownerOf(info); ok && l.as == nil {
			_ = next.Chown(owner, group)
		}
	}
	_ = l.f.Close()
	l.f = next
	return true
}

func ownerOf(info os.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// Close closes the file.
func (l *File) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}

// mostKept bounds how many rotated files a reader looks for.
const mostKept = 100

// Reader reads a file with what was rotated of it, oldest first. At the end of all a Read returns io.EOF,
// and more when it is called again after more was written. It is not safe for concurrent use.
type Reader struct {
	name string
	open func(name string) (*os.File, error)
	all  []segment
	at   int64
}

// segment is a file and where it begins in all.
type segment struct {
	f     *os.File
	start int64
}

var _ interface {
	io.ReadCloser
	io.ReaderAt
	io.Seeker
} = (*Reader)(nil)

// Open opens a file and what was rotated of it; open opens each, with the rights that count.
func Open(name string, open func(name string) (*os.File, error)) (*Reader, error) {
	r := &Reader{name: name, open: open}
	present, err := open(name)
	if err != nil {
		return nil, err
	}
	files := []*os.File{present}
	for i := 1; i <= mostKept; i++ {
		f, err := open(rotatedName(name, i))
		if err != nil {
			break
		}
		if isSame(f, files[len(files)-1]) { // it was rotated meanwhile
			_ = f.Close()
			continue
		}
		files = append(files, f)
	}
	for i := len(files) - 1; i >= 0; i-- {
		if err := r.addSegment(files[i]); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

func isSame(a, b *os.File) bool {
	x, err1 := a.Stat()
	y, err2 := b.Stat()
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}

// addSegment adds the file that follows. The one before it grows no more.
func (r *Reader) addSegment(f *os.File) error {
	start, err := r.endOffset()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.all = append(r.all, segment{f, start})
	return nil
}

// endOffset is where all ends now.
func (r *Reader) endOffset() (int64, error) {
	if len(r.all) == 0 {
		return 0, nil
	}
	last := r.all[len(r.all)-1]
	info, err := last.f.Stat()
	if err != nil {
		return 0, err
	}
	return last.start + info.Size(), nil
}

// Read reads on.
func (r *Reader) Read(p []byte) (int, error) {
	for {
		n, err := r.ReadAt(p[:min(len(p), 1<<20)], r.at)
		r.at += int64(n)
		if n > 0 {
			return n, nil
		}
		if err != io.EOF || len(p) == 0 {
			return 0, err
		}
		switch more, err := r.openNext(); {
		case err != nil:
			return 0, err
		case !more:
			return 0, io.EOF
		}
	}
}

// openNext opens what has taken the place of the last file.
func (r *Reader) openNext() (more bool, err error) {
	last := r.all[len(r.all)-1].f
	if now, err := os.Stat(r.name); err == nil { // cheaper than to open it with somebody's rights
		if was, err := last.Stat(); err == nil && os.SameFile(now, was) {
			return false, nil
		}
	}
	present, err := r.open(r.name)
	if err != nil || isSame(present, last) {
		if present != nil {
			err = present.Close()
		} else {
			err = nil // it is just being rotated, or somebody removed it
		}
		return false, err
	}
	if end, err := r.endOffset(); err != nil || r.at < end { // what was written before it was rotated
		return err == nil, errors.Join(err, present.Close())
	}
	next := []*os.File{present}
	for i := 1; i <= mostKept; i++ {
		f, err := r.open(rotatedName(r.name, i))
		if err != nil {
			break // the last file was rotated away: what is left comes after it
		}
		if isSame(f, last) {
			_ = f.Close()
			break
		}
		if isSame(f, next[len(next)-1]) { // it was rotated meanwhile
			_ = f.Close()
			continue
		}
		next = append(next, f)
	}
	for i := len(next) - 1; i >= 0; i-- {
		if err := r.addSegment(next[i]); err != nil {
			return false, err
		}
	}
	for len(r.all) > mostKept { // a reader that follows for long
		_ = r.all[0].f.Close()
		r.all = r.all[1:]
	}
	return true, nil
}

// ReadAt reads at a place of all.
func (r *Reader) ReadAt(p []byte, at int64) (n int, err error) {
	for i, s := range r.all {
		if i+1 < len(r.all) && at >= r.all[i+1].start {
			continue
		}
		part := p[n:]
		if i+1 < len(r.all) {
			part = part[:min(int64(len(part)), r.all[i+1].start-at)]
		}
		m, err := s.f.ReadAt(part, at-s.start)
		n, at = n+m, at+int64(m)
		if n == len(p) || err != nil && err != io.EOF {
			return n, err
		}
		if i+1 < len(r.all) && at < r.all[i+1].start {
			return n, io.EOF // somebody cut it
		}
	}
	return n, io.EOF
}

// Seek is io.Seeker's.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		end, err := r.endOffset()
		if err != nil {
			return 0, err
		}
		offset += end
	}
	if offset < 0 {
		return 0, fs.ErrInvalid
	}
	r.at = offset
	return offset, nil
}

// Close closes all.
func (r *Reader) Close() error {
	var errs []error
	for _, s := range r.all {
		errs = append(errs, s.f.Close())
	}
	return errors.Join(errs...)
}
