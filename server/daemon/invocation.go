package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// Invocation is who starts a server, and from where, as far as that decides which state directory is
// used without being named.
type Invocation struct {
	UID       int       `json:"uid"`
	User      string    `json:"user"`
	Home      string    `json:"home"`
	StateHome string    `json:"state_home,omitempty"` // XDG_STATE_HOME
	Last      time.Time `json:"last"`                 // when the server was started
}

// ThisInvocation is that of this process. Without HOME, as under systemd, the home directory is that
// of the system's database.
func ThisInvocation() Invocation {
	i := Invocation{UID: os.Getuid(), Home: os.Getenv("HOME"), StateHome: os.Getenv("XDG_STATE_HOME"), Last: time.Now().Round(0)}
	i.User = strconv.Itoa(i.UID)
	if u, err := user.LookupId(i.User); err == nil {
		i.User = u.Username
		if i.Home == "" {
			i.Home = u.HomeDir
		}
	}
	return i
}

// String is "root with HOME=/root".
func (i *Invocation) String() string {
	text := fmt.Sprintf("%s with HOME=%s", i.User, i.Home)
	if i.StateHome != "" {
		text += " and XDG_STATE_HOME=" + i.StateHome
	}
	return text
}

// sameCaller reports whether two invocations would expect to find the same server.
func (i *Invocation) sameCaller(other *Invocation) bool {
	return i.UID == other.UID && i.Home == other.Home && i.StateHome == other.StateHome
}

func invocationFile(dir string) string { return filepath.Join(dir, "invocation") }

// CheckInvocation refuses a state directory that somebody else's invocation used last: its jobs and
// accounts would become this server's without a word. A new directory, and one of a version that
// kept no record, is anybody's.
func CheckInvocation(dir string, now Invocation) error {
	b, err := os.ReadFile(invocationFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fault.New(fault.KindOf(err), "state directory: %w", err)
	}
	var before Invocation
	if err := json.Unmarshal(b, &before); err != nil {
		return nil //nolint:nilerr // it says nothing: as without one
	}
	if before.sameCaller(&now) {
		return nil
	}
	return fault.New(fault.Conflict, "the state directory %s was last used by %s, at %s, and this is %s", dir, &before, before.Last.Format("2006-01-02 15:04"), &now).
		Advise("cox up --state-dir %s takes up its jobs and accounts; cox up --dev starts a throw-away server; --state-dir with another folder keeps one of its own", dir)
}

// recordInvocation writes down who uses a state directory.
func recordInvocation(dir string, now Invocation) error {
	b, err := json.Marshal(now)
	if err != nil {
		return err
	}
	tmp := invocationFile(dir) + ".new"
	if err := os.WriteFile(tmp, append(b, '\n'), 0o600); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return os.Rename(tmp, invocationFile(dir))
}
