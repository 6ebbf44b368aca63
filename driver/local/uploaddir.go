package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/agent/attempt"
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

// openUploadDir makes the directory of the trees, which others may pass through where jobs of several
// users run. Below UploadDir, where others may have files too, it is one that only this root has.
func (e *Engine) openUploadDir() error {
	e.trees = &worktree.Store{Dir: filepath.Join(e.cfg.Root, "work"), Archives: e.cfg.Uploads, Room: e.cfg.UploadRoom}
	if e.cfg.UploadDir != "" {
		id, err := attempt.DeviceOwner(e.cfg.Root)
		if err != nil {
			return err
		}
		e.trees.Dir = filepath.Join(e.cfg.UploadDir, "cox-"+id)
	}
	if e.cfg.Uploads == nil {
		return nil
	}
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if err := e.checkTrees(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(e.cfg.UploadDir); e.cfg.UploadDir != "" && errors.Is(err, fs.ErrNotExist) {
		if err := errors.Join(os.MkdirAll(e.cfg.UploadDir, mode), os.Chmod(e.cfg.UploadDir, mode)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(e.trees.Dir, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := e.checkTrees(); err != nil {
		return err
	}
	if err := os.Chmod(e.trees.Dir, mode); err != nil {
		return err
	}
	return e.trees.SweepPartial()
}

// checkTrees refuses a directory of the trees that another user could exchange: what this process gives
// away or removes below it would be elsewhere. That below Root is as safe as Root.
func (e *Engine) checkTrees() error {
	if e.cfg.UploadDir == "" {
		return nil
	}
	err := fileperm.Own(e.trees.Dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return fault.New(fault.KindOf(err), "jobs.upload_dir: %w", err).Advise("%s", fault.Remedy(err))
}

// Receives reports whether working directories come with jobs (engine.UploadReceiver).
func (e *Engine) Receives() bool { return e.cfg.Uploads != nil }

// checkUpload refuses a directory where none is taken.
func (e *Engine) checkUpload(s *job.Spec) error {
	if s.Upload == nil || e.Receives() {
		return nil
	}
	return engine.About(fault.New(fault.Unsupported, "the nodes of this pool have the working directory, and take none that comes with a job").
		Advise("leave --upload out, or name a pool that takes it"), "upload")
}

// placeUpload has a launch run in the directory that came with its job.
func (e *Engine) placeUpload(l *engine.Launch, file *attempt.Launch) {
	if l.Job.Spec.Upload != nil {
		file.Job, file.Env = e.trees.InTree(l.Job), e.trees.Env(l.Job, l.Env)
	}
}

// makeUpload makes that directory, for the first attempt of the job.
func (e *Engine) makeUpload(l *engine.Launch) error {
	if l.Job.Spec.Upload == nil {
		return nil
	}
	if e.cfg.Uploads == nil {
		return e.checkUpload(l.Job.Spec)
	}
	err := e.checkTrees()
	if err == nil {
		err = e.trees.Make(l.Job)
	}
	switch fault.KindOf(err) {
	case fault.Invalid, fault.NotFound: // which no repetition mends
		return fault.New(fault.KindOf(err), "the working directory that came with the job: %w", err).Advise("%s", fault.Remedy(err))
	}
	if err != nil {
		return engine.Unwritten(l.Ref, fmt.Errorf("the working directory that came with the job: %w", err))
	}
	return nil
}

// KeptUploads lists the jobs whose directory is here (engine.UploadKeeper).
func (e *Engine) KeptUploads(ctx context.Context) ([]job.ID, error) {
	if err := e.checkTrees(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return e.trees.Kept(ctx)
}

// DiscardUpload removes the directory of a job; see engine.UploadKeeper.
func (e *Engine) DiscardUpload(ctx context.Context, id job.ID) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	for ref, g := range e.gangs {
		if g.launch.Job != nil && g.launch.Job.ID == id {
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
	return e.trees.Discard(id)
}

// UploadRoom is how many bytes the directories of further jobs may have (engine.UploadKeeper).
func (e *Engine) UploadRoom(context.Context) (int64, error) {
	if e.cfg.Uploads == nil {
		return math.MaxInt64, nil
	}
	return e.trees.Left()
}

// PackFiles writes an archive of files of a job, read as its owner; see engine.FilePacker.
func (e *Engine) PackFiles(ctx context.Context, j *job.Job, name string, to io.Writer) error {
	dir := j.Spec.WorkDir
	if j.Spec.Upload != nil {
		dir = e.trees.Path(j.ID)
	} else if filepath.Clean(name) == "." {
		return fault.New(fault.Invalid, "job %s ran in a directory of its machine, %s, which is not fetched whole", j.Name(), dir).
			Advise("name what to fetch: cox pull %s results", j.Name())
	}
	who, err := e.users.identityOf(j.Spec.Owner)
	if err != nil {
		return err
	}
	return asOwner(who, func() error { return worktree.PackFiles(ctx, dir, name, j, to) })
}
