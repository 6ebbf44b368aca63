package control

import (
	"context"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
)

// prepareEnded makes what is to be said of a job that is not in memory, or brings it into
// the request where it is to run again.
func (c *Control) prepareEnded(ctx context.Context, w *changeRequest, row *store.JobRow) (error, error) {
	id := job.ID(row.ID)
	if !row.Final {
		return errMoved, nil // it came back meanwhile
	}
	switch w.op.(type) {
	case Cancel:
		return nil, nil
	case Requeue:
		e, err := c.state.ReadRow(row)
		if err != nil {
			return nil, err
		}
		w.old[id] = e
		return c.renewBlobs(ctx, e)
	}
	return fault.New(fault.Conflict, "job %d has ended (%s)", id, row.State), nil
}

// renewBlobs puts script and environment of a job that is to run again anew, so that no
// purge takes them: only those of jobs in memory are kept. The first error says that
// they are gone.
func (c *Control) renewBlobs(ctx context.Context, e *state.JobRecord) (error, error) {
	spec := state.ViewOf(e).Job.Spec
	for _, hash := range []string{spec.Program.ScriptHash, spec.Env.Hash} {
		if hash == "" {
			continue
		}
		b, err := c.cfg.Store.Blob(ctx, hash)
		if err == nil {
			_, err = c.cfg.Store.PutBlob(ctx, b)
		}
		switch {
		case err != nil && fault.KindOf(err) == fault.NotFound:
			return fault.New(fault.Conflict, "job %s cannot run again: its script or its environment is no longer kept", e.Name()).
				Advise("submit it anew; the server's file says how long history is kept"), nil
		case err != nil:
			return nil, err
		}
	}
	return nil, nil
}

// restoreToMemory takes a job back into memory.
func (l *loop) restoreToMemory(e *state.JobRecord) {
	l.state.Lock()
	defer l.state.Unlock()
	l.state.ReviveJob(e)
}
