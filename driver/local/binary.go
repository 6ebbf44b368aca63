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

	"github.com/coxswain-sched/coxswain/agent/step/pmix"
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
	if err := e.linkPMIxHelper(source); err != nil {
		return fmt.Errorf("place %s: %w", pmix.HelperName, err)
	}
	if err := linkSSHServer(bin); err != nil {
		return err
	}
	for _, name := range append(slices.Clone(applets), e.cfg.Names...) {
		err := os.Symlink("cox", filepath.Join(bin, name))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// linkPMIxHelper makes the PMIx server of this installation a file beside the binary, where
// the nodes of jobs look for it. Without one, steps say what is missing when they need it.
func (e *Engine) linkPMIxHelper(binary string) error {
	name := filepath.Join(e.binDir(), pmix.HelperName)
	if real, err := filepath.EvalSymlinks(binary); err == nil {
		binary = real
	}
	helper, err := pmix.FindHelper(binary)
	if err != nil {
		err := os.Remove(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return placeFile(helper, name)
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
