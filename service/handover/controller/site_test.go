package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/service/handover/controller"
	"github.com/coxswain-sched/coxswain/store"
)

// site is a control plane with hand-overs over two fake engines, a and b, with nodes on the same two machines, m1
// and m2: a1 and a2, b1 and b2. The engines and the store outlive servers.
type site struct {
	t      *testing.T
	worlds map[string]*fake.World
	store  store.Memory

	mu     sync.Mutex
	faults func(pool string, c fake.Call) (before, after error)
	alive  map[string]map[engine.Ref][]string // pool → attempt that lives → its nodes
	broken []string
	long   time.Duration                                  // how long a job runs
	checks func(node string) ([]fleet.CheckResult, error) // nil: none see anything
	writes int
	// evidence of the last record of each machine and step
	evidence map[string]string
	hidden   string // a node that its engine does not report
	killAt   int    // the server dies at this write of the journal
	after    bool
	dead     chan struct{}

	stop    func()
	control *control.Control
	*controller.Controller
}

func newSite(t *testing.T, killAt int, after bool) *site {
	s := &site{t: t, evidence: map[string]string{}, worlds: map[string]*fake.World{}, alive: map[string]map[engine.Ref][]string{"a": {}, "b": {}}, long: 40 * time.Second, killAt: killAt, after: after, stop: func() {}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, pool := range []string{"a", "b"} {
		var nodes []fleet.Node
		for _, n := range []string{"1", "2"} {
			nodes = append(nodes, fleet.Node{
				Name: pool + n, Hosts: []string{"m" + n}, State: fleet.Up, Path: []string{"rack" + n},
				Capacity: resource.Vector{CPU: resource.CPUs(8), Memory: 64 * resource.GiB},
			})
		}
		s.worlds[pool] = fake.NewWorld(fake.Config{
			Now: time.Now, Nodes: nodes,
			Script: func(*engine.Launch) fake.Outcome { return fake.Outcome{Ready: 100 * time.Millisecond, Run: s.long} },
			Fault: func(c fake.Call) (before, after error) {
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.faults == nil {
					return nil, nil
				}
				return s.faults(pool, c)
			},
			Truth: func(r engine.Report) { s.judge(pool, &r) },
		})
		w := s.worlds[pool]
		wg.Go(func() { w.Run(ctx) })
	}
	t.Cleanup(func() { s.stop(); cancel(); wg.Wait() })
	s.start()
	return s
}

// judge hears of every change of an attempt, and looks whether both engines have work on one machine.
func (s *site) judge(pool string, r *engine.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var on []string
	for _, n := range r.Nodes {
		on = append(on, "m"+n.Node[1:])
	}
	if s.alive[pool][r.Ref] = on; r.Phase == engine.Ended {
		delete(s.alive[pool], r.Ref)
	}
	for _, m := range []string{"m1", "m2"} {
		has := func(pool string) bool {
			for _, on := range s.alive[pool] {
				if slices.Contains(on, m) {
					return true
				}
			}
			return false
		}
		if has("a") && has("b") {
			s.broken = append(s.broken, fmt.Sprintf("both engines have work on %s: %v", m, s.alive))
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

func (m *mortal) Append(ctx context.Context, epoch uint64, recs []store.Record) (last uint64, err error) {
	select {
	case <-m.dead:
		return 0, errDead
	default:
	}
	if len(recs) == 0 {
		return m.Store.Append(ctx, epoch, recs)
	}
	m.s.mu.Lock()
	for i := range recs {
		var v state.OwnersSet
		if recs[i].Kind == state.KindOwner && json.Unmarshal(recs[i].Data, &v) == nil {
			for _, o := range v.Owners {
				m.s.evidence[o.Machine+" "+string(o.Step)] = o.Evidence
			}
		}
	}
	m.s.writes++
	die := m.s.writes == m.s.killAt
	m.s.mu.Unlock()
	if !die || m.s.after {
		last, err = m.Store.Append(ctx, epoch, recs)
	}
	if die {
		close(m.dead)
		return 0, errDead
	}
	return last, err
}

// start starts a server.
func (s *site) start() {
	s.t.Helper()
	s.dead = make(chan struct{})
	var err error
	cfg := control.Config{Store: &mortal{&s.store, s, s.dead}, Who: "test", Grace: time.Second, Keep: time.Hour, Project: 2 * time.Second}
	var engines []*fake.Engine
	for _, pool := range []string{"a", "b"} {
		e := s.worlds[pool].Open()
		engines = append(engines, e)
		cfg.Pools = append(cfg.Pools, pools.Pool{Pool: fleet.Pool{Name: pool, Engine: "fake"}, Engine: &hiding{e, s}})
	}
	closeEngines := func() {
		for _, e := range engines {
			if err := e.Close(); err != nil {
				s.t.Error(err)
			}
		}
	}
	if s.control, err = control.Open(context.Background(), cfg); err != nil { // it died on the way
		closeEngines()
		s.stop, s.control = func() {}, nil
		return
	}
	s.Controller = controller.New(controller.Config{
		Plane: controller.NewPlane(s.control),
		Check: func(_ context.Context, k fleet.NodeKey) ([]fleet.CheckResult, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.checks == nil {
				return nil, fault.New(fault.Unsupported, "the engine of pool %s has no checks", k.Pool)
			}
			return s.checks(k.Name)
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(ctx) })
	plane := s.control
	s.stop = func() {
		cancel()
		wg.Wait()
		_ = plane.Close() // a dead one fails
		closeEngines()
		s.stop = func() {}
	}
}

// hiding is an engine that does not report a node of its own.
type hiding struct {
	*fake.Engine
	s *site
}

// Nodes leaves out the hidden one.
func (h *hiding) Nodes(ctx context.Context) ([]fleet.Node, error) {
	list, err := h.Engine.Nodes(ctx)
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	return slices.DeleteFunc(list, func(n fleet.Node) bool { return n.Name == h.s.hidden }), err
}

// hide has a node reported no more.
func (s *site) hide(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden = node
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

// until lives until something is so.
func (s *site) until(what string, is func() bool) {
	s.t.Helper()
	for range 2000 {
		if s.control != nil && is() {
			return
		}
		s.live()
	}
	s.t.Fatalf("never: %s; %s", what, s.owners())
}

// ask asks until it is answered: a server that died is asked again.
func (s *site) ask(f func() error) {
	s.t.Helper()
	var err error
	for range 100 {
		if s.control != nil {
			if err = f(); err == nil || fault.KindOf(err) == fault.Conflict { // what was asked before its death may have been done
				return
			}
		}
		s.live()
	}
	s.t.Fatal("it is never answered:", err)
}

func (s *site) owner(machine string) *fleet.MachineOwner {
	o, _ := s.control.MachineOwner(machine)
	return &o
}

func (s *site) evidenceOf(machine string, step fleet.HandoverStep) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.evidence[machine+" "+string(step)]
}

// owners is who has which machine, and how far hand-overs are.
func (s *site) owners() string {
	out := ""
	for _, o := range s.control.MachineOwners(context.Background()) {
		out += fmt.Sprintf("%s: %s to %q step %s back %v, waits for %q, evidence %q; ", o.Machine, o.Pool, o.Next, o.Step, o.Back, o.Waits, o.Evidence)
	}
	return out
}

var root = job.Actor{Name: "root"}

// move hands nodes over, and asks until each hand-over has begun.
func (s *site) move(r controller.Request) []controller.Moved {
	s.t.Helper()
	var out []controller.Moved
	s.ask(func() (err error) {
		if out, err = s.Move(context.Background(), root, r); err != nil {
			return err
		}
		for i := range out {
			if out[i].Err != nil {
				return out[i].Err
			}
		}
		return nil
	})
	return out
}

// submit submits a job for a pool.
func (s *site) submit(pool string, change func(*job.Spec)) (id job.ID) {
	s.t.Helper()
	spec := &job.Spec{
		Name: "x", Owner: job.Owner{User: "anna", UID: 2001}, WorkDir: "/work", Program: job.Program{Kind: job.Direct, Args: []string{"train"}}, Pool: pool,
		TimeLimit: 10 * time.Minute, Groups: []job.TaskGroup{{Tasks: job.Count{Want: 1}, PerTask: resource.Requirements{Vector: resource.Vector{CPU: resource.CPUs(8)}}}},
	}
	if change != nil {
		change(spec)
	}
	s.ask(func() error {
		a, err := s.control.Submit(context.Background(), control.Submission{Spec: spec, By: job.Actor{Name: "anna", UID: 2001}})
		id = a.ID
		return err
	})
	return id
}

func (s *site) state(id job.ID) job.State {
	v, err := s.control.Job(context.Background(), id)
	if err != nil {
		return 0
	}
	return v.Job.State
}

// check looks whether the judge saw anything.
func (s *site) check() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.broken {
		s.t.Error(b)
	}
}

// onNode has a job run on a node.
func onNode(name string) func(*job.Spec) {
	return func(spec *job.Spec) { spec.Groups[0].NodeList = []string{name} }
}
