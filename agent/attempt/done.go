package attempt

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/engine"
)

// DoneName is the file in a checkpoint directory by which a job says that it has saved
// something. It is empty, or has one line that names what: something in the directory, or
// an absolute name. It is made under another name and then renamed, so that it is read
// whole (docs/explanation/checkpoint.md).
const DoneName = "done"

// maxDone bounds its size.
const maxDone = 4096

// tick is by how much the kernel may be behind when it gives a file its time.
const tick = 10 * time.Millisecond

// Done is the file as it was found.
type Done struct {
	Saved engine.Saved // At is not before the file was written, and at most a tick after
	Stamp Stamp
}

// Stamp tells one file from another that took its place.
type Stamp struct {
	Inode uint64
	Time  int64 // of the last change of its contents or its inode, in nanoseconds
	Size  int64
}

// ReadDone reads the file of a checkpoint directory, with the rights of the caller. No
// link is followed, and nothing but a regular file is opened.
func ReadDone(dir string) (Done, error) {
	name := filepath.Join(dir, DoneName)
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return Done{}, &os.PathError{Op: "open", Path: name, Err: err}
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return Done{}, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxDone {
		return Done{}, fmt.Errorf("%s is not a file of at most %d bytes", name, maxDone)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDone+1))
	if err != nil {
		return Done{}, err
	}
	d := Done{Saved: engine.Saved{At: st.ModTime().Round(0).Add(tick)}, Stamp: Stamp{Time: st.ModTime().UnixNano(), Size: st.Size()}}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		d.Stamp.Inode, d.Stamp.Time = sys.Ino, time.Unix(sys.Ctim.Unix()).UnixNano()
	}
	d.Saved.As = strings.TrimSuffix(string(text), "\n")
	return d, engine.CheckSaved(d.Saved.As)
}
