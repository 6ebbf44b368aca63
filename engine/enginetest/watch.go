package enginetest

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func testUnknown(t *testing.T, h Harness) {
	b := startBench(t, h)
	ref := engine.Ref{Allocation: 99, Attempt: 1}
	_, err := b.e.Inspect(t.Context(), ref)
	checkKind(t, err, fault.NotFound)
	checkKind(t, b.e.Stop(t.Context(), ref, engine.Stop{}), fault.NotFound)
	checkKind(t, b.e.Signal(t.Context(), ref, sigterm, engine.ToAll), fault.NotFound)
	if err := b.e.Forget(t.Context(), ref); err != nil {
		t.Errorf("forget: %v", err)
	}
	if all, err := b.e.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("list %+v, %v", all, err)
	}
}

func testEvents(t *testing.T, h Harness) {
	b := startBench(t, h)
	first, second := b.planLaunch(1, 2, Program{Exit: 1}), b.planLaunch(2, 1, Program{Run: Forever})
	b.mustLaunch(first)
	b.mustLaunch(second)
	b.awaitGone(first.Ref)
	b.awaitRunning(second.Ref)
	seen := b.seen.allEvents() // it may have begun with the present reports
	all := append(seen[:1:1], collectUntil(t, b.e, seen[0].Cursor, seen[len(seen)-1].Cursor)...)
	t.Run("Resume", func(t *testing.T) {
		if len(all) < len(seen) {
			t.Errorf("%d events after the first, %d were seen", len(all)-1, len(seen)-1)
		}
		for i, ev := range all {
			got := collectEvents(t, b.e, ev.Cursor, len(all)-i-1)
			if !reflect.DeepEqual(got, all[i+1:]) {
				t.Fatalf("after event %d of %d:\n%+v\nwant\n%+v", i, len(all), got, all[i+1:])
			}
		}
	})
	t.Run("FromTheBeginning", func(t *testing.T) {
		for _, cursor := range []string{"", "no cursor of this engine", "0.0", "999999.1", "1.999999"} {
			latest := map[engine.Ref]engine.Report{}
			for _, ev := range collectEvents(t, b.e, cursor, 2) {
				latest[ev.Report.Ref] = ev.Report
			}
			for _, l := range []*engine.Launch{first, second} {
				want, err := b.e.Inspect(t.Context(), l.Ref)
				if got := latest[l.Ref]; err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("cursor %q: %s, want %s, %v", cursor, describeReport(got), describeReport(want), err)
				}
			}
		}
	})
	t.Run("WatcherFails", func(t *testing.T) {
		mine := errors.New("mine")
		if err := b.e.Watch(t.Context(), "", func(engine.Event) error { return mine }); !errors.Is(err, mine) {
			t.Errorf("%v", err)
		}
	})
}

// collectEvents watches until n events have come.
func collectEvents(t *testing.T, e engine.Engine, after string, n int) []engine.Event {
	t.Helper()
	if n == 0 {
		return []engine.Event{}
	}
	return gatherEvents(t, e, after, func(got []engine.Event) bool { return len(got) == n })
}

// collectUntil watches until the event with a cursor has come.
func collectUntil(t *testing.T, e engine.Engine, after, cursor string) []engine.Event {
	t.Helper()
	if after == cursor {
		return nil
	}
	return gatherEvents(t, e, after, func(got []engine.Event) bool { return got[len(got)-1].Cursor == cursor })
}

func gatherEvents(t *testing.T, e engine.Engine, after string, enough func([]engine.Event) bool) []engine.Event {
	t.Helper()
	var got []engine.Event
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stop := errors.New("enough")
	err := e.Watch(ctx, after, func(ev engine.Event) error {
		if got = append(got, ev); enough(got) {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) {
		t.Errorf("watch after %q: %v", after, err)
	}
	return got
}

func testContext(t *testing.T, h Harness) {
	b := startBench(t, h)
	ref := b.launchProgram(1, Program{Run: Forever})
	b.awaitRunning(ref)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := b.planLaunch(2, 1, Program{})
	for name, call := range map[string]func() error{
		"Info":    func() error { _, err := b.e.Info(ctx); return err },
		"Nodes":   func() error { _, err := b.e.Nodes(ctx); return err },
		"Launch":  func() error { return b.e.Launch(ctx, l) },
		"Stop":    func() error { return b.e.Stop(ctx, ref, engine.Stop{}) },
		"Signal":  func() error { return b.e.Signal(ctx, ref, sigterm, engine.ToAll) },
		"Inspect": func() error { _, err := b.e.Inspect(ctx, ref); return err },
		"List":    func() error { _, err := b.e.List(ctx); return err },
		"Watch":   func() error { return b.e.Watch(ctx, "", func(engine.Event) error { return nil }) },
		"Forget":  func() error { return b.e.Forget(ctx, ref) },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r, err := b.e.Inspect(t.Context(), ref); err != nil || r.Phase != engine.Running {
		t.Errorf("a call without time left did something: %s, %v", describeReport(r), err)
	}
	if _, err := b.e.Inspect(t.Context(), l.Ref); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a launch without time left did something: %v", err)
	}
}

func testForget(t *testing.T, h Harness) {
	b := startBench(t, h)
	ref := b.launchProgram(1, Program{Run: Forever})
	b.awaitRunning(ref)
	checkKind(t, b.e.Forget(t.Context(), ref), fault.Conflict)
	b.mustStop(ref, engine.Stop{})
	b.awaitGone(ref)
	for range 2 {
		if err := b.e.Forget(t.Context(), ref); err != nil {
			t.Error(err)
		}
	}
	_, err := b.e.Inspect(t.Context(), ref)
	checkKind(t, err, fault.NotFound)
	checkKind(t, b.e.Stop(t.Context(), ref, engine.Stop{}), fault.NotFound)
}
