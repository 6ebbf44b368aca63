// Package upload carries a working directory to where a job runs: Pack makes an archive of it,
// a Store keeps archives at the server, by owner and content, and Unpack makes the files of one
// again.
//
// An archive is a tar in gzip. The same files make the same bytes. It has directories, regular
// files with their permissions and times, and symbolic links as they are written; a file with
// several names is in it once for each. What has no content (sockets, pipes, devices) is left
// out, and so are .git and what the file .coxignore at the top names.
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
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// IgnoreFile is the name of the file, at the top of a directory, that says what of it is left
// out of its archive. Its lines are those of a .gitignore.
const IgnoreFile = ".coxignore"

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
	z := gzip.NewWriter(p.bound)
	p.tar = tar.NewWriter(z)
	err = p.packDir(ctx, ".")
	if err == nil {
		err = errors.Join(p.tar.Close(), z.Close())
	}
	if errors.Is(err, errFull) {
		return p.Packed, p.fullError(dir, most)
	}
	if err != nil {
		return p.Packed, fmt.Errorf("pack %s: %w", dir, err)
	}
	return p.Packed, nil
}

type packer struct {
	Packed
	root   *os.Root
	ignore ignore
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

// packDir packs what is in a directory, in order of the names.
func (p *packer) packDir(ctx context.Context, dir string) error {
	f, err := p.root.Open(dir)
	if err != nil {
		return err
	}
	list, err := f.ReadDir(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	for _, d := range list {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := path.Join(dir, d.Name())
		if d.Name() == ".git" || p.ignore.isIgnored(name, d.IsDir()) {
			continue
		}
		if err := p.packEntry(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if d.IsDir() {
			if err := p.packDir(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// packEntry packs one thing.
func (p *packer) packEntry(name string) error {
	info, err := p.root.Lstat(name)
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime().Truncate(1e9), Format: tar.FormatPAX}
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
	default:
		p.Left++
		return nil
	}
	f, err := p.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
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
