package control

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/internal/planted"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/store"
)

// Pauses between two tries to write the journal without a request.
const (
	commitPause    = 50 * time.Millisecond
	maxCommitPause = 5 * time.Second
)

// carriedAtMost bounds the reports that are kept while the journal cannot be written.
const carriedAtMost = 1 << 16

// answerWhenLeading answers a request that needs no record, once it is certain that this server
// leads: one that was followed does not know the present state.
func (l *loop) answerWhenLeading(answer func(error)) { l.sure = append(l.sure, answer) }

// refuseWhenLeading refuses a request once it is certain that this server leads.
func (l *loop) refuseWhenLeading(answer func(error), why error) {
	l.answerWhenLeading(func(err error) {
		if err == nil {
			err = why
		}
		answer(err)
	})
}

// whileLeading calls do, which no record says, once it is certain that this server leads. The
// server knows everything that happened before then, so it ends or forgets nothing of another
// leader. That may take a while if the journal cannot be written: do checks whether it still has
// something to do.
func (l *loop) whileLeading(do func()) {
	if planted.FollowedActs {
		do()
		return
	}
	l.acts = append(l.acts, do)
}

// hasPending reports whether there is something to write, or to do once it is certain that this
// server leads.
func (l *loop) hasPending() bool { return len(l.batch)+len(l.sure)+len(l.acts) > 0 }

// commitBatch writes the batch, applies it, and does what follows. If the journal cannot be
// written for now, requests are refused and the rest is tried again after a pause, or with the
// next request.
func (l *loop) commitBatch() error {
	pause := commitPause
	for failed := false; l.hasPending(); {
		done, err := l.writeBatch()
		if done {
			return err
		}
		if !failed {
			failed = true
			l.cfg.Log.Error("the journal cannot be written", "records", len(l.batch), "again in", pause, "error", err)
		}
		if l.refuseBatch(err); !l.hasPending() {
			return nil
		}
		if l.waitToRetry(pause, err) {
			pause, failed = min(2*pause, maxCommitPause), false
		}
		if !l.doubt {
			l.takeMessages()
			l.takeBackRefused()
		}
	}
	return nil
}

// takeBackRefused takes back starts and additions that could not be written and that the ledger
// refuses by now, because a node was lost meanwhile. With a start go all other decisions about
// that job, which follow from it. The core decides anew.
func (l *loop) takeBackRefused() {
	s := l.state
	s.Lock()
	defer s.Unlock()
	back := map[job.ID]bool{} // whose start is taken back
	l.batch = slices.DeleteFunc(l.batch, func(b staged) bool {
		if back[job.ID(b.rec.Job)] {
			return true
		}
		switch v := b.val.(type) {
		case state.Held:
			if s.Ledger.Verify(&v.Allocation) != nil {
				s.Events = append(s.Events, sched.Released{Job: v.Allocation.Job})
				s.QueuePending(s.Jobs[v.Allocation.Job])
				back[v.Allocation.Job] = true
				return true
			}
		case state.Added:
			if s.Ledger.Verify(&v.Allocation) != nil {
				s.Events = append(s.Events, sched.Dropped{Job: v.Allocation.Job, Node: v.Allocation.Claims[0].Node})
				return true
			}
		}
		return false
	})
	l.refuseLapsedApproval()
}

// writeBatch makes the batch durable, applies it and answers. It is not done if an error
// requires another try.
func (l *loop) writeBatch() (done bool, err error) {
	from := l.cfg.Clock.Now()
	if l.doubt {
		return l.resolveDoubt(from, errNotWritten)
	}
	recs := make([]store.Record, len(l.batch))
	for i, s := range l.batch {
		recs[i] = s.rec
	}
	last, err := l.cfg.Store.Append(l.ctx, l.epoch, recs)
	switch {
	case err == nil:
		return true, l.applyBatch(last, l.cfg.Clock.Now().Sub(from))
	case l.ctx.Err() != nil:
		return true, context.Cause(l.ctx)
	case fault.KindOf(err) == fault.Conflict:
		return true, fmt.Errorf("no longer the leader: %w", err)
	case fault.KindOf(err) == fault.Exhausted || len(recs) == 0: // nothing was written
		return false, err
	}
	l.doubt = true
	return l.resolveDoubt(from, err)
}

var errNotWritten = fault.New(fault.Unavailable, "the journal was not written")

// resolveDoubt finds out whether a batch whose write failed is durable anyway. Writing it again
// would make a second batch.
func (l *loop) resolveDoubt(from time.Time, why error) (done bool, err error) {
	n := 0
	err = l.cfg.Store.Read(l.ctx, l.state.Seq, func(r store.Record) error {
		if r.Epoch != l.epoch {
			return fault.New(fault.Conflict, "no longer the leader: epoch %d wrote record %d", r.Epoch, r.Seq)
		}
		n++
		return nil
	})
	switch {
	case l.ctx.Err() != nil:
		return true, context.Cause(l.ctx)
	case err != nil && fault.KindOf(err) == fault.Conflict:
		return true, err
	case err != nil:
		return false, fault.New(fault.Unavailable, "%w; and whether it was written is not known: %w", why, err)
	case n == 0:
		l.doubt = false
		return false, why
	case n == len(l.batch):
		l.doubt = false
		l.cfg.Log.Warn("a write of the journal failed, and is durable", "records", n, "error", why)
		return true, l.applyBatch(l.state.Seq+uint64(n), l.cfg.Clock.Now().Sub(from))
	}
	return true, fmt.Errorf("the journal has %d new records after a failed write of %d, which is a defect", n, len(l.batch))
}

// waitToRetry waits for the next try to write the journal: until the pause is over (true), or
// until somebody makes a request, which is tried then. Nobody waits for a disk to have room: a
// request that cannot be tried is refused.
func (l *loop) waitToRetry(pause time.Duration, why error) (over bool) {
	l.carry = slices.DeleteFunc(l.carry, func(m message) bool {
		if m.refuse != nil {
			m.refuse(why)
		}
		return m.refuse != nil
	})
	timer, stop := l.cfg.Clock.After(pause)
	defer stop()
	for {
		inbox := l.inbox
		if len(l.carry) >= carriedAtMost {
			inbox = nil
		}
		select {
		case m := <-inbox:
			switch {
			case m.refuse == nil:
				l.carry = append(l.carry, m)
			case l.doubt:
				m.refuse(why)
			default:
				l.carry = append(l.carry, m)
				return false
			}
		case <-timer:
			return true
		case <-l.ctx.Done():
			return true
		}
	}
}

func (l *loop) applyBatch(last uint64, took time.Duration) error {
	batch := l.batch
	l.batch = nil
	if len(batch) == 0 {
		l.confirmLead()
		return nil
	}
	if err := l.applyAll(batch, last, took); err != nil {
		return fmt.Errorf("a durable record does not apply, which is a defect: %w", err)
	}
	for i := range batch {
		b := &batch[i]
		if b.then != nil {
			b.then()
		}
		if b.req != nil {
			if b.req.records--; b.req.records == 0 {
				b.req.answer(nil)
			}
		}
	}
	if a := l.granted; a != nil {
		l.granted = nil
		a.answer(nil)
	}
	l.confirmLead()
	return nil
}

// confirmLead answers the requests that waited to know that this server leads, and does what
// waited for it.
func (l *loop) confirmLead() {
	l.answerWaiting(nil)
	list := l.acts
	l.acts = nil
	for _, do := range list {
		do()
	}
}

// answerWaiting tells the requests that waited whether this server leads.
func (l *loop) answerWaiting(err error) {
	list := l.sure
	l.sure = nil
	for _, f := range list {
		f(err)
	}
}

// refuseBatch answers the requests of the batch with an error and keeps the other records, or
// all of them as long as the batch may be durable.
func (l *loop) refuseBatch(err error) {
	l.answerWaiting(err)
	kept := l.batch[:0]
	for _, b := range l.batch {
		if b.req == nil || l.doubt {
			kept = append(kept, b)
		}
		if b.req != nil && b.req.records > 0 {
			b.req.records = 0
			if planted.LostSubmit && b.rec.Kind == state.KindSubmitted {
				b.req.answer(nil)
				continue
			}
			b.req.answer(err)
		}
	}
	l.batch = kept
}
