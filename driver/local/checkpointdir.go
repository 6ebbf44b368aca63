package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-sched/coxswain/agent/asuser"
	"github.com/coxswain-sched/coxswain/agent/attempt"
	"github.com/coxswain-sched/coxswain/agent/step/barrier"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

var _ engine.CheckpointStore = (*Engine)(nil)

func (e *Engine) checkpointOf(id job.ID) string {
	return filepath.Join(attempt.CheckpointsOf(e.cfg.Root), id.String())
}

// makeCheckpointDir makes the job's checkpoint directory, its owner's alone, and finds out what it may
// go on from: what was reported last, by Launch.Saved or by the file in it. No other
// attempt of the job lives, so that is settled.
func (e *Engine) makeCheckpointDir(l *engine.Launch, file *attempt.Launch) error {
	dir := e.checkpointOf(l.Job.ID)
	file.Checkpoint = dir
	saved := l.Saved
	switch err := os.Mkdir(dir, 0o700); {
	case err == nil && file.User != nil:
		if err := os.Lchown(dir, int(file.User.UID), int(file.User.GID)); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrExist):
		var d attempt.Done
		if asOwner(file.User, func() (err error) { d, err = attempt.ReadDone(dir); return err }) == nil {
			file.Done = d.Stamp
			if d.Saved.At.After(saved.At) {
				saved = d.Saved
			}
		}
	case err != nil:
		return err
	}
	switch {
	case saved.At.IsZero():
	case filepath.IsAbs(saved.As):
		file.Restore = saved.As
	default:
		file.Restore = filepath.Join(dir, saved.As)
	}
	return nil
}

// asOwner runs f with the rights of a job's owner in the file system.
func asOwner(who *barrier.Identity, f func() error) error {
	if who == nil {
		return f()
	}
	return asuser.Do(asuser.User{UID: who.UID, GID: who.GID, Groups: who.Groups}, f)
}

// removeEmptyCheckpoint removes the directory of an attempt that has left nothing in it: the next one
// makes it again.
func (e *Engine) removeEmptyCheckpoint(l *attempt.Launch) {
	if l.Checkpoint != "" {
		_ = os.Remove(l.Checkpoint) // not if there is something in it
	}
}

// Kept lists the jobs that have something in their checkpoint directory.
func (e *Engine) Kept(ctx context.Context) (ids []job.ID, err error) {
	found, err := os.ReadDir(attempt.CheckpointsOf(e.cfg.Root))
	if err != nil {
		return nil, err
	}
	for _, d := range found {
		name := strings.TrimSuffix(d.Name(), goneSuffix)
		if n, err := strconv.ParseUint(name, 10, 64); err == nil && n > 0 && !slices.Contains(ids, job.ID(n)) {
			ids = append(ids, job.ID(n))
		}
	}
	return ids, ctx.Err()
}

// goneSuffix is added to the name of a directory that is being removed.
const goneSuffix = ".gone"

// Discard removes what a job has saved.
func (e *Engine) Discard(ctx context.Context, id job.ID, since time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	dir := e.checkpointOf(id)
	newest, err := newestIn(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("checkpoints of job %s: %w", id, err)
	case newest.After(since):
		return nil
	default:
		if err := e.removeCheckpointDir(id, dir); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir + goneSuffix)
}

// removeCheckpointDir takes the directory away from a job that has no attempt.
func (e *Engine) removeCheckpointDir(id job.ID, dir string) error {
	e.mu.Lock()
	defer e.mu.Unlock() // none is launched meanwhile
	for ref, g := range e.gangs {
		if g.launch.Job != nil && g.launch.Job.ID == id {
			return fault.New(fault.Conflict, "attempt %s of job %s is not forgotten", ref, id)
		}
	}
	return os.Rename(dir, dir+goneSuffix)
}
