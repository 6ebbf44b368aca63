// Package asuser does something in the file system with the rights of another user,
// on one thread of a process that has root's: the user whom the kernel asks about
// files is changed, and nothing else. So a name that the user gives leads nowhere
// where he may not go himself, by a symbolic link or otherwise, and what he must not
// do fails as it would fail for him.
//
// It is no sandbox: what runs in between has root's other rights.
package asuser

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// User is who the kernel is to see.
type User struct {
	UID, GID uint32
	Groups   []uint32 // all of them, the primary one included if it counts
}

// Do runs f as the user on a thread of its own.
func Do(u User, f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return OnThread(u, f)
}

// OnThread runs f as the user on the calling thread, to which the caller has locked
// itself. It panics if the thread cannot become what it was: such a thread must not
// go on.
func OnThread(u User, f func() error) error {
	groups, err := unix.Getgroups()
	if err != nil {
		return err
	}
	before := User{UID: uint32(unix.Geteuid()), GID: uint32(unix.Getegid())}
	for _, g := range groups {
		before.Groups = append(before.Groups, uint32(g))
	}
	defer func() {
		if err := becomeUser(before); err != nil {
			panic("become the process's own user again: " + err.Error())
		}
	}()
	if err := becomeUser(u); err != nil {
		return err
	}
	return f()
}

// becomeUser changes groups, and the group and user that the file system sees, of the
// calling thread alone.
func becomeUser(u User) error {
	var first *uint32
	if len(u.Groups) > 0 {
		first = &u.Groups[0]
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(u.Groups)), uintptr(unsafe.Pointer(first)), 0); errno != 0 {
		return os.NewSyscallError("setgroups", errno)
	}
	// Neither call reports a failure; the answer to a second one is what stands.
	for _, c := range []struct {
		set func(int) (int, error)
		id  uint32
	}{{unix.SetfsgidRetGid, u.GID}, {unix.SetfsuidRetUid, u.UID}} {
		_, _ = c.set(int(c.id))
		if now, _ := c.set(int(c.id)); uint32(now) != c.id {
			return errors.New("the file system user cannot be changed")
		}
	}
	return nil
}

// OpenRegular opens a file for reading as OpenFile does, if it is a regular one: a
// pipe or a device could hold the caller up for ever, or do something by being opened.
func OpenRegular(name string) (*os.File, error) {
	f, err := OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fault.New(fault.Invalid, "%s is not a regular file", name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
