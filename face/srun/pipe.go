package srun

import (
	"os"
	"path/filepath"
	"syscall"
)

// pipes are the named pipes that the tasks write to.
type pipes struct {
	dir      string
	out, err *os.File
	ends     []*os.File // our own writing ends, so that no reader sees an end before the job's
}

// open makes the pipes in a folder that only the user may enter.
func (p *pipes) open(withErr bool) (err error) {
	if p.dir, err = os.MkdirTemp("", "cox-srun."); err != nil {
		return err
	}
	if p.out, err = p.make("out"); err != nil || !withErr {
		return err
	}
	p.err, err = p.make("err")
	return err
}

func (p *pipes) name(which string) string { return filepath.Join(p.dir, which) }

// make makes one pipe and opens both of its ends.
func (p *pipes) make(which string) (*os.File, error) {
	name := p.name(which)
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		return nil, &os.PathError{Op: "mkfifo", Path: name, Err: err}
	}
	r, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	w, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	p.ends = append(p.ends, w)
	return r, nil
}

// finish lets readers see the end: of the tasks, which have ended, none writes any more.
func (p *pipes) finish() {
	for _, w := range p.ends {
		w.Close()
	}
	p.ends = nil
}

func (p *pipes) close() {
	p.finish()
	for _, f := range []*os.File{p.out, p.err} {
		if f != nil {
			f.Close()
		}
	}
	if p.dir != "" {
		_ = os.Remove(p.name("out"))
		_ = os.Remove(p.name("err"))
		_ = os.Remove(p.dir)
	}
}
