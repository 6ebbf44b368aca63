package slurm

import (
	"context"
	"io"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/driver/slurm/ownerfile"
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
	return ownerfile.Open(owner, file)
}

// Renumbers says that jobs have Slurm's numbers in the names of their files.
func (e *Engine) Renumbers() bool { return true }

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
