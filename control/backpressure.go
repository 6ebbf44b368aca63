package control

import (
	"cmp"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// backpressure is the jobs that wait for limits of engines, and the order in which they are
// tried again. It follows from the state of the jobs; the loop alone uses it.
type backpressure struct {
	*parts
	said  map[string]time.Time     // when a pool's engine last said that its limits have more room
	waits map[job.ID]*limitedJob   // who was told to wait; those that do no longer leave when they are come across. nil: not looked for yet
	lines map[string]*limitedQueue // by pool
	next  map[string][]job.ID      // by pool: to be tried again as soon as one that was is let in
	tried map[job.ID]bool          // tried again, and not heard of since
}

// limitedJob is a job that waits for a limit of its engine.
type limitedJob struct {
	*state.JobRecord
	pool string
	rank int64 // its place in the queue
}

// limitedQueue is the jobs that waited for limits of one engine at a time, in the order of the
// queue.
type limitedQueue struct {
	list []*limitedJob
	at   time.Time
}

const (
	// How many jobs are tried again when there is more room: each that is let in has the next
	// one tried.
	triedAtOnce = 8
	// How many of those who wait a job is told of that come before it.
	aheadAtMost = 100
	// How old an order may be.
	queueMaxAge = 10 * time.Second
)

// retryTime is when a job is launched again that a limit of its pool's engine refused: when the
// engine says that there is more room, and after limitedPause at the latest. If the engine said
// so just before the refusal was heard of, it may have meant this job.
func (b *backpressure) retryTime(e *state.JobRecord) time.Time {
	now := b.cfg.Clock.Now()
	if said, ok := b.said[e.Last.Pool]; ok && now.Sub(said) < limitedSoon*b.cfg.Backoff {
		delete(b.said, e.Last.Pool) // once
		return now.Add(b.cfg.Backoff)
	}
	return now.Add(b.limitedPause())
}

// limitedPause is the longest time after which a job that waits for a limit is launched again.
func (b *backpressure) limitedPause() time.Duration {
	return min(limitedPauses*b.cfg.Backoff, maxBackoff)
}

// initBackpressure finds the jobs that waited for limits before this server started.
func (b *backpressure) initBackpressure() {
	if b.waits != nil {
		return
	}
	b.said, b.waits, b.lines = map[string]time.Time{}, map[job.ID]*limitedJob{}, map[string]*limitedQueue{}
	b.next, b.tried = map[string][]job.ID{}, map[job.ID]bool{}
	for _, e := range b.state.Live {
		if e.State == job.Pending && e.Report().Cause == engine.Limited {
			b.waits[e.ID] = &limitedJob{JobRecord: e, pool: e.Last.Pool}
		}
	}
}

// addLimitedJob notes that a job was told to wait for a limit of its pool's engine.
func (b *backpressure) addLimitedJob(e *state.JobRecord) {
	b.initBackpressure()
	delete(b.tried, e.ID)
	if w := b.waits[e.ID]; w == nil || w.JobRecord != e || w.pool != e.Last.Pool {
		rank, _ := b.core.Rank(e.ID)
		b.waits[e.ID] = &limitedJob{e, e.Last.Pool, rank}
		delete(b.lines, e.Last.Pool)
	}
}

// stillWaits reports whether a job still waits for a limit of its pool's engine, or was launched
// after that and nothing is known of it; if not, the job is forgotten. here reports whether it
// would begin if there were room, as far as is known: a job that may begin and is not launched
// for a while waits for something else, such as nodes.
func (b *backpressure) stillWaits(w *limitedJob) (waits, here bool) {
	r := w.Report()
	switch {
	case w.Gone || w.State.Final() || w.Last == nil || w.Last.Pool != w.pool:
	case r.Cause == engine.Limited:
		here = w.Flags&(job.Held|job.HeldAdmin|job.HeldFailed) == 0
		switch {
		case w.Gate != nil:
			here = here && w.Gate.Code == reason.EngineLimit
		case w.Eligible > 0:
			here = here && b.cfg.Clock.Now().Sub(state.FromNanos(w.Eligible)) < b.limitedPause()
		}
		return true, here
	case w.State == job.Running && w.Flags&job.Configuring != 0 && r.Phase < engine.Accepted:
		return true, w.Flags&job.Stopping == 0
	}
	b.forgetLimitedJob(w)
	return false, false
}

func (b *backpressure) forgetLimitedJob(w *limitedJob) {
	if b.waits[w.ID] == w {
		delete(b.waits, w.ID)
		delete(b.tried, w.ID)
	}
}

// limitedQueueOf lists the jobs that wait for limits of a pool's engine, in the order of the
// queue. Some may have stopped waiting.
func (b *backpressure) limitedQueueOf(pool string) []*limitedJob {
	b.initBackpressure()
	now := b.cfg.Clock.Now()
	if have := b.lines[pool]; have != nil && now.Sub(have.at) < queueMaxAge && !now.Before(have.at) {
		return have.list
	}
	out := &limitedQueue{at: now}
	for _, w := range b.waits {
		if w.pool != pool {
			continue
		}
		if waits, _ := b.stillWaits(w); waits {
			if rank, ok := b.core.Rank(w.ID); ok {
				w.rank = rank
			}
			out.list = append(out.list, w)
		}
	}
	slices.SortFunc(out.list, (*limitedJob).compareRank)
	b.lines[pool] = out
	return out.list
}

// compareRank compares by the order of the queue.
func (w *limitedJob) compareRank(o *limitedJob) int {
	return cmp.Or(cmp.Compare(o.rank, w.rank), cmp.Compare(w.QueuedAt, o.QueuedAt), cmp.Compare(w.ID, o.ID))
}

// jobsAhead lists the first jobs that wait for limits of a pool's engine and come before a job
// that is launched there.
func (b *backpressure) jobsAhead(e *state.JobRecord, pool string) (out []job.ID) {
	if _, ok := b.pools.ByNameOrFirst(pool).Engine.(engine.CapacityNotifier); !ok {
		return nil
	}
	me := &limitedJob{JobRecord: e}
	me.rank, _ = b.core.Rank(e.ID)
	for _, w := range b.limitedQueueOf(pool) {
		if w.JobRecord == e || w.compareRank(me) > 0 || len(out) == aheadAtMost {
			break
		}
		if _, here := b.stillWaits(w); here {
			out = append(out, w.ID)
		}
	}
	return out
}

// capacityMessage is the message that limits of a pool's engine have more room: the first jobs
// that wait for it are launched again as soon as it is their turn, and the others after them.
// jobs are those for which there may be enough room; none: any.
func (l *loop) capacityMessage(pool string, jobs []job.ID) message {
	return message{run: func(l *loop) {
		l.state.Lock()
		defer l.state.Unlock()
		line := l.backpressure.limitedQueueOf(pool)
		l.backpressure.said[pool] = l.cfg.Clock.Now()
		var next []job.ID
		slices.Sort(jobs)
		for _, w := range line {
			if _, among := slices.BinarySearch(jobs, w.ID); (among || len(jobs) == 0) && !l.backpressure.tried[w.ID] {
				next = append(next, w.ID)
			}
		}
		l.backpressure.next[pool] = next
		for range triedAtOnce {
			l.backpressure.tryNext(pool)
		}
	}}
}

// tryNext has the next job launched again that waits for a limit of a pool's engine. The caller
// holds the lock of the state.
func (b *backpressure) tryNext(pool string) {
	for all := b.next[pool]; len(all) > 0; all = b.next[pool] {
		b.next[pool] = all[1:]
		w := b.waits[all[0]]
		if w == nil {
			continue
		}
		if _, here := b.stillWaits(w); here && w.State == job.Pending && w.ExtraOrZero().Again > state.ToNanos(b.cfg.Clock.Now()) {
			w.Extra.Again = 0
			b.tried[w.ID] = true
			b.state.RecheckEligible(w.JobRecord)
			return
		}
	}
}

// acceptedByEngine notes that an engine accepted a job. If the job had waited for a limit, the
// next one is tried.
func (b *backpressure) acceptedByEngine(e *state.JobRecord) {
	w := b.waits[e.ID]
	if w == nil {
		return
	}
	b.forgetLimitedJob(w)
	b.state.Lock()
	defer b.state.Unlock()
	b.tryNext(w.pool)
}
