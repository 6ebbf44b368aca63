package ownerfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/asuser"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// mostLinks is how many symbolic links a name may lead through, as in the kernel.
const mostLinks = 40

// openFor opens a file with this process's rights for somebody whom it cannot become, and who
// named it: if he may enter every folder on the way, and read the file, by their owners, modes
// and access lists. Each step is looked at where it was opened, so nothing exchanged meanwhile
// leads elsewhere. Root's rights are nobody's here.
func openFor(who asuser.User, name string) (*os.File, error) {
	w := &pathWalk{who: who, name: name, rest: splitPath(name)}
	defer func() { w.at.Close() }()
	if err := w.startAtRoot(); err != nil {
		return nil, err
	}
	for {
		part := w.rest[0]
		w.rest = w.rest[1:]
		f, err := openPart(w.at, part, unix.O_PATH)
		if err != nil {
			return nil, w.wrapError(err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return nil, errors.Join(w.wrapError(err), f.Close())
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			if err := w.followLink(f); err != nil {
				return nil, err
			}
		case unix.S_IFDIR:
			w.at.Close()
			if w.at = f; len(w.rest) == 0 {
				return nil, fault.New(fault.Invalid, "%s is not a regular file", name)
			}
			if !hasPermission(who, f, &st, unix.X_OK) {
				return nil, w.wrapError(fmt.Errorf("its folder %s: %w", f.Name(), fs.ErrPermission))
			}
		default:
			f.Close()
			if len(w.rest) > 0 {
				return nil, w.wrapError(unix.ENOTDIR)
			}
			return w.openFile(part)
		}
	}
}

// pathWalk is a way to a file.
type pathWalk struct {
	who   asuser.User
	name  string
	at    *os.File // the folder that was reached
	rest  []string // what of the name is before it
	links int
}

func splitPath(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

// openPart opens one part of a name, and follows nothing.
func openPart(at *os.File, part string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(at.Fd()), part, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(at.Name(), part)), nil
}

// wrapError is the error of the name as it was given.
func (w *pathWalk) wrapError(err error) error {
	return &fs.PathError{Op: "open", Path: w.name, Err: err}
}

// startAtRoot begins at the root, which everybody may enter.
func (w *pathWalk) startAtRoot() error {
	f, err := os.OpenFile("/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return w.wrapError(err)
	}
	if w.at != nil {
		w.at.Close()
	}
	if w.at = f; len(w.rest) == 0 {
		return fault.New(fault.Invalid, "%s is not a regular file", w.name)
	}
	return nil
}

// followLink puts what a link says before the rest of the name.
func (w *pathWalk) followLink(link *os.File) error {
	defer link.Close()
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(link.Fd()), "", text)
	if w.links++; err == nil && w.links > mostLinks {
		err = unix.ELOOP
	}
	if err != nil {
		return w.wrapError(err)
	}
	to := string(text[:n])
	w.rest = append(splitPath(to), w.rest...)
	if filepath.IsAbs(to) {
		return w.startAtRoot()
	}
	return nil
}

// openFile opens the file itself, if it may be shown.
func (w *pathWalk) openFile(part string) (*os.File, error) {
	f, err := openPart(w.at, part, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, w.wrapError(err)
	}
	var st unix.Stat_t
	var sys unix.Statfs_t
	switch err := errors.Join(unix.Fstat(int(f.Fd()), &st), unix.Fstatfs(int(f.Fd()), &sys)); {
	case err != nil:
		return nil, errors.Join(w.wrapError(err), f.Close())
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errors.Join(fault.New(fault.Invalid, "%s is not a regular file", w.name), f.Close())
	case sys.Type == unix.PROC_SUPER_MAGIC, !hasPermission(w.who, f, &st, unix.R_OK):
		return nil, errors.Join(w.wrapError(fs.ErrPermission), f.Close())
	}
	return f, nil
}

// hasPermission reports whether somebody has a right to an open file, or folder.
func hasPermission(who asuser.User, f *os.File, st *unix.Stat_t, want uint32) bool {
	list, err := accessList(f)
	switch {
	case err != nil:
		return false
	case len(list) > 0 && st.Mode&unix.S_IRWXG != 0: // else the kernel does not ask it
		return aclGrants(list, who, st, want)
	case who.UID == st.Uid:
		return st.Mode>>6&want != 0
	case inGroup(who, st.Gid):
		return st.Mode>>3&want != 0
	}
	return st.Mode&want != 0
}

func inGroup(who asuser.User, gid uint32) bool {
	return gid == who.GID || slices.Contains(who.Groups, gid)
}

// aclEntry is an entry of an access list (POSIX ACL), as the kernel has it.
type aclEntry struct {
	Tag, Right uint16
	ID         uint32
}

// Tags of entries.
const (
	aclOwner = 1 << iota
	aclUser
	aclOwningGroup
	aclGroup
	aclMask
	aclOthers
)

// accessList is that of an open file; nil: it has none beside its mode.
func accessList(f *os.File) ([]aclEntry, error) {
	text := make([]byte, 64<<10)
	n, err := unix.Getxattr(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), "system.posix_acl_access", text)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	const head, version = 4, 2
	if n < head || (n-head)%8 != 0 || binary.LittleEndian.Uint32(text) != version {
		return nil, fmt.Errorf("%s has an access list of an unknown form", f.Name())
	}
	list := make([]aclEntry, (n-head)/8)
	_, err = binary.Decode(text[head:n], binary.LittleEndian, list)
	return list, err
}

// aclGrants is what an access list says, in the kernel's order: the owner's entry, the user's
// own, those of all his groups together, everybody's.
func aclGrants(list []aclEntry, who asuser.User, st *unix.Stat_t, want uint32) bool {
	right := func(tag uint16, of func(id uint32) bool) (has, found bool) {
		for _, a := range list {
			if a.Tag == tag && of(a.ID) {
				found, has = true, has || uint32(a.Right)&want != 0
			}
		}
		return has, found
	}
	any := func(uint32) bool { return true }
	mask, masked := right(aclMask, any)
	mask = mask || !masked
	if who.UID == st.Uid {
		has, _ := right(aclOwner, any)
		return has
	}
	if has, found := right(aclUser, func(id uint32) bool { return id == who.UID }); found {
		return has && mask
	}
	has, found := right(aclGroup, func(id uint32) bool { return inGroup(who, id) })
	if inGroup(who, st.Gid) {
		own, _ := right(aclOwningGroup, any)
		has, found = has || own, true
	}
	if found {
		return has && mask
	}
	has, _ = right(aclOthers, any)
	return has
}
