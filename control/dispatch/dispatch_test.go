package dispatch_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coxswain-sched/coxswain/control/dispatch"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ref = engine.Ref{Allocation: 7, Attempt: 1}

// answers is an engine that gives the same answers to every call and writes down
// which calls were made.
type answers struct {
	engine.Engine
	launch, inspect error
	stop            func() error // nil: as inspect
	forget          func() error // nil: success

	signal chan bool // closed by Signal

	mu    sync.Mutex
	calls []string
}

func (a *answers) note(call string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, call)
}

func (a *answers) Launch(context.Context, *engine.Launch) error { a.note("launch"); return a.launch }

func (a *answers) Stop(context.Context, engine.Ref, engine.Stop) error {
	a.note("stop")
	if a.stop != nil {
		return a.stop()
	}
	return a.inspect
}

func (a *answers) Forget(context.Context, engine.Ref) error {
	a.note("forget")
	if a.forget != nil {
		return a.forget()
	}
	return nil
}

func (a *answers) Signal(context.Context, engine.Ref, int, engine.Scope) error {
	close(a.signal)
	return nil
}

func (a *answers) Inspect(context.Context, engine.Ref) (engine.Report, error) {
	return engine.Report{Phase: engine.Accepted}, a.inspect
}

func load(context.Context) (*engine.Launch, error) { return &engine.Launch{Ref: ref}, nil }

// TestAStopIsNotHeldUpByALaunch gives a launch and, while it is without an answer,
// a stop.
func TestAStopIsNotHeldUpByALaunch(t *testing.T) {
	lost := fault.New(fault.Unavailable, "no answer")
	none := fault.New(fault.NotFound, "nothing of it here")
	for _, tt := range []struct {
		name            string
		launch, inspect error
		refused         bool
		calls           []string // after the first launch
	}{
		{"the engine never had it", lost, none, true, []string{"stop"}},
		{"the engine has it", lost, nil, false, []string{"stop"}},
		{"the engine has it as something else", fault.New(fault.Conflict, "known"), nil, false, []string{"stop"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &answers{launch: tt.launch, inspect: tt.inspect}
			paused, goOn, done := make(chan bool, 1), make(chan bool), make(chan bool)
			d := dispatch.New(dispatch.Config{Engine: a, Log: slog.New(slog.DiscardHandler), Pause: func(ctx context.Context, _ time.Duration) error {
				paused <- true
				select {
				case <-goOn:
				case <-ctx.Done():
				}
				return ctx.Err()
			}})
			defer d.Close()
			refused := false
			d.Launch(ref, load, func(error) { refused = true })
			if fault.KindOf(tt.launch) == fault.Unavailable {
				<-paused
				d.Stop(ref, engine.Stop{}, nil)
				goOn <- true
			} else {
				d.Stop(ref, engine.Stop{}, nil)
			}
			a.signal = done
			d.Signal(ref, 1, engine.ToAll)
			select { // calls go out in order: the two before it are done
			case <-done:
			case <-paused:
				t.Fatal("the launch is repeated, and the stop waits")
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if i := slices.Index(a.calls, "stop"); i < 0 || refused != tt.refused {
				t.Errorf("calls %v, refused: %v, want %v", a.calls, refused, tt.refused)
			}
		})
	}
}

// TestALaunchThatIsToBeStoppedDoesNotGoOut holds the first call up until the
// launch and its stop are both given.
func TestALaunchThatIsToBeStoppedDoesNotGoOut(t *testing.T) {
	a := &answers{inspect: fault.New(fault.NotFound, "nothing of it here")}
	d := dispatch.New(dispatch.Config{Engine: a, Log: slog.New(slog.DiscardHandler)})
	defer d.Close()
	begin, refused := make(chan bool), make(chan error, 1)
	d.Launch(ref, func(context.Context) (*engine.Launch, error) {
		<-begin
		return nil, fault.New(fault.Internal, "the script cannot be read")
	}, func(error) {})
	d.Launch(ref, load, func(err error) { refused <- err })
	d.Stop(ref, engine.Stop{}, nil)
	close(begin)
	if err := <-refused; err == nil {
		t.Error("refused without an error")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.calls, "launch") {
		t.Errorf("calls %v", a.calls)
	}
}

// sleeper is an engine that can suspend.
type sleeper struct {
	engine.Engine
	calls chan string
}

func (s *sleeper) Suspend(context.Context, engine.Ref) error { s.calls <- "suspend"; return nil }
func (s *sleeper) Resume(context.Context, engine.Ref) error  { s.calls <- "resume"; return nil }

func TestSuspendAndResumeKeepTheirOrder(t *testing.T) {
	s := &sleeper{calls: make(chan string, 4)}
	d := dispatch.New(dispatch.Config{Engine: s, Log: slog.New(slog.DiscardHandler)})
	for range 2 {
		d.Suspend(ref, true)
		d.Suspend(ref, false)
	}
	for _, want := range []string{"suspend", "resume", "suspend", "resume"} {
		if got := <-s.calls; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	d.Close()
	if n := d.Counts()["suspend"]; n.Calls != 2 || n.Errors != 0 {
		t.Errorf("counted %+v", n)
	}
}

// TestALaunchIsGivenUpWithAProofOnly answers the Stop that fences a given-up launch.
func TestALaunchIsGivenUpWithAProofOnly(t *testing.T) {
	lost, none := fault.New(fault.Unavailable, "no answer"), fault.New(fault.NotFound, "nothing of it here")
	a := &answers{launch: fault.New(fault.Invalid, "no such image"), inspect: none}
	stops := 0
	a.stop = func() error {
		if stops++; stops < 3 {
			return lost
		}
		return none
	}
	d := dispatch.New(dispatch.Config{
		Engine: a, Log: slog.New(slog.DiscardHandler),
		Pause: func(context.Context, time.Duration) error { return nil },
	})
	defer d.Close()
	refused := make(chan error, 2)
	d.Launch(ref, load, func(err error) { refused <- err })
	if err := <-refused; fault.KindOf(err) != fault.Invalid || stops != 3 {
		t.Errorf("refused with %v after %d stops", err, stops)
	}
	a.stop = func() error { return nil } // it has arrived meanwhile: its reports say what becomes of it
	d.Launch(ref, load, func(err error) { refused <- err })
	a.signal = make(chan bool)
	d.Signal(ref, 1, engine.ToAll)
	<-a.signal
	select {
	case err := <-refused:
		t.Errorf("what the engine has was refused: %v", err)
	default:
	}
}

// pausing is a dispatcher that says when it pauses before it repeats a call, and goes on
// when it is told to.
func pausing(e engine.Engine) (d *dispatch.Dispatcher, paused, goOn chan bool) {
	paused, goOn = make(chan bool), make(chan bool)
	return dispatch.New(dispatch.Config{Engine: e, Log: slog.New(slog.DiscardHandler), Pause: func(ctx context.Context, _ time.Duration) error {
		select {
		case paused <- true:
			<-goOn
		case <-ctx.Done():
		}
		return ctx.Err()
	}}), paused, goOn
}

// TestALaunchWhoseEndWasHeardIsNotRepeated forgets an attempt while its launch is
// without an answer.
func TestALaunchWhoseEndWasHeardIsNotRepeated(t *testing.T) {
	a := &answers{launch: fault.New(fault.Unavailable, "no answer"), inspect: fault.New(fault.NotFound, "lost in a restart")}
	d, paused, goOn := pausing(a)
	defer d.Close()
	d.Launch(ref, load, func(err error) { t.Errorf("refused: %v", err) })
	<-paused
	d.Forget(ref)
	a.signal = make(chan bool)
	d.Signal(ref, 1, engine.ToAll)
	goOn <- true
	<-a.signal
	a.mu.Lock()
	defer a.mu.Unlock()
	if want := []string{"launch", "forget"}; !slices.Equal(a.calls, want) {
		t.Errorf("calls %v, want %v", a.calls, want)
	}
}

func TestAStopThatFindsNothingSaysSo(t *testing.T) {
	a := &answers{inspect: fault.New(fault.NotFound, "nothing of it here")}
	d := dispatch.New(dispatch.Config{Engine: a, Log: slog.New(slog.DiscardHandler)})
	defer d.Close()
	gone := make(chan bool)
	d.Stop(ref, engine.Stop{}, func() { close(gone) })
	<-gone
}

// TestClosedWhileItIsCalled: a pool may be taken away while others are about to ask its engine.
// Under the race detector.
//
// Seen to fail with: a call that goes on after Close.
// TestWhatTheEngineCouldNotDoIsAskedForAgain: an engine that cannot write down that an attempt is to
// end, or may go, is asked until it can. What it refuses is not.
//
// Seen to fail with: a stop that is given up, so that a cancelled job runs on.
func TestWhatTheEngineCouldNotDoIsAskedForAgain(t *testing.T) {
	for _, tt := range []struct {
		err   error
		times int // of each call
	}{
		{fault.New(fault.Exhausted, "no room"), 2},
		{errors.New("input/output error"), 2},
		{fault.New(fault.Permission, "a read-only file system"), 2},
		{fault.New(fault.Conflict, "it lives"), 1},
		{fault.New(fault.NotFound, "nothing of it here"), 1},
		{fault.New(fault.Invalid, "no such signal"), 1},
	} {
		once := func() func() error {
			said := false
			return func() error {
				if said {
					return nil
				}
				said = true
				return tt.err
			}
		}
		a := &answers{stop: once(), forget: once(), signal: make(chan bool)}
		d := dispatch.New(dispatch.Config{Engine: a, Log: slog.New(slog.DiscardHandler), Pause: func(context.Context, time.Duration) error { return nil }})
		d.Stop(ref, engine.Stop{}, nil)
		d.Forget(ref)
		d.Signal(ref, 1, engine.ToAll)
		<-a.signal // the two before it are done
		d.Close()
		stops := slices.DeleteFunc(slices.Clone(a.calls), func(c string) bool { return c != "stop" })
		if n := len(stops); n != tt.times || len(a.calls) != 2*tt.times {
			t.Errorf("%v: calls %v, want each of the two %d times", tt.err, a.calls, tt.times)
		}
	}
}

func TestClosedWhileItIsCalled(t *testing.T) {
	none := fault.New(fault.NotFound, "nothing of it here")
	for range 200 {
		d := dispatch.New(dispatch.Config{Engine: &answers{inspect: none, stop: func() error { return none }}, Log: slog.New(slog.DiscardHandler)})
		begun, closed := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(closed)
			<-begun
			d.Close()
		}()
		close(begun)
		d.Stop(ref, engine.Stop{}, nil)
		<-closed
		if d.Busy(ref) {
			t.Fatal("a call goes on after Close")
		}
	}
}
