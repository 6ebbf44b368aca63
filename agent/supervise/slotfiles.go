package supervise

import (
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/agent/step/barrier"
)

// slotFiles are the files of a slot that every attempt writes anew: the batch script and
// what its processes may know. They are overwritten in place, which costs a tenth of
// making new ones. Nobody reads them meanwhile: the attempt before is gone.
type slotFiles struct {
	script, alloc *os.File
	owner         uint32 // who the files were given to
	given         bool
}

// scriptName is where the batch script of a slot stands.
func (h *supervisorSlot) scriptName() string { return filepath.Join(h.Dir, "script") }

// overwriteFile overwrites a file that is kept open, or makes it.
func (h *supervisorSlot) overwriteFile(f **os.File, name string, mode os.FileMode, text []byte) error {
	if *f == nil {
		made, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, mode)
		if err != nil {
			return err
		}
		*f = made
		if who := h.now.launch.User; who != nil {
			if err := made.Chown(int(who.UID), int(who.GID)); err != nil {
				return err
			}
		}
	}
	if _, err := (*f).WriteAt(text, 0); err != nil {
		return err
	}
	// Never to nothing and then to more: file systems take that for a replacement
	// that has to reach the disk at once.
	return (*f).Truncate(int64(len(text)))
}

// giveFilesTo gives the slot's files to the user of the attempt that sits down.
func (h *supervisorSlot) giveFilesTo(who *barrier.Identity) error {
	if who == nil {
		return nil
	}
	k := &h.kept
	if k.given && k.owner == who.UID {
		return nil
	}
	for _, f := range []**os.File{&k.script, &k.alloc} {
		if *f == nil {
			continue
		}
		if err := os.Remove((*f).Name()); err != nil { // another user may have it open
			return err
		}
		_ = (*f).Close()
		*f = nil
	}
	k.owner, k.given = who.UID, true
	return giveSocketTo(h.StepSocket(), who)
}
