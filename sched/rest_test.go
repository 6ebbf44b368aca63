package sched_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/sched"
)

// alarms lets a copy of the core go on by its alarms alone, as a server does to which
// nothing happens: it comes to rest, or goes on in time. One that asks to be stepped at
// once for ever hangs its server.
func (w *world) alarms(t *rapid.T) { goOn(t, w.core, w.now) }

func goOn(t *rapid.T, core *sched.Core, now sched.Instant) {
	const most = 48 // alarms in a second
	c, begin, n := sched.Load(core.Snapshot()), now, 0
	for range 200 {
		next := c.Next()
		if next == 0 {
			return
		}
		if now = max(now, next); now >= begin+sched.Instant(time.Second) {
			begin, n = now, 0
		}
		if n++; n > most {
			t.Fatalf("%d alarms within a second, the last one for %d at %d", n, next, now)
		}
		c.Step(now)
	}
}
