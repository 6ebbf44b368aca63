package srun

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// pipes are the named pipes that the tasks write to.
type pipes struct {
	dir      string
	out, err int   // reading ends that do not block; -1: there is none
	ends     []int // our own writing ends, so that a pipe has no end before the job's
	buf      []byte
}

// openPipes makes the pipes in a folder that only the user may enter.
func (p *pipes) openPipes(withErr bool) (err error) {
	if p.dir, err = os.MkdirTemp("", "cox-srun."); err != nil {
		return err
	}
	if p.out, err = p.makePipe("out"); err != nil || !withErr {
		return err
	}
	p.err, err = p.makePipe("err")
	return err
}

func (p *pipes) name(which string) string { return filepath.Join(p.dir, which) }

// makePipe makes one pipe and opens both of its ends.
func (p *pipes) makePipe(which string) (int, error) {
	name := p.name(which)
	if err := unix.Mkfifo(name, 0o600); err != nil {
		return -1, &os.PathError{Op: "mkfifo", Path: name, Err: err}
	}
	r, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	w, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		unix.Close(r)
		return -1, &os.PathError{Op: "open", Path: name, Err: err}
	}
	p.ends = append(p.ends, w)
	return r, nil
}

func (p *pipes) close() {
	for _, fd := range append(p.ends, p.out, p.err) {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	if p.dir != "" {
		_ = os.Remove(p.name("out"))
		_ = os.Remove(p.name("err"))
		_ = os.Remove(p.dir)
	}
}
