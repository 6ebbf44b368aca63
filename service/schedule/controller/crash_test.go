package controller_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/query"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/model/schedule"
	"github.com/coxswain-sched/coxswain/service/schedule/controller"
	"github.com/coxswain-sched/coxswain/store"
)

// site is a control plane with schedules over the fake engine. The engine and the store outlive servers.
type site struct {
	t     *testing.T
	world *fake.World
	store store.Memory
	long  time.Duration // how long a run takes
	keep  time.Duration // how long ended jobs stay in memory

	mu       sync.Mutex
	launched map[job.Part]int
	cancels  int  // that were asked for
	lost     bool // jobs have left memory, and the history cannot be read
	writes   int  // of the journal and the projection
	killAt   int  // the server dies at this one
	after    bool
	dead     chan struct{} // closed when the present server is to die
	stop     func()
	control  *control.Control
	*controller.Controller
}

func newSite(t *testing.T, killAt int, after bool) *site {
	s := &site{t: t, launched: map[job.Part]int{}, long: 20 * time.Second, keep: time.Minute, killAt: killAt, after: after, stop: func() {}}
	node := fleet.Node{Name: "n1", Pool: "local", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(64), Memory: 64 * resource.GiB}}
	s.world = fake.NewWorld(fake.Config{Now: time.Now, Nodes: []fleet.Node{node}, Script: s.launch})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.world.Run(ctx) })
	t.Cleanup(func() { s.stop(); cancel(); wg.Wait() })
	s.start()
	return s
}

// launch is what becomes of an attempt.
func (s *site) launch(l *engine.Launch) fake.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launched[*l.Job.Spec.Part]++
	return fake.Outcome{Ready: 100 * time.Millisecond, Run: s.long}
}

// mortal is the store as one server sees it: at a write the server dies, and writes nothing more.
type mortal struct {
	store.Store
	s    *site
	dead chan struct{}
}

var errDead = errors.New("the server is dead")

func (m *mortal) write(do func() error) error {
	select {
	case <-m.dead:
		return errDead
	default:
	}
	m.s.mu.Lock()
	m.s.writes++
	die := m.s.writes == m.s.killAt
	m.s.mu.Unlock()
	if die && !m.s.after {
		close(m.dead)
		return errDead
	}
	err := do()
	if die {
		close(m.dead)
		return errDead
	}
	return err
}

func (m *mortal) Append(ctx context.Context, epoch uint64, recs []store.Record) (last uint64, err error) {
	if len(recs) == 0 {
		return m.Store.Append(ctx, epoch, recs)
	}
	err = m.write(func() (err error) { last, err = m.Store.Append(ctx, epoch, recs); return err })
	return last, err
}

func (m *mortal) Project(ctx context.Context, epoch, upTo uint64, rows []store.JobRow, docs map[string][]byte) error {
	return m.write(func() error { return m.Store.Project(ctx, epoch, upTo, rows, docs) })
}

// watchedPlane counts the cancellations that schedules ask for, and knows no job while the site has lost them.
type watchedPlane struct {
	controller.Plane
	s *site
}

func (p watchedPlane) Change(ctx context.Context, by job.Actor, ids []job.ID, op control.Op) ([]error, error) {
	p.s.mu.Lock()
	p.s.cancels += len(ids)
	p.s.mu.Unlock()
	return p.Plane.Change(ctx, by, ids, op)
}

func (p watchedPlane) Past(ctx context.Context, id job.ID) ([]state.View, error) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.lost {
		return nil, fault.New(fault.Unavailable, "the history cannot be read")
	}
	return p.Plane.Past(ctx, id)
}

func (p watchedPlane) Parts(controller string) []state.View {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.lost {
		return nil
	}
	return p.Plane.Parts(controller)
}

// start starts a server.
func (s *site) start() {
	s.t.Helper()
	s.dead = make(chan struct{})
	e := s.world.Open()
	var err error
	s.control, err = control.Open(context.Background(), control.Config{
		Store: &mortal{&s.store, s, s.dead}, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "local", Engine: "fake"}, Engine: e}}, Who: "test",
		Grace: time.Second, Keep: s.keep, Project: 2 * time.Second,
	})
	if err != nil { // it died on the way
		if e.Close() != nil {
			s.t.Error("the engine does not close")
		}
		s.stop, s.control = func() {}, nil
		return
	}
	s.Controller = controller.New(controller.Config{Plane: watchedPlane{controller.NewPlane(s.control), s}})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	plane := s.control
	s.stop = func() {
		cancel()
		wg.Wait()
		_ = plane.Close() // a dead one fails
		if err := e.Close(); err != nil {
			s.t.Error(err)
		}
		s.stop = func() {}
	}
}

// live waits a moment, and starts the next server if this one died.
func (s *site) live() {
	time.Sleep(500 * time.Millisecond) // of the bubble
	synctest.Wait()
	select {
	case <-s.dead:
	default:
		if s.control != nil {
			return
		}
	}
	s.stop()
	s.start()
}

func (s *site) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		s.live()
	}
}

// ask asks until it is answered: a server that died is asked again.
func (s *site) ask(f func() error) {
	s.t.Helper()
	for range 100 {
		if s.control != nil {
			if err := f(); err == nil || fault.KindOf(err) == fault.NotFound { // what was asked before its death may have been done
				return
			}
		}
		s.live()
	}
	s.t.Fatal("it is never answered")
}

func (s *site) show() controller.Status {
	s.t.Helper()
	var out controller.Status
	s.ask(func() (err error) { out, err = s.Get(context.Background(), "nightly"); return err })
	return out
}

var anna = job.Actor{Name: "anna", UID: 2001}

// everyMinute is a specification of a schedule.
func everyMinute(change func(*schedule.Spec)) schedule.Spec {
	owner := job.Owner{User: "anna", UID: 2001}
	s := schedule.Spec{
		Name: "nightly", Owner: owner, Settings: schedule.DefaultSettings(),
		Job: job.Spec{
			Name: "nightly", Owner: owner, WorkDir: "/work", Program: job.Program{Kind: job.Direct, Args: []string{"train"}},
			Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(1)}}}},
		},
	}
	s.Cron, s.Zone = "* * * * *", "Etc/UTC"
	if change != nil {
		change(&s)
	}
	return s
}

// runStory makes a schedule, lets it run for four minutes, begins a run by hand, and stops it. It returns
// how many writes that were.
func runStory(t *testing.T, killAt int, after bool) int {
	s := newSite(t, killAt, after)
	ctx := context.Background()
	s.ask(func() error { _, err := s.Submit(ctx, anna, everyMinute(nil), nil); return err })
	s.pass(4*time.Minute + 40*time.Second)
	byHand := false
	s.ask(func() error { // one that died may have begun it
		if st, err := s.Get(ctx, "nightly"); err == nil && st.Doc.ByHand > 0 {
			byHand = true
			return nil
		}
		_, err := s.RunNow(ctx, anna, "nightly")
		byHand = err == nil
		return err
	})
	if !byHand {
		t.Error("there is no run by hand")
	}
	s.pass(45 * time.Second) // the next time finds it: skipped, or begun after its end
	if runs := s.show().Doc.Runs; len(runs) < 5 {
		t.Errorf("%d runs: %+v", len(runs), runs)
	} else {
		for _, r := range runs[:4] {
			if r.State != schedule.Ended || r.Outcome != job.Completed || r.Job == 0 {
				t.Errorf("%+v", r)
			}
		}
	}
	s.ask(func() error { _, err := s.Stop(ctx, anna, "nightly", true); return err })
	s.pass(2 * time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	clock, hand := 0, 0
	for part, n := range s.launched {
		if n != 1 {
			t.Errorf("%+v was launched %d times", part, n)
		}
		if part.Try > 0 {
			hand++
		} else {
			clock++
		}
	}
	if clock < 4 || clock > 5 || hand != 1 {
		t.Errorf("%d runs by the clock and %d by hand: %v", clock, hand, s.launched)
	}
	if s.control != nil && len(s.control.Controllers(schedule.ControllerKind)) != 0 {
		t.Error("the document is there still")
	}
	return s.writes
}

// TestCrashAtEveryWrite kills the server before and after each write of its journal and its projection,
// while a schedule is made, runs, is run by hand and stopped. Each run is launched once, and none is
// forgotten.
//
// Seen to fail with: a submission before the document.
func TestCrashAtEveryWrite(t *testing.T) {
	writes := 0
	synctest.Test(t, func(t *testing.T) { writes = runStory(t, 0, false) })
	if writes < 20 {
		t.Fatalf("%d writes", writes)
	}
	step := 3
	if os.Getenv("COX_LONG") != "" {
		step = 1
	}
	for n := 0; n < 2*writes && !t.Failed(); n += step {
		t.Run(fmt.Sprintf("%d %v", n/2+1, n%2 == 1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runStory(t, n/2+1, n%2 == 1) })
		})
	}
	t.Logf("%d writes", writes)
}

// TestServerThatWasAway: of the times that passed without a server the latest begins; a run that went on
// meanwhile ended as it ended, even if its job has left memory.
func TestServerThatWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		s.keep = time.Second
		ctx := context.Background()
		s.ask(func() error { _, err := s.Submit(ctx, anna, everyMinute(nil), nil); return err })
		s.pass(65 * time.Second)
		s.stop()
		time.Sleep(5*time.Minute + 20*time.Second)
		s.start()
		s.pass(12 * time.Second)
		runs := s.show().Doc.Runs
		if len(runs) != 2 || runs[0].Outcome != job.Completed || runs[1].State != schedule.Live || runs[1].Missed != 4 {
			t.Fatalf("%+v", runs)
		}
		if late := time.Since(runs[1].At); late < 20*time.Second || late > time.Minute {
			t.Errorf("it runs for %s", runs[1].At)
		}
	})
}

// TestHistoryThatCannotBeRead: a run whose job has left memory has not ended before the history says how.
func TestHistoryThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		lose := func(lost bool) { s.mu.Lock(); s.lost = lost; s.mu.Unlock() }
		s.ask(func() error { _, err := s.Submit(t.Context(), anna, everyMinute(nil), nil); return err })
		s.pass(65 * time.Second)
		lose(true)
		s.pass(30 * time.Second)
		if st := s.show(); len(st.Doc.Runs) != 1 || st.Doc.Runs[0].State != schedule.Live || st.Trouble == "" {
			t.Errorf("without its history: %+v, %q", st.Doc.Runs, st.Trouble)
		}
		lose(false)
		s.pass(5 * time.Second)
		if st := s.show(); len(st.Doc.Runs) != 1 || st.Doc.Runs[0].Outcome != job.Completed || st.Trouble != "" {
			t.Errorf("with it: %+v, %q", st.Doc.Runs, st.Trouble)
		}
	})
}

// TestRunKnowsItsTime: the job has the variables, the name of the schedule, and its owner.
func TestRunKnowsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		s.ask(func() error {
			_, err := s.Submit(t.Context(), anna, everyMinute(func(sp *schedule.Spec) { sp.Zone = "Europe/Zurich" }), nil)
			return err
		})
		s.pass(65 * time.Second)
		found := 0
		s.control.Scan(query.Filter{}, func(v *state.View) bool {
			found++
			set := v.Job.Spec.Env.Set
			if !slices.Contains(set, "COX_SCHEDULED_TIME=2000-01-01T01:01:00+01:00") || !slices.Contains(set, "COX_SCHEDULE=nightly") || v.Job.Spec.Owner.UID != 2001 {
				t.Errorf("%v of %+v", set, v.Job.Spec.Owner)
			}
			return true
		})
		if found != 1 {
			t.Errorf("%d jobs", found)
		}
	})
}

// TestArrayOnASchedule: each run is one array, which lives until its last task has ended.
func TestArrayOnASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		s.ask(func() error {
			_, err := s.Submit(t.Context(), anna, everyMinute(func(sp *schedule.Spec) {
				sp.Job.Array = &job.ArraySpec{Text: "0-4%1", Indices: []uint32{0, 1, 2, 3, 4}, MaxRunning: 1, Step: 1}
			}), nil)
			return err
		})
		s.pass(3*time.Minute + 10*time.Second) // a run takes 100 s
		runs := s.show().Doc.Runs
		if len(runs) != 3 || runs[0].State != schedule.Ended || runs[0].Job != 1 || runs[1].State != schedule.Skipped || runs[2].State != schedule.Live || runs[2].Job != 6 {
			t.Fatalf("%+v", runs)
		}
		for part, n := range s.launched {
			if n != 5 && part.Index == uint32(runs[0].At.Unix()) {
				t.Errorf("%d tasks of %+v", n, part)
			}
		}
	})
}

// TestReplacedRun: a run of overlap replace begins when the one before has ended.
func TestReplacedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		s.long = time.Hour
		s.ask(func() error {
			_, err := s.Submit(t.Context(), anna, everyMinute(func(sp *schedule.Spec) { sp.Overlap = schedule.Replace }), nil)
			return err
		})
		s.pass(3*time.Minute + 10*time.Second)
		st := s.show()
		if runs := st.Doc.Runs; len(runs) != 3 || runs[0].Outcome != job.Cancelled || runs[1].Outcome != job.Cancelled || runs[2].State != schedule.Live || len(st.Jobs) != 1 {
			t.Errorf("%+v, alive %v", runs, st.Jobs)
		}
		if s.cancels != 2 {
			t.Errorf("%d cancellations of two runs", s.cancels)
		}
	})
}

// TestRefusedRun: a job that is refused is a reason of its run, and the next one is tried.
func TestRefusedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		ctx := context.Background()
		spec := everyMinute(func(sp *schedule.Spec) { sp.Job.Groups[0].PerTask.CPU = resource.CPUs(100) })
		s.ask(func() error { _, err := s.Submit(ctx, anna, spec, nil); return err })
		s.pass(130 * time.Second)
		runs := s.show().Doc.Runs
		if len(runs) != 2 || runs[0].State != schedule.Refused || runs[1].State != schedule.Refused || runs[1].Why == "" {
			t.Fatalf("%+v", runs)
		}
		if r, err := s.RunNow(ctx, anna, "nightly"); err != nil || r.State != schedule.Refused || r.Why == "" {
			t.Errorf("by hand: %+v, %v", r, err)
		}
		s.ask(func() error { _, err := s.Submit(ctx, anna, everyMinute(nil), nil); return err })
		s.pass(time.Minute)
		if r := s.show().Doc.Last(); r.Revision != 2 || r.State != schedule.Live {
			t.Errorf("%+v", r)
		}
	})
}

// TestOwnersAskedFirst: nobody changes the schedule of another one.
func TestOwnersAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		ctx := t.Context()
		s.ask(func() error { _, err := s.Submit(ctx, anna, everyMinute(nil), nil); return err })
		no := fault.New(fault.Permission, "no")
		changed := everyMinute(func(sp *schedule.Spec) { sp.Cron = "@daily" })
		if _, err := s.Submit(ctx, job.Actor{Name: "ben", UID: 2002}, changed, func(o job.Owner) error {
			if o.UID == 2002 {
				return nil
			}
			return no
		}); !errors.Is(err, no) {
			t.Error(err)
		}
		for _, err := range []error{s.Suspend(ctx, anna, "x"), s.Resume(ctx, anna, "x")} {
			if fault.KindOf(err) != fault.NotFound {
				t.Error(err)
			}
		}
		if did, err := s.Submit(ctx, anna, everyMinute(nil), nil); err != nil || did.Changed || did.Created || did.Revision != 1 {
			t.Errorf("%+v, %v", did, err)
		}
	})
}
