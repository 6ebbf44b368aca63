package controller

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/service/handover/decide"
)

// Config are the parts of a controller.
type Config struct {
	Plane Plane
	// Check runs the checks of a node now, and says what each saw; fault.Unsupported: there are none. nil: this
	// server has no checks.
	Check func(ctx context.Context, k fleet.NodeKey) ([]fleet.CheckResult, error)
	Now   func() time.Time // nil: time.Now
	Log   *slog.Logger     // nil: none
}

// Bounds.
const (
	callTimeout  = 30 * time.Second // of a call to an engine
	checkTimeout = 5 * time.Minute  // of all checks of a node
	mostCalls    = 4                // to one engine at a time
	longestPause = 10 * time.Second // between two looks at the records
	shortPause   = time.Second      // the same, of jobs that change while a hand-over is under way
	writeAgain   = 2 * time.Second  // a record that could not be written
	waitsAgain   = 10 * time.Second // what a step waits for, in the record
	requeueAgain = 10 * time.Second // of jobs that are still there
)

// Controller hands machines over. Its methods are safe for concurrent use.
type Controller struct {
	cfg   Config
	wake  chan struct{} // holds one at most
	done  chan func()   // what goroutines have done, for the goroutine of Run
	tasks sync.WaitGroup

	machines map[string]*managed // by name; of the goroutine of Run
	calls    map[string]int      // that are under way, by pool
	reports  map[string]bool     // pools that have told of a fence of ours
	stale    bool                // a record has changed since the last look
}

// managed is a machine with what only the memory of this process knows.
type managed struct {
	Machine
	nodes   map[fleet.NodeKey]*decide.Node // what engines said
	busy    bool                           // something is being done for it
	due     time.Time                      // decide again then, or when something changes
	hold    time.Time                      // nothing is decided before
	since   time.Time                      // of the step that is done, as far as this process knows
	waitsAt time.Time                      // when what it waits for was last written
	requeue time.Time                      // not before then again
	trouble string                         // why a record could not be written
}

// New makes a controller. Nothing moves until Run runs.
func New(cfg Config) *Controller {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return &Controller{cfg: cfg, wake: make(chan struct{}, 1), done: make(chan func()), machines: map[string]*managed{}, calls: map[string]int{}, reports: map[string]bool{}}
}

// Run hands machines over until ctx ends. A hand-over that is under way then stays as far as it is.
func (c *Controller) Run(ctx context.Context) {
	defer c.tasks.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c.tasks.Go(func() { c.followJobs(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case f := <-c.done:
			f()
		case <-c.wake:
			c.stale = true
		case <-timer.C:
			c.stale = true
		}
		if c.stale {
			c.readMachines(ctx)
		}
		c.decideAll(ctx)
		timer.Reset(c.nextPause())
	}
}

// Wake has the records looked at now: somebody has changed one.
func (c *Controller) Wake() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// followJobs has the records looked at when jobs change, until ctx ends.
func (c *Controller) followJobs(ctx context.Context) {
	after := uint64(0)
	for ctx.Err() == nil {
		last, err := c.cfg.Plane.Next(ctx, after)
		if err != nil {
			return // the control plane ends
		}
		after = last
		c.Wake()
		select {
		case <-time.After(shortPause):
		case <-ctx.Done():
		}
	}
}

// readMachines takes in the records and what is known of their machines.
func (c *Controller) readMachines(ctx context.Context) {
	list, err := c.cfg.Plane.Machines(ctx)
	if err != nil {
		c.cfg.Log.Warn("the records of machines cannot be read; trying again", "error", err)
		return
	}
	c.stale = false
	seen := make(map[string]bool, len(list))
	for i := range list {
		name := list[i].Owner.Machine
		seen[name] = true
		m := c.machines[name]
		if m == nil {
			m = &managed{nodes: map[fleet.NodeKey]*decide.Node{}}
			c.machines[name] = m
		}
		m.takeIn(list[i])
		for _, n := range list[i].Nodes {
			if n.Fence != 0 {
				c.reports[n.Pool] = true
			}
		}
	}
	maps.DeleteFunc(c.machines, func(name string, _ *managed) bool { return !seen[name] })
}

// takeIn takes in the present record of a machine.
func (m *managed) takeIn(now Machine) {
	was := m.Owner
	m.Machine = now
	if o := &now.Owner; o.Epoch != was.Epoch || o.Step != was.Step || o.Back != was.Back || o.Moving() != was.Moving() {
		m.due, m.since, m.trouble = time.Time{}, o.At, ""
	}
	there := map[fleet.NodeKey]bool{}
	for i := range now.Nodes {
		n := &now.Nodes[i]
		there[n.NodeKey] = true
		if m.nodes[n.NodeKey] == nil {
			m.nodes[n.NodeKey] = &decide.Node{Name: n.Name}
		}
		m.nodes[n.NodeKey].State, m.nodes[n.NodeKey].Fence, m.nodes[n.NodeKey].Unfit = n.State, n.Fence, n.Unfit
	}
	maps.DeleteFunc(m.nodes, func(k fleet.NodeKey, _ *decide.Node) bool { return !there[k] })
}

// decideAll decides upon the machines for which nothing is being done and whose time has come.
func (c *Controller) decideAll(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(c.machines)) {
		m, now := c.machines[name], c.cfg.Now()
		if !m.busy && !m.hold.After(now) && (m.Owner.Moving() || !m.due.After(now)) {
			c.decideMachine(ctx, m)
		}
	}
}

// holdFor has nothing decided for a while.
func (m *managed) holdFor(now time.Time, d time.Duration) {
	m.hold = now.Add(d)
	m.due = m.hold
}

// nextPause is how long nothing has to be decided.
func (c *Controller) nextPause() time.Duration {
	next := longestPause
	for _, m := range c.machines {
		if !m.busy {
			next = min(next, m.due.Sub(c.cfg.Now()))
		}
	}
	return max(next, 10*time.Millisecond)
}

// inputOf is what a decision about a machine depends on.
func (c *Controller) inputOf(m *managed) *decide.Input {
	in := &decide.Input{Now: c.cfg.Now(), Owner: m.Owner, Work: m.Work, Pools: m.Pools, Unheard: m.Unheard, Since: m.since}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		if len(in.Sides) == 0 || in.Sides[len(in.Sides)-1].Pool != n.Pool {
			_, fences := c.cfg.Plane.Engine(n.Pool).(engine.NodeFencer)
			in.Sides = append(in.Sides, decide.Side{Pool: n.Pool, Fences: fences, Delegated: n.Delegated, Reports: c.reports[n.Pool]})
		}
		s := &in.Sides[len(in.Sides)-1]
		s.Nodes = append(s.Nodes, *m.nodes[n.NodeKey])
	}
	return in
}

// actorOf is in whose name steps are written.
func actorOf(o *fleet.MachineOwner) job.Actor {
	return job.Actor{Name: o.By, From: "hand-over of machine " + o.Machine}
}

// errNoEngine is the answer of an engine that is not there.
var errNoEngine = fault.New(fault.Unavailable, "the pool has no engine now")
