package kube

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-sched/coxswain/control/dispatch"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/appendlog"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestALaunchMeetsADiskThatFails for a moment: it is repeated, and none is refused, whether the disk
// fails at its own entry or after another's. Nothing of it was written down, and the job is not to fail
// for it.
//
// Seen to fail with: the disk's error as it is.
func TestALaunchMeetsADiskThatFails(t *testing.T) {
	s := newStand(t, "n1", "n2")
	e := s.open(nil)
	var well atomic.Bool
	e.log.file.On(appendlog.Disk{File: func(f *os.File) error {
		if !well.Load() {
			return unix.EIO
		}
		return f.Sync()
	}})
	calls := toldEngine{e, make(chan error, 8)}
	mended := make(chan struct{})
	d := dispatch.New(dispatch.Config{Engine: calls, Log: slog.New(slog.DiscardHandler), Pause: func(ctx context.Context, _ time.Duration) error {
		select {
		case <-mended:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	t.Cleanup(d.Close)
	refused := make(chan error, 2)
	for n := uint64(1); n < 3; n++ {
		l := launchOn(n, "n1")
		d.Launch(l.Ref, func(context.Context) (*engine.Launch, error) { return l, nil }, func(err error) { refused <- err })
		if err := <-calls.answers; !errors.Is(err, unix.EIO) || fault.KindOf(err) != fault.Unavailable || fault.Remedy(err) != "look at the disk of the state directory" {
			t.Errorf("launch %d: %v, %v; %q", n, fault.KindOf(err), err, fault.Remedy(err))
		}
	}
	well.Store(true)
	close(mended)
	for range 2 {
		select {
		case err := <-calls.answers:
			if err != nil {
				t.Error(err)
			}
		case err := <-refused:
			t.Fatalf("refused: %v", err)
		}
	}
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	if len(e.log.lives) != 2 {
		t.Errorf("%d attempts are in the journal", len(e.log.lives))
	}
}

// toldEngine says how each launch was answered.
type toldEngine struct {
	engine.Engine
	answers chan error
}

func (e toldEngine) Launch(ctx context.Context, l *engine.Launch) error {
	err := e.Engine.Launch(ctx, l)
	e.answers <- err
	return err
}
