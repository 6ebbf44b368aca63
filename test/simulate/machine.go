package simulate

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fake"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// machine is what really runs work: the fake engine's world, its nodes, and the
// watches of it.
type machine struct {
	w       *World
	world   *fake.World
	driver  *fake.Engine // nil: it is down
	life    atomic.Int64 // counts how often it forgot everything
	nodes   []fleet.Node
	gone    map[string]bool // nodes that the engine does not list
	phases  map[engine.Ref]engine.Phase
	still   map[engine.Ref]bool     // suspended
	fails   map[engine.Ref]string   // the node that cannot be made ready
	claims  map[engine.Ref][]string // its nodes
	streams []*watch
	old     map[job.ID][]engine.Report // the last reports that were delivered, for those that come again
}

func newMachine(w *World) *machine {
	m := &machine{
		w: w, gone: map[string]bool{}, phases: map[engine.Ref]engine.Phase{}, still: map[engine.Ref]bool{}, fails: map[engine.Ref]string{}, claims: map[engine.Ref][]string{},
		old: map[job.ID][]engine.Report{}, nodes: fleetOf(w.dice),
	}
	m.world = fake.NewWorld(fake.Config{Now: time.Now, Nodes: slices.Clone(m.nodes), Script: m.script, Truth: m.truth})
	m.driver = m.world.Open()
	for _, n := range m.nodes {
		w.tell(model.Machine{Node: n})
	}
	return m
}

// fleetOf makes few nodes, so that jobs have to wait for each other.
func fleetOf(d dice) []fleet.Node {
	s := d.stream("fleet", "")
	nodes := make([]fleet.Node, 2+s.n(3))
	gpus := s.n(3) * 2
	for i := range nodes {
		n := fleet.Node{
			Name: fmt.Sprintf("n%d", i+1), Pool: "main", State: fleet.Up,
			Capacity: resource.Vector{CPU: resource.CPUs(4), Memory: 16 << 30},
		}
		for g := range gpus {
			n.Devices = append(n.Devices, fleet.Device{Index: g, Minor: g, Kind: "gpu", Type: "h100", NUMA: -1, Declared: true})
		}
		if i%2 == 0 {
			n.Features = []string{"fast"}
		}
		nodes[i] = n
	}
	return nodes
}

// list is what the engine says of its nodes.
func (m *machine) list() []fleet.Node {
	return slices.DeleteFunc(slices.Clone(m.nodes), func(n fleet.Node) bool { return m.gone[n.Name] })
}

func (m *machine) node(name string) *fleet.Node {
	i := slices.IndexFunc(m.nodes, func(n fleet.Node) bool { return n.Name == name })
	return &m.nodes[i]
}

// set changes the state of a node.
func (m *machine) set(name string, state fleet.NodeState, why string) {
	n := m.node(name)
	n.State, n.Why = state, why
	m.w.tell(model.Machine{Node: *n})
}

// script says what becomes of an attempt, by its name and not by its number.
func (m *machine) script(l *engine.Launch) fake.Outcome {
	w := m.w
	key := fmt.Sprintf("%s attempt %d", l.Job.Spec.Name, l.Ref.Attempt)
	if a := l.Job.Array; a != nil {
		key = fmt.Sprintf("%s task %d attempt %d", l.Job.Spec.Name, a.Index, l.Ref.Attempt)
	}
	if l.Adds != nil {
		key = fmt.Sprintf("%s from rank %d on", key, l.Adds.First)
	}
	w.tell(model.Launched{Ref: l.Ref, Job: l.Job.ID, Claims: l.Claims})
	s := w.dice.stream("outcome", key)
	o := fake.Outcome{Ready: s.between(0, 2*time.Second), Run: s.between(0, 90*time.Second)}
	switch r := s.n(100); {
	case r < 70:
	case r < 80:
		o.Exit.Code = job.ExitCode{Status: 1 + s.n(5)}
	case r < 86:
		o.Exit = fake.Exit{Code: job.ExitCode{Signal: 9}, OOM: true}
	case r < 92 && l.Job.Spec.TimeLimit > 0:
		o.Run = fake.Never
	}
	if l.Adds != nil && s.one(70) { // it ends with what it was added to
		o.Run = fake.Never
	}
	for _, c := range l.Claims {
		if n := m.node(c.Node); n.State != fleet.Up && o.FailNode == "" {
			o.FailNode, o.FailText = n.Name, "it is "+string(n.State)
		}
		if !slices.Contains(m.claims[l.Ref], c.Node) {
			m.claims[l.Ref] = append(m.claims[l.Ref], c.Node)
		}
	}
	if o.FailNode == "" && w.fault(LaunchFails, key) {
		o.FailNode = l.Claims[s.n(len(l.Claims))].Node
	}
	if o.FailNode != "" {
		m.fails[l.Ref], o.Undo = o.FailNode, s.between(0, 20*time.Second)
	}
	switch {
	case !w.fault(WorkResists, key):
	case s.one(50):
		o.Resists = true
	default:
		o.Immune = true
		w.arrive(nil, key+" gives in", s.between(20*time.Second, 3*time.Minute), func(string) { m.world.Release(l.Ref) })
	}
	return o
}

// truth hears of every change of an attempt, whoever knows of it.
func (m *machine) truth(r engine.Report) {
	if node := m.fails[r.Ref]; node != "" && r.Cause == engine.LaunchFailed {
		delete(m.fails, r.Ref)
		m.w.tell(model.Failed{Ref: r.Ref, Node: node})
	}
	if r.Phase < engine.Ended && r.Suspended != m.still[r.Ref] {
		m.still[r.Ref] = r.Suspended
		m.w.tell(model.Paused{Ref: r.Ref, On: r.Suspended})
	}
	if r.Phase <= m.phases[r.Ref] {
		return
	}
	m.phases[r.Ref] = r.Phase
	nodes := m.claims[r.Ref]
	switch {
	case r.Phase == engine.Running:
		for _, n := range nodes {
			m.w.tell(model.Began{Ref: r.Ref, Node: n})
		}
		m.w.tell(model.Barrier{Ref: r.Ref})
	case r.Phase == engine.Ended:
		m.w.tell(model.Vanished{Ref: r.Ref})
	}
}

// stop closes the engine's driver: who watches, hears nothing more.
func (m *machine) stop() {
	if m.driver == nil {
		return
	}
	_ = m.driver.Close()
	m.driver = nil
	for _, st := range m.streams {
		st.end()
	}
	m.streams = nil
}

// again opens the driver again.
func (m *machine) again() {
	if m.driver == nil {
		m.driver = m.world.Open()
		m.w.say("the engine is there again")
	}
}

// wipe lets the engine start with nothing, while it is down.
func (m *machine) wipe() {
	m.life.Add(1)
	m.world.Wipe()
	clear(m.phases)
	clear(m.still)
	clear(m.old) // what was said of an earlier life does not come again
	m.w.tell(model.Amnesia{})
}

// leave ends the watches of a server.
func (m *machine) leave(s *server) {
	m.streams = slices.DeleteFunc(m.streams, func(st *watch) bool {
		if st.s == s {
			st.end()
		}
		return st.s == s
	})
}

func (m *machine) close() { m.stop() }
