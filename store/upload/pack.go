// Package upload carries a working directory to where a job runs: Pack makes an archive of it,
// a Store keeps archives at the server, by owner and content, and Unpack makes the files of one
// again.
//
// An archive is a tar in gzip. The same files make the same bytes. It has directories, regular
// files with their permissions and times, and symbolic links as they are written; a file with
// several names is in it once for each. What has no content (sockets, pipes, devices) is left
// out. Pack also leaves out .git, what a .gitignore names, and what the file .coxignore at the
// top names, which decides where both name something. PackTree leaves out none of these.
//
// Nothing that Unpack makes is outside of the directory that it is given, whoever made the
// archive. A Store is safe for concurrent use, by one process at a time.
package upload

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// IgnoreFile is the name of the file, at the top of a directory, that says what of it is left
// out of its archive. Its lines are those of a .gitignore, and outrank them.
const IgnoreFile = ".coxignore"

// gitIgnoreFile is git's own, which counts for the directory that it is in.
const gitIgnoreFile = ".gitignore"

// Packed says what an archive has in it.
type Packed struct {
	Files   int   // regular files and links
	Bytes   int64 // of these, as they were before they were packed
	Left    int   // that were left out because they have no content
	Largest []File
}

// File is one of the largest of an archive.
type File struct {
	Name string // below the directory
	Size int64  // bytes
}

// named is how many of the largest files are remembered.
const named = 5

// Pack writes the archive of a directory, and ends with fault.Exhausted as soon as it has more
// than most bytes. A file that shrinks meanwhile is fault.Conflict; of one that grows, its
// beginning is packed.
func Pack(ctx context.Context, dir string, to io.Writer, most int64) (Packed, error) {
	p := packer{bound: &bound{to: to, left: most}}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return p.Packed, fault.New(fault.Invalid, "pack %s: %w", dir, err)
	}
	defer root.Close()
	p.root = root
	text, err := root.ReadFile(IgnoreFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p.Packed, fault.New(fault.Invalid, "%s: %w", filepath.Join(dir, IgnoreFile), err).Advise("make it a file that you may read")
	}
	if p.ignore, err = parseIgnore(string(text)); err != nil {
		return p.Packed, fault.New(fault.Invalid, "%s:%w", filepath.Join(dir, IgnoreFile), err).Advise("its lines are those of a .gitignore")
	}
	err = p.packAll(func() error { return p.packDir(ctx, ".", nil) })
	if errors.Is(err, errFull) {
		return p.Packed, p.fullError(dir, most)
	}
	if err != nil {
		return p.Packed, fmt.Errorf("pack %s: %w", dir, err)
	}
	return p.Packed, nil
}

// PackTree writes the archive of a file or of a directory below a root, with names as they are below
// the root; "." is all of it. A name that leads out of the root, by itself or by a link, is
// fault.Invalid, one that is not there fault.NotFound. Nothing is left out but what has no content, and
// what goes while it is packed. An error before anything is written leaves to alone.
func PackTree(ctx context.Context, root *os.Root, name string, to io.Writer) (Packed, error) {
	p := packer{bound: &bound{to: to, left: math.MaxInt64}, root: root, whole: true}
	name = path.Clean(name)
	if !filepath.IsLocal(name) {
		return p.Packed, fault.New(fault.Invalid, "%.200q leads out of the directory", name).Advise("name something below it, as results/model.pt")
	}
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p.Packed, fault.New(fault.NotFound, "there is no %.200s in the directory", name)
	case err != nil && strings.Contains(err.Error(), "escapes"): // os has no name for this error
		return p.Packed, fault.New(fault.Invalid, "%.200s is a link that leads out of the directory", name).Advise("name something below it")
	case err != nil:
		return p.Packed, err
	case !info.IsDir() && !info.Mode().IsRegular():
		return p.Packed, fault.New(fault.Invalid, "%.200s is neither a file nor a directory", name)
	}
	err = p.packAll(func() error {
		if info.IsDir() {
			return p.packDir(ctx, name, nil)
		}
		return p.packFile(name, p.headerOf(name, info))
	})
	return p.Packed, err
}

// packAll writes an archive of what do packs.
func (p *packer) packAll(do func() error) error {
	z := gzip.NewWriter(p.bound)
	p.tar = tar.NewWriter(z)
	if err := do(); err != nil {
		return err
	}
	return errors.Join(p.tar.Close(), z.Close())
}

type packer struct {
	Packed
	root   *os.Root
	whole  bool   // nothing is left out
	ignore ignore // of the IgnoreFile
	tar    *tar.Writer
	bound  *bound
}

// fullError says which files took the room.
func (p *packer) fullError(dir string, most int64) error {
	var all []string
	for _, f := range p.Largest {
		all = append(all, fmt.Sprintf("%s (%s)", f.Name, formatSize(f.Size)))
	}
	text := ""
	if len(all) > 0 {
		text = "; the largest files of those that were packed until then: " + strings.Join(all, ", ")
	}
	return fault.New(fault.Exhausted, "the archive of %s has more than %s%s", dir, formatSize(most), text).
		Advise("name what the job does not need in %s, as in a .gitignore, or keep data where the pool's pods have it", filepath.Join(dir, IgnoreFile))
}

// formatSize is a number of bytes for people.
func formatSize(n int64) string {
	for _, u := range []struct {
		name string
		of   int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= u.of {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n)/float64(u.of)), ".0") + " " + u.name
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// packDir packs what is in a directory: in order of the names, so that equal directories have equal
// archives; but of a job's directory, which may have any number of entries, in order of the names of
// each batch. git is what the files of git above it leave out.
func (p *packer) packDir(ctx context.Context, dir string, git ignore) error {
	f, err := p.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have come in its place
	if err != nil {
		return err
	}
	if p.whole {
		err := readBatches(f, func(list []fs.DirEntry) error { return p.packEntries(ctx, dir, list, nil) })
		return errors.Join(err, f.Close())
	}
	list, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if text, err := p.root.ReadFile(path.Join(dir, gitIgnoreFile)); err == nil { // git does without it too
		git = append(slices.Clip(git), parseGitIgnore(dir, string(text))...)
	}
	return p.packEntries(ctx, dir, list, git)
}

// dirBatch is how many entries of a directory are held at once.
const dirBatch = 1024

// readBatches calls do with the entries of a directory, dirBatch at a time.
func readBatches(dir fs.ReadDirFile, do func(list []fs.DirEntry) error) error {
	for {
		list, err := dir.ReadDir(dirBatch)
		if len(list) > 0 {
			if err := do(list); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// packEntries packs entries of a directory, in order of the names.
func (p *packer) packEntries(ctx context.Context, dir string, list []fs.DirEntry, git ignore) error {
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, d := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, d.Name())
		if !p.whole && (d.Name() == ".git" || append(slices.Clip(git), p.ignore...).isIgnored(name, d.IsDir())) {
			continue
		}
		err := p.packEntry(name)
		if p.whole && errors.Is(err, fs.ErrNotExist) {
			continue // the job removed it
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if d.IsDir() {
			if err := p.packDir(ctx, name, git); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *packer) headerOf(name string, info fs.FileInfo) *tar.Header {
	return &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(1e9), Format: tar.FormatPAX}
}

// packEntry packs one thing.
func (p *packer) packEntry(name string) error {
	info, err := p.root.Lstat(name)
	if err != nil {
		return err
	}
	h := p.headerOf(name, info)
	switch info.Mode().Type() {
	case fs.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return p.tar.WriteHeader(h)
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = p.root.Readlink(name); err != nil {
			return err
		}
		p.Files++
		return p.tar.WriteHeader(h)
	case 0:
		return p.packFile(name, h)
	}
	p.Left++
	return nil
}

// packFile packs a regular file.
func (p *packer) packFile(name string, h *tar.Header) error {
	f, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe may have come in its place
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errChanged
	}
	h.Typeflag, h.Size, h.Mode = tar.TypeReg, info.Size(), int64(info.Mode().Perm())
	p.countFile(File{name, h.Size})
	if err := p.tar.WriteHeader(h); err != nil {
		return err
	}
	if n, err := io.Copy(p.tar, io.LimitReader(f, h.Size)); err != nil {
		return err
	} else if n < h.Size {
		return errChanged
	}
	return nil
}

var errChanged = fault.New(fault.Conflict, "it changed while it was packed").Advise("try again when nothing writes to it")

// countFile counts a file.
func (p *packer) countFile(f File) {
	p.Files++
	p.Bytes += f.Size
	p.Largest = append(p.Largest, f)
	slices.SortStableFunc(p.Largest, func(a, b File) int { return cmp.Compare(b.Size, a.Size) })
	p.Largest = p.Largest[:min(len(p.Largest), named)]
}

// bound takes no more than so many bytes.
type bound struct {
	to   io.Writer
	left int64
}

var errFull = errors.New("the archive is full")

func (b *bound) Write(p []byte) (int, error) {
	if int64(len(p)) > b.left {
		return 0, errFull
	}
	b.left -= int64(len(p))
	return b.to.Write(p)
}
