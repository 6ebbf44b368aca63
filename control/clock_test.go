package control_test

import (
	"sync"
	"time"
)

// clock is a clock that the test moves.
type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*waiter]bool
}

type waiter struct {
	at time.Time
	c  chan time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), timers: map[*waiter]bool{}}
}

func (c *clock) Now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.now }

func (c *clock) After(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := &waiter{c.now.Add(d), make(chan time.Time, 1)}
	c.timers[w] = true
	c.fire()
	return w.c, func() { c.mu.Lock(); defer c.mu.Unlock(); delete(c.timers, w) }
}

// fire delivers what is due; the caller holds the lock.
func (c *clock) fire() {
	for w := range c.timers {
		if !w.at.After(c.now) {
			delete(c.timers, w)
			w.c <- c.now
		}
	}
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.fire()
}

// goesOn has time go on, by five seconds now and then, until stop is called: nobody says when the
// control plane waits for its clock.
func (c *clock) goesOn() (stop func()) {
	stopped, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.pass(5 * time.Second)
			case <-stopped:
				return
			}
		}
	}()
	return func() { close(stopped); <-over }
}
