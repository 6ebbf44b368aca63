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
	"github.com/coxswain-sched/coxswain/model/service"
	"github.com/coxswain-sched/coxswain/service/controller"
	"github.com/coxswain-sched/coxswain/service/endpoints"
	"github.com/coxswain-sched/coxswain/store"
)

// site is a control plane with services over the fake engine. The engine and the store outlive servers.
type site struct {
	t     *testing.T
	world *fake.World
	store store.Memory

	mu       sync.Mutex
	attempts map[engine.Ref]*attempt
	changed  chan struct{}
	launched int
	fewest   int // ready at once, since it was set
	most     int // alive at once, since it was set
	crash    map[uint32]time.Duration
	batch    map[job.ID]*batchJob // work beside the service

	writes  int // of the journal and the projection
	killAt  int // the server dies at this one
	after   bool
	dead    chan struct{} // closed when the present server is to die
	stop    func()
	control *control.Control
	hub     *endpoints.Hub
	*controller.Controller
}

// attempt is a replica that the engine runs, in truth.
type attempt struct {
	part    job.Part
	id      job.ID
	ref     engine.Ref
	ready   bool
	version uint64
}

func newSite(t *testing.T, killAt int, after bool) *site {
	s := &site{t: t, attempts: map[engine.Ref]*attempt{}, changed: make(chan struct{}), killAt: killAt, after: after, fewest: 1000, crash: map[uint32]time.Duration{}}
	s.batch = map[job.ID]*batchJob{}
	node := fleet.Node{Name: "n1", Pool: "local", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(64), Memory: 64 * resource.GiB}}
	for i := range 8 {
		node.Devices = append(node.Devices, fleet.Device{Index: i, Minor: i, Kind: "gpu", Type: "h100", NUMA: -1, Declared: true})
	}
	spare := fleet.Node{Name: "n2", Pool: "local", State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(64), Memory: 64 * resource.GiB}}
	s.world = fake.NewWorld(fake.Config{Now: time.Now, Nodes: []fleet.Node{node, spare}, Script: s.launch, Truth: s.note})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.world.Run(ctx) })
	t.Cleanup(func() { s.stop(); cancel(); wg.Wait() })
	s.start()
	return s
}

// launch is what becomes of an attempt: it runs until it is stopped, but for revisions that crash.
func (s *site) launch(l *engine.Launch) fake.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Job.Spec.Part == nil {
		return s.launchBatch(l)
	}
	part := *l.Job.Spec.Part
	for _, a := range s.attempts {
		if a.part.Index == part.Index && a.part.Revision == part.Revision {
			s.t.Errorf("%+v is launched while %+v lives", part, a.part)
		}
	}
	s.attempts[l.Ref] = &attempt{part: part, id: l.Job.ID, ref: l.Ref}
	s.launched++
	s.most = max(s.most, len(s.attempts))
	run := fake.Never
	if d, ok := s.crash[part.Revision]; ok && part.Index == 0 && part.Try == 0 {
		run = d
	}
	return fake.Outcome{Ready: 100 * time.Millisecond, Run: run, Exit: fake.Exit{Code: job.ExitCode{Status: 1}}}
}

// note hears how an attempt is. A replica is ready a second after its start.
func (s *site) note(r engine.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[r.Ref]
	switch {
	case a == nil:
		s.noteBatch(r)
	case r.Phase == engine.Ended:
		delete(s.attempts, r.Ref)
		s.wake()
	case r.Phase == engine.Running && !r.Started.IsZero() && a.version == 0:
		a.version = 1
		time.AfterFunc(time.Second, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			a.ready, a.version = true, 2
			s.wake()
		})
	}
}

// wake tells watchers, and counts who is ready.
func (s *site) wake() {
	ready := 0
	for _, a := range s.attempts {
		if a.ready {
			ready++
		}
	}
	s.fewest = min(s.fewest, ready)
	close(s.changed)
	s.changed = make(chan struct{})
}

// serving is a driver of the world that says where replicas serve.
type serving struct {
	*fake.Engine
	s *site
}

func (v serving) WatchEndpoints(ctx context.Context, f func(engine.Endpoints) error) error {
	told := map[engine.Ref]uint64{}
	for {
		v.s.mu.Lock()
		wait := v.s.changed
		var news []engine.Endpoints
		for ref, a := range v.s.attempts {
			if a.version > told[ref] {
				told[ref] = a.version
				news = append(news, engine.Endpoints{Ref: ref, Job: a.id, Version: a.version, Ready: a.ready, List: []engine.Endpoint{{Port: "http", Host: "n1", Number: 20000 + int(a.id)}}})
			}
		}
		v.s.mu.Unlock()
		for _, e := range news {
			if err := f(e); err != nil {
				return err
			}
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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

// start starts a server.
func (s *site) start() {
	s.t.Helper()
	s.dead = make(chan struct{})
	e := serving{s.world.Open(), s}
	var err error
	s.control, err = control.Open(context.Background(), control.Config{
		Store: &mortal{&s.store, s, s.dead}, Pools: []pools.Pool{{Pool: fleet.Pool{Name: "local", Engine: "fake"}, Engine: e}}, Who: "test",
		Grace: time.Second, Keep: time.Minute, Project: 2 * time.Second,
	})
	if err != nil { // it died on the way
		if e.Close() != nil {
			s.t.Error("the engine does not close")
		}
		s.stop = func() {}
		s.control = nil
		return
	}
	hub := endpoints.New(endpoints.Config{})
	s.hub = hub
	s.Controller = controller.New(controller.Config{Plane: controller.NewPlane(s.control), Hub: hub})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, part := range []func(){func() { hub.Run(ctx) }, func() { s.Run(ctx) }, func() { hub.Follow(ctx, "local", e) }} {
		wg.Go(part)
	}
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
	time.Sleep(50 * time.Millisecond) // of the bubble
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

// ask asks until it is answered: a server that died is asked again.
func (s *site) ask(f func() error) {
	s.t.Helper()
	for range 100 {
		if s.control != nil {
			if err := f(); err == nil || fault.KindOf(err) == fault.Conflict { // what was asked before its death may have been done
				return
			}
		}
		s.live()
	}
	s.t.Fatal("it is never answered")
}

// until waits until the service is so.
func (s *site) until(what string, want func(controller.Status) bool) {
	s.t.Helper()
	var last controller.Status
	for range 2000 {
		s.live()
		if s.control == nil {
			continue
		}
		st, err := s.Get(context.Background(), "chat")
		if err == nil && want(st) {
			return
		}
		last = st
	}
	s.t.Fatalf("%s: %d of %d ready, rollout %+v, replicas %+v, reasons %v", what, last.Ready, last.Want, last.Rollout, last.Replicas, last.Reasons)
}

// replicaOf is a specification of a service.
func replicaOf(tag string) service.Spec {
	owner := job.Owner{User: "anna", UID: 2001}
	return service.Spec{
		Name: "chat", Owner: owner, Replicas: service.Bounds{Min: 2, Max: 2}, Update: service.Update{Surge: 1},
		Job: job.Spec{
			Owner: owner, WorkDir: "/work", Program: job.Program{Kind: job.Direct, Args: []string{"serve", tag}},
			Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(1)}}}},
			Serve:  &job.Serve{Ports: []job.Port{{Name: "http"}}},
		},
	}
}

// runStory makes a service, lets a program of it crash, updates, scales and stops it, and returns how
// many writes that were.
func runStory(t *testing.T, killAt int, after bool) (writes int) {
	s := newSite(t, killAt, after)
	ctx := context.Background()
	settled := func(revision uint32, n int) func(controller.Status) bool {
		return func(st controller.Status) bool {
			return st.Serving == revision && st.Rollout.Phase == service.Done && st.Ready == n && len(st.Replicas) == n
		}
	}
	s.crash[1] = 5 * time.Second
	submit := func(tag string) func() error {
		return func() error { _, err := s.Submit(ctx, anna, replicaOf(tag), nil); return err }
	}
	s.ask(submit("a"))
	s.until("a crash", func(st controller.Status) bool { return len(st.Replicas) == 2 && st.Replicas[0].Try == 1 })
	s.until("two replicas", settled(1, 2))
	s.mu.Lock()
	s.fewest, s.most = 2, 0
	s.mu.Unlock()
	s.ask(submit("b"))
	s.until("revision 2", settled(2, 2))
	s.ask(func() error { return s.Scale(ctx, anna, "chat", 3) })
	s.until("three replicas", settled(2, 3))
	s.mu.Lock()
	if s.fewest != 2 || s.most != 3 {
		t.Errorf("%d were ready at least and %d alive at most, not 2 and 3", s.fewest, s.most)
	}
	s.mu.Unlock()
	s.ask(func() error {
		err := s.Stop(ctx, anna, "chat")
		if fault.KindOf(err) == fault.NotFound {
			return nil
		}
		return err
	})
	for range 2000 {
		s.live()
		if s.control == nil {
			continue
		}
		if all, err := s.List(ctx); err == nil && len(all) == 0 {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.attempts) != 0 || s.launched != 6 { // 2 and the one that crashed, 2 of revision 2, 1 more
		t.Errorf("%d attempts live, %d were launched, not 6", len(s.attempts), s.launched)
	}
	if s.control != nil && len(s.control.Controllers("service")) != 0 {
		t.Error("the document is there still")
	}
	return s.writes
}

// TestCrashAtEveryWrite kills the server before and after each write of its journal and its projection,
// while a service is made, kept alive, updated, scaled and stopped. No replica exists twice and none is
// forgotten: each run has the same six attempts, and two are ready during the update.
//
// Seen to fail with: submissions before the document, and a try that does not grow with a crash.
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
	var places []int
	for n := 0; n < 2*writes; n += step {
		places = append(places, n)
	}
	for _, n := range slices.Compact(places) {
		t.Run(fmt.Sprintf("%d %v", n/2+1, n%2 == 1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runStory(t, n/2+1, n%2 == 1) })
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d writes", writes)
}

// TestSilentNode: replicas on a node of which no word comes are replaced at once, on another one, and
// keep what they hold. When the node speaks again, those that are too many end.
//
// Seen to fail with: decisions that count uncertain replicas.
func TestSilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		ctx := context.Background()
		s.ask(func() error { _, err := s.Submit(ctx, anna, replicaOf("a"), nil); return err })
		two := func(st controller.Status) bool { return st.Ready == 2 && len(st.Replicas) == 2 && st.Rollout.Over() }
		s.until("two replicas", two)
		st, err := s.Get(ctx, "chat")
		if err != nil {
			t.Fatal(err)
		}
		lost := 0
		node := st.Replicas[0].Node
		for _, r := range st.Replicas {
			if r.Node == node {
				lost++
			}
		}
		s.world.Silence(node)
		if err := s.control.SetNodes(ctx, anna, []string{node}, true, "no word comes from it"); err != nil { // so that replacements go elsewhere
			t.Fatal(err)
		}
		s.until("replacements", func(st controller.Status) bool {
			return st.Ready == 2 && len(st.Replicas) == 2+lost && hasReason(st, "nobody can prove it")
		})
		s.world.Return(node)
		s.until("two replicas again", two)
		if s.launched != 2+lost {
			t.Errorf("%d attempts for two replicas, of which %d were lost from sight", s.launched, lost)
		}
		s.ask(func() error { return s.Stop(ctx, anna, "chat") })
	})
}

// TestDrainedNode: replicas leave a node that is drained, one after another, and two serve all the time.
//
// Seen to fail with: partOf that does not look at drains.
func TestDrainedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		ctx := context.Background()
		s.ask(func() error { _, err := s.Submit(ctx, anna, replicaOf("a"), nil); return err })
		s.until("two replicas", func(st controller.Status) bool { return st.Ready == 2 && st.Rollout.Over() })
		st, err := s.Get(ctx, "chat")
		if err != nil {
			t.Fatal(err)
		}
		node := st.Replicas[0].Node
		s.mu.Lock()
		s.fewest, s.most = 2, 0
		s.mu.Unlock()
		if err := s.control.SetNodes(ctx, anna, []string{node}, true, "its fan is noisy"); err != nil {
			t.Fatal(err)
		}
		moved := false
		s.until("replicas elsewhere", func(st controller.Status) bool {
			moved = moved || hasReason(st, "the drain of node "+node+" (its fan is noisy) ends it")
			for _, r := range st.Replicas {
				if r.Node == node {
					return false
				}
			}
			return st.Ready == 2 && len(st.Replicas) == 2
		})
		if s.fewest < 2 || s.most > 3 || !moved {
			t.Errorf("at least %d ready, at most %d alive, said: %v", s.fewest, s.most, moved)
		}
		s.ask(func() error { return s.Stop(ctx, anna, "chat") })
	})
}

// TestTimeLimit: replicas with a time limit are replaced before it ends them, for as long as the service
// is there.
//
// Seen to fail with: partOf that does not look at limits.
func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, 0, false)
		ctx := context.Background()
		spec := replicaOf("a")
		spec.Job.TimeLimit = 5 * time.Minute
		s.ask(func() error { _, err := s.Submit(ctx, anna, spec, nil); return err })
		s.until("two replicas", func(st controller.Status) bool { return st.Ready == 2 && st.Rollout.Over() })
		s.mu.Lock()
		s.fewest, s.most = 2, 0
		s.mu.Unlock()
		for end := time.Now().Add(18 * time.Minute); time.Now().Before(end); {
			s.live()
		}
		if s.fewest < 2 || s.most > 3 || s.launched < 8 || s.launched > 10 {
			t.Errorf("at least %d ready, at most %d alive, %d attempts in 18 minutes", s.fewest, s.most, s.launched)
		}
		s.control.Scan(query.Filter{}, func(v *state.View) bool {
			if v.Job.State == job.Timeout {
				t.Errorf("job %s reached its limit", v.Job.Name())
			}
			return true
		})
		s.ask(func() error { return s.Stop(ctx, anna, "chat") })
	})
}
