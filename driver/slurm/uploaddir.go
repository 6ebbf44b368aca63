package slurm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/agent/asuser"
	"github.com/coxswain-sched/coxswain/agent/worktree"
	"github.com/coxswain-sched/coxswain/auth/fileperm"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var (
	_ engine.UploadReceiver = (*Engine)(nil)
	_ engine.UploadKeeper   = (*Engine)(nil)
	_ engine.FilePacker     = (*Engine)(nil)
)

// uploadTrees are the working directories that came with jobs: below Config.UploadDir, which the nodes
// share with this machine, in a directory of this driver's own.
func (e *Engine) uploadTrees() *worktree.Store {
	e.treesOnce.Do(func() {
		e.trees = &worktree.Store{Dir: filepath.Join(e.cfg.UploadDir, "cox-"+e.log.cluster), Archives: e.cfg.Uploads, Room: e.cfg.UploadRoom}
	})
	return e.trees
}

// Receives reports whether working directories come with jobs (engine.UploadReceiver).
func (e *Engine) Receives() bool { return e.cfg.UploadDir != "" && e.cfg.Uploads != nil }

// openUploadDir makes the directory of the trees where it is not there yet. The shared one is never made:
// it may be that it is not mounted.
func (e *Engine) openUploadDir(dir string) error {
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if err := fileperm.Way(dir); err != nil {
		return err
	}
	err := os.Mkdir(dir, mode)
	switch {
	case err == nil:
		return os.Chmod(dir, mode)
	case errors.Is(err, fs.ErrNotExist):
		return fault.New(fault.Unavailable, "there is no directory %s on the server's machine", e.cfg.UploadDir).
			Advise("mount there what the nodes share (the pool's setting upload_dir)")
	case !errors.Is(err, fs.ErrExist):
		return fault.New(fault.Unavailable, "%w", err).Advise("have the server's user own %s (the pool's setting upload_dir)", e.cfg.UploadDir)
	}
	return fileperm.Own(dir)
}

// checkTrees refuses to list or remove trees in a directory that another user could exchange.
// fs.ErrNotExist: there are none.
func (e *Engine) checkTrees() error {
	err := fileperm.Own(e.uploadTrees().Dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fault.New(fault.KindOf(err), "upload_dir of pool %s: %w", e.cfg.Pool, err).Advise("%s", fault.Remedy(err))
}

// placeDraft is a job that is not taken yet as it would be handed over.
func (e *Engine) placeDraft(d *engine.JobDraft) *engine.JobDraft {
	if d.Spec.Upload == nil || !e.Receives() {
		return d
	}
	j, trees := &job.Job{Spec: d.Spec}, e.uploadTrees()
	out := *d
	out.Spec, out.Env = trees.InTree(j).Spec, trees.Env(j, d.Env)
	return &out
}

// placeLaunch is a launch as it is handed over: in the directory that came with its job.
func (e *Engine) placeLaunch(l *engine.Launch) *engine.Launch {
	if l.Job == nil || l.Job.Spec == nil || l.Job.Spec.Upload == nil || !e.Receives() {
		return l
	}
	trees := e.uploadTrees()
	out := *l
	out.Job, out.Env = trees.InTree(l.Job), trees.Env(l.Job, l.Env)
	return &out
}

// makeUpload makes the directory that came with a job, unless the attempt is known.
func (e *Engine) makeUpload(l *engine.Launch) error {
	if l.Job.Spec.Upload == nil || !e.Receives() {
		return nil
	}
	e.mu.Lock()
	known := e.attempts[l.Ref] != nil || e.log.IsFenced(l.Ref)
	e.mu.Unlock()
	if known {
		return nil
	}
	trees := e.uploadTrees()
	if err := e.openUploadDir(trees.Dir); err != nil {
		return err
	}
	err := trees.Make(l.Job)
	switch fault.KindOf(err) {
	case fault.Invalid, fault.NotFound: // which no repetition mends
		return fault.New(fault.KindOf(err), "the working directory that came with the job: %w", err).Advise("%s", fault.Remedy(err))
	}
	if err != nil {
		return engine.Unwritten(l.Ref, fmt.Errorf("the working directory that came with the job: %w", err))
	}
	return nil
}

// KeptUploads lists the jobs whose directory is there (engine.UploadKeeper).
func (e *Engine) KeptUploads(ctx context.Context) ([]job.ID, error) {
	if !e.Receives() {
		return nil, nil
	}
	if err := e.checkTrees(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	return e.uploadTrees().Kept(ctx)
}

// DiscardUpload removes the directory of a job; see engine.UploadKeeper.
func (e *Engine) DiscardUpload(ctx context.Context, id job.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !e.Receives() {
		return nil
	}
	e.mu.Lock()
	for ref, a := range e.attempts {
		if a.job == id {
			e.mu.Unlock()
			return fault.New(fault.Conflict, "attempt %s of job %s is not forgotten", ref, id)
		}
	}
	e.mu.Unlock()
	if err := e.checkTrees(); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return e.uploadTrees().Discard(id)
}

// UploadRoom is how many bytes the directories of further jobs may have (engine.UploadKeeper).
func (e *Engine) UploadRoom(context.Context) (int64, error) {
	left, err := e.uploadTrees().Left()
	if !e.Receives() || errors.Is(err, fs.ErrNotExist) {
		return math.MaxInt64, nil // there are none
	}
	return left, err
}

// PackFiles writes an archive of files of the directory that came with a job, read as its owner; see
// engine.FilePacker.
func (e *Engine) PackFiles(ctx context.Context, j *job.Job, name string, to io.Writer) error {
	if j.Spec.Upload == nil || !e.Receives() {
		return fault.New(fault.Unsupported, "job %s ran in a directory of the cluster, %s: only files of directories that came with jobs are fetched from pool %s", j.Name(), j.Spec.WorkDir, e.cfg.Pool).
			Advise("copy them from a login node, with scp or rsync; next time cox submit --upload brings the directory along")
	}
	dir, owner := e.uploadTrees().Path(j.ID), j.Spec.Owner
	pack := func() error { return worktree.PackFiles(ctx, dir, name, j, to) }
	if os.Geteuid() != 0 || owner.UID == 0 {
		return pack()
	}
	return asuser.Do(asuser.User{UID: owner.UID, GID: owner.GID, Groups: []uint32{owner.GID}}, pack)
}
