package control

import (
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// compareInterval is how often an engine is asked for everything that it has.
const compareInterval = 30 * time.Second

const (
	// heartbeatInterval is how often an engine is asked for a sign of life that can be asked for one.
	heartbeatInterval = 4 * time.Second
	// heartbeatTimeout is how long it may take for it: less than that, so that one question that is lost keeps
	// none from being put.
	heartbeatTimeout = 3 * time.Second
)

// hasHeartbeat reports whether an engine can be asked for a sign of life.
func (p *pool) hasHeartbeat() bool { _, ok := p.Engine.(engine.Pulser); return ok }

// askHeartbeats asks those engines for a sign of life that can be asked for one, apart from the loop. One
// that gives it, and that had not answered before, is asked for everything again.
func (l *loop) askHeartbeats() {
	for _, p := range l.pools.allPools() {
		q, ok := p.Engine.(engine.Pulser)
		if !ok || !p.heartbeatPending.CompareAndSwap(false, true) {
			continue // the last question waits for its answer
		}
		p.status.noteHeartbeatAsked(l.cfg.Clock.Now())
		l.helpers.Go(func() {
			defer p.heartbeatPending.Store(false)
			ctx, cancel := context.WithTimeout(l.ctx, heartbeatTimeout)
			defer cancel()
			err := q.Pulse(ctx)
			if p.status.noteHeartbeat(l.cfg.Clock.Now(), err) {
				_ = l.postMessage(l.ctx, message{run: func(l *loop) { // a closed loop hears nothing more
					if l.pools.byName(p.Name) == p {
						l.whileLeading(func() { l.compareEngines(p) })
					}
				}})
			}
		})
	}
}

// maxSleep is how long the loop may sleep at the most.
func (l *loop) maxSleep() time.Duration {
	if slices.ContainsFunc(l.pools.allPools(), (*pool).hasHeartbeat) {
		return heartbeatInterval
	}
	return compareInterval
}

// noteHeartbeatAsked says that the engine is being asked for a sign of life.
func (s *engineStatus) noteHeartbeatAsked(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet.IsZero() {
		s.quiet = now
	}
}

// noteHeartbeat takes in a sign of life, or why there is none. It reports whether the engine lives and should
// be asked again what it did not answer: soon, where it gave no sign of life either, and less and less
// often, where it lives and fails at that.
func (s *engineStatus) noteHeartbeat(now time.Time, err error) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hush = err
	if err != nil {
		s.pause = 0
		return false
	}
	s.quiet = time.Time{}
	if s.failed == nil || fault.KindOf(s.failed) != fault.Unavailable || !s.asked.IsZero() || now.Sub(s.last) < max(s.pause, heartbeatInterval) {
		return false
	}
	s.pause = min(2*max(s.pause, heartbeatInterval), compareInterval)
	return true
}

// setFailure takes in that a question got no answer; nil: it got one. The caller holds the lock.
func (s *engineStatus) setFailure(err error) {
	switch {
	case err == nil:
		s.since, s.pause = time.Time{}, 0
	case s.failed == nil || s.since.IsZero():
		s.since = s.last
	}
	s.failed = err
}
