package simulate

import "time"

// wall is the clock of one server: the machine's wall clock, which may be set, and
// timers that do not care about that.
type wall struct {
	w *World
	s *server
}

// Now is the time that the wall clock shows.
func (c wall) Now() time.Time { return time.Now().Add(time.Duration(c.w.offset.Load())) }

// After is a timer; it fires through a gate, one at a time.
func (c wall) After(d time.Duration) (<-chan time.Time, func()) {
	fire := make(chan time.Time, 1)
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.s.dead {
		return fire, func() {}
	}
	g := c.w.gateAt(c.s, c.w.uniqueKey(c.s.name+" timer"), c.w.elapsedTime()+max(d, 0), func(string) { fire <- c.Now() })
	g.quiet = true
	return fire, func() {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		g.closed = true
	}
}
