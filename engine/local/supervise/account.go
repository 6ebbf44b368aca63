package supervise

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/step"
)

// account is the user that a job's processes run as, in the file system: what is
// opened by its methods is opened with his rights, so that root's are of no use to
// who names a file.
type account struct {
	who     *step.Identity // nil: the user of this process
	spawner *spawner
}

// do runs f on the spawning thread, where only the file system user is another one.
func (a *account) do(f func() error) error {
	return a.spawner.onThread(func() error {
		if a.who == nil {
			return f()
		}
		groups, err := unix.Getgroups()
		if err != nil {
			return err
		}
		before := make([]uint32, len(groups))
		for i, g := range groups {
			before[i] = uint32(g)
		}
		err = a.put(a.who.Groups, a.who.GID, a.who.UID)
		if err == nil {
			err = f()
		}
		// A thread that cannot become itself again must not go on.
		if back := a.put(before, uint32(unix.Getegid()), uint32(unix.Geteuid())); back != nil {
			panic("become the supervisor's user again: " + back.Error())
		}
		return err
	})
}

// put changes groups, and the group and user that the file system sees, of the
// calling thread alone.
func (a *account) put(groups []uint32, gid, uid uint32) error {
	var first *uint32
	if len(groups) > 0 {
		first = &groups[0]
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(first)), 0); errno != 0 {
		return os.NewSyscallError("setgroups", errno)
	}
	// Neither call reports a failure; the answer to a second one is what stands.
	for _, c := range []struct {
		set func(int) (int, error)
		id  uint32
	}{{unix.SetfsgidRetGid, gid}, {unix.SetfsuidRetUid, uid}} {
		_, _ = c.set(int(c.id))
		if now, _ := c.set(int(c.id)); uint32(now) != c.id {
			return errors.New("the file system user cannot be changed")
		}
	}
	return nil
}

// open opens a file as the user.
func (a *account) open(name string, flags int, mode os.FileMode) (f *os.File, err error) {
	err = a.do(func() (err error) {
		f, err = os.OpenFile(name, flags, mode)
		return err
	})
	return f, err
}
