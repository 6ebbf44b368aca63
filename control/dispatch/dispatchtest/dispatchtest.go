// Package dispatchtest holds a test of a driver behind a Dispatcher (control/dispatch), for drivers that
// keep a journal.
package dispatchtest

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
)

// LaunchOnFailingDisk hands an engine launches while the disk of its journal fails. The disk then
// works again: each launch must be repeated and taken, and none refused. on has the journal
// use a disk; check looks at the error of the n-th launch, from 1, on the disk that fails.
func LaunchOnFailingDisk(t *testing.T, e engine.Engine, on func(appendlog.Disk), launches []*engine.Launch, check func(n int, err error) (ok bool)) {
	t.Helper()
	var works atomic.Bool
	on(appendlog.Disk{File: func(f *os.File) error {
		if !works.Load() {
			return unix.EIO
		}
		return f.Sync()
	}})
	answered := answeredEngine{e, make(chan error, 4*len(launches))}
	repaired := make(chan struct{})
	d := dispatch.New(dispatch.Config{Engine: answered, Log: slog.New(slog.DiscardHandler), Pause: func(ctx context.Context, _ time.Duration) error {
		select {
		case <-repaired:
		case <-ctx.Done():
		}
		return ctx.Err()
	}})
	t.Cleanup(d.Close)
	refused := make(chan error, len(launches))
	for i, l := range launches {
		d.Launch(l.Ref, func(context.Context) (*engine.Launch, error) { return l, nil }, func(err error) { refused <- err })
		if err := <-answered.answers; !errors.Is(err, unix.EIO) || !check(i+1, err) {
			t.Errorf("launch %d: %v", i+1, err)
		}
	}
	works.Store(true)
	close(repaired)
	for range launches {
		select {
		case err := <-answered.answers:
			if err != nil {
				t.Error(err)
			}
		case err := <-refused:
			t.Fatalf("refused: %v", err)
		}
	}
}

// answeredEngine passes on how each launch was answered.
type answeredEngine struct {
	engine.Engine
	answers chan error
}

func (e answeredEngine) Launch(ctx context.Context, l *engine.Launch) error {
	err := e.Engine.Launch(ctx, l)
	e.answers <- err
	return err
}
