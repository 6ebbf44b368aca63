package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/fault"
)

// Lock keeps a second control plane out of a state directory, which must exist,
// until unlock is called or the process ends, however it ends. who goes into the
// message that another cox gets ("cox up"). fault.Conflict says that another cox
// has it, which one and since when.
func Lock(dir, who string) (unlock func(), err error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, classifyFile(fmt.Errorf("state directory: %w", err))
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(refused(dir, f, err), f.Close())
	}
	if err := sign(f, who); err != nil {
		return nil, errors.Join(classifyFile(fmt.Errorf("lock %s: %w", path, err)), f.Close())
	}
	return func() { _ = f.Close() }, nil // the lock ends with the file
}

// refused says why there is no lock.
func refused(dir string, f *os.File, err error) error {
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return held(dir, f)
	case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.EINVAL):
		return fault.New(fault.Unsupported, "the file system of %s has no locks, so two servers could write there: %w", dir, err).
			Advise("put the state directory on a local disk")
	}
	return fault.New(fault.Unavailable, "lock %s: %w", f.Name(), err)
}

// sign writes who holds the lock; since when is the time of the file.
func sign(f *os.File, who string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(f, "%d %s\n", os.Getpid(), who)
	return err
}

func held(dir string, f *os.File) error {
	holder := "another cox"
	b := make([]byte, 512)
	n, _ := f.ReadAt(b, 0) // short or empty: then nobody has signed yet
	if pid, who, ok := strings.Cut(strings.TrimSpace(string(b[:n])), " "); ok {
		holder = fmt.Sprintf("another cox (%s, process %s", who, pid)
		if info, err := f.Stat(); err == nil {
			holder += info.ModTime().UTC().Format(", since " + time.DateTime + " UTC")
		}
		holder += ")"
	}
	return fault.New(fault.Conflict, "%s uses the state directory %s", holder, dir).
		Advise("wait for it, or give another --state-dir")
}
