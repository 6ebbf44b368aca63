package podagent

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// keepSaved makes the job's directory for what it saves, its owner's alone, and finds out what
// it may go on from: what was reported last, by the plan or by the file in it. No other attempt
// of the job lives, so that is settled. What was reported and is not there, as after a change of
// the user's number, is said in the pod's log.
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
	if l.Restore != "" && !checkpointExists(l.Restore, dir, filepath.Dir(p.Checkpoint)) {
		fmt.Fprintf(os.Stderr, "cox-pod: the job was to go on from %s, which is not there for user %d: COX_RESTORE_FROM is not set, and the job begins anew in %s\n", l.Restore, os.Getuid(), dir)
		l.Restore = ""
	}
	return nil
}

// checkpointExists reports whether what a job was to go on from is there: a name, one that others begin with,
// or its directory with something in it. What is below no directory for checkpoints is the job's
// own matter.
func checkpointExists(name, dir, top string) bool {
	if in, err := filepath.Rel(top, name); err != nil || !filepath.IsLocal(in) {
		return true
	}
	gone := func(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) }
	if filepath.Clean(name) != dir {
		if _, err := os.Lstat(name); !gone(err) {
			return true
		}
		dir = filepath.Dir(name)
	}
	all, err := os.ReadDir(dir)
	if err != nil {
		return !gone(err)
	}
	return slices.ContainsFunc(all, func(e fs.DirEntry) bool {
		return filepath.Clean(name) == dir || strings.HasPrefix(e.Name(), filepath.Base(name))
	})
}

// savesIn makes the job's directory, or finds that of an earlier attempt. It is in one of the
// user's, which is made with the first: so nobody else can make, for the number of a job to come,
// what the job would then find. One from before there were users' is gone on with, if it is the
// user's.
func (p *Plan) savesIn() (string, error) {
	top, name := filepath.Split(p.Checkpoint)
	top = filepath.Clean(top)
	if err := checkDirSafe(top); err != nil {
		return "", err
	}
	if info, err := os.Lstat(p.Checkpoint); err == nil && info.IsDir() && ownerUID(info) == os.Getuid() {
		return p.Checkpoint, checkDirOwned(p.Checkpoint, false)
	}
	own := filepath.Join(top, fmt.Sprintf("uid-%d", os.Getuid()))
	if err := makeOwn(own, top); err != nil {
		return "", err
	}
	dir := filepath.Join(own, name)
	return dir, makeOwn(dir, top)
}

// makeOwn makes a directory that nobody else can look into; one that is there has to be such a
// one. One that is not, and was just made, is not left for the next job to find.
func makeOwn(dir, top string) error {
	err := os.Mkdir(dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return checkDirOwned(dir, false)
	case err != nil:
		return fault.New(fault.Invalid, "a directory for checkpoints: %w", err).Advise("%s", makeTop(top))
	}
	if err = checkDirOwned(dir, true); err != nil {
		_ = os.Remove(dir)
	}
	return err
}

// checkDirSafe reports why others than root could exchange what jobs have in a directory: its owner can,
// whatever its mode, and who may write to it where the sticky bit is missing. That is why no job
// makes it, whose user would own it.
func checkDirSafe(top string) error {
	link, err := os.Lstat(top)
	if err != nil {
		return fault.New(fault.Invalid, "the directory for checkpoints: %w", err).Advise("%s", makeTop(top))
	}
	dir, err := os.Stat(top)
	if err != nil {
		return fault.New(fault.Invalid, "the directory for checkpoints: %w", err).Advise("%s", makeTop(top))
	}
	for _, info := range []fs.FileInfo{link, dir} {
		if uid := ownerUID(info); uid != 0 && uid != os.Getuid() {
			return fault.New(fault.Permission, "the directory for checkpoints %s is of user %d, who could exchange what is in it", top, uid).
				Advise("have an administrator look at what is in it, and then, where its volume is: chown root %s && chmod 1777 %[1]s", top)
		}
	}
	if own := ownerUID(dir); (own == 0 || own != os.Getuid()) && dir.Mode().Perm()&0o022 != 0 && dir.Mode()&fs.ModeSticky == 0 {
		who := "everybody"
		if dir.Mode().Perm()&0o002 == 0 {
			who = "its group"
		}
		return fault.New(fault.Permission, "in the directory for checkpoints %s %s could exchange what others have: its mode is %04o, without the sticky bit", top, who, dir.Mode().Perm()).
			Advise("have an administrator do, where its volume is: chmod +t %s; where that changes nothing, the volume keeps no modes: %s", top, keeping)
	}
	return nil
}

// makeTop is how jobs get a place for their directories.
func makeTop(top string) string {
	return "have an administrator make it, where its volume is, for everybody to write to: install -d -m 1777 " + top + "; or name another in the pool's checkpoints"
}

func ownerUID(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return os.Getuid()
}

// keeping is what a volume has to do that directories for checkpoints are on.
const keeping = "have an administrator name a directory in the pool's checkpoints whose volume keeps owners and modes as they are set (NFS without all_squash, no CIFS with uid= or dir_mode=)"

// checkDirOwned refuses a directory that is not one of this process's user, or to which others may write:
// what is in it may be theirs. What else its mode lets others do is taken from them: volumes are
// given to a group (fsGroup). A link is none. made: it was just made, so that the volume is wrong.
func checkDirOwned(dir string, made bool) error {
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fault.New(fault.Permission, "%s, where the job would save, is not a directory", dir).Advise("have it removed")
	case ownerUID(info) != os.Getuid() && made:
		return fault.New(fault.Permission, "the volume of %s keeps no owners: what user %d makes there is of user %d", dir, os.Getuid(), ownerUID(info)).Advise(keeping)
	case ownerUID(info) != os.Getuid():
		return fault.New(fault.Permission, "%s, where the job would save, is of user %d, and the job's is %d", dir, ownerUID(info), os.Getuid()).Advise("have it removed, by that user or by root")
	case info.Mode().Perm()&0o002 != 0 && !made:
		return fault.New(fault.Permission, "everybody may write to %s, where the job would save: what is in it may be of others", dir).Advise("look at what is in it, and then: chmod 0700 %s; where that changes nothing, the volume keeps no modes: %s", dir, keeping)
	case info.Mode().Perm()&0o077 == 0:
		return nil
	}
	_ = os.Chmod(dir, 0o700) // what counts is what it is then
	if info, err = os.Lstat(dir); err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fault.New(fault.Permission, "the volume of %s keeps no modes: others may do there what its mode, %04o, has, and it cannot be changed", dir, info.Mode().Perm()).Advise(keeping)
	}
	return nil
}

// removeEmptyCheckpoint removes the directory of an attempt that has left nothing in it: the next one makes it
// again.
func (m *member) removeEmptyCheckpoint() {
	if m.launch != nil && m.launch.Checkpoint != "" {
		_ = os.Remove(m.launch.Checkpoint) // not if there is something in it
	}
}

// mostSaved bounds the name that an outcome has of what was saved: there is little room.
const mostSaved = 1 << 10

// boundedSaved is what was saved as an outcome has it; nil where the name is too long: who starts
// the job again finds it in the file.
func boundedSaved(s *engine.Saved) *engine.Saved {
	if s == nil || len(s.As) > mostSaved {
		return nil
	}
	return s
}
