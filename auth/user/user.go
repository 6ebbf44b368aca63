// Package user looks up users and groups of this machine and remembers the
// answers for a minute: every request needs a name for a number.
//
// /etc/passwd is read directly; users that only a directory service knows (LDAP,
// SSSD) are asked of getent, where there is one. A number without a name is a user
// of that number's digits, as ls shows it.
package user

import (
	"context"
	"errors"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// User is a user of this machine.
type User struct {
	Name     string
	UID, GID uint32
	Home     string
	Known    bool // false: the machine has no such user, Name is the number
}

// Users is a cache of look-ups, safe for concurrent use. Its zero value asks the
// system.
type Users struct {
	mu     sync.Mutex
	byKey  map[string]entry
	groups map[string]groupEntry

	Now    func() time.Time                        // nil: time.Now
	Lookup func(key string, id bool) (User, error) // nil: the system; fault.NotFound: no such user
}

type entry struct {
	user  User
	err   error
	until time.Time
}

type groupEntry struct {
	names []string
	until time.Time
}

const (
	remember = time.Minute
	most     = 10000 // entries, so that nobody can fill the memory with numbers
)

func (u *Users) now() time.Time {
	if u.Now != nil {
		return u.Now()
	}
	return time.Now()
}

// ByUID returns the user of a number; one that the machine does not know is not an
// error.
func (u *Users) ByUID(uid uint32) User {
	key := strconv.FormatUint(uint64(uid), 10)
	got, err := u.get(key, true)
	if err != nil {
		return User{Name: key, UID: uid, GID: uid, Home: "/"}
	}
	return got
}

// ByName returns the user of a name, or of a number in digits; fault.NotFound if
// there is none.
func (u *Users) ByName(name string) (User, error) { return u.get(name, false) }

func (u *Users) get(key string, id bool) (User, error) {
	at := "n" + key
	if id {
		at = "u" + key
	}
	now := u.now()
	u.mu.Lock()
	e, ok := u.byKey[at]
	u.mu.Unlock()
	if ok && now.Before(e.until) {
		return e.user, e.err
	}
	look := u.Lookup
	if look == nil {
		look = lookupSystem
	}
	got, err := look(key, id)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey == nil || len(u.byKey) >= most {
		u.byKey = map[string]entry{}
	}
	u.byKey[at] = entry{got, err, now.Add(remember)}
	return got, err
}

// Groups returns the names of the groups that a user is in.
func (u *Users) Groups(name string) []string {
	now := u.now()
	u.mu.Lock()
	e, ok := u.groups[name]
	u.mu.Unlock()
	if ok && now.Before(e.until) {
		return e.names
	}
	names := groupsOf(name)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.groups == nil || len(u.groups) >= most {
		u.groups = map[string]groupEntry{}
	}
	u.groups[name] = groupEntry{names, now.Add(remember)}
	return names
}

// In reports whether a user is in a group.
func (u *Users) In(name, group string) bool { return slices.Contains(u.Groups(name), group) }

func lookupSystem(key string, id bool) (User, error) {
	look := user.Lookup
	if id {
		look = user.LookupId
	}
	if got, err := look(key); err == nil {
		return fromSystem(got)
	} else if !isUnknown(err) {
		return User{}, fault.New(fault.Unavailable, "look up user %s: %w", key, err)
	}
	line := getentLine("passwd", key)
	if f := strings.Split(line, ":"); len(f) >= 6 {
		return fromSystem(&user.User{Username: f[0], Uid: f[2], Gid: f[3], HomeDir: f[5]})
	}
	return User{}, fault.New(fault.NotFound, "there is no user %s on this machine", key).
		Advise("see: getent passwd %s", key)
}

func isUnknown(err error) bool {
	var name user.UnknownUserError
	var id user.UnknownUserIdError
	return errors.As(err, &name) || errors.As(err, &id)
}

func fromSystem(u *user.User) (User, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return User{}, fault.New(fault.Unsupported, "user %s has the number %q", u.Username, u.Uid)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return User{}, fault.New(fault.Unsupported, "user %s has the group %q", u.Username, u.Gid)
	}
	return User{Name: u.Username, UID: uint32(uid), GID: uint32(gid), Home: u.HomeDir, Known: true}, nil
}

func groupsOf(name string) []string {
	out, err := commandOutput("id", "-Gn", "--", name)
	if err == nil {
		return strings.Fields(out)
	}
	got, err := user.Lookup(name)
	if err != nil {
		return nil
	}
	ids, err := got.GroupIds()
	if err != nil {
		return nil
	}
	var names []string
	for _, id := range ids {
		if g, err := user.LookupGroupId(id); err == nil {
			names = append(names, g.Name)
		}
	}
	return names
}

func getentLine(database, key string) string {
	if strings.HasPrefix(key, "-") {
		return ""
	}
	out, err := commandOutput("getent", database, key)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(out, "\n")
	return line
}

func commandOutput(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	return string(out), err
}
