package enginetest

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
)

// watcher records every event of a driver and checks the rules that hold always.
type watcher struct {
	t      *testing.T
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	events []engine.Event
	before map[engine.Ref]engine.Report // the last report of each attempt
	more   chan struct{}
}

// startWatch begins to watch; t.Cleanup ends it.
func startWatch(t *testing.T, e engine.Engine) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{t: t, cancel: cancel, done: make(chan struct{}), before: map[engine.Ref]engine.Report{}, more: make(chan struct{})}
	go func() {
		defer close(w.done)
		_ = e.Watch(ctx, "", func(ev engine.Event) error {
			w.takeEvent(ev)
			return nil
		})
	}()
	t.Cleanup(w.stop)
	return w
}

func (w *watcher) stop() {
	w.cancel()
	<-w.done
}

// continueFrom tells what an earlier driver reported last.
func (w *watcher) continueFrom(earlier *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ref, was := range earlier.before {
		for _, ev := range w.events {
			if ev.Report.Ref == ref && ev.Report.Version <= was.Version {
				w.t.Errorf("after a restart: %s has no larger version than %s", describeReport(ev.Report), describeReport(was))
			}
		}
		if _, ok := w.before[ref]; !ok {
			w.before[ref] = was
		}
	}
}

func (w *watcher) takeEvent(ev engine.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := ev.Report
	if was, ok := w.before[r.Ref]; ok {
		w.compareReports(was, r)
	}
	w.checkReport(ev)
	w.before[r.Ref] = r
	w.events = append(w.events, ev)
	close(w.more)
	w.more = make(chan struct{})
}

// checkReport holds for every report by itself.
func (w *watcher) checkReport(ev engine.Event) {
	r := ev.Report
	wrong := func(what string) { w.t.Errorf("%s: %s", what, describeReport(r)) }
	switch {
	case ev.Cursor == "":
		wrong("an event without a cursor")
	case r.Ref == engine.Ref{} || r.Job == 0:
		wrong("a report about nothing")
	case r.Gone != (r.Phase == engine.Ended):
		wrong("ended and gone are not the same")
	case r.Gone && r.Uncertain:
		wrong("gone and uncertain at once")
	case r.Phase == engine.Ended && r.Cause == "":
		wrong("an end without a cause")
	case r.Phase == engine.Ended && r.Ended.IsZero():
		wrong("an end without a time")
	case r.Cause == engine.LaunchFailed && r.Message == "":
		wrong("a failed launch without a message")
	case r.Phase == engine.Running && r.Started.IsZero():
		wrong("running without a start")
	case r.Phase == engine.Ended && slices.ContainsFunc(r.Tasks, func(t engine.TaskReport) bool { return t.Running }):
		wrong("ended while a task runs")
	case r.Phase < engine.Running && len(r.Tasks) > 0:
		wrong("a task before the barrier")
	}
}

// compareReports holds between two reports of one attempt in a row.
func (w *watcher) compareReports(was, r engine.Report) {
	wrong := func(what string) { w.t.Errorf("%s: %s after %s", what, describeReport(r), describeReport(was)) }
	switch {
	case r.Version < was.Version, r.Version == was.Version && !reflect.DeepEqual(r, was):
		wrong("the version did not grow")
	case r.Phase < was.Phase && !was.Uncertain:
		wrong("the phase shrank")
	case was.Phase == engine.Ended && (r.Cause != was.Cause || r.Exit != was.Exit):
		wrong("another end after the end")
	case !was.Started.IsZero() && !r.Started.Equal(was.Started):
		wrong("another start after the start")
	case was.Cause != "" && r.Cause != was.Cause && was.Cause != engine.Exited:
		wrong("another cause after the cause")
	}
}

// findReport returns the first report of an attempt that is wanted, and otherwise a
// channel that is closed at the next event.
func (w *watcher) findReport(ref engine.Ref, want func(engine.Report) bool) (engine.Report, bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range w.events {
		if ev.Report.Ref == ref && want(ev.Report) {
			return ev.Report, true, nil
		}
	}
	return engine.Report{}, false, w.more
}

func (w *watcher) lastReport(ref engine.Ref) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r, ok := w.before[ref]; ok {
		return describeReport(r)
	}
	return "none"
}

// allEvents returns the events so far.
func (w *watcher) allEvents() []engine.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.events)
}
