package fake_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
)

// world is one attempt of a scripted outcome.
type world struct {
	*testing.T
	clock *clock
	*fake.World
	e   *fake.Engine
	ref engine.Ref
}

func begin(t *testing.T, cfg fake.Config, o fake.Outcome) *world {
	t.Helper()
	w := &world{T: t, clock: newClock(), ref: engine.Ref{Allocation: 1, Attempt: 1}}
	cfg.Now, cfg.Nodes = w.clock.Now, nodes("f1", "f2")
	cfg.Script = func(*engine.Launch) fake.Outcome { return o }
	w.World = fake.NewWorld(cfg)
	w.e = w.Open()
	w.launch()
	return w
}

func (w *world) launch() {
	w.Helper()
	err := w.e.Launch(w.Context(), &engine.Launch{
		Ref: w.ref, Job: &job.Job{ID: 1, Spec: &job.Spec{}}, Grace: time.Minute,
		Claims: []fleet.Claim{{Node: "f1"}, {Node: "f2"}},
	})
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) pass(d time.Duration) { w.clock.pass(d); w.Advance() }

func (w *world) report() engine.Report {
	w.Helper()
	r, err := w.e.Inspect(w.Context(), w.ref)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

func (w *world) stop(grace time.Duration) {
	w.Helper()
	if err := w.e.Stop(w.Context(), w.ref, engine.Stop{Grace: grace}); err != nil {
		w.Fatal(err)
	}
}

func TestTimesAreThoseOfTheOutcome(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{Ready: time.Second, Run: time.Hour})
	began := w.clock.Now()
	if at, ok := w.Next(); !ok || !at.Equal(began.Add(time.Second)) {
		t.Errorf("next at %s, %t", at, ok)
	}
	w.pass(2 * time.Hour) // late: what happened meanwhile has its own time
	r := w.report()
	if r.Phase != engine.Ended || !r.Started.Equal(began.Add(time.Second)) || !r.Ended.Equal(r.Started.Add(time.Hour)) {
		t.Errorf("%+v", r)
	}
	if _, ok := w.Next(); ok {
		t.Error("something is to happen after the end")
	}
}

func TestImmuneLivesUntilReleased(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{Run: fake.Never, Immune: true})
	w.pass(0)
	w.stop(time.Second)
	w.pass(time.Hour)
	if r := w.report(); r.Gone || r.Phase != engine.Ending {
		t.Errorf("%+v", r)
	}
	w.Release(w.ref)
	if r := w.report(); !r.Gone || r.Cause != engine.Stopped || r.Exit.Signal != 9 {
		t.Errorf("%+v", r)
	}
}

func TestSilentNodeIsUncertain(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{Run: time.Minute, LoseNode: "f2", Silent: true, After: time.Second})
	w.pass(time.Hour)
	w.stop(0)
	w.pass(time.Hour)
	if r := w.report(); !r.Uncertain || r.Gone {
		t.Errorf("%+v", r)
	}
	w.Release(w.ref)
	if r := w.report(); r.Uncertain || !r.Gone || r.Cause == "" {
		t.Errorf("%+v", r)
	}
}

func TestLostNode(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{Run: time.Minute, LoseNode: "f2", After: time.Second})
	w.pass(time.Hour)
	if r := w.report(); r.Cause != engine.NodeLost || !r.Gone || r.Exit.OK() || !r.Ended.Equal(r.Started.Add(time.Second)) {
		t.Errorf("%+v", r)
	}
}

func TestOutOfMemory(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{Exit: fake.Exit{Code: job.ExitCode{Signal: 9}, OOM: true}})
	w.pass(0)
	if r := w.report(); r.Cause != engine.OutOfMemory || !r.Gone {
		t.Errorf("%+v", r)
	}
}

// A lost answer has done its work, a lost call has not.
func TestFaults(t *testing.T) {
	lost := fault.New(fault.Unavailable, "lost")
	var before, after string
	w := begin(t, fake.Config{Fault: func(c fake.Call) (error, error) {
		var b, a error
		if c.Name == before {
			b = lost
		}
		if c.Name == after {
			a = lost
		}
		return b, a
	}}, fake.Outcome{Run: fake.Never})
	w.pass(0)
	before = "stop"
	if err := w.e.Stop(t.Context(), w.ref, engine.Stop{}); !errors.Is(err, lost) {
		t.Error(err)
	}
	w.pass(0)
	if r := w.report(); r.Phase != engine.Running {
		t.Errorf("a lost call was heard: %+v", r)
	}
	before, after = "", "stop"
	if err := w.e.Stop(t.Context(), w.ref, engine.Stop{}); !errors.Is(err, lost) {
		t.Error(err)
	}
	w.pass(0)
	if r := w.report(); r.Phase != engine.Ended {
		t.Errorf("a call whose answer was lost did nothing: %+v", r)
	}
}

func TestSignalsAreRecorded(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{Run: fake.Never})
	w.pass(0)
	for _, n := range []int{10, 12} {
		if err := w.e.Signal(t.Context(), w.ref, n, engine.ToAll); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.Signals(w.ref); !slices.Equal(got, []int{10, 12}) {
		t.Errorf("%v", got)
	}
}

// What happens while no driver is open is there for the next one.
func TestWorldOutlivesItsDriver(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{Run: time.Minute, Exit: fake.Exit{Code: job.ExitCode{Status: 4}}})
	w.pass(time.Second)
	was := w.report()
	if err := w.e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.e.Inspect(t.Context(), w.ref); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a closed driver: %v", err)
	}
	w.pass(time.Hour)
	w.e = w.Open()
	if r := w.report(); !r.Gone || r.Exit.Status != 4 || r.Version <= was.Version {
		t.Errorf("%+v", r)
	}
}

// What was set up of a launch that failed is there until it was taken away.
func TestUndoTakesTime(t *testing.T) {
	w := begin(t, fake.Config{}, fake.Outcome{FailNode: "f2", Undo: time.Minute})
	w.pass(time.Second)
	if r := w.report(); r.Gone || r.Cause != engine.LaunchFailed || !r.Started.IsZero() {
		t.Errorf("%+v", r)
	}
	w.pass(time.Hour)
	if r := w.report(); !r.Gone || r.Cause != engine.LaunchFailed || r.Exit.OK() {
		t.Errorf("%+v", r)
	}
}
