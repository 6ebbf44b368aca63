package load

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// rate is how much faster than the machine's clock the server's runs.
const rate = 720

// clock runs at rate, but never beyond what it was granted: the clients of the test
// decide how far the day is.
type clock struct {
	mu      sync.Mutex
	now     time.Time
	granted time.Time
	timers  alarms
}

// alarm is a call of After.
type alarm struct {
	at time.Time
	c  chan time.Time
}

type alarms []*alarm

func (a alarms) Len() int           { return len(a) }
func (a alarms) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a alarms) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *alarms) Push(x any)        { *a = append(*a, x.(*alarm)) }
func (a *alarms) Pop() any {
	old := *a
	x := old[len(old)-1]
	*a = old[:len(old)-1]
	return x
}

// Now implements control.Clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After implements control.Clock.
func (c *clock) After(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{c.now.Add(d), make(chan time.Time, 1)}
	if d <= 0 {
		a.c <- c.now
		return a.c, func() {}
	}
	heap.Push(&c.timers, a)
	return a.c, func() { c.release(a) }
}

func (c *clock) release(a *alarm) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, have := range c.timers {
		if have == a {
			heap.Remove(&c.timers, i)
			return
		}
	}
}

// grant lets the clock go on to a time.
func (c *clock) grant(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.granted = to
}

// tick is the machine's time between two steps of the clock.
const tick = 5 * time.Millisecond

// run moves the clock until ctx ends; moved is called after each step.
func (c *clock) run(ctx context.Context, moved func()) {
	t := time.NewTicker(tick)
	defer t.Stop()
	last := time.Now()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		past := min(time.Since(last), 4*tick) // a machine that stood still makes no jump
		last = time.Now()
		c.step(past * rate)
		moved()
	}
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to := c.now.Add(d); to.Before(c.granted) {
		c.now = to
	} else if c.granted.After(c.now) {
		c.now = c.granted
	}
	for len(c.timers) > 0 && !c.timers[0].at.After(c.now) {
		heap.Pop(&c.timers).(*alarm).c <- c.now
	}
}
