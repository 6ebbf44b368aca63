package local

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// applets are the names under which every job finds the binary in its PATH.
var applets = []string{"srun", "scontrol"}

// coxPath is the engine's own name for the binary.
func (e *Engine) coxPath() string { return filepath.Join(e.cfg.Root, "bin", "cox") }

// linkBinaries makes bin/: a private hard link or copy of the binary, which stays when
// the one that was started is removed (as `go run` does), and its other names.
func (e *Engine) linkBinaries() error {
	bin := filepath.Dir(e.coxPath())
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	if err := os.Chmod(bin, 0o755); err != nil { // whatever the umask is
		return err
	}
	source := e.cfg.Cox
	if source == "" {
		source = "/proc/self/exe"
	}
	if err := placeFile(source, e.coxPath()); err != nil {
		return fmt.Errorf("place the binary: %w", err)
	}
	for _, name := range append(slices.Clone(applets), e.cfg.Names...) {
		err := os.Symlink("cox", filepath.Join(bin, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// placeFile makes name the same file as source, or a copy of it, in one step.
func placeFile(source, name string) error {
	was, err := os.Stat(name)
	now, nowErr := os.Stat(source)
	if err == nil && nowErr == nil && os.SameFile(was, now) {
		return nil
	}
	next := name + ".new"
	_ = os.Remove(next) // of a crash
	if err := unix.Linkat(unix.AT_FDCWD, source, unix.AT_FDCWD, next, unix.AT_SYMLINK_FOLLOW); err != nil {
		if err := copyFile(source, next); err != nil {
			return errors.Join(err, os.Remove(next))
		}
	}
	return os.Rename(next, name)
}

func copyFile(source, name string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (e *Engine) binDir() string { return filepath.Dir(e.coxPath()) }
