package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// Entry is a file of an archive. Folders come by themselves.
type Entry struct {
	Name string // with slashes, without one before it
	Text []byte
	Mode int64 // 0: 0o644
}

// compression is the level of every archive; tests take the fastest.
var compression = gzip.DefaultCompression

// tarGzip is a gzipped tar file of entries sorted by name, all below one folder ("./" or
// another with a slash behind it), with the folders that lead to them. Everything belongs to
// root and has one time.
func tarGzip(top string, entries []Entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, compression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(z)
	for _, e := range append([]Entry{{Mode: 0o755}}, addFolders(entries)...) {
		h := &tar.Header{
			Name: top + e.Name, Mode: e.Mode, Size: int64(len(e.Text)), ModTime: at, Typeflag: tar.TypeReg,
			Uname: "root", Gname: "root", Format: tar.FormatGNU,
		}
		if strings.HasSuffix(h.Name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		if _, err := w.Write(e.Text); err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	for _, c := range []io.Closer{w, z} {
		if err := c.Close(); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// addFolders sorts entries, each folder before what is in it.
func addFolders(entries []Entry) []Entry {
	var all []Entry
	folders := map[string]bool{".": true}
	for _, e := range entries {
		if e.Mode == 0 {
			e.Mode = 0o644
		}
		all = append(all, e)
		for dir := path.Dir(e.Name); !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
			all = append(all, Entry{Name: dir + "/", Mode: 0o755})
		}
	}
	slices.SortFunc(all, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	return all
}
