package crew

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/fault"
)

// keepSaved makes the job's directory for what it saves, its owner's alone, and finds out what
// it may go on from: what was reported last, by the plan or by the file in it. No other attempt
// of the job lives, so that is settled.
func (p *Plan) keepSaved(l *attempt.Launch) error {
	dir, err := p.savesIn()
	if err != nil {
		return err
	}
	l.Checkpoint = dir
	saved := p.Saved
	if d, err := attempt.ReadDone(dir); err == nil {
		l.Done = d.Stamp
		if d.Saved.At.After(saved.At) {
			saved = d.Saved
		}
	}
	switch {
	case saved.At.IsZero():
	case filepath.IsAbs(saved.As):
		l.Restore = saved.As
	default:
		l.Restore = filepath.Join(dir, saved.As)
	}
	return nil
}

// savesIn makes the job's directory, or finds that of an earlier attempt. It is in one of the
// user's, which is made with the first: so nobody else can make, for the number of a job to come,
// what the job would then find. One from before there were users' is gone on with, if it is the
// user's.
func (p *Plan) savesIn() (string, error) {
	top, name := filepath.Split(p.Checkpoint)
	top = filepath.Clean(top)
	if err := safe(top); err != nil {
		return "", err
	}
	if info, err := os.Lstat(p.Checkpoint); err == nil && info.IsDir() && owner(info) == os.Getuid() {
		return p.Checkpoint, mine(p.Checkpoint)
	}
	own := filepath.Join(top, fmt.Sprintf("uid-%d", os.Getuid()))
	if err := makeOwn(own, top); err != nil {
		return "", err
	}
	dir := filepath.Join(own, name)
	return dir, makeOwn(dir, top)
}

// makeOwn makes a directory that nobody else can look into; one that is there has to be such a
// one.
func makeOwn(dir, top string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return mine(dir)
	case err != nil:
		return fault.New(fault.Invalid, "a directory for checkpoints: %w", err).Advise("%s", makeTop(top))
	}
	return nil
}

// safe reports why others than root could exchange what jobs have in a directory: its owner can,
// whatever its mode, and who may write to it where the sticky bit is missing. That is why no job
// makes it, whose user would own it.
func safe(top string) error {
	link, err := os.Lstat(top)
	if err != nil {
		return fault.New(fault.Invalid, "the directory for checkpoints: %w", err).Advise("%s", makeTop(top))
	}
	dir, err := os.Stat(top)
	if err != nil {
		return fault.New(fault.Invalid, "the directory for checkpoints: %w", err).Advise("%s", makeTop(top))
	}
	for _, info := range []fs.FileInfo{link, dir} {
		if uid := owner(info); uid != 0 && uid != os.Getuid() {
			return fault.New(fault.Permission, "the directory for checkpoints %s is of user %d, who could exchange what is in it", top, uid).
				Advise("have an administrator look at what is in it, and then, where its volume is: chown root %s && chmod 1777 %[1]s", top)
		}
	}
	if owner(dir) != os.Getuid() && dir.Mode().Perm()&0o002 != 0 && dir.Mode()&fs.ModeSticky == 0 {
		return fault.New(fault.Permission, "in the directory for checkpoints %s everybody could exchange what others have", top).
			Advise("have an administrator do, where its volume is: chmod 1777 %s", top)
	}
	return nil
}

// makeTop is how jobs get a place for their directories.
func makeTop(top string) string {
	return "have an administrator make it, where its volume is, for everybody to write to: install -d -m 1777 " + top + "; or name another in the pool's checkpoints"
}

func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return os.Getuid()
}

// mine refuses a directory that is not one of this process's user, or to which others may write:
// what is in it may be theirs. A group may: volumes are given to one (fsGroup). A link is none.
func mine(dir string) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fault.New(fault.Permission, "%s, where the job would save, is not a directory", dir).Advise("have it removed")
	case owner(info) != os.Getuid():
		return fault.New(fault.Permission, "%s, where the job would save, is of user %d, and the job's is %d", dir, owner(info), os.Getuid()).Advise("have it removed, by that user or by root")
	case info.Mode().Perm()&0o002 != 0:
		return fault.New(fault.Permission, "everybody may write to %s, where the job would save: what is in it may be of others", dir).Advise("look at what is in it, and then: chmod o-w %s", dir)
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
