package devicelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Folders are where lock files are: each that exists and in which files are safe from other users.
// Locks are taken in all of them, since a container, a login or a cleaner of temporary files may
// take one away.
func Folders() []string { return []string{"/run/lock", "/dev/shm", "/tmp"} }

// Locker takes locks for an owner. The zero Locker takes none. A supervisor gets one from its engine.
type Locker struct {
	Owner   Owner    `json:"owner"`
	Folders []string `json:"folders"` // absolute
}

// Lock is a device that is held. Its methods are not safe for concurrent use.
type Lock struct{ files []*os.File }

// HeldError says that another owner holds a device, or that this cannot be ruled out.
type HeldError struct {
	Device fleet.Device
	By     string // who, for people
	Owner  Owner  // as the lock file says; zero: it does not say
}

func (e *HeldError) Error() string { return deviceName(&e.Device) + " is held by " + e.By }

// FaultKind is fault.Conflict.
func (e *HeldError) FaultKind() fault.Kind { return fault.Conflict }

// deviceName is "GPU 0 (h100, GPU-5c0d…)".
func deviceName(d *fleet.Device) string {
	name := d.UUID
	if name == "" {
		name = d.Bus
	}
	return fmt.Sprintf("GPU %d (%s, %s)", d.Index, d.Type, name)
}

// errUnusable marks a folder in which a lock cannot be taken.
var errUnusable = errors.New("no lock can be taken there")

// Take locks a device, and puts this process on record as its owner. A device that cannot be locked
// (Lockable) gives a Lock that holds nothing. Errors: *HeldError; fault.Unavailable if no folder can
// be used.
func (l *Locker) Take(d *fleet.Device) (*Lock, error) { return l.tryDevice(d, true) }

// Join locks a device that another process of the same owner may hold, and leaves the record to it.
// Errors as of Take.
func (l *Locker) Join(d *fleet.Device) (*Lock, error) { return l.tryDevice(d, false) }

func (l *Locker) tryDevice(d *fleet.Device, first bool) (*Lock, error) {
	lock := &Lock{}
	names := namesOf(d)
	var unusable error
	for _, n := range names {
		owner := l.Owner
		if n.instance {
			owner.Identity = "instances of " + n.name
		}
		got := 0
		for _, dir := range l.Folders {
			f, by, err := takeFile(filepath.Join(dir, "coxswain-device-"+n.name), &owner, first)
			switch {
			case errors.Is(err, errUnusable):
				unusable = err
				continue
			case err != nil:
				lock.Release()
				return nil, &HeldError{Device: *d, By: err.Error(), Owner: by}
			}
			got++
			lock.files = append(lock.files, f)
		}
		if got == 0 {
			lock.Release()
			return nil, fault.New(fault.Unavailable, "%s cannot be locked in any of %q: %w", deviceName(d), l.Folders, unusable)
		}
	}
	return lock, nil
}

// Release gives the device up. Files that nobody else holds are removed.
func (k *Lock) Release() {
	if k == nil {
		return
	}
	for _, f := range k.files {
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && sameFile(f) {
			_ = os.Remove(f.Name()) // another user's stays
		}
		_ = f.Close()
	}
	k.files = nil
}

// tries is how often a lock file is looked at again that changes at this moment.
const tries = 50

// takeFile takes the lock of one file. The error errUnusable says that the folder does not serve;
// any other names who holds the file.
func takeFile(path string, own *Owner, first bool) (*os.File, Owner, error) {
	for try := range tries {
		if try > 0 {
			time.Sleep(2 * time.Millisecond)
		}
		f, readOnly, err := openFile(path)
		if err != nil {
			return nil, Owner{}, err
		}
		if f == nil {
			continue // it came or went at this moment
		}
		var by Owner
		got := again
		if readOnly {
			got, by = probeFile(f)
		} else {
			got, by = lockFile(f, own, first)
		}
		if got == locked {
			return f, by, nil
		}
		_ = f.Close()
		switch {
		case got == unusable:
			return nil, by, fmt.Errorf("%w: %s cannot be written", errUnusable, path)
		case got == held && by.Identity == "":
			return nil, by, fmt.Errorf("a process that does not say who it is, in %s, which belongs to %s", path, fileOwner(path))
		case got == held:
			return nil, by, errors.New(by.String())
		}
	}
	return nil, Owner{}, fmt.Errorf("processes that keep exchanging %s", path)
}

// openFile opens a lock file, or makes it. It opens no link and nothing but a regular file with one
// name: what another user put there must not lead us to write elsewhere. No file and no error: try
// again. readOnly: another user's, which may only be looked at.
func openFile(path string) (f *os.File, readOnly bool, err error) {
	const flags = unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_NOCTTY
	if err := safeFolder(filepath.Dir(path)); err != nil {
		return nil, false, err
	}
	// Not with O_CREAT what is there already: the kernel refuses that for other users' files.
	fd, err := unix.Open(path, unix.O_RDWR|flags, 0)
	if errors.Is(err, unix.ENOENT) {
		if fd, err = unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|flags, 0o666); err == nil {
			err = unix.Fchmod(fd, 0o666) // whatever the umask is: the next owner may be anybody
		} else if !errors.Is(err, unix.EEXIST) {
			return nil, false, fmt.Errorf("%w: %w", errUnusable, err)
		}
	}
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		readOnly = true
		fd, err = unix.Open(path, unix.O_RDONLY|flags, 0)
	}
	switch {
	case errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOENT):
		return nil, false, nil
	case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE), errors.Is(err, unix.ENOMEM):
		return nil, false, fmt.Errorf("%w: %w", errUnusable, err)
	case err != nil:
		return nil, false, fmt.Errorf("%s, which belongs to %s and cannot be opened (%w)", path, fileOwner(path), err)
	}
	f = os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 1 {
		_ = f.Close()
		return nil, false, fmt.Errorf("%s, which belongs to %s and is no regular file with one name", path, fileOwner(path))
	}
	return f, readOnly, nil
}

// safeFolder returns errUnusable of a folder that is not there, or where other users may remove our
// files.
func safeFolder(dir string) error {
	st, err := os.Lstat(dir)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errUnusable, err)
	case !st.IsDir():
		return fmt.Errorf("%w: %s is no folder", errUnusable, dir)
	case st.Mode().Perm()&0o002 != 0 && st.Mode()&fs.ModeSticky == 0:
		return fmt.Errorf("%w: any user may remove files of others in %s", errUnusable, dir)
	}
	return nil
}

// outcome is what came of an attempt to lock a file.
type outcome uint8

const (
	again    outcome = iota // it changed at this moment
	locked                  // it is ours
	held                    // it is somebody else's
	unusable                // nobody holds it, and it cannot be ours either
)

// lockFile tries to become, or to join, the owner of a file. The owner that it returns is the one
// that the file names where somebody else holds it.
func lockFile(f *os.File, own *Owner, first bool) (outcome, Owner) {
	fd := int(f.Fd())
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
		if !sameFile(f) {
			return again, Owner{}
		}
		if writeOwner(f, own) != nil {
			return unusable, Owner{} // no room
		}
		// The kernel gives up the one lock before it takes the other: somebody may come between.
		if unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != nil {
			return again, Owner{}
		}
		return joined(f, own), Owner{}
	}
	by := readOwner(f)
	if by.Identity != own.Identity || own.Identity == "" {
		return held, by
	}
	if unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) != nil || joined(f, own) != locked {
		return again, by
	}
	if first && (by.PID != own.PID || by.Start != own.Start) && writeOwner(f, own) != nil {
		return unusable, by
	}
	return locked, by
}

// joined is locked if a file of which we have the shared lock is still the owner's. Nobody else
// becomes the owner as long as we have it.
func joined(f *os.File, own *Owner) outcome {
	if by := readOwner(f); !sameFile(f) || by.Identity != own.Identity {
		return again
	}
	return locked
}

// probeFile looks whether anybody holds a file that we may only read.
func probeFile(f *os.File) (outcome, Owner) {
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return held, readOwner(f)
	}
	return unusable, Owner{}
}

// sameFile reports whether an open file is still the one with its name.
func sameFile(f *os.File) bool {
	var open, named unix.Stat_t
	return unix.Fstat(int(f.Fd()), &open) == nil && unix.Lstat(f.Name(), &named) == nil && open.Dev == named.Dev && open.Ino == named.Ino
}
