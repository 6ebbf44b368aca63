package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
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
	if err := takeLock(f); err != nil {
		return nil, errors.Join(lockRefused(dir, f, err), f.Close())
	}
	if err := writeSignature(f, who); err != nil {
		return nil, errors.Join(classifyFile(fmt.Errorf("lock %s: %w", path, err)), f.Close())
	}
	return func() { _ = f.Close() }, nil // the lock ends with the file
}

// inheritedFor is how long a lock is waited for whose owner is dead.
const inheritedFor = 10 * time.Second

// takeLock locks the file. What a killed cox was about to start holds the lock too until it
// has become its program: while nobody who lives has signed, it is waited for.
func takeLock(f *os.File) error {
	pause := time.Millisecond
	for end := time.Now().Add(inheritedFor); ; pause = min(2*pause, 100*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || holderLives(f) || time.Now().After(end) {
			return err
		}
		time.Sleep(pause)
	}
}

// holderLives reports whether the process that signed the lock last is there.
func holderLives(f *os.File) bool {
	pid, _, _ := readSignature(f)
	if pid <= 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(b, ')')
	zombie := err == nil && i > 0 && len(b) > i+2 && b[i+2] == 'Z' // its parent has not noticed yet
	return !zombie
}

// readSignature is what sign wrote; no number: nobody has signed yet.
func readSignature(f *os.File) (pid int, who string, ok bool) {
	b := make([]byte, 512)
	n, _ := f.ReadAt(b, 0) // short or empty
	number, who, _ := strings.Cut(strings.TrimSpace(string(b[:n])), " ")
	pid, err := strconv.Atoi(number)
	return pid, who, err == nil
}

// lockRefused says why there is no lock.
func lockRefused(dir string, f *os.File, err error) error {
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return lockHeld(dir, f)
	case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.EINVAL):
		return fault.New(fault.Unsupported, "the file system of %s has no locks, so two servers could write there: %w", dir, err).
			Advise("put the state directory on a local disk")
	}
	return fault.New(fault.Unavailable, "lock %s: %w", f.Name(), err)
}

// writeSignature writes who holds the lock; since when is the time of the file.
func writeSignature(f *os.File, who string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := fmt.Fprintf(f, "%d %s\n", os.Getpid(), who)
	return err
}

func lockHeld(dir string, f *os.File) error {
	holder, remedy := "another cox", "wait for it, or give another --state-dir"
	if pid, who, ok := readSignature(f); ok {
		holder = fmt.Sprintf("another cox (%s, process %d", who, pid)
		if info, err := f.Stat(); err == nil {
			holder += info.ModTime().UTC().Format(", since " + time.DateTime + " UTC")
		}
		holder += ")"
		if strings.HasPrefix(who, "cox up") {
			remedy = "it is a server: use that one, end it (cox down), or give another --state-dir"
		}
	}
	return fault.New(fault.Conflict, "%s uses the state directory %s", holder, dir).
		Advise("%s", remedy)
}
