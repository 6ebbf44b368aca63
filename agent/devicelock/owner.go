package devicelock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/agent/proc"
)

// Owner is who holds a device, as its lock file says. Another user may have written it.
type Owner struct {
	Identity string `json:"identity"` // of the state directory; equal ones share their locks
	Command  string `json:"command"`  // "cox up"
	PID      int    `json:"pid"`
	Start    uint64 `json:"start"` // of the process, clock ticks after boot
	UID      int    `json:"uid"`
	User     string `json:"user"`
	Socket   string `json:"socket,omitempty"` // on which the server listens; empty: none
	State    string `json:"state"`            // the state directory
}

// NewOwner is this process as the owner of the devices of a state directory with an identity.
func NewOwner(command, identity, state, socket string) Owner {
	o := Owner{Identity: identity, Command: command, PID: os.Getpid(), UID: os.Getuid(), State: state, Socket: socket}
	if st, err := proc.Read(o.PID); err == nil {
		o.Start = st.Start
	}
	o.User = strconv.Itoa(o.UID)
	if u, err := user.LookupId(o.User); err == nil {
		o.User = u.Username
	}
	return o
}

// Lives reports whether the process that took the lock first lives.
func (o *Owner) Lives() bool { return o.PID > 0 && proc.Alive(o.PID, o.Start) }

// String names the owner for people: "cox up, process 4711 of user anna, at unix:///run/…".
func (o *Owner) String() string {
	text := fmt.Sprintf("%s, process %d of user %s", cleanText(o.Command), o.PID, cleanText(o.User))
	switch {
	case o.Lives() && o.Socket != "":
		text += ", at unix://" + cleanText(o.Socket)
	case !o.Lives():
		text += fmt.Sprintf(" (state %s): that process has ended or is in another container, and its jobs still hold the device", cleanText(o.State))
	}
	return text
}

// cleanText is what another user wrote, without control characters and not longer than a line.
func cleanText(s string) string {
	const most = 200
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}

// ownerSize is the length of a lock file. It is written whole and at once.
const ownerSize = 2048

// writeOwner says in a lock file who holds it.
func writeOwner(f *os.File, o *Owner) error {
	b, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if len(b) >= ownerSize { // a long path is not worth a failure
		short := *o
		short.State, short.Socket = "", ""
		if b, err = json.Marshal(&short); err != nil {
			return err
		}
	}
	line := append(b, bytes.Repeat([]byte{' '}, max(ownerSize-len(b), 0))...)
	line[len(line)-1] = '\n'
	_, err = f.WriteAt(line, 0)
	return err
}

// readOwner reads who holds a lock file; the zero Owner if it does not say.
func readOwner(f *os.File) Owner {
	b := make([]byte, ownerSize)
	n, _ := f.ReadAt(b, 0)
	var o Owner
	if json.Unmarshal(bytes.TrimSpace(b[:n]), &o) != nil {
		return Owner{}
	}
	return o
}

// fileOwner names the user to whom a file belongs.
func fileOwner(path string) string {
	var st unix.Stat_t
	if unix.Lstat(path, &st) != nil {
		return "somebody"
	}
	id := strconv.FormatUint(uint64(st.Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return "user " + cleanText(u.Username)
	}
	return "user " + id
}
