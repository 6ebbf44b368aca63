package control_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// lively is a hand that can be asked for a sign of life.
type lively struct {
	*mute
	down   atomic.Bool // what it drives does not answer
	pulses atomic.Int32
	looks  atomic.Int32 // questions for nodes
}

func (v *lively) Pulse(ctx context.Context) error {
	defer v.pulses.Add(1)
	if v.down.Load() {
		return fault.New(fault.Unavailable, "connection refused")
	}
	return v.hang(ctx)
}

func (v *lively) Nodes(ctx context.Context) ([]fleet.Node, error) {
	defer v.looks.Add(1)
	if v.down.Load() {
		return nil, fault.New(fault.Unavailable, "connection refused")
	}
	return v.mute.Nodes(ctx)
}

// TestAPoolWithoutASignOfLife: one that can be asked for it is, every few seconds, and since when it
// gives none is known, though nothing else is asked of it at that time.
func TestAPoolWithoutASignOfLife(t *testing.T) {
	c := newClock()
	q := &lively{mute: newMute(named("b", 1, 8))}
	b := two(t, named("a", 1, 8), q, control.Config{Clock: c})
	v := b.viewed(c, "q", func(v pools.View) bool {
		return v.Info != nil && v.Asked.IsZero() && v.Quiet.IsZero() && q.pulses.Load() > 0
	})
	if !v.Pulses {
		t.Errorf("%+v", v)
	}
	from := c.Now()
	q.hush()
	v = b.viewed(c, "q", func(v pools.View) bool { return !v.Quiet.IsZero() && c.Now().Sub(v.Quiet) >= 10*time.Second })
	if v.Quiet.Before(from) {
		t.Errorf("it is silent since %s, and gave a sign of life at %s", v.Quiet, from)
	}
	for _, p := range b.ctl.Pools() {
		if p.Name != "q" && (p.Pulses || !p.Quiet.IsZero()) {
			t.Errorf("%+v", p)
		}
	}
}

// TestAPoolThatIsBackIsAskedAgain: one that did not answer a question, and gives a sign of life, is
// asked again before it is time for that.
func TestAPoolThatIsBackIsAskedAgain(t *testing.T) {
	c := newClock()
	q := &lively{mute: newMute(named("b", 1, 8))}
	b := two(t, named("a", 1, 8), q, control.Config{Clock: c})
	view := func() (v pools.View) {
		for _, p := range b.ctl.Pools() {
			if p.Name == "q" {
				v = p
			}
		}
		return v
	}
	within := func(most time.Duration, ok func() bool) bool { // no time passes by the clock
		for end := time.Now().Add(most); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return false
			}
		}
		return true
	}
	b.viewed(c, "q", func(v pools.View) bool { return v.Info != nil && v.Asked.IsZero() })
	q.down.Store(true)
	b.viewed(c, "q", func(v pools.View) bool { return v.Failed != nil })
	for looks := q.looks.Load(); q.looks.Load() == looks; { // until it has just been asked, as it is from time to time
		b.pass(c, time.Second)
		within(20*time.Millisecond, func() bool { return q.looks.Load() > looks })
	}
	if !within(2*time.Minute, func() bool { v := view(); return v.Asked.IsZero() && !v.Quiet.IsZero() && v.Hush != nil }) {
		t.Fatalf("%+v", view())
	}
	if v := view(); fault.KindOf(v.Failed) != fault.Unavailable || v.Since.IsZero() {
		t.Errorf("%+v", v)
	}
	q.down.Store(false)
	for from := c.Now(); c.Now().Sub(from) < 20*time.Second; { // before it is asked as it is from time to time
		pulses := q.pulses.Load()
		b.pass(c, 4*time.Second)
		within(time.Second, func() bool { return q.pulses.Load() > pulses })
	}
	if !within(2*time.Minute, func() bool { v := view(); return v.Failed == nil && v.Asked.IsZero() }) {
		t.Errorf("%+v", view())
	}
}

// flaky is a hand that gives a sign of life, but for the first, which is lost, and none of the nodes.
type flaky struct {
	*hand
	clock  func() time.Time
	lost   atomic.Int32 // signs of life that are still to be lost
	down   atomic.Bool  // its nodes are not to be had
	mu     sync.Mutex
	looked []time.Time // at its nodes
}

func (f *flaky) Pulse(ctx context.Context) error {
	if f.lost.Add(-1) < 0 {
		return nil
	}
	<-ctx.Done()
	return fault.New(fault.Unavailable, "no answer: %w", ctx.Err())
}

func (f *flaky) Nodes(ctx context.Context) ([]fleet.Node, error) {
	f.mu.Lock()
	f.looked = append(f.looked, f.clock())
	f.mu.Unlock()
	if f.down.Load() {
		return nil, fault.New(fault.Unavailable, "too many requests")
	}
	return f.hand.Nodes(ctx)
}

// TestASignOfLifeThatIsLost: the next one is asked for, and had, before the pool is called silent.
//
// Seen to fail with: five seconds for each.
func TestASignOfLifeThatIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &flaky{hand: named("b", 1, 8), clock: time.Now}
		b := two(t, named("a", 1, 8), q, control.Config{})
		time.Sleep(time.Minute)
		q.lost.Store(1)
		for range 60 {
			time.Sleep(500 * time.Millisecond)
			for _, v := range b.ctl.Pools() {
				if v.Name == "q" && !v.Quiet.IsZero() && time.Since(v.Quiet) >= 6*time.Second {
					t.Fatalf("it gave no sign of life for %s: %v", time.Since(v.Quiet), v.Hush)
				}
			}
		}
		if q.lost.Load() >= 0 {
			t.Error("none was lost")
		}
	})
}

// TestAPoolThatLivesAndFails: one that gives signs of life and does not answer what else it is asked is
// asked for that again soon, then less and less often: each time it has to list everything. One that
// was away for a moment is asked soon after it is back.
//
// Seen to fail with: the same pause each time; a pause of twice that at first; one that stays long.
func TestAPoolThatLivesAndFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &flaky{hand: named("b", 1, 8), clock: time.Now}
		two(t, named("a", 1, 8), q, control.Config{})
		time.Sleep(time.Minute)
		gaps := func(during time.Duration) (out []time.Duration) {
			q.mu.Lock()
			q.looked = nil
			q.mu.Unlock()
			time.Sleep(during)
			q.mu.Lock()
			defer q.mu.Unlock()
			for i := 1; i < len(q.looked); i++ {
				out = append(out, q.looked[i].Sub(q.looked[i-1]))
			}
			return out
		}
		q.down.Store(true)
		all := gaps(5 * time.Minute)
		if len(all) < 3 || all[0] > 4*time.Second {
			t.Fatalf("it is asked again after %v", all)
		}
		if n := len(gaps(5 * time.Minute)); n > 20 {
			t.Errorf("%d times in five minutes, at last", n)
		}
		q.down.Store(false)
		time.Sleep(time.Minute)
		q.down.Store(true)
		if again := gaps(5 * time.Minute); len(again) < 3 || again[0] > 4*time.Second {
			t.Errorf("after it had answered it is asked again after %v", again)
		}
	})
}
