package nodehealth_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/control"
	"github.com/coxswain-sched/coxswain/control/pools"
	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/service/nodehealth"
	"github.com/coxswain-sched/coxswain/store"
)

// site is a control plane over the fake engine with a Monitor that runs, until the test ends.
type site struct {
	t     *testing.T
	ctl   *control.Control
	world *fake.World
	start func() // of the Monitor
	*nodehealth.Monitor

	mu    sync.Mutex
	says  func(node string) ([]fleet.CheckResult, error)
	looks []string
}

func open(t *testing.T, cfg nodehealth.Config) *site {
	t.Helper()
	s := prepare(t, cfg, nil)
	s.start()
	return s
}

// prepare is open with jobs that end as a script says, without starting the Monitor.
func prepare(t *testing.T, cfg nodehealth.Config, script func(*engine.Launch) fake.Outcome) *site {
	t.Helper()
	s := &site{t: t, says: func(string) ([]fleet.CheckResult, error) { return nil, nil }}
	var nodes []fleet.Node
	for _, name := range []string{"n1", "n2"} {
		nodes = append(nodes, fleet.Node{Name: name, State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(4)}})
	}
	s.world = fake.NewWorld(fake.Config{Now: time.Now, Nodes: nodes, Script: script, Checks: func(node string) ([]fleet.CheckResult, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.looks = append(s.looks, node)
		return s.says(node)
	}})
	e := s.world.Open()
	var err error
	if s.ctl, err = control.Open(t.Context(), control.Config{Store: new(store.Memory), Pools: []pools.Pool{{Pool: fleet.Pool{Name: "p"}, Engine: e}}, Who: t.Name()}); err != nil {
		t.Fatal(err)
	}
	cfg.Plane = nodehealth.NewPlane(s.ctl, map[string]engine.Engine{"p": e})
	s.Monitor = nodehealth.New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.world.Run(ctx) })
	s.start = func() { running.Go(func() { s.Run(ctx) }) }
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := s.ctl.Close(); err != nil {
			t.Error(err)
		}
		e.Close()
	})
	return s
}

// say sets what checks of nodes see from now on.
func (s *site) say(f func(node string) ([]fleet.CheckResult, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.says = f
}

// disk is a result of the check disk.
func disk(v fleet.Verdict) []fleet.CheckResult {
	return []fleet.CheckResult{{Check: "disk", Verdict: v, Text: "seen"}}
}

// until waits for an event of a kind.
func (s *site) until(kind string) state.Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	for after := uint64(0); ; {
		evs, last, _, err := s.ctl.Events(ctx, after)
		if err != nil {
			s.t.Fatalf("in vain: %s: %v", kind, err)
		}
		if i := slices.IndexFunc(evs, func(e state.Event) bool { return e.Kind == kind }); i >= 0 {
			return evs[i]
		}
		after = last
	}
}

// A request checks what it names, fences what fails, and gives free what passes.
//
// Seen to fail with an error that counts as a pass.
func TestChecksOnRequest(t *testing.T) {
	s := open(t, nodehealth.Config{Rules: nodehealth.Rules{Failures: 1, Passes: 3}})
	keys, err := s.Nodes(t.Context())
	if want := []fleet.NodeKey{{Pool: "p", Name: "n1"}, {Pool: "p", Name: "n2"}}; err != nil || !slices.Equal(keys, want) {
		t.Fatalf("%v, %v", keys, err)
	}
	for _, step := range []struct {
		says   func(string) ([]fleet.CheckResult, error)
		fences int
		fails  bool
	}{
		{func(string) ([]fleet.CheckResult, error) { return disk(fleet.Passed), nil }, 0, false},
		{func(string) ([]fleet.CheckResult, error) { return disk(fleet.Failed), nil }, 1, false},
		{func(string) ([]fleet.CheckResult, error) { return nil, errors.New("nobody looked") }, 1, true},
		{func(string) ([]fleet.CheckResult, error) { return disk(fleet.Passed), nil }, 0, false},
	} {
		s.say(step.says)
		got, err := s.Check(t.Context(), keys[:1])
		if err != nil || len(got) != 1 || (got[0].Failure != nil) != step.fails || len(got[0].Results) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		h, known := s.ctl.Health(keys[0])
		if !known || len(h.Fences) != step.fences {
			t.Errorf("%+v", h)
		}
	}
	if s.Failures()["disk"] != 1 || !s.Last(keys[1]).At.IsZero() {
		t.Errorf("%v, %+v", s.Failures(), s.Last(keys[1]))
	}
	if evs := []state.Event{s.until(state.EventFenced), s.until(state.EventUnfenced)}; evs[0].Message != "check disk failed: seen" || evs[1].Message != "check disk passes again" || evs[0].By != "health" || evs[0].Nodes[0] != "n1" {
		t.Errorf("%+v", evs)
	}
}

// A request is answered by a check that began after it, also while another runs: a node that was mended meanwhile
// passes. Requests that wait for that share the check.
//
// Seen to fail with requests that join the check that runs, and with a check for each request.
func TestRequestsShareACheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.turn, p.says = make(chan struct{}), disk(fleet.Failed)
		m := runMonitor(t, nodehealth.Config{Plane: p})
		keys := []fleet.NodeKey{nodeKey("n1"), nodeKey("n2")}
		saw := make(chan fleet.Verdict, 10)
		ask := func() {
			r, err := m.Check(t.Context(), keys)
			if err != nil || len(r) != len(keys) {
				t.Errorf("%v, %v", r, err)
				return
			}
			for i := range r {
				saw <- r[i].Results[0].Verdict
			}
		}
		go ask()
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Check(gone, keys); err == nil {
			t.Error("a request whose client has gone was answered")
		}
		p.mu.Lock()
		p.says = disk(fleet.Passed) // the nodes are mended
		p.mu.Unlock()
		const requests = 4
		for range requests {
			go ask()
		}
		synctest.Wait()
		for range keys { // the first checks end
			p.turn <- struct{}{}
		}
		synctest.Wait()
		for range keys {
			if v := <-saw; v != fleet.Failed {
				t.Errorf("the first request: %s", v)
			}
		}
		close(p.turn)
		for range requests * len(keys) {
			if v := <-saw; v != fleet.Passed {
				t.Errorf("a request was answered by a check that had begun before: %s", v)
			}
		}
		if n, _ := p.seen("n1"); n != 2 {
			t.Errorf("%d checks of a node for %d requests", n, 1+requests)
		}
	})
}

// The node of a job that failed is checked without being asked, and what waits there finds it fenced; so is
// a node whose last job has ended well, also if the job has ended before Run.
//
// Seen to fail without followJobs, with places that do not ask for the attempt, and with a Monitor that looks for
// the newest event only as it runs.
func TestChecksAfterJobs(t *testing.T) {
	for _, exit := range []int{0, 1} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprintf("exit %d, before Run %t", exit, before), func(t *testing.T) {
				t.Parallel() // a Monitor waits a second between two looks
				testAfterJob(t, exit, before)
			})
		}
	}
}

// testAfterJob has a job end, before the Monitor runs or while it does.
func testAfterJob(t *testing.T, exit int, before bool) {
	s := prepare(t, nodehealth.Config{After: func(pool string) bool { return pool == "p" }}, func(*engine.Launch) fake.Outcome {
		return fake.Outcome{Exit: fake.Exit{Code: job.ExitCode{Status: exit}}}
	})
	s.say(func(string) ([]fleet.CheckResult, error) { return disk(fleet.Failed), nil })
	if !before {
		s.start()
	}
	spec := &job.Spec{Name: "j", Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(4)}}}}, Program: job.Program{Kind: job.Direct, Args: []string{"true"}}}
	if _, err := s.ctl.Submit(t.Context(), control.Submission{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	ran := s.until(state.EventAllocated)
	if before {
		s.until(state.EventEnded)
		s.start()
	}
	if e := s.until(state.EventFenced); !slices.Equal(e.Nodes, ran.Nodes) {
		t.Errorf("the job was on %v, fenced is %v", ran.Nodes, e.Nodes)
	}
	places := nodehealth.NewPlane(s.ctl, nil)
	if first, other := places.Places(t.Context(), ran.Job, 1), places.Places(t.Context(), ran.Job, 2); len(first) != 1 || first[0].Name != ran.Nodes[0] || other != nil {
		t.Errorf("attempt 1 was on %v, attempt 2, which there was not, on %v", first, other)
	}
}

// TestCheckNow: a check that is asked for now is not one that began before, and it needs its passes as any other.
//
// Seen to fail with a request that joins the check that runs.
func TestCheckNow(t *testing.T) {
	s := open(t, nodehealth.Config{Rules: nodehealth.Rules{Failures: 1, Passes: 2}})
	k := fleet.NodeKey{Pool: "p", Name: "n1"}
	began, goOn := make(chan struct{}), make(chan struct{})
	first := true
	s.say(func(string) ([]fleet.CheckResult, error) {
		if !first {
			return disk(fleet.Failed), nil
		}
		first = false
		close(began)
		<-goOn
		return disk(fleet.Passed), nil
	})
	ended := make(chan error, 1)
	go func() { _, err := s.Check(t.Context(), []fleet.NodeKey{k}); ended <- err }()
	<-began
	saw := make(chan []fleet.CheckResult, 1)
	go func() { r, _ := s.CheckNow(t.Context(), k); saw <- r }()
	for range 200 { // so that it most likely has asked
		runtime.Gosched()
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if r := <-saw; len(r) != 1 || r[0].Verdict != fleet.Failed {
		t.Errorf("it takes a check for its own that began before: %+v", r)
	}
	s.say(func(string) ([]fleet.CheckResult, error) { return disk(fleet.Passed), nil })
	if r, err := s.CheckNow(t.Context(), k); err != nil || r[0].Verdict != fleet.Passed {
		t.Errorf("%+v, %v", r, err)
	}
	if h, _ := s.ctl.Health(k); len(h.Fences) != 1 {
		t.Errorf("one pass has removed the fence: %+v", h)
	}
}

// TestFitNow: just before work begins, a fence of the node or of a device that the work has keeps it off, and no
// other; results of a moment ago count, and a check that does not end holds nothing up.
//
// Seen to fail with: fences of all devices counted; a check for each job.
func TestFitNow(t *testing.T) {
	s := open(t, nodehealth.Config{Rules: nodehealth.Rules{Failures: 1, Passes: 2}})
	k := fleet.NodeKey{Pool: "p", Name: "n1"}
	one := 1
	s.say(func(node string) ([]fleet.CheckResult, error) {
		if node == "n2" {
			return disk(fleet.Failed), nil
		}
		return []fleet.CheckResult{{Check: "devices", Device: &one, Verdict: fleet.Failed, Text: "gone"}}, nil
	})
	if why := s.FitNow(t.Context(), k, []int{0}); why != "" {
		t.Errorf("another device: %q", why)
	}
	if why := s.FitNow(t.Context(), k, []int{0, 1}); why != "device 1: check devices failed: gone" {
		t.Errorf("that device: %q", why)
	}
	if why := s.FitNow(t.Context(), fleet.NodeKey{Pool: "p", Name: "n2"}, nil); why != "check disk failed: seen" {
		t.Errorf("the node: %q", why)
	}
	s.mu.Lock()
	if !slices.Equal(s.looks, []string{"n1", "n2"}) {
		t.Errorf("looks: %v", s.looks)
	}
	s.mu.Unlock()
	hangs, goOn := open(t, nodehealth.Config{}), make(chan struct{})
	hangs.say(func(string) ([]fleet.CheckResult, error) { <-goOn; return disk(fleet.Failed), nil })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if why := hangs.FitNow(gone, k, nil); why != "" {
		t.Errorf("a check that hangs: %q", why)
	}
	close(goOn)
}
