package control_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a control plane under test with what outlives it.
type bench struct {
	t     *testing.T
	hand  *hand
	store *store.Memory
	ctl   *control.Control
	cfg   control.Config
}

func open(t *testing.T, h *hand) *bench {
	t.Helper()
	return openWith(t, h, control.Config{})
}

// openWith opens a control plane with a configuration of which the parts are filled in.
func openWith(t *testing.T, h *hand, cfg control.Config) *bench {
	t.Helper()
	return openFor(t, h, h, cfg)
}

// openFor is openWith of an engine that is more than the hand that it has.
func openFor(t *testing.T, e engine.Engine, h *hand, cfg control.Config) *bench {
	t.Helper()
	b := &bench{t: t, hand: h, store: new(store.Memory), cfg: cfg}
	b.cfg.Store, b.cfg.Pools, b.cfg.Who = b.store, onHand(e), t.Name()
	b.open()
	t.Cleanup(b.close)
	return b
}

// onHand is the one pool of a test, p.
func onHand(e engine.Engine) []pools.Pool {
	return []pools.Pool{{Pool: fleet.Pool{Name: "p"}, Engine: e}}
}

func (b *bench) open() {
	b.t.Helper()
	var err error
	if b.ctl, err = control.Open(b.t.Context(), b.cfg); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) close() {
	if err := b.ctl.Close(); err != nil {
		b.t.Error(err)
	}
}

func (b *bench) reopen() { b.t.Helper(); b.close(); b.open() }

// ask asks for a change of one job.
func ask(ctx context.Context, c *control.Control, id job.ID, op control.Op) error {
	errs, err := c.Change(ctx, job.Actor{Name: "me"}, []job.ID{id}, op)
	if err != nil {
		return err
	}
	return errs[0]
}

func (b *bench) submit(s *job.Spec) job.ID {
	b.t.Helper()
	a, err := b.ctl.Submit(b.t.Context(), control.Submission{Spec: s})
	if err != nil {
		b.t.Fatal(err)
	}
	return a.ID
}

// until waits for a job to be as wanted, and checks every invariant then.
func (b *bench) until(id job.ID, what string, ok func(state.View) bool) state.View {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	views, last, err := b.ctl.Jobs(ctx)
	for err == nil {
		for _, v := range views {
			if v.Job.ID == id && ok(v) {
				if err := b.ctl.Check(ctx); err != nil {
					b.t.Fatal(err)
				}
				return v
			}
		}
		var gap bool
		if views, last, gap, err = b.ctl.Next(ctx, last); gap {
			views, last, err = b.ctl.Jobs(ctx)
		}
	}
	v, _ := b.ctl.Job(context.Background(), id)
	b.t.Fatalf("job %d never was %s; it is %s %+v", id, what, v.Job.State, v)
	return v
}

func (b *bench) state(id job.ID, want job.State) state.View {
	b.t.Helper()
	return b.until(id, want.String(), func(v state.View) bool { return v.Job.State == want })
}

// launched waits until the engine has the attempt.
func (b *bench) launched(id job.ID) state.View {
	b.t.Helper()
	return b.until(id, "launched", func(v state.View) bool { return v.Job.State == job.Running && v.Report.Phase >= engine.Accepted })
}

// begun waits until the engine says that a job runs.
func (b *bench) begun(id job.ID) state.View {
	b.t.Helper()
	return b.until(id, "begun", func(v state.View) bool { return v.Job.Flags&job.Configuring == 0 })
}

// eventually waits for what the control plane tells nobody: what it proposes, what it hears while
// nothing is published, how far the history is.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within two minutes: %s", what)
		}
	}
}

func gang(nodes, gpus int) *job.Spec {
	return &job.Spec{Name: "gang", Groups: []job.TaskGroup{{
		Nodes: job.Range{Min: nodes, Max: nodes}, Tasks: job.Count{Want: nodes}, TasksPerNode: 1,
		PerNode: resource.Requirements{Devices: []resource.DeviceRequest{{Count: gpus}}},
	}}, Program: job.Program{Kind: job.Direct, Args: []string{"true"}}}
}

func TestAJobRunsToItsEnd(t *testing.T) {
	for _, tt := range []struct {
		cause engine.Cause
		exit  int
		want  job.State
	}{
		{engine.Exited, 0, job.Completed},
		{engine.Exited, 3, job.Failed},
		{engine.TimedOut, 0, job.Timeout},
		{engine.OutOfMemory, 0, job.OutOfMemory},
		{engine.NodeLost, 1, job.NodeFail},
		{engine.LaunchFailed, 1, job.Failed},
	} {
		t.Run(string(tt.cause), func(t *testing.T) {
			b := open(t, newHand(2, 4))
			id := b.submit(gang(2, 4))
			v := b.launched(id)
			b.hand.start(v)
			b.until(id, "started", func(v state.View) bool { return !v.Job.Started.IsZero() && v.Job.Flags&job.Configuring == 0 })
			b.hand.end(v, tt.cause, tt.exit)
			v = b.state(id, tt.want)
			if v.Job.Exit.Status != tt.exit || v.Job.Ended.IsZero() {
				t.Errorf("ended as %+v", v.Job)
			}
		})
	}
}

func TestTwoGangsThatDoNotFitTogetherRunOneAfterTheOther(t *testing.T) {
	b := open(t, newHand(1, 8))
	first, second := b.submit(gang(1, 5)), b.submit(gang(1, 5))
	v := b.launched(first)
	w := b.until(second, "waiting with a reason", func(v state.View) bool { return v.Why.Code != reason.None })
	if w.Job.State != job.Pending || w.Why.Code != reason.Resources || w.Why.Need != 5 || w.Why.Free != 3 {
		t.Errorf("the second is %s: %+v", w.Job.State, w.Why)
	}
	b.hand.start(v)
	b.hand.end(v, engine.Exited, 0)
	b.launched(second)
	b.state(first, job.Completed)
}

func TestWhatNeverFitsIsRefused(t *testing.T) {
	b := open(t, newHand(1, 8))
	_, err := b.ctl.Submit(t.Context(), control.Submission{Spec: gang(1, 9)})
	var refused *control.RefusedError
	if !errors.As(err, &refused) || fault.KindOf(err) != fault.Invalid || refused.Reasons[0].Most != 8 {
		t.Fatalf("%v", err)
	}
	if views, _, err := b.ctl.Jobs(t.Context()); err != nil || len(views) != 0 {
		t.Errorf("%v %v", views, err)
	}
}

func TestCancel(t *testing.T) {
	b := open(t, newHand(1, 8))
	running, waiting := b.submit(gang(1, 8)), b.submit(gang(1, 8))
	v := b.launched(running)
	if err := ask(t.Context(), b.ctl, waiting, control.Cancel{Grace: -1}); err != nil {
		t.Fatal(err)
	}
	b.state(waiting, job.Cancelled)
	if err := ask(t.Context(), b.ctl, running, control.Cancel{Grace: time.Second}); err != nil {
		t.Fatal(err)
	}
	if w, _ := b.ctl.Job(t.Context(), running); w.Job.State != job.Running || w.Job.Flags&job.Stopping == 0 {
		t.Errorf("nothing is freed before the proof: %+v", w.Job)
	}
	s := b.hand.stopped(t, v.Ref)
	b.hand.end(v, engine.Stopped, 0)
	b.state(running, job.Cancelled)
	if len(s) != 1 || s[0].Grace != time.Second {
		t.Errorf("the engine was told %+v", s)
	}
	if err := ask(t.Context(), b.ctl, running, control.Cancel{Grace: 0}); err != nil {
		t.Errorf("cancelling an ended job: %v", err)
	}
	if err := ask(t.Context(), b.ctl, 99, control.Cancel{Grace: 0}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("cancelling no job: %v", err)
	}
}

func TestRequeueAfterALostNodeIsANewAttempt(t *testing.T) {
	b := open(t, newHand(1, 8))
	s := gang(1, 8)
	s.Requeue = true
	id := b.submit(s)
	v := b.launched(id)
	b.hand.start(v)
	b.hand.end(v, engine.NodeLost, 1)
	w := b.until(id, "at attempt 2", func(v state.View) bool { return v.Job.Attempt == 2 && v.Report.Phase == engine.Accepted })
	if w.Ref == v.Ref || w.Ref.Attempt != 2 {
		t.Errorf("attempt 2 is %s after %s", w.Ref, v.Ref)
	}
	b.hand.end(v, engine.Exited, 9) // a late word about attempt 1
	b.hand.start(w)
	b.hand.end(w, engine.Exited, 0)
	if got := b.state(id, job.Completed); got.Job.Exit.Status != 0 {
		t.Errorf("the late word counted: %+v", got.Job)
	}
}

func TestARefusedLaunchFailsTheJobAndFreesItsNodes(t *testing.T) {
	h := newHand(1, 8)
	h.launch = func(ref engine.Ref) error {
		if ref.Allocation == 1 {
			return fault.New(fault.Invalid, "no such image")
		}
		return nil
	}
	b := open(t, h)
	first, second := b.submit(gang(1, 8)), b.submit(gang(1, 8))
	v := b.state(first, job.Failed)
	if v.Report.Message != "no such image" || v.Job.Flags&job.LaunchFailed == 0 {
		t.Errorf("%+v", v)
	}
	b.launched(second)
}

func TestALaunchWithoutAnAnswerIsRepeatedAndRunsOnce(t *testing.T) {
	h := newHand(1, 8)
	calls := 0
	h.launch = func(ref engine.Ref) error {
		if calls++; calls < 3 {
			return fault.New(fault.Unavailable, "no answer")
		}
		return nil
	}
	b := open(t, h)
	id := b.submit(gang(1, 8))
	v := b.launched(id)
	if h.launches[v.Ref] != 3 || len(h.reports) != 1 {
		t.Errorf("launches %v", h.launches)
	}
}

func TestRestartTakesUpEveryJobOnce(t *testing.T) {
	b := open(t, newHand(2, 8))
	runs, waits := b.submit(gang(2, 8)), b.submit(gang(2, 8))
	v := b.launched(runs)
	b.hand.start(v)
	b.begun(runs)
	b.reopen()
	if w := b.state(runs, job.Running); w.Ref != v.Ref || w.Job.Attempt != 1 {
		t.Errorf("after the restart it is %s, attempt %d", w.Ref, w.Job.Attempt)
	}
	b.state(waits, job.Pending)
	b.hand.end(v, engine.Exited, 0)
	b.state(runs, job.Completed)
	w := b.launched(waits)
	b.hand.end(w, engine.Exited, 0)
	b.state(waits, job.Completed)
	b.reopen()
	for _, id := range []job.ID{runs, waits} {
		if got := b.state(id, job.Completed); got.Job.Attempt != 1 {
			t.Errorf("job %d ran %d times", id, got.Job.Attempt)
		}
	}
	if b.hand.launches[v.Ref] != 1 {
		t.Errorf("a running attempt was launched %d times", b.hand.launches[v.Ref])
	}
}

func TestWorkThatTheEngineLostIsNotRunAgainUnlessItMayBe(t *testing.T) {
	b := open(t, newHand(1, 8))
	id := b.submit(gang(1, 8))
	v := b.launched(id)
	b.hand.start(v)
	b.begun(id)
	b.close()
	b.hand.mu.Lock()
	delete(b.hand.reports, v.Ref)
	b.hand.log = nil
	b.hand.mu.Unlock()
	b.open()
	b.state(id, job.NodeFail)
}

func TestOrphansAreEndedAndForgotten(t *testing.T) {
	h := newHand(1, 8)
	stray := engine.Ref{Allocation: 77, Attempt: 1}
	h.put(engine.Report{Ref: stray, Job: 5, Phase: engine.Running})
	b := open(t, h)
	h.stopped(t, stray)
	if err := b.ctl.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUncertainWorkStaysHeld(t *testing.T) {
	b := open(t, newHand(1, 8))
	id, next := b.submit(gang(1, 8)), b.submit(gang(1, 8))
	v := b.launched(id)
	b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Running, Uncertain: true, Message: "node n1 does not answer"})
	w := b.until(id, "uncertain", func(v state.View) bool { return v.Job.Flags&job.Uncertain != 0 })
	if w.Job.State != job.Running {
		t.Errorf("it is %s", w.Job.State)
	}
	b.state(next, job.Pending)
	b.hand.end(v, engine.Exited, 0)
	b.state(id, job.Completed)
	b.launched(next)
}

func TestArrayRunsAtMostItsLimit(t *testing.T) {
	b := open(t, newHand(1, 8))
	s := gang(1, 1)
	s.Array = &job.ArraySpec{Text: "0-5%2", Indices: []uint32{0, 1, 2, 3, 4, 5}, MaxRunning: 2, Step: 1}
	first := b.submit(s)
	for done := range 6 {
		views, _, err := b.ctl.Jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		running := 0
		for _, v := range views {
			if v.Job.State == job.Running {
				running++
			}
		}
		if running > 2 {
			t.Fatalf("%d tasks run at once", running)
		}
		v := b.launched(first + job.ID(done))
		if v.Job.Array == nil || v.Job.Array.Index != uint32(done) || v.Job.Array.Job != first || v.Job.Array.Max != 5 {
			t.Errorf("task %d is %+v", done, v.Job.Array)
		}
		b.hand.start(v)
		b.hand.end(v, engine.Exited, 0)
		b.state(first+job.ID(done), job.Completed)
	}
	if next := b.submit(gang(1, 1)); next != first+6 {
		t.Errorf("the next job is %d after an array of 6 that began at %d", next, first)
	}
}

func TestHoldAndRelease(t *testing.T) {
	b := open(t, newHand(1, 8))
	s := gang(1, 8)
	s.Held = true
	id := b.submit(s)
	b.until(id, "held", func(v state.View) bool { return v.Why.Code == reason.HeldUser })
	if err := ask(t.Context(), b.ctl, id, control.Hold{On: false}); err != nil {
		t.Fatal(err)
	}
	b.launched(id)
}

// full is a store without room.
type full struct {
	*store.Memory
	mu   sync.Mutex
	full bool
}

func (f *full) Append(ctx context.Context, epoch uint64, recs []store.Record) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.full {
		return 0, fault.New(fault.Exhausted, "no space left on device")
	}
	return f.Memory.Append(ctx, epoch, recs)
}

func (f *full) set(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = on
}

func TestAFullDiskRefusesRequestsAndLosesNoReport(t *testing.T) {
	h, st := newHand(1, 8), &full{Memory: new(store.Memory)}
	ctl, err := control.Open(t.Context(), control.Config{Store: st, Pools: onHand(h)})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, hand: h, ctl: ctl}
	defer b.close()
	id := b.submit(gang(1, 8))
	v := b.launched(id)
	st.set(true)
	if _, err := ctl.Submit(t.Context(), control.Submission{Spec: gang(1, 8)}); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("a submission with a full disk: %v", err)
	}
	h.start(v)
	h.end(v, engine.Exited, 0)
	st.set(false)
	b.state(id, job.Completed)
}

func TestALeaderThatWasFollowedStops(t *testing.T) {
	b := open(t, newHand(1, 8))
	if _, err := b.store.Lead(t.Context(), "another"); err != nil {
		t.Fatal(err)
	}
	_, err := b.ctl.Submit(t.Context(), control.Submission{Spec: gang(1, 8)})
	if err == nil {
		t.Fatal("a leader that was followed took a job")
	}
	<-b.ctl.Done()
	if err := b.ctl.Close(); fault.KindOf(err) != fault.Conflict {
		t.Errorf("it ended with %v", err)
	}
	b.open() // for the cleanup
}

func TestAFullDiskKeepsNobodyWaiting(t *testing.T) {
	h, st := newHand(1, 8), &full{Memory: new(store.Memory)}
	ctl, err := control.Open(t.Context(), control.Config{Store: st, Pools: onHand(h)})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, hand: h, ctl: ctl}
	defer b.close()
	id := b.submit(gang(1, 8))
	v := b.launched(id)
	st.set(true)
	h.end(v, engine.Exited, 0) // what cannot be refused is tried again and again
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for range 3 {
		if err := ask(ctx, ctl, id, control.Cancel{Grace: 0}); fault.KindOf(err) != fault.Exhausted {
			t.Fatalf("a cancel with a full disk: %v", err)
		}
		if _, err := ctl.Submit(ctx, control.Submission{Spec: gang(1, 8)}); fault.KindOf(err) != fault.Exhausted {
			t.Fatalf("a submission with a full disk: %v", err)
		}
		if v, err := ctl.Job(ctx, id); err != nil || v.Job.State != job.Running {
			t.Fatalf("a question with a full disk: %v %v", v.Job.State, err)
		}
	}
	st.set(false)
	b.state(id, job.Completed)
}

func TestACancelledJobDoesNotRunAgain(t *testing.T) {
	for _, cause := range []engine.Cause{engine.NodeLost, engine.LaunchFailed, engine.Stopped} {
		t.Run(string(cause), func(t *testing.T) {
			b := open(t, newHand(1, 8))
			s := gang(1, 8)
			s.Requeue = true
			id := b.submit(s)
			v := b.launched(id)
			if err := ask(t.Context(), b.ctl, id, control.Cancel{Grace: 0}); err != nil {
				t.Fatal(err)
			}
			b.hand.end(v, cause, 1)
			if w := b.state(id, job.Cancelled); w.Job.Attempt != 1 {
				t.Errorf("it ran %d times", w.Job.Attempt)
			}
		})
	}
}

func TestAStartUnderUncertaintyIsHeardOf(t *testing.T) {
	b := open(t, newHand(1, 8))
	id := b.submit(gang(1, 8))
	v := b.launched(id)
	b.hand.report(engine.Report{Ref: v.Ref, Phase: engine.Running, Started: time.Now(), Uncertain: true})
	b.until(id, "started and uncertain", func(v state.View) bool {
		return v.Job.Flags&job.Uncertain != 0 && v.Job.Flags&job.Configuring == 0 && !v.Job.Started.IsZero()
	})
	b.hand.end(v, engine.Exited, 0)
	b.state(id, job.Completed)
}
