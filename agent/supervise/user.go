package supervise

import (
	"os"

	"github.com/coxswain-sched/coxswain/agent/asuser"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
)

// jobUser is the user that a job's processes run as, in the file system: what is
// opened by its methods is opened with his rights, so that root's are of no use to
// who names a file.
type jobUser struct {
	who     *barrier.Identity // nil: the user of this process
	spawner *spawner
}

// runAsUser runs f on the spawning thread, where only the file system user is another one.
func (a *jobUser) runAsUser(f func() error) error {
	return a.spawner.onThread(func() error {
		if a.who == nil {
			return f()
		}
		return asuser.OnThread(asuser.User{UID: a.who.UID, GID: a.who.GID, Groups: a.who.Groups}, f)
	})
}

// openAsUser opens a file as the user.
func (a *jobUser) openAsUser(name string, flags int, mode os.FileMode) (f *os.File, err error) {
	err = a.runAsUser(func() (err error) {
		f, err = a.openHere(name, flags, mode)
		return err
	})
	return f, err
}

// openHere opens a file inside of runAsUser. It does not wait for the other end of a named pipe:
// the thread that starts processes would wait with it.
func (a *jobUser) openHere(name string, flags int, mode os.FileMode) (*os.File, error) {
	open := asuser.OpenFile
	if a.who == nil {
		open = os.OpenFile
	}
	return asuser.OpenStream(open, name, flags, mode)
}
