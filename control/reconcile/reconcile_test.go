package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/ledger"
)

func TestCompare(t *testing.T) {
	held := []ledger.Allocation{{ID: 1, Job: 11, Attempt: 1}, {ID: 2, Job: 12, Attempt: 3}, {ID: 3, Job: 13, Attempt: 1}}
	reports := []engine.Report{
		{Ref: engine.Ref{Allocation: 9, Attempt: 1}}, // nobody holds it
		{Ref: engine.Ref{Allocation: 1, Attempt: 1}},
		{Ref: engine.Ref{Allocation: 2, Attempt: 2}}, // an attempt before the one that holds
	}
	var got []string
	for _, f := range Compare(held, reports) {
		got = append(got, string(f.Kind)+" "+f.Ref.String())
	}
	want := []string{"missing 2.3", "missing 3.1", "orphan 9.1", "orphan 2.2"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if f := Compare(nil, nil); len(f) != 0 {
		t.Errorf("nothing and nothing differ: %v", f)
	}
}

// broken is an engine whose watch breaks after every second event.
type broken struct {
	engine.Engine
	events  []string // cursors
	cursors []string // that Watch was called with
}

func (b *broken) Watch(_ context.Context, after string, f func(engine.Event) error) error {
	b.cursors = append(b.cursors, after)
	from := slices.Index(b.events, after) + 1
	for _, c := range b.events[from:min(from+2, len(b.events))] {
		if err := f(engine.Event{Cursor: c}); err != nil {
			return err
		}
	}
	return errors.New("the connection broke")
}

func TestFollowGoesOnAfterTheLastEvent(t *testing.T) {
	b := &broken{events: []string{"a", "b", "c", "d", "e"}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	Follow(ctx, b, time.Microsecond, slog.New(slog.DiscardHandler), func(ev engine.Event) {
		if got = append(got, ev.Cursor); len(got) == len(b.events) {
			cancel()
		}
	})
	if !slices.Equal(got, b.events) || !slices.Equal(b.cursors, []string{"", "b", "d"}) {
		t.Errorf("delivered %q, watched after %q", got, b.cursors)
	}
}
