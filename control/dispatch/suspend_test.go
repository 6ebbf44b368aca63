package dispatch_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/dispatch"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// moody is an engine that gives prepared answers, one after the other, and then none that
// is an error.
type moody struct {
	engine.Engine
	made    chan string
	mu      sync.Mutex
	answers []error
}

func (m *moody) answer(call string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made <- call
	if len(m.answers) == 0 {
		return nil
	}
	err := m.answers[0]
	m.answers = m.answers[1:]
	return err
}

func (m *moody) Suspend(context.Context, engine.Ref) error { return m.answer("suspend") }
func (m *moody) Resume(context.Context, engine.Ref) error  { return m.answer("resume") }

func (m *moody) Stop(context.Context, engine.Ref, engine.Stop) error { return m.answer("stop") }

func (m *moody) Inspect(_ context.Context, ref engine.Ref) (engine.Report, error) {
	return engine.Report{Ref: ref, Phase: engine.Running, Suspended: true}, m.answer("inspect")
}

// TestSuspensionIsAskedForUntilItIsKnown: an answer that says nothing of the attempt, of
// whatever kind it is, leaves open whether it runs. Seen to fail (the test hung) where
// Unavailable alone had the call repeated: a job that was to make room kept its place, and
// the other one waited for ever.
func TestSuspensionIsAskedForUntilItIsKnown(t *testing.T) {
	senseless, lost := fault.New(fault.Internal, "no sense"), fault.New(fault.Unavailable, "no answer")
	for _, tt := range []struct {
		name    string
		answers []error
		calls   []string // of Park, then resume
	}{
		{"known at once", nil, []string{"suspend", "inspect", "resume"}},
		{"asked with an error", []error{senseless, lost}, []string{"suspend", "suspend", "suspend", "inspect", "resume"}},
		{"its state told with an error", []error{nil, senseless}, []string{"suspend", "inspect", "suspend", "inspect", "resume"}},
		{"it goes on with an error", []error{nil, nil, senseless}, []string{"suspend", "inspect", "resume", "resume"}},
		{"it has ended", []error{fault.New(fault.Conflict, "ended")}, []string{"suspend", "resume"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := &moody{answers: tt.answers, made: make(chan string, 9)}
			d := dispatch.New(dispatch.Config{Engine: m, Log: slog.New(slog.DiscardHandler), Pause: func(context.Context, time.Duration) error { return nil }})
			defer d.Close()
			parked := make(chan engine.Report, 1)
			d.Park(ref, func(r engine.Report) { parked <- r })
			d.Suspend(ref, false)
			for i, want := range tt.calls {
				if got := <-m.made; got != want {
					t.Fatalf("call %d is %s, want %s of %v", i, got, want, tt.calls)
				}
			}
			if slices.Contains(tt.calls, "inspect") {
				if r := <-parked; !r.Suspended {
					t.Errorf("parked as %+v", r)
				}
			}
		})
	}
}

// TestWhatIsToEndIsNotHeldUpBySuspension: an engine that cannot say whether an attempt is
// suspended is asked to end it all the same.
func TestWhatIsToEndIsNotHeldUpBySuspension(t *testing.T) {
	senseless := fault.New(fault.Internal, "no sense")
	m := &moody{made: make(chan string, 9), answers: []error{senseless, fault.New(fault.NotFound, "gone")}}
	d, paused, goOn := pausing(m)
	defer d.Close()
	d.Park(ref, func(engine.Report) { t.Error("it is suspended") })
	<-paused
	stopped := make(chan bool)
	d.Stop(ref, engine.Stop{}, func() { close(stopped) })
	m.mu.Lock()
	m.answers = []error{senseless, fault.New(fault.NotFound, "gone")}
	m.mu.Unlock()
	goOn <- true
	<-stopped
	for _, want := range []string{"suspend", "suspend", "stop"} {
		if got := <-m.made; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
