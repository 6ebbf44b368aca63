package fake_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// A node that falls silent and comes back: its work went on, and what was asked of it
// meanwhile is heard then.
func TestSilenceAndReturn(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{Run: time.Minute})
	w.pass(0)
	w.Silence("f2")
	if r := w.report(); !r.Uncertain || r.Phase != engine.Running {
		t.Errorf("silent: %+v", r)
	}
	w.pass(time.Second)
	w.stop(0)
	w.pass(time.Second)
	if r := w.report(); !r.Uncertain || r.Gone {
		t.Errorf("stopped while nobody hears it: %+v", r)
	}
	w.Return("f2")
	w.pass(0)
	if r := w.report(); r.Uncertain || !r.Gone || r.Cause != engine.Stopped {
		t.Errorf("back: %+v", r)
	}
}

func TestEndsUnseen(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{Run: time.Minute})
	w.pass(0)
	w.Silence("f1")
	w.pass(time.Hour)
	if r := w.report(); !r.Uncertain || r.Gone {
		t.Errorf("silent: %+v", r)
	}
	w.Return("f1")
	if r := w.report(); !r.Gone || r.Cause != engine.Exited || !r.Ended.Equal(r.Started.Add(time.Minute)) {
		t.Errorf("back: %+v", r)
	}
}

func TestLoseEndsTheGang(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{Run: fake.Never})
	w.pass(0)
	w.Silence("f2")
	w.Lose("f2")
	if r := w.report(); !r.Gone || r.Cause != engine.NodeLost {
		t.Errorf("%+v", r)
	}
}

func TestWipeForgets(t *testing.T) {
	var last engine.Report
	w := begin(t, fake.Config{Truth: func(r engine.Report) { last = r }}, fake.Outcome{Run: fake.Never})
	w.pass(0)
	if err := w.e.Close(); err != nil {
		t.Fatal(err)
	}
	w.Wipe()
	w.e = w.Open()
	if _, err := w.e.Inspect(t.Context(), w.ref); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after it forgot everything: %v", err)
	}
	if last.Phase != engine.Ended {
		t.Errorf("what ran did not end: %+v", last)
	}
}
