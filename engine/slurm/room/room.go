// Package room is where the locks of attempts are: a directory that the nodes of a
// cluster and the driver share (engine/slurm/script has what the nodes write there).
//
// A file is created exclusively and never changed; who creates it first decides. The driver's
// appear with their text in them, or not at all, whatever room the disk has: an empty one would
// be read as a script's that has begun. What else is written there are hints, whose absence
// says nothing.
//
// It gives no guarantee that a file system does not give: one that lets two nodes create
// the same file exclusively (old NFS without it) protects nothing.
package room

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Mark is a file.
type Mark struct {
	Name string // base name
	Time time.Time
	Text string // of a hint; empty where nothing was asked for
}

// Room is a directory of marks. It is safe for concurrent use.
type Room interface {
	// Dir is its absolute name on the nodes.
	Dir() string
	// Take creates a file exclusively. If it is there already, mine is false and held is
	// what stands in it.
	Take(ctx context.Context, name, text string) (mine bool, held string, err error)
	// List lists the names of all files.
	List(ctx context.Context) ([]string, error)
	// Look returns files with their texts; those that are not there are left out.
	Look(ctx context.Context, names []string) ([]Mark, error)
	// Remove removes all files whose names begin so; none is no error.
	Remove(ctx context.Context, prefix string) error
}

// Here is a directory of this machine.
type Here struct{ dir string }

var _ Room = (*Here)(nil)

// Open makes the directory if it is not there: everybody may create files in it, and
// nobody but its owner sees their names.
func Open(dir string) (*Here, error) {
	if !filepath.IsAbs(dir) {
		return nil, errors.New("the directory of locks needs an absolute name, not " + dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Here{dir}, os.Chmod(dir, 0o733|os.ModeSticky)
}

// Dir is Room's.
func (h *Here) Dir() string { return h.dir }

// Take is Room's.
func (h *Here) Take(ctx context.Context, name, text string) (mine bool, held string, err error) {
	if err := ctx.Err(); err != nil {
		return false, "", err
	}
	name = filepath.Join(h.dir, filepath.Base(name))
	err = appear(name, text+"\n")
	if errors.Is(err, fs.ErrExist) {
		b, err := os.ReadFile(name)
		return false, strings.TrimSpace(string(b)), err
	}
	return err == nil, text, err
}

// appear creates a file with its text at once, by a second name of one that is written.
func appear(name, text string) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".new")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close()); err != nil {
		return err
	}
	err = os.Link(f.Name(), name)
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	// A file system without links: there was room for the text a moment ago.
	f, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// List is Room's.
func (h *Here) List(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d, err := os.Open(h.dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Look is Room's.
func (h *Here) Look(ctx context.Context, names []string) ([]Mark, error) {
	var out []Mark
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		file := filepath.Join(h.dir, filepath.Base(name))
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		out = append(out, Mark{filepath.Base(name), info.ModTime(), strings.TrimSpace(string(b))})
	}
	return out, nil
}

// Remove is Room's.
func (h *Here) Remove(ctx context.Context, prefix string) error {
	names, err := h.List(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			if err := os.Remove(filepath.Join(h.dir, name)); !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
