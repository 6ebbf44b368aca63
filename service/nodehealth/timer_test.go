package nodehealth_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/service/nodehealth"
)

// plane is a Plane of pool p with the nodes n1 and n2. Every job runs on n1.
type plane struct {
	events chan []state.Event
	turn   chan struct{} // each check waits for one; nil: none does

	mu     sync.Mutex
	health map[fleet.NodeKey]state.NodeHealth
	says   []fleet.CheckResult
	looks  map[string]int
	lists  int
	busy   bool
}

func newPlane() *plane {
	return &plane{events: make(chan []state.Event), health: map[fleet.NodeKey]state.NodeHealth{}, looks: map[string]int{}}
}

func nodeKey(name string) fleet.NodeKey { return fleet.NodeKey{Pool: "p", Name: name} }

func (p *plane) Health(k fleet.NodeKey) (state.NodeHealth, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health[k], true
}

func (p *plane) SetNodeHealth(_ context.Context, _ job.Actor, v state.NodeHealth) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.health[v.Key()] = v
	return nil
}

func (p *plane) Listed(context.Context) ([]fleet.NodeKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists++
	return []fleet.NodeKey{nodeKey("n1"), nodeKey("n2")}, nil
}

func (p *plane) Events(ctx context.Context, after uint64) ([]state.Event, uint64, bool, error) {
	select {
	case evs := <-p.events:
		return evs, after + uint64(len(evs)), false, nil
	case <-ctx.Done():
		return nil, after, false, ctx.Err()
	}
}

func (p *plane) LastEvent() uint64 { return 0 }

func (p *plane) Places(context.Context, job.ID, uint32) []fleet.NodeKey {
	return []fleet.NodeKey{nodeKey("n1")}
}

func (p *plane) Busy(fleet.NodeKey) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

func (p *plane) Engine(string) engine.Engine { return stubEngine{plane: p} }

// stubEngine is an engine that checks nodes and does nothing else.
type stubEngine struct {
	engine.Engine
	plane *plane
}

func (e stubEngine) CheckNode(_ context.Context, node string) ([]fleet.CheckResult, error) {
	p := e.plane
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looks[node]++
	says := p.says // as they are when the check begins
	if p.turn != nil {
		p.mu.Unlock()
		<-p.turn
		p.mu.Lock()
	}
	return says, nil
}

// seen is how often a node was checked, and how often the nodes were listed.
func (p *plane) seen(node string) (looks, lists int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.looks[node], p.lists
}

// runMonitor runs a Monitor until the test ends.
func runMonitor(t *testing.T, cfg nodehealth.Config) *nodehealth.Monitor {
	m := nodehealth.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return m
}

// A node that is fenced is checked until its check passes, also where nodes are not checked at intervals: of
// a check on request, and of a server before this one. The other node is left alone.
//
// Seen to fail with no checks of fenced nodes where Every is 0.
func TestAFenceEndsByItself(t *testing.T) {
	for _, old := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlane()
			if old {
				p.health[nodeKey("n1")] = state.NodeHealth{Pool: "p", Node: "n1", Epoch: 1, Fences: []fleet.HealthFence{{Check: "disk"}}}
			}
			p.says = disk(fleet.Failed)
			m := runMonitor(t, nodehealth.Config{Plane: p, Rules: nodehealth.Rules{Failures: 1, Passes: 2}})
			if !old {
				if _, err := m.Check(t.Context(), []fleet.NodeKey{nodeKey("n1")}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Hour)
			if h, _ := p.Health(nodeKey("n1")); len(h.Fences) != 1 {
				t.Fatalf("%+v", h)
			}
			if n, _ := p.seen("n1"); n < 100 || n > 130 {
				t.Errorf("%d checks in an hour, each 30 s", n)
			}
			p.mu.Lock()
			p.says = disk(fleet.Passed)
			p.mu.Unlock()
			time.Sleep(2 * time.Minute)
			if h, _ := p.Health(nodeKey("n1")); len(h.Fences) != 0 {
				t.Errorf("it passes, and is fenced: %+v", h)
			}
			before, _ := p.seen("n1")
			time.Sleep(time.Hour)
			if after, _ := p.seen("n1"); after != before {
				t.Errorf("%d checks of a node that is not fenced", after-before)
			}
			if n, _ := p.seen("n2"); n > 0 {
				t.Errorf("%d checks of the other node", n)
			}
		})
	}
}

// What another system has seen is as old as its list, however late it is asked for.
//
// Seen to fail with the time of the check.
func TestOldResultsAreOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.says = disk(fleet.Passed)
		listed := time.Now()
		p.says[0].At = listed
		m := runMonitor(t, nodehealth.Config{Plane: p})
		for range 2 {
			time.Sleep(time.Hour)
			if got, err := m.Check(t.Context(), []fleet.NodeKey{nodeKey("n1")}); err != nil || !got[0].At.Equal(listed) {
				t.Errorf("%+v, %v", got, err)
			}
		}
	})
}

// The ends of jobs have their own nodes looked at, and no list of all nodes made. A node on which jobs run is
// checked when the last of them ends; the end of one that failed does not wait for that.
//
// Seen to fail with a look at all nodes after each end, and without Busy.
func TestEndsOfJobsListNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane()
		p.busy = true
		runMonitor(t, nodehealth.Config{Plane: p, After: func(string) bool { return true }, Rules: nodehealth.Rules{Failures: 1, Passes: 2}})
		end := func(s job.State) {
			p.events <- []state.Event{{Kind: state.EventEnded, Job: 1, Attempt: 1, State: s.String()}}
			synctest.Wait()
		}
		time.Sleep(time.Second)
		_, before := p.seen("n1")
		for range 200 {
			end(job.Completed)
			time.Sleep(100 * time.Millisecond)
		}
		looks, lists := p.seen("n1")
		if lists-before > 1 {
			t.Errorf("all nodes were listed %d times in 20 s", lists-before)
		}
		if looks > 0 {
			t.Errorf("%d checks while jobs run", looks)
		}
		p.mu.Lock()
		p.busy = false
		p.mu.Unlock()
		end(job.Completed)
		time.Sleep(2 * time.Second)
		if looks, _ = p.seen("n1"); looks != 1 {
			t.Errorf("%d checks after the last job", looks)
		}
		p.mu.Lock()
		p.busy = true
		p.mu.Unlock()
		end(job.Failed)
		time.Sleep(7 * time.Second)
		if looks, _ = p.seen("n1"); looks != 2 {
			t.Errorf("%d checks after a job that failed", looks)
		}
		if n, _ := p.seen("n2"); n > 0 {
			t.Errorf("%d checks of the other node", n)
		}
	})
}
