package crew

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/fault"
)

// open lets everybody make a directory in another, and nobody take away another's.
const open = 0o777 | fs.ModeSticky

// keepSaved makes the job's directory for what it saves, its owner's alone, and finds out what
// it may go on from: what was reported last, by the plan or by the file in it. No other attempt
// of the job lives, so that is settled.
func (p *Plan) keepSaved(l *attempt.Launch) error {
	l.Checkpoint = p.Checkpoint
	saved := p.Saved
	top := filepath.Dir(p.Checkpoint)
	if err := os.Mkdir(top, 0o777); err == nil {
		_ = os.Chmod(top, open) // it is this user's
	}
	err := os.Mkdir(p.Checkpoint, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		if err := mine(p.Checkpoint); err != nil {
			return err
		}
		if d, err := attempt.ReadDone(p.Checkpoint); err == nil {
			l.Done = d.Stamp
			if d.Saved.At.After(saved.At) {
				saved = d.Saved
			}
		}
	case err != nil:
		return fault.New(fault.Invalid, "a directory for checkpoints: %w", err).
			Advise("have an administrator make %s on its volume, for everybody to write to (mode 1777), or name another in the pool's checkpoints", top)
	}
	switch {
	case saved.At.IsZero():
	case filepath.IsAbs(saved.As):
		l.Restore = saved.As
	default:
		l.Restore = filepath.Join(p.Checkpoint, saved.As)
	}
	return nil
}

// mine reports whether a directory is one of this process's user: others may make some in the
// same place, and job numbers can be guessed.
func mine(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || ok && int(st.Uid) != os.Getuid() {
		return fault.New(fault.Permission, "%s, where the job would save, is not a directory of the pod's user", dir).Advise("have it removed")
	}
	return nil
}

// unkeep removes the directory of an attempt that has left nothing in it: the next one makes it
// again.
func (m *member) unkeep() {
	if m.launch != nil && m.launch.Checkpoint != "" {
		_ = os.Remove(m.launch.Checkpoint) // not if there is something in it
	}
}

// mostSaved bounds the name that an outcome has of what was saved: there is little room.
const mostSaved = 1 << 10

// sayable is what was saved as an outcome has it; nil where the name is too long: who starts
// the job again finds it in the file.
func sayable(s *engine.Saved) *engine.Saved {
	if s == nil || len(s.As) > mostSaved {
		return nil
	}
	return s
}
