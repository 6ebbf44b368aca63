package dispatch_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/dispatch"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestWhatWasGivenUpIsNotLaunchedAgain: the stop that bars it got no answer and may
// arrive at any time, so another launch could be ended by it.
func TestWhatWasGivenUpIsNotLaunchedAgain(t *testing.T) {
	none := fault.New(fault.NotFound, "nothing of it here")
	lost := 2
	a := &answers{launch: fault.New(fault.Invalid, "not this one"), inspect: none}
	a.stop = func() error {
		if lost--; lost >= 0 {
			return fault.New(fault.Unavailable, "no answer")
		}
		return none
	}
	d := dispatch.New(dispatch.Config{Engine: a, Log: slog.New(slog.DiscardHandler), Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	defer d.Close()
	refused := make(chan error, 1)
	d.Launch(ref, load, func(err error) { refused <- err })
	select {
	case err := <-refused:
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("refused because %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("it was never refused")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if want := []string{"launch", "stop", "stop", "stop"}; !slices.Equal(a.calls, want) {
		t.Errorf("calls are %v, want %v", a.calls, want)
	}
}
