package command

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// OpenFile opens a file where a Runner's commands are, with the rights that these have: a
// job's output on a login node. A Read at its present end returns io.EOF, and more when it is
// called again after more was written. Nothing stays open there.
func OpenFile(ctx context.Context, r Runner, name string) (io.ReadCloser, error) {
	return OpenFileAs(ctx, r, "", name)
}

// OpenFileAs is OpenFile with the rights of a user: where a name that he gave leads is where
// he may go himself.
func OpenFileAs(ctx context.Context, r Runner, user, name string) (io.ReadCloser, error) {
	if !path.IsAbs(name) {
		return nil, fault.New(fault.Invalid, "%q is no absolute file name", name)
	}
	f := &file{run: r, user: user, name: name}
	if err := f.fetchNext(ctx); err != nil {
		return nil, err
	}
	return f, nil
}

// file is a file elsewhere.
type file struct {
	run  Runner
	user string
	name string
	next int64  // offset of what is fetched next
	have []byte // what was fetched and not read yet
}

const (
	// fetched is how much is fetched at once.
	fetched = 256 << 10
	// fetchWait is how long one fetch may take.
	fetchWait = 30 * time.Second
)

// cut prints a part of a file: $1 the file, $2 the first byte counted from 1, $3 how many. A
// file that is not there, or not regular, or not to be read, is exit code 3, 4, 5.
const cut = `[ -e "$1" ] || exit 3; [ -f "$1" ] || exit 4; [ -r "$1" ] || exit 5; tail -c "+$2" -- "$1" | head -c "$3"`

// fetchNext fetches the next part.
func (f *file) fetchNext(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fetchWait)
	defer cancel()
	r, err := f.run.Run(ctx, Call{Name: "sh", Args: []string{"-c", cut, "sh", f.name, fmt.Sprint(f.next + 1), fmt.Sprint(fetched)}, User: f.user})
	switch {
	case err != nil:
		return fault.New(fault.Unavailable, "%s: %w", f.name, err)
	case r.Code == 3:
		return fault.New(fault.NotFound, "there is no file %s", f.name).Advise("it was removed or moved, or its file system is not mounted there")
	case r.Code == 4:
		return fault.New(fault.Invalid, "%s is no regular file", f.name)
	case r.Code == 5:
		return fault.New(fault.Permission, "%s may not be read", f.name)
	case r.Code != 0:
		return fault.New(fault.Unavailable, "%s: exit %d: %s", f.name, r.Code, strings.TrimSpace(string(r.Stderr)))
	}
	f.have, f.next = r.Stdout, f.next+int64(len(r.Stdout))
	return nil
}

// Read is io.Reader's.
func (f *file) Read(p []byte) (int, error) {
	if len(f.have) == 0 {
		if err := f.fetchNext(context.Background()); err != nil {
			return 0, err
		}
	}
	if len(f.have) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.have)
	f.have = f.have[n:]
	return n, nil
}

// Close is io.Closer's.
func (f *file) Close() error { return nil }
