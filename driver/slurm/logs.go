package slurm

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/coxswain-sched/coxswain/agent/asuser"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var _ engine.Logger = (*Engine)(nil)

// OpenLog opens an output file as a job's owner: where Config.Files says, else on this
// machine, where its file system has to be too.
func (e *Engine) OpenLog(ctx context.Context, owner job.Owner, file string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(file) {
		return nil, fault.New(fault.Invalid, "%q is no absolute file name", file)
	}
	if e.cfg.Files != nil {
		return e.cfg.Files(ctx, owner, file)
	}
	l := &latestFile{open: func() (logFile, error) { return openAs(owner, file) }}
	var err error
	if l.file, err = l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

// Renumbers says that jobs have Slurm's numbers in the names of their files.
func (e *Engine) Renumbers() bool { return true }

// openAs opens a file on this machine as a job's owner.
func openAs(owner job.Owner, file string) (logFile, error) {
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

// logFile is an open file.
type logFile interface {
	io.ReadCloser
	io.Seeker
}

// latestFile reads a file that another machine writes. Network file systems show what was
// written there to who opens the file after it was closed, and to who has it open only some
// time later: so at its end it is opened anew, and read on from there. A file that is gone by
// then, or has become shorter, has ended.
type latestFile struct {
	open func() (logFile, error)
	file logFile
	at   int64
}

// Read is io.Reader's.
func (l *latestFile) Read(p []byte) (int, error) {
	n, err := l.file.Read(p)
	if n > 0 || !errors.Is(err, io.EOF) {
		l.at += int64(n)
		return n, err
	}
	anew, oerr := l.open()
	if oerr != nil {
		return 0, io.EOF
	}
	if _, serr := anew.Seek(l.at, io.SeekStart); serr != nil {
		return 0, errors.Join(serr, anew.Close())
	}
	_ = l.file.Close()
	l.file = anew
	n, err = l.file.Read(p)
	l.at += int64(n)
	return n, err
}

// Close is io.Closer's.
func (l *latestFile) Close() error { return l.file.Close() }

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

// Purge has nothing to remove: output is in its owner's files alone.
func (e *Engine) Purge(ctx context.Context, ref engine.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.attempts[ref] != nil {
		return fault.New(fault.Conflict, "attempt %s is not forgotten", ref)
	}
	return nil
}
