package provenance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/coxswain-sched/coxswain/model/job"
)

// openRegular opens a file that is a regular one; it does not wait for a pipe's
// other end.
func openRegular(name string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("is not a regular file")
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// lookAtFiles hashes the files that were named, as far as the policy goes.
func lookAtFiles(ctx context.Context, r Request) found {
	var out found
	left := r.Policy.MaxTotal
	seen := map[string]bool{}
	for i, name := range slices.Concat(r.Files, r.Words) {
		isWord := i >= len(r.Files)
		if len(seen) == maxFiles || i > 10*maxFiles {
			out.addNote("files: more are named than the %d that are recorded", maxFiles)
			break
		}
		if isWord && (name == "" || name[0] == '-') {
			continue
		}
		at := name
		if !filepath.IsAbs(at) {
			at = filepath.Join(r.Dir, name)
		}
		if seen[at] {
			continue
		}
		if info, err := os.Stat(at); isWord && (err != nil || !info.Mode().IsRegular()) {
			continue
		}
		seen[at] = true
		if ctx.Err() != nil {
			out.addNote("file %s: not hashed, the time of %v was over", name, r.Policy.Timeout)
			continue
		}
		h, err := hashFile(ctx, at, min(r.Policy.MaxFile, left))
		if err != nil {
			out.addNote("file %s: not hashed: %s", name, err)
			continue
		}
		left -= h.Size
		h.Name = name
		out.files = append(out.files, h)
	}
	return out
}

// hashFile reads a file of at most most bytes.
func hashFile(ctx context.Context, name string, most int64) (job.FileHash, error) {
	f, info, err := openRegular(name)
	if err != nil {
		return job.FileHash{}, err
	}
	defer f.Close()
	if info.Size() > most {
		return job.FileHash{}, fmt.Errorf("%d bytes are more than the %d that are looked at", info.Size(), most)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, &limited{ctx: ctx, from: f, left: most})
	if err != nil {
		return job.FileHash{}, err
	}
	return job.FileHash{SHA256: hex.EncodeToString(sum.Sum(nil)), Size: n}, nil
}

// limited reads until a deadline or a number of bytes, both with an error.
type limited struct {
	ctx  context.Context
	from io.Reader
	left int64
}

func (l *limited) Read(b []byte) (int, error) {
	if l.ctx.Err() != nil {
		return 0, errors.New("the time was over")
	}
	n, err := l.from.Read(b)
	if l.left -= int64(n); l.left < 0 {
		return 0, errors.New("it grows")
	}
	return n, err
}

// readSmall reads a small regular file.
func readSmall(name string, most int64) ([]byte, error) {
	f, info, err := openRegular(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, fmt.Errorf("is larger than %d bytes", most)
	}
	return io.ReadAll(io.LimitReader(f, most))
}
