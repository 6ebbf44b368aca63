package asuser

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// errMagic is a name that leads through this process's own doors.
var errMagic = fmt.Errorf("it leads through a link of /proc: %w", fs.ErrPermission)

// maxTries bounds how often a name is looked up again that others are changing, or whose lease
// somebody has yet to give back.
const maxTries = 1000

// OpenFile opens a file that another user named. Links such as /proc/self/fd/3 and
// /proc/self/cwd are not followed: they are doors of this process, which the kernel
// opens to each of its threads, whatever their user.
func OpenFile(name string, flags int, mode os.FileMode) (*os.File, error) {
	how := &unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC | unix.O_LARGEFILE), Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if flags&os.O_CREATE != 0 {
		how.Mode = uint64(mode.Perm())
	}
	for tries := 0; ; tries++ {
		fd, err := unix.Openat2(unix.AT_FDCWD, name, how)
		switch {
		case err == nil:
			return notProc(os.NewFile(uintptr(fd), name))
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN) && tries < maxTries:
			continue
		case errors.Is(err, unix.ELOOP) && throughProc(name):
			err = errMagic
		case errors.Is(err, unix.ENOSYS):
			if throughProc(name) {
				return nil, &fs.PathError{Op: "open", Path: name, Err: errMagic}
			}
			return os.OpenFile(name, flags, mode) // a kernel before 5.6: what is exchanged meanwhile is followed
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
}

// notProc refuses what the kernel says about this process: it is root's to know.
func notProc(f *os.File) (*os.File, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil || st.Type != unix.PROC_SUPER_MAGIC {
		return f, nil
	}
	return nil, &fs.PathError{Op: "open", Path: f.Name(), Err: errors.Join(errMagic, f.Close())}
}

// throughProc reports whether following a name's links leads into /proc.
func throughProc(name string) bool {
	rest := strings.Split(filepath.Clean(name), "/")
	at := "/"
	for steps := 0; len(rest) > 0 && steps < 256; steps++ {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		if next == "/proc" {
			return true
		}
		to, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		rest = append(strings.Split(to, "/"), rest...)
	}
	return false
}
