package local

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/local/asuser"
	"github.com/coxswain-sched/coxswain/engine/local/attempt"
	"github.com/coxswain-sched/coxswain/fault"
	"github.com/coxswain-sched/coxswain/job"
)

var _ engine.Logger = (*Engine)(nil)

// OpenLog opens an output file as a job's owner; see engine.Logger.
func (e *Engine) OpenLog(ctx context.Context, owner job.Owner, file string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(file) {
		return nil, fault.New(fault.Invalid, "%q is no absolute file name", file)
	}
	who, err := e.users.of(owner)
	if err != nil {
		return nil, err
	}
	var f *os.File
	open := func() (err error) {
		f, err = asuser.OpenRegular(file)
		return err
	}
	if who == nil {
		err = open()
	} else {
		err = asuser.Do(asuser.User{UID: who.UID, GID: who.GID, Groups: who.Groups}, open)
	}
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.New(fault.NotFound, "%w", err).Advise("the file was removed or moved")
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.New(fault.Permission, "user %s: %w", owner.User, err)
	}
	return nil, err
}

// Purge removes the copies of ranks' output of a forgotten attempt.
func (e *Engine) Purge(ctx context.Context, ref engine.Ref) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	known := e.gangs[ref] != nil
	e.mu.Unlock()
	if known {
		return fault.New(fault.Conflict, "attempt %s is not forgotten", ref)
	}
	return os.RemoveAll(attempt.RanksOf(e.cfg.Root, ref))
}
