package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/coxswain-sched/coxswain/server/transport"
	"github.com/coxswain-sched/coxswain/web"
)

// policy is the Content-Security-Policy of the console: all comes from the server itself.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// hashedFolder has the files whose names change with their contents, as Vite makes them.
const hashedFolder = "assets/"

// file is a file of the console as it is sent.
type file struct {
	media  string
	plain  []byte
	packed []byte // with gzip; nil: that is not smaller
	tag    string // ETag
	hashed bool
}

// readFiles reads a built console, by path without a slash at its beginning. Without one the map is
// empty.
func readFiles(files fs.FS) (map[string]*file, error) {
	all := map[string]*file{}
	if !web.Built(files) {
		return all, nil
	}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		all[name], err = newFile(name, b)
		return err
	})
	return all, err
}

// mediaTypes are those that a console has. The system's own table differs between machines.
var mediaTypes = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon", ".woff2": "font/woff2",
	".json": "application/json", ".webmanifest": "application/manifest+json", ".txt": "text/plain; charset=utf-8",
}

func newFile(name string, b []byte) (*file, error) {
	sum := sha256.Sum256(b)
	f := &file{plain: b, tag: `"` + hex.EncodeToString(sum[:12]) + `"`, hashed: strings.HasPrefix(name, hashedFolder)}
	if f.media = mediaTypes[path.Ext(name)]; f.media == "" {
		if f.media = mime.TypeByExtension(path.Ext(name)); f.media == "" {
			f.media = "application/octet-stream"
		}
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if packed.Len() < len(b)*9/10 {
		f.packed = packed.Bytes()
	}
	return f, nil
}

// writeFile answers with a file.
func writeFile(c *transport.Call, f *file) {
	h := c.W.Header()
	setPageHeaders(h, policy)
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache")
	if f.hashed {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.Contains(c.R.Header.Get("If-None-Match"), f.tag) {
		c.W.WriteHeader(http.StatusNotModified)
		return
	}
	b := f.plain
	if f.packed != nil {
		h.Set("Vary", "Accept-Encoding")
		if acceptsGzip(c.R.Header.Get("Accept-Encoding")) {
			b = f.packed
			h.Set("Content-Encoding", "gzip")
		}
	}
	c.WriteBody(http.StatusOK, f.media, b)
}

// acceptsGzip reads an Accept-Encoding as far as a browser writes one.
func acceptsGzip(header string) bool {
	for word := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(word), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return !strings.HasPrefix(strings.TrimSpace(weight), "q=0") || strings.HasPrefix(strings.TrimSpace(weight), "q=0.")
		}
	}
	return false
}

// setPageHeaders sets what every page has.
func setPageHeaders(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
