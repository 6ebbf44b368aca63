package upload

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Unpack makes what an archive has in it below a directory that is there, as files of this
// process's user. A name that leads out of the directory, or through a link that was made
// before, is fault.Invalid, as is a name that is there already; of permissions only those to
// read, write and execute are given. What was made before an error stays.
//
// More than most bytes, 0: any number, is fault.Exhausted before they are written. Each thing counts
// as the blocks of 4 KiB that it has, one at least: an archive can be a thousandth of what is in it. With
// such a bound, the names of directories and links, which are remembered, have a bound too.
func Unpack(from io.Reader, dir string, most int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer root.Close()
	z, err := gzip.NewReader(from)
	if err != nil {
		return brokenArchive(err)
	}
	u := unpacker{root: root, links: map[string]bool{}, known: map[string]bool{".": true}, most: most}
	t := tar.NewReader(z)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return brokenArchive(err)
		}
		if err := u.makeEntry(h, t); err != nil {
			return fmt.Errorf("unpack %.4096s: %w", path.Join(dir, h.Name), err)
		}
	}
	if _, err := io.Copy(io.Discard, z); err != nil { // the sum at its end
		return brokenArchive(err)
	}
	return u.applyModes()
}

func brokenArchive(err error) error {
	return fault.New(fault.Invalid, "the archive is not whole, or is none: %w", err)
}

// unpacker makes things below a root.
type unpacker struct {
	root  *os.Root
	dirs  []madeDir // in the order in which they came
	links map[string]bool
	known map[string]bool // directories that are there
	most  int64           // bytes; 0: any number
	has   int64
	names int // bytes of the names that are remembered
}

// madeDir is what is remembered of a directory until its permissions are given.
type madeDir struct {
	name string
	mode fs.FileMode
	time time.Time
}

// Bounds of names, in bytes.
const (
	longestName = 4096
	nameCost    = 64       // that each takes beside its text
	mostNames   = 64 << 20 // of all that are remembered
)

// rememberName counts a name that is remembered, and returns it without the header that it is part of.
func (u *unpacker) rememberName(name string) (string, error) {
	u.names += len(name) + nameCost
	if u.most > 0 && u.names > mostNames {
		return "", fault.New(fault.Invalid, "the names of the directories and links have more than %d MiB", mostNames>>20).
			Advise("leave out what the job does not need (%s)", IgnoreFile)
	}
	return strings.Clone(name), nil
}

// block is what a file system gives at least.
const block = 4 << 10

// countEntry refuses what there is no room for.
func (u *unpacker) countEntry(size int64) error {
	if u.most <= 0 {
		return nil
	}
	if size <= u.most-u.has {
		u.has += max((size-1)/block+1, 1) * block
		if u.has <= u.most {
			return nil
		}
	}
	return fault.New(fault.Exhausted, "the directory has more than %d MiB when it is unpacked", u.most>>20).
		Advise("leave out what the job does not need (%s); or ask for more of the nodes' disks, by --tmp", IgnoreFile)
}

// makeParents makes a directory that has to be there for a name, and those around it, where they are
// not: each counts.
func (u *unpacker) makeParents(dir string) error {
	if u.known[dir] {
		return nil
	}
	if err := u.makeParents(path.Dir(dir)); err != nil {
		return err
	}
	if _, err := u.root.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := u.countEntry(0); err != nil {
			return err
		}
	}
	if err := u.root.MkdirAll(dir, 0o755); err != nil {
		return fileError(err)
	}
	dir, err := u.rememberName(dir)
	if err != nil {
		return err
	}
	u.known[dir] = true
	return nil
}

// makeEntry makes one thing.
func (u *unpacker) makeEntry(h *tar.Header, from io.Reader) error {
	if len(h.Name) > longestName || len(h.Linkname) > longestName {
		return fault.New(fault.Invalid, "the archive has a name of %d bytes, more than %d", max(len(h.Name), len(h.Linkname)), longestName)
	}
	name := path.Clean(h.Name)
	if name == "." {
		return nil
	}
	if !filepath.IsLocal(name) {
		return fault.New(fault.Invalid, "the name leads out of the directory")
	}
	if link := u.linkOnPath(name); link != "" {
		return fault.New(fault.Invalid, "the name goes through %s, which is a symbolic link", link)
	}
	if err := u.countEntry(h.Size); err != nil {
		return err
	}
	if err := u.makeParents(path.Dir(name)); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := u.root.MkdirAll(name, 0o700); err != nil {
			return fileError(err)
		}
		name, err := u.rememberName(name)
		u.dirs = append(u.dirs, madeDir{name, modeOf(h), h.ModTime})
		return err
	case tar.TypeSymlink:
		name, err := u.rememberName(name)
		if err != nil {
			return err
		}
		u.links[name] = true
		return fileError(u.root.Symlink(h.Linkname, name))
	case tar.TypeReg:
		return fileError(u.writeFile(name, h, from))
	}
	return fault.New(fault.Invalid, "the archive has something that is no file, directory or symbolic link (type %q)", h.Typeflag)
}

// fileError is an error of the file system: where something is there already, the archive is wrong.
func fileError(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Invalid, "there is something of that name already: %w", err)
	}
	return err
}

// linkOnPath is the link by which a name would go; empty: none.
func (u *unpacker) linkOnPath(name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if u.links[dir] {
			return dir
		}
	}
	return ""
}

func (u *unpacker) writeFile(name string, h *tar.Header, from io.Reader) error {
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, from, h.Size) // what was counted
	if err = errors.Join(err, f.Chmod(modeOf(h)), f.Close()); err != nil {
		return err
	}
	return u.root.Chtimes(name, time.Time{}, h.ModTime)
}

// applyModes gives directories their permissions and times, the innermost first.
func (u *unpacker) applyModes() error {
	for _, d := range slices.Backward(u.dirs) {
		if err := errors.Join(u.root.Chtimes(d.name, time.Time{}, d.time), u.root.Chmod(d.name, d.mode)); err != nil {
			return err
		}
	}
	return nil
}

func modeOf(h *tar.Header) fs.FileMode { return fs.FileMode(h.Mode) & fs.ModePerm } //nolint:gosec // nine bits of it
