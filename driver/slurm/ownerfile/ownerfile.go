// Package ownerfile opens a file of a job's output on this machine with the rights of the job's owner.
//
// A process of root becomes the owner for the moment. A process of the owner opens the file as itself.
// Any other process opens the file only if both it and the owner may read it: access.go walks the
// path and looks at owners, modes and access lists as the kernel would.
//
// Other machines may still write the file: a reader goes on where a network file system has shown
// the end too early (latest.go).
//
// It opens regular files only, and never with rights that the owner does not have.
package ownerfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strconv"

	"github.com/coxswain-sched/coxswain/agent/asuser"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Open opens a file on this machine as a job's owner. fault.NotFound: there is none;
// fault.Permission: the owner, or this process, may not read it.
func Open(owner job.Owner, file string) (io.ReadCloser, error) {
	l := &latestFile{open: func() (logFile, error) { return openAsOwner(owner, file) }}
	var err error
	if l.file, err = l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// openAsOwner opens a file on this machine as a job's owner.
func openAsOwner(owner job.Owner, file string) (logFile, error) {
	var f *os.File
	open := func() (err error) {
		f, err = asuser.OpenRegular(file)
		return err
	}
	var err error
	switch root := os.Geteuid() == 0; {
	case root && owner.User != "":
		var who asuser.User
		if who, err = ownerAccount(owner); err != nil {
			return nil, err
		}
		err = asuser.Do(who, open)
	case int(owner.UID) == os.Geteuid():
		err = open()
	default:
		f, err = openFor(ownerWithGroups(owner), file)
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "%w", err).Advise("the file was removed or moved, or its file system is not mounted on this machine")
	case errors.Is(err, fs.ErrPermission):
		err := fault.New(fault.Permission, "user %s: %w", owner.User, err)
		if os.Geteuid() != 0 {
			return nil, err.Advise("a server that is not root shows what both it and %s may read: chmod o+x FOLDER, chmod o+r FILE; or give the pool words that make it %[1]s (become)", owner.User)
		}
		return nil, err
	}
	return nil, err
}

// ownerWithGroups is an owner whom this process cannot become: with his groups, if he is known here.
func ownerWithGroups(owner job.Owner) asuser.User {
	who, err := ownerAccount(owner)
	if err != nil {
		return asuser.User{UID: owner.UID, GID: owner.GID}
	}
	return who
}

// ownerAccount is an owner with his groups.
func ownerAccount(owner job.Owner) (asuser.User, error) {
	who := asuser.User{UID: owner.UID, GID: owner.GID, Groups: []uint32{owner.GID}}
	u, err := user.LookupId(strconv.FormatUint(uint64(owner.UID), 10))
	if err != nil {
		return who, fault.New(fault.Invalid, "%w", err)
	}
	ids, err := u.GroupIds()
	if err != nil {
		return who, err
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			who.Groups = append(who.Groups, uint32(n))
		}
	}
	return who, nil
}
