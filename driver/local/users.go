package local

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// users finds out as whom attempts run. What the system's user database says is
// kept for a few seconds only.
type users struct {
	mu    sync.Mutex
	known map[job.Owner]known
}

type known struct {
	who  *barrier.Identity
	when time.Time
}

const knownFor = 5 * time.Second

// identityOf returns who a job of an owner runs as: nil for this process's own user. A
// process without root's rights can be nobody else.
func (u *users) identityOf(o job.Owner) (*barrier.Identity, error) {
	if o == (job.Owner{}) || int(o.UID) == os.Geteuid() {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, fault.New(fault.Permission, "this server runs as user %d and cannot run work of user %d (%s)", os.Geteuid(), o.UID, o.User).
			Advise("start the server as root (cox up) to run work of several users, or submit as the user of the server")
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if k, ok := u.known[o]; ok && time.Since(k.when) < knownFor {
		return k.who, nil
	}
	if u.known == nil || len(u.known) > 1000 {
		u.known = map[job.Owner]known{}
	}
	who := &barrier.Identity{UID: o.UID, GID: o.GID, Groups: supplementaryGroups(o)}
	u.known[o] = known{who, time.Now()}
	return who, nil
}

// supplementaryGroups are the supplementary groups of an owner; none if the system does not know
// him.
func supplementaryGroups(o job.Owner) []uint32 {
	var words []string
	entry, err := user.LookupId(strconv.FormatUint(uint64(o.UID), 10))
	if err == nil {
		words, err = entry.GroupIds()
	}
	if err != nil && o.User != "" && !strings.HasPrefix(o.User, "-") {
		// Directory services answer programs that are linked against the C library.
		out, err := exec.Command("id", "-G", o.User).Output()
		if err == nil && sameUser(o) {
			words = strings.Fields(string(out))
		}
	}
	var ids []uint32
	for _, w := range words {
		if n, err := strconv.ParseUint(w, 10, 32); err == nil {
			ids = append(ids, uint32(n))
		}
	}
	return ids
}

// sameUser reports whether the owner's name stands for his number: groups of a
// name that means somebody else are not his.
func sameUser(o job.Owner) bool {
	out, err := exec.Command("id", "-u", o.User).Output()
	return err == nil && strings.TrimSpace(string(out)) == strconv.FormatUint(uint64(o.UID), 10)
}

// jobUmask is the file creation mask of a job: the submitter's, as sbatch puts it into
// the environment; else the server's own (negative), or 022 for another user.
func jobUmask(env []string, who *barrier.Identity) int {
	if mask := attempt.Umask(env); mask >= 0 {
		return mask
	}
	if who != nil {
		return 0o022
	}
	return -1
}
