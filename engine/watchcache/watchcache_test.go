package watchcache

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/engine"
)

var errEnough = errors.New("enough")

func ref(n int) engine.Ref { return engine.Ref{Allocation: uint64(n), Attempt: 1} }

// take watches until n events have come.
func take(c *Cache, after string, n int) ([]engine.Event, error) {
	var got []engine.Event
	if n == 0 {
		return nil, errEnough
	}
	err := c.Watch(context.Background(), nil, after, func(ev engine.Event) error {
		if got = append(got, ev); len(got) == n {
			return errEnough
		}
		return nil
	})
	return got, err
}

// Whatever was published: who resumes after any event of his gets everything after
// it, once, in order; who is too far behind gets the last report of every attempt.
func TestResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(3)
		var all []engine.Event
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			c.Publish(engine.Report{Ref: ref(rapid.IntRange(1, 3).Draw(t, "attempt"))})
			last, _ := take(c, "", len(c.All()))
			all = append(all, last[len(last)-1])
		}
		for i, ev := range all {
			got, err := take(c, ev.Cursor, len(all)-i-1)
			if !errors.Is(err, errEnough) || len(got) != 0 && !reflect.DeepEqual(got, all[i+1:]) {
				t.Fatalf("after %d: %v, %v; want %v", i, got, err, all[i+1:])
			}
		}
		for i := 1; i < len(all); i++ {
			if all[i].Report.Version <= all[i-1].Report.Version {
				t.Fatal("versions do not grow")
			}
		}
		// Resuming in the middle of the present reports loses nothing either.
		present, _ := take(c, "", len(c.All()))
		for i, ev := range present {
			latest := map[engine.Ref]engine.Report{}
			for _, p := range present[:i+1] {
				latest[p.Report.Ref] = p.Report
			}
			index := 0
			for k, a := range all {
				if a.Cursor == ev.Cursor {
					index = k
				}
			}
			rest, _ := take(c, ev.Cursor, len(all)-index-1)
			for _, r := range rest {
				latest[r.Report.Ref] = r.Report
			}
			for _, want := range c.All() {
				if !reflect.DeepEqual(latest[want.Ref], want) {
					t.Fatalf("resumed after %s: %v, want %v", ev.Cursor, latest[want.Ref], want)
				}
			}
		}
	})
}

func TestTooFarBehind(t *testing.T) {
	c := New(1)
	c.Publish(engine.Report{Ref: ref(1)})
	for range 3 * keptEvents {
		c.Publish(engine.Report{Ref: ref(2)})
	}
	got, err := take(c, "1.1", 2)
	if !errors.Is(err, errEnough) || got[0].Report.Ref != ref(1) || got[1].Report.Ref != ref(2) {
		t.Errorf("%v, %v", got, err)
	}
	if len(c.recent) > 2*keptEvents {
		t.Errorf("%d events are kept", len(c.recent))
	}
	big := make([]engine.TaskReport, keptParts/4)
	for range 30 {
		c.Publish(engine.Report{Ref: ref(3), Tasks: big})
	}
	if n := len(c.recent); n > 8 {
		t.Errorf("%d events with %d tasks each are kept", n, len(big))
	}
	if got, err := take(c, c.formatCursor(c.seq-1), 1); !errors.Is(err, errEnough) || len(got[0].Report.Tasks) != len(big) {
		t.Errorf("%d events, %v", len(got), err)
	}
	wide := make([]engine.NodeReport, keptParts/4)
	for range 30 {
		c.Publish(engine.Report{Ref: ref(3), Nodes: wide})
	}
	if n := len(c.recent); n > 8 { // seen to fail with: nodes not counted
		t.Errorf("%d events with %d nodes each are kept", n, len(wide))
	}
}

func TestForgottenAndOtherEpochs(t *testing.T) {
	c := New(2)
	c.Publish(engine.Report{Ref: ref(1)})
	c.Publish(engine.Report{Ref: ref(2)})
	c.Forget(ref(1))
	if _, ok := c.Last(ref(1)); ok || len(c.All()) != 1 {
		t.Error("it is not forgotten")
	}
	for _, cursor := range []string{"1.1", "2.9", "x", "2.x", ""} {
		if got, err := take(c, cursor, 1); !errors.Is(err, errEnough) || got[0].Report.Ref != ref(2) {
			t.Errorf("cursor %q: %v, %v", cursor, got, err)
		}
	}
}

func TestWatchEnds(t *testing.T) {
	c := New(1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never := func(engine.Event) error { t.Error("an event"); return nil }
	if err := c.Watch(ctx, nil, "", never); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	closed := make(chan struct{})
	close(closed)
	if err := c.Watch(t.Context(), closed, "", never); err != nil {
		t.Errorf("%v", err)
	}
}
