// Package lockdir is where the locks of attempts are: a directory that the nodes of a
// cluster and the driver share (driver/slurm/script has what the nodes write there).
//
// A file is created exclusively and never changed; who creates it first decides. The driver's
// appear with their text in them, or not at all, whatever room the disk has: an empty one would
// be read as a script's that has begun. What else is written there are hints, whose absence
// says nothing.
//
// The files of an attempt are its user's, who can make of them what he likes, a link or a
// pipe too. Nothing is followed, nothing is waited for, and of no file more than a page is
// read: what he says of his own attempt, and nothing else.
//
// It gives no guarantee that a file system does not give: one that lets two nodes create
// the same file exclusively (old NFS without it) protects nothing.
package lockdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Mark is a file.
type Mark struct {
	Name  string // base name
	Time  time.Time
	Text  string // of a hint; empty where nothing was asked for
	Owner string // whose it is, by number
}

// Directory is a directory of marks. It is safe for concurrent use.
type Directory interface {
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
	// Drop removes files by name. What is not there is no error; what cannot be removed does
	// not keep the others.
	Drop(ctx context.Context, names []string) error
}

// Here is a directory of this machine.
type Here struct{ dir string }

var _ Directory = (*Here)(nil)

// Open makes the directory if it is not there: everybody may create files in it, and
// nobody but its owner sees their names.
func Open(dir string) (*Here, error) {
	if !filepath.IsAbs(dir) {
		return nil, errors.New("the directory of locks needs an absolute name, not " + dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	const mode = 0o733 | os.ModeSticky
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if info.Mode()&(os.ModePerm|os.ModeSticky) == mode { // it may be somebody else's, as on a file system without a root
		return &Here{dir}, nil
	}
	if err := os.Chmod(dir, mode); err != nil {
		return nil, fmt.Errorf("%w; whoever owns it: chmod 1733 %s", err, dir)
	}
	return &Here{dir}, nil
}

// Dir is Directory's.
func (h *Here) Dir() string { return h.dir }

// Take is Room's.
func (h *Here) Take(ctx context.Context, name, text string) (mine bool, held string, err error) {
	if err := ctx.Err(); err != nil {
		return false, "", err
	}
	name = filepath.Join(h.dir, filepath.Base(name))
	err = createWithText(name, text+"\n")
	if errors.Is(err, fs.ErrExist) {
		m, err := readMark(name)
		return false, m.Text, err
	}
	return err == nil, text, err
}

// createWithText creates a file with its text at once, by a second name of one that is written.
func createWithText(name, text string) error {
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
		m, err := readMark(filepath.Join(h.dir, filepath.Base(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// page is the most that is read of a file.
const page = 4096

// readMark reads a file that may be anybody's. One that is no plain file, or that has another name
// somewhere, or that its user has shut, is there and says nothing.
func readMark(name string) (Mark, error) {
	info, err := os.Lstat(name)
	if err != nil {
		return Mark{}, err
	}
	m := Mark{Name: filepath.Base(name), Time: info.ModTime()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		m.Owner = strconv.FormatUint(uint64(st.Uid), 10)
	}
	if !info.Mode().IsRegular() {
		return m, nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		return m, nil
	case err != nil:
		return m, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return m, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.Mode().IsRegular() || ok && st.Nlink > 1 && int(st.Uid) != os.Geteuid() {
		return m, nil
	}
	b, err := io.ReadAll(io.LimitReader(f, page))
	m.Text = strings.TrimSpace(string(b))
	return m, err
}

// Remove is Room's.
func (h *Here) Remove(ctx context.Context, prefix string) error {
	names, err := h.List(ctx)
	if err != nil {
		return err
	}
	return h.Drop(ctx, slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) }))
}

// Drop is Room's.
func (h *Here) Drop(ctx context.Context, names []string) error {
	var errs []error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if err := os.Remove(filepath.Join(h.dir, filepath.Base(name))); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
