package control

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/store"
)

// forgetEnded takes jobs out of memory that ended long enough ago and whose rows show them as
// they are. The caller holds the lock.
func (l *loop) forgetEnded() {
	if l.cfg.Keep >= 0 {
		l.state.ForgetEnded(l.cfg.Clock.Now().Add(-l.cfg.Keep).UnixNano())
	}
}

const purgeEach = time.Hour

// purgeStore has the store drop what is older than the configuration keeps, apart from the loop.
func (l *loop) purgeStore(now time.Time) {
	var req store.PurgeRequest
	if keep := l.cfg.JournalKeep; keep > 0 {
		req.RecordsBefore = now.Add(-keep)
	}
	if keep := l.cfg.HistoryKeep; keep > 0 {
		req.JobsEndedBefore, req.AuditBefore, req.BlobsBefore = now.Add(-keep), now.Add(-keep), now.Add(-keep)
	}
	if req.RecordsBefore.IsZero() && req.JobsEndedBefore.IsZero() {
		return
	}
	l.helpers.Go(func() {
		needed := l.neededBlobs()
		req.Keep = func(hash string) bool {
			raw, err := hex.DecodeString(hash)
			return err != nil || len(raw) != sha256.Size || needed[[sha256.Size]byte(raw)]
		}
		for {
			res, err := l.cfg.Store.Purge(l.ctx, l.epoch, req)
			if err != nil {
				if l.ctx.Err() == nil && fault.KindOf(err) != fault.Conflict {
					l.cfg.Log.Warn("the store cannot be purged", "error", err)
				}
				return
			}
			if !res.More {
				break
			}
		}
		for _, p := range l.pools.AllPools() {
			if k, ok := p.Engine.(engine.CheckpointStore); ok && !req.JobsEndedBefore.IsZero() {
				l.discardCheckpoints(k, req.JobsEndedBefore)
			}
		}
	})
}

// discardCheckpoints removes the checkpoints of jobs that nobody knows any more.
func (l *loop) discardCheckpoints(k engine.CheckpointStore, before time.Time) {
	ids, err := k.Kept(l.ctx)
	for _, id := range ids {
		if err != nil {
			break
		}
		if _, lookup := l.ctl.Job(l.ctx, id); fault.KindOf(lookup) == fault.NotFound {
			if err = k.Discard(l.ctx, id, before); fault.KindOf(err) == fault.Conflict {
				err = nil // it is not forgotten yet
			}
		}
	}
	if err != nil && l.ctx.Err() == nil {
		l.cfg.Log.Warn("checkpoints of jobs that are no longer kept cannot be removed", "error", err)
	}
}

// neededBlobs has the hashes that jobs in memory name.
func (l *loop) neededBlobs() map[[sha256.Size]byte]bool {
	out := map[[sha256.Size]byte]bool{}
	l.ctl.Scan(query.Filter{}, func(v *state.View) bool {
		for _, h := range []string{v.Job.Spec.Program.ScriptHash, v.Job.Spec.Env.Hash} {
			if raw, err := hex.DecodeString(h); err == nil && len(raw) == sha256.Size {
				out[[sha256.Size]byte(raw)] = true
			}
		}
		return true
	})
	return out
}
