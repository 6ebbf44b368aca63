package control

import (
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

const (
	// pulseEach is how often an engine is asked for a sign of life that can be asked for one.
	pulseEach = 4 * time.Second
	// pulseWithin is how long it may take for it: less than that, so that one question that is lost keeps
	// none from being put.
	pulseWithin = 3 * time.Second
)

// pulses reports whether an engine can be asked for a sign of life.
func (p *pool) pulses() bool { _, ok := p.Engine.(engine.Pulser); return ok }

// pulse asks those engines for a sign of life that can be asked for one, apart from the loop. One
// that gives it, and that had not answered before, is asked for everything again.
func (l *loop) pulse() {
	for _, p := range l.pools.each() {
		q, ok := p.Engine.(engine.Pulser)
		if !ok || !p.pulsing.CompareAndSwap(false, true) {
			continue // the last question waits for its answer
		}
		p.said.listen(l.cfg.Clock.Now())
		l.helpers.Go(func() {
			defer p.pulsing.Store(false)
			ctx, cancel := context.WithTimeout(l.ctx, pulseWithin)
			defer cancel()
			err := q.Pulse(ctx)
			if p.said.beat(l.cfg.Clock.Now(), err) {
				_ = l.post(l.ctx, message{run: func(l *loop) { // a closed loop hears nothing more
					if l.pools.find(p.Name) == p {
						l.whileLeading(func() { l.compare(p) })
					}
				}})
			}
		})
	}
}

// nextPulse is how long the loop may sleep at the most.
func (l *loop) nextPulse() time.Duration {
	if slices.ContainsFunc(l.pools.each(), (*pool).pulses) {
		return pulseEach
	}
	return compareEach
}

// listen says that the engine is being asked for a sign of life.
func (s *said) listen(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quiet.IsZero() {
		s.quiet = now
	}
}

// beat takes in a sign of life, or why there is none. It reports whether the engine lives and should
// be asked again what it did not answer: soon, where it gave no sign of life either, and less and less
// often, where it lives and fails at that.
func (s *said) beat(now time.Time, err error) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hush = err
	if err != nil {
		s.pause = 0
		return false
	}
	s.quiet = time.Time{}
	if s.failed == nil || fault.KindOf(s.failed) != fault.Unavailable || !s.asked.IsZero() || now.Sub(s.last) < max(s.pause, pulseEach) {
		return false
	}
	s.pause = min(2*max(s.pause, pulseEach), compareEach)
	return true
}

// failing takes in that a question got no answer; nil: it got one. The caller holds the lock.
func (s *said) failing(err error) {
	switch {
	case err == nil:
		s.since, s.pause = time.Time{}, 0
	case s.failed == nil || s.since.IsZero():
		s.since = s.last
	}
	s.failed = err
}
