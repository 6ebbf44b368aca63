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

	replicas map[engine.Ref]replica           // attempts of services
	serving  map[engine.Ref]*engine.Endpoints // … that run
	news     []*newsStream                    // watches of that
}

func newMachine(w *World) *machine {
	m := &machine{
		w: w, gone: map[string]bool{}, phases: map[engine.Ref]engine.Phase{}, still: map[engine.Ref]bool{}, fails: map[engine.Ref]string{}, claims: map[engine.Ref][]string{},
		old: map[job.ID][]engine.Report{}, nodes: fleetOf(w.dice), replicas: map[engine.Ref]replica{}, serving: map[engine.Ref]*engine.Endpoints{},
	}
	m.world = fake.NewWorld(fake.Config{Now: time.Now, Nodes: slices.Clone(m.nodes), Script: m.scriptOutcome, Truth: m.tellTruth})
	m.driver = m.world.Open()
	for _, n := range m.nodes {
		w.tellFact(model.Machine{Node: n})
	}
	return m
}

// fleetOf makes few nodes, so that jobs have to wait for each other.
func fleetOf(d dice) []fleet.Node {
	s := d.streamFor("fleet", "")
	nodes := make([]fleet.Node, 2+s.intBelow(3))
	gpus := s.intBelow(3) * 2
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

// listNodes is what the engine says of its nodes.
func (m *machine) listNodes() []fleet.Node {
	return slices.DeleteFunc(slices.Clone(m.nodes), func(n fleet.Node) bool { return m.gone[n.Name] })
}

func (m *machine) nodeNamed(name string) *fleet.Node {
	i := slices.IndexFunc(m.nodes, func(n fleet.Node) bool { return n.Name == name })
	return &m.nodes[i]
}

// setNodeState changes the state of a node.
func (m *machine) setNodeState(name string, state fleet.NodeState, why string) {
	n := m.nodeNamed(name)
	n.State, n.Why = state, why
	m.w.tellFact(model.Machine{Node: *n})
}

// scriptOutcome says what becomes of an attempt, by its name and not by its number.
func (m *machine) scriptOutcome(l *engine.Launch) fake.Outcome {
	w := m.w
	key := fmt.Sprintf("%s attempt %d", l.Job.Spec.Name, l.Ref.Attempt)
	if a := l.Job.Array; a != nil {
		key = fmt.Sprintf("%s task %d attempt %d", l.Job.Spec.Name, a.Index, l.Ref.Attempt)
	}
	if l.Adds != nil {
		key = fmt.Sprintf("%s from rank %d on", key, l.Adds.First)
	}
	isReplica := w.opt.Services && l.Job.Spec.Part != nil
	if isReplica {
		key = fmt.Sprintf("%s revision %d try %d attempt %d", l.Job.Spec.Name, l.Job.Spec.Part.Revision, l.Job.Spec.Part.Try, l.Ref.Attempt)
	}
	w.tellFact(model.Launched{Ref: l.Ref, Job: l.Job.ID, Claims: l.Claims})
	s := w.dice.streamFor("outcome", key)
	o := fake.Outcome{Ready: s.durationBetween(0, 2*time.Second), Run: s.durationBetween(0, 90*time.Second)}
	switch r := s.intBelow(100); {
	case isReplica:
		o = m.replicaOutcome(l, key)
	case r < 70:
	case r < 80:
		o.Exit.Code = job.ExitCode{Status: 1 + s.intBelow(5)}
	case r < 86:
		o.Exit = fake.Exit{Code: job.ExitCode{Signal: 9}, OOM: true}
	case r < 92 && l.Job.Spec.TimeLimit > 0:
		o.Run = fake.Never
	}
	if l.Adds != nil && s.happensIn(70) { // it ends with what it was added to
		o.Run = fake.Never
	}
	for _, c := range l.Claims {
		if n := m.nodeNamed(c.Node); n.State != fleet.Up && o.FailNode == "" {
			o.FailNode, o.FailText = n.Name, "it is "+string(n.State)
		}
		if !slices.Contains(m.claims[l.Ref], c.Node) {
			m.claims[l.Ref] = append(m.claims[l.Ref], c.Node)
		}
	}
	if o.FailNode == "" && w.faultAt(LaunchFails, key) {
		o.FailNode = l.Claims[s.intBelow(len(l.Claims))].Node
	}
	if o.FailNode != "" {
		m.fails[l.Ref], o.Undo = o.FailNode, s.durationBetween(0, 20*time.Second)
	}
	switch {
	case !w.faultAt(WorkResists, key):
	case s.happensIn(50):
		o.Resists = true
	default:
		o.Immune = true
		w.gateAfter(nil, key+" gives in", s.durationBetween(20*time.Second, 3*time.Minute), func(string) { m.world.Release(l.Ref) })
	}
	return o
}

// tellTruth hears of every change of an attempt, whoever knows of it.
func (m *machine) tellTruth(r engine.Report) {
	if node := m.fails[r.Ref]; node != "" && r.Cause == engine.LaunchFailed {
		delete(m.fails, r.Ref)
		m.w.tellFact(model.Failed{Ref: r.Ref, Node: node})
	}
	if r.Phase < engine.Ended && r.Suspended != m.still[r.Ref] {
		m.still[r.Ref] = r.Suspended
		m.w.tellFact(model.Paused{Ref: r.Ref, On: r.Suspended})
	}
	if r.Phase <= m.phases[r.Ref] {
		return
	}
	m.phases[r.Ref] = r.Phase
	m.noteServing(r)
	nodes := m.claims[r.Ref]
	switch {
	case r.Phase == engine.Running:
		for _, n := range nodes {
			m.w.tellFact(model.Began{Ref: r.Ref, Node: n})
		}
		m.w.tellFact(model.Barrier{Ref: r.Ref})
	case r.Phase == engine.Ended:
		m.w.tellFact(model.Vanished{Ref: r.Ref})
	}
}

// stopDriver closes the engine's driver: who watches, hears nothing more.
func (m *machine) stopDriver() {
	if m.driver == nil {
		return
	}
	_ = m.driver.Close()
	m.driver = nil
	for _, st := range m.streams {
		st.endWatch()
	}
	m.streams = nil
	for _, n := range m.news {
		n.endNews()
	}
	m.news = nil
}

// reopenDriver opens the driver again.
func (m *machine) reopenDriver() {
	if m.driver == nil {
		m.driver = m.world.Open()
		m.w.addStory("the engine is there again")
	}
}

// wipeEngine lets the engine start with nothing, while it is down.
func (m *machine) wipeEngine() {
	m.life.Add(1)
	m.world.Wipe()
	clear(m.phases)
	clear(m.still)
	clear(m.old) // what was said of an earlier life does not come again
	m.w.tellFact(model.Amnesia{})
}

// endWatches ends the watches of a server.
func (m *machine) endWatches(s *server) {
	m.streams = slices.DeleteFunc(m.streams, func(st *watch) bool {
		if st.s == s {
			st.endWatch()
		}
		return st.s == s
	})
}

func (m *machine) close() { m.stopDriver() }
