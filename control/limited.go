package control

import (
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/job"
)

// whenRoom is when a job is launched again for which a limit of its pool's engine had no room:
// when that says that there is more, and a while later at the latest. What was said just before
// the refusal was heard of may have been about this one.
func (l *loop) whenRoom(e *entry) time.Time {
	now := l.cfg.Clock.Now()
	if said, ok := l.roomy[e.last.pool]; ok && now.Sub(said) < limitedSoon*l.cfg.Backoff {
		delete(l.roomy, e.last.pool) // once
		return now.Add(l.cfg.Backoff)
	}
	return now.Add(limitedPauses * l.cfg.Backoff)
}

// room is the message that limits of a pool's engine have more room: the jobs that wait for it
// are launched again, as soon as it is their turn.
func (l *loop) room(pool string) message {
	return message{run: func(l *loop) {
		l.state.mu.Lock()
		defer l.state.mu.Unlock()
		if l.roomy == nil {
			l.roomy = map[string]time.Time{}
		}
		l.roomy[pool] = l.cfg.Clock.Now()
		var waiting []*entry
		for _, e := range l.state.jobs {
			if e.state == job.Pending && e.more != nil && e.more.again > 0 && e.report().Cause == engine.Limited && e.last.pool == pool {
				waiting = append(waiting, e)
			}
		}
		slices.SortFunc(waiting, func(a, b *entry) int { return int(a.id) - int(b.id) })
		for _, e := range waiting {
			e.more.again = 0
			l.state.regate(e)
		}
	}}
}
