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

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/asuser"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
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
	var f *os.File
	open := func() (err error) {
		f, err = asuser.OpenRegular(file)
		return err
	}
	var err error
	if os.Geteuid() == 0 && owner.User != "" {
		var who asuser.User
		if who, err = account(owner); err != nil {
			return nil, err
		}
		err = asuser.Do(who, open)
	} else {
		err = open()
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "%w", err).Advise("the file was removed or moved, or its file system is not mounted on this machine")
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.New(fault.Permission, "user %s: %w", owner.User, err)
	}
	return nil, err
}

// account is an owner with his groups.
func account(owner job.Owner) (asuser.User, error) {
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
