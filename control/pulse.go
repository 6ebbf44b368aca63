package control

import (
	"context"
	"slices"
	"time"

	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/engine"
)

// askHeartbeats asks those engines for a sign of life that can be asked for one, apart from the loop. One
// that gives it, and that had not answered before, is asked for everything again.
func (l *loop) askHeartbeats() {
	for _, p := range l.pools.AllPools() {
		q, ok := p.Engine.(engine.Pulser)
		if !ok || !p.HeartbeatPending.CompareAndSwap(false, true) {
			continue // the last question waits for its answer
		}
		p.Status.NoteHeartbeatAsked(l.cfg.Clock.Now())
		l.helpers.Go(func() {
			defer p.HeartbeatPending.Store(false)
			ctx, cancel := context.WithTimeout(l.ctx, pools.HeartbeatTimeout)
			defer cancel()
			err := q.Pulse(ctx)
			if p.Status.NoteHeartbeat(l.cfg.Clock.Now(), err) {
				_ = l.postMessage(l.ctx, message{run: func(l *loop) { // a closed loop hears nothing more
					if l.pools.ByName(p.Name) == p {
						l.whileLeading(func() { l.compareEngines(p) })
					}
				}})
			}
		})
	}
}

// maxSleep is how long the loop may sleep at the most.
func (l *loop) maxSleep() time.Duration {
	if slices.ContainsFunc(l.pools.AllPools(), (*pools.Member).HasHeartbeat) {
		return pools.HeartbeatInterval
	}
	return pools.CompareInterval
}
