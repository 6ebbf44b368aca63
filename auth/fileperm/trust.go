// Package fileperm says whether other users of the machine can get at what lies in a
// folder: whoever may write to a folder, or to one on the way to it, may put another
// in its place, and with it a socket, a journal or a program.
//
// It asks about owners and modes as they are at the moment. root and this process's
// own user are trusted; access control lists are not looked at.
package fileperm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Folder returns nil if only this process's user and root may write to a folder. That
// a group may write to one of our own is put right.
func Folder(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fault.New(fault.NotFound, "%w", err).Advise("make it first")
		}
		return fault.New(fault.KindOf(err), "%w", err)
	}
	if err := ours(dir, st); err != nil {
		return err
	}
	switch mode := st.Mode(); {
	case !st.IsDir():
		return fault.New(fault.Invalid, "%s is no folder", dir).Advise("name another place")
	case mode.Perm()&0o002 != 0:
		return fault.New(fault.Permission, "%s may be written to by every user of this machine", dir).
			Advise("chmod o-w %s, or use a folder in it of your own", dir)
	case mode.Perm()&0o020 != 0 && owner(st) == os.Geteuid():
		return os.Chmod(dir, mode&^0o020)
	}
	return nil
}

// Way returns nil if nobody but root and this process's user can exchange what is at a
// place, or what leads to it: others may write there only where /tmp's bit keeps what is
// not theirs. What does not exist yet is nobody's.
func Way(path string) error {
	path = filepath.Clean(path)
	starts := []string{path}
	for _, p := range []string{filepath.Dir(path), path} {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			starts = append(starts, filepath.Join(real, "in"))
		}
	}
	for _, start := range starts {
		for at := filepath.Dir(start); ; at = filepath.Dir(at) {
			if err := step(at, path); err != nil {
				return err
			}
			if at == "/" || at == "." {
				break
			}
		}
	}
	return nil
}

// Own returns nil if a place is a folder of this process's user, and no link, that nobody else may write
// to or exchange. One that is not there is fs.ErrNotExist.
func Own(dir string) error {
	if err := Way(dir); err != nil {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() || st.Mode().Perm()&0o022 != 0 || owner(st) != os.Geteuid() {
		return fault.New(fault.Permission, "%s is not a folder that only this server's user may write to", dir).
			Advise("remove it; the server makes it again")
	}
	return nil
}

// step looks at one folder, or link, on the way to a place.
func step(at, path string) error {
	st, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.New(fault.KindOf(err), "%w", err)
	}
	if err := ours(at, st); err != nil {
		return err
	}
	if st.IsDir() && st.Mode().Perm()&0o002 != 0 && st.Mode()&fs.ModeSticky == 0 {
		return fault.New(fault.Permission, "%s, which leads to %s, may be written to by every user of this machine", at, path).
			Advise("chmod o-w %s, or use another place", at)
	}
	return nil
}

// ours returns nil if something belongs to this process's user or to root.
func ours(name string, st fs.FileInfo) error {
	if uid := owner(st); uid != 0 && uid != os.Geteuid() {
		return fault.New(fault.Permission, "%s belongs to user %d, who could exchange what is in it", name, uid).
			Advise("use a folder of your own, or as root: chown %d %s", os.Geteuid(), name)
	}
	return nil
}

func owner(st fs.FileInfo) int {
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(sys.Uid)
	}
	return os.Geteuid()
}
