// Package fake is an engine in memory, for tests and simulation. It starts no
// process and no goroutine and reads no clock: what becomes of an attempt is
// scripted by an Outcome, and happens when Advance is called at its time.
//
// A World is what outlives an engine's restart; an Engine is one driver on it. It
// keeps the contract of engine.Engine as strictly as a real driver: the
// conformance suite runs on it.
package fake

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/engine/fence"
	"github.com/coxswain-sched/coxswain/engine/kit"
	"github.com/coxswain-sched/coxswain/engine/watchcache"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// Never as a duration in an Outcome means that it does not happen by itself.
const Never time.Duration = -1

// Outcome scripts one attempt. The zero Outcome is ready at once and ends at once
// with exit 0.
type Outcome struct {
	Ready time.Duration // from the launch until every node is ready
	Run   time.Duration // from the start until it ends by itself; Never: until it is stopped
	Exit  Exit          // how it ends by itself

	FailNode string        // this node cannot be made ready: the launch fails at Ready
	FailText string        // why
	Undo     time.Duration // how long it takes until what was set up of such a launch is gone

	Resists bool // SIGTERM does not end it, SIGKILL does
	Immune  bool // nothing ends it, until World.Release

	LoseNode string        // this node's supervisor dies LoseAfter after the start
	Silent   bool          // it does not die but falls silent: the report becomes uncertain, until World.Release
	After    time.Duration // for LoseNode
}

// Config says how a world behaves.
type Config struct {
	Now       func() time.Time                               // the caller's clock
	Nodes     []fleet.Node                                   // the pool
	Abilities *engine.Abilities                              // nil: strict gangs, placed, with proofs
	Script    func(l *engine.Launch) Outcome                 // nil: the zero Outcome
	Fault     func(c Call) (before, after error)             // nil: none. Before: the call does nothing and fails. After: it acts and the answer is lost
	Findings  []engine.Finding                               // what Check says
	Checks    func(node string) ([]fleet.CheckResult, error) // what CheckNode says; nil: nothing
	Truth     func(r engine.Report)                          // nil: none. Hears of every change, also of what nobody can see; it must not call the world
}

// Call is a call of a driver, for Config.Fault.
type Call struct {
	Name string // "launch", "stop" …
	Ref  engine.Ref
	Node string // of "fence", "unfence", "empty"
}

// World is the state that a driver works on. It is safe for concurrent use.
type World struct {
	cfg     Config
	planned chan struct{} // something was planned; of one element

	mu       sync.Mutex
	epoch    uint64
	attempts map[engine.Ref]*attempt
	fenced   fence.Set
	marks    map[string]*nodeMarks // by node
	late     []func() error        // calls that have not arrived; see Late
	feed     *watchcache.Cache     // of the present driver; nil: none is open
	ends     *kit.EndpointBoard
}

// NewWorld returns a world without attempts.
func NewWorld(cfg Config) *World {
	if cfg.Script == nil {
		cfg.Script = func(*engine.Launch) Outcome { return Outcome{} }
	}
	if cfg.Fault == nil {
		cfg.Fault = func(Call) (error, error) { return nil, nil }
	}
	if cfg.Abilities == nil {
		cfg.Abilities = &engine.Abilities{Gang: engine.GangStrict, Placed: true, Suspend: true, Isolates: true, Proves: true}
	}
	return &World{cfg: cfg, planned: make(chan struct{}, 1), attempts: map[engine.Ref]*attempt{}, marks: map[string]*nodeMarks{}, ends: kit.NewEndpointBoard(0)}
}

// Open returns a driver on the world. The one before it, if any, must be closed.
func (w *World) Open() *Engine {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch++
	w.feed = watchcache.New(w.epoch)
	for _, a := range w.sortedAttempts() {
		r := a.toldReport()
		if len(a.away) > 0 {
			r.Uncertain, r.Message = true, "no word from "+a.away[0]
		}
		w.feed.Publish(r)
	}
	return &Engine{w: w, feed: w.feed, closed: make(chan struct{})}
}

// New returns a driver on a world of its own.
func New(cfg Config) *Engine { return NewWorld(cfg).Open() }

// Engine is one driver.
type Engine struct {
	w      *World
	feed   *watchcache.Cache
	once   sync.Once
	closed chan struct{}
}

var (
	_ engine.Engine      = (*Engine)(nil)
	_ engine.Checker     = (*Engine)(nil)
	_ engine.NodeChecker = (*Engine)(nil)
	_ engine.Withdrawer  = (*Engine)(nil)
)

// World returns the world that the driver works on.
func (e *Engine) World() *World { return e.w }

// Advance lets everything happen that is due by now: see World.Advance.
func (e *Engine) Advance() { e.w.Advance() }

// runCall runs an engine call under the world's lock, with the faults that are
// scripted for it.
func (e *Engine) runCall(ctx context.Context, c Call, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-e.closed:
		return fault.New(fault.Unavailable, "the fake engine is closed")
	default:
	}
	before, after := e.w.cfg.Fault(c)
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if before != nil {
		if is, ok := errors.AsType[*late](before); ok {
			e.w.late = append(e.w.late, do)
			return is.err
		}
		return before
	}
	if err := do(); err != nil {
		return err
	}
	return after
}

// Info says what the world's configuration says.
func (e *Engine) Info(ctx context.Context) (engine.Info, error) {
	info := engine.Info{Name: "fake", Version: "1", Abilities: *e.w.cfg.Abilities}
	return info, e.runCall(ctx, Call{Name: "info"}, func() error { return nil })
}

// Nodes returns the pool, with the marks on its nodes.
func (e *Engine) Nodes(ctx context.Context) (nodes []fleet.Node, err error) {
	err = e.runCall(ctx, Call{Name: "nodes"}, func() error { nodes = e.w.markedNodes(); return nil })
	return nodes, err
}

// Check says what the world's configuration says.
func (e *Engine) Check(ctx context.Context) ([]engine.Finding, error) {
	return slices.Clone(e.w.cfg.Findings), e.runCall(ctx, Call{Name: "check"}, func() error { return nil })
}

// CheckNode says what the world's configuration says.
func (e *Engine) CheckNode(ctx context.Context, node string) (out []fleet.CheckResult, err error) {
	return out, e.runCall(ctx, Call{Name: "check-node"}, func() error {
		if f := e.w.cfg.Checks; f != nil {
			out, err = f(node)
		}
		return err
	})
}

// Launch takes an attempt.
func (e *Engine) Launch(ctx context.Context, l *engine.Launch) error {
	return e.runCall(ctx, Call{Name: "launch", Ref: l.Ref}, func() error { return e.w.launchAttempt(l) })
}

func (w *World) launchAttempt(l *engine.Launch) error {
	if l.Job == nil || l.Job.Spec == nil || len(l.Claims) == 0 {
		return fault.New(fault.Invalid, "launch of attempt %s: a job and claims are needed", l.Ref)
	}
	for _, c := range l.Claims {
		if !slices.ContainsFunc(w.cfg.Nodes, func(n fleet.Node) bool { return n.Name == c.Node }) {
			return fault.New(fault.Invalid, "launch of attempt %s: there is no node %q here", l.Ref, c.Node)
		}
	}
	if a := w.attempts[l.Ref]; a != nil {
		if !startsSame(a.launch, l) {
			return fault.New(fault.Conflict, "attempt %s was launched before, as something else", l.Ref)
		}
		return nil
	}
	if w.fenced.Has(l.Ref) {
		return fault.New(fault.Conflict, "attempt %s was given up or forgotten", l.Ref)
	}
	for _, c := range l.Claims {
		if f := w.fenceOf(c.Node); f != nil {
			return engine.OnFenced(l.Ref, c.Node, *f)
		}
	}
	w.beginLaunch(l)
	return nil
}

// startsSame compares what two launches start; the rest of a job changes while it waits.
func startsSame(a, b *engine.Launch) bool {
	return a.Job.ID == b.Job.ID && reflect.DeepEqual(a.Job.Spec, b.Job.Spec) && reflect.DeepEqual(a.Claims, b.Claims) &&
		reflect.DeepEqual(a.Adds, b.Adds) && string(a.Script) == string(b.Script) && slices.Equal(a.Env, b.Env) && a.Grace == b.Grace
}

// Stop begins to end an attempt.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref, s engine.Stop) error {
	return e.runCall(ctx, Call{Name: "stop", Ref: ref}, func() error {
		a := e.w.attempts[ref]
		if a == nil {
			e.w.fenced.Add(ref)
			return unknownAttempt(ref)
		}
		e.w.stopAttempt(a, s)
		return nil
	})
}

// Withdraw takes back an attempt that waits: one whose Outcome has not made it ready.
func (e *Engine) Withdraw(ctx context.Context, ref engine.Ref) error {
	return e.runCall(ctx, Call{Name: "withdraw", Ref: ref}, func() error {
		a := e.w.attempts[ref]
		switch {
		case a == nil:
			return unknownAttempt(ref)
		case a.report.Phase >= engine.Ready && a.report.Phase != engine.Ended:
			return fault.New(fault.Conflict, "attempt %s has begun", ref)
		}
		e.w.stopAttempt(a, engine.Stop{Reason: "taken back before it began"})
		return nil
	})
}

// Signal records a signal; see World.Signals.
func (e *Engine) Signal(ctx context.Context, ref engine.Ref, signal int, to engine.Scope) error {
	return e.runCall(ctx, Call{Name: "signal", Ref: ref}, func() error {
		a := e.w.attempts[ref]
		switch {
		case a == nil:
			return unknownAttempt(ref)
		case signal < 0 || signal > 64:
			return fault.New(fault.Invalid, "%d is not a signal", signal)
		case !slices.Contains([]engine.Scope{engine.ToTasks, engine.ToBatch, engine.ToAll}, to):
			return fault.New(fault.Invalid, "%q is not a scope of signals", to)
		case a.report.Phase == engine.Ended:
			return nil
		case a.report.Phase < engine.Running:
			return fault.New(fault.Conflict, "attempt %s has not started", ref)
		}
		a.signals = append(a.signals, signal)
		e.w.applySignal(a, signal, to)
		return nil
	})
}

// Inspect reports one attempt.
func (e *Engine) Inspect(ctx context.Context, ref engine.Ref) (r engine.Report, err error) {
	err = e.runCall(ctx, Call{Name: "inspect", Ref: ref}, func() error {
		var ok bool
		if r, ok = e.feed.Last(ref); !ok {
			return unknownAttempt(ref)
		}
		return nil
	})
	return r, err
}

func unknownAttempt(ref engine.Ref) error {
	return fault.New(fault.NotFound, "the fake engine has no attempt %s", ref)
}

// List reports every attempt.
func (e *Engine) List(ctx context.Context) (all []engine.Report, err error) {
	err = e.runCall(ctx, Call{Name: "list"}, func() error {
		all = e.feed.All()
		return nil
	})
	return all, err
}

// Watch follows changes. It blocks, but no call waits for it.
func (e *Engine) Watch(ctx context.Context, after string, f func(engine.Event) error) error {
	if err := e.feed.Watch(ctx, e.closed, after, f); err != nil {
		return err
	}
	return fault.New(fault.Unavailable, "the fake engine is closed")
}

// Forget drops an ended attempt.
func (e *Engine) Forget(ctx context.Context, ref engine.Ref) error {
	return e.runCall(ctx, Call{Name: "forget", Ref: ref}, func() error {
		a := e.w.attempts[ref]
		if a != nil && a.report.Phase != engine.Ended {
			return fault.New(fault.Conflict, "attempt %s has not ended", ref)
		}
		e.w.fenced.Add(ref)
		delete(e.w.attempts, ref)
		e.feed.Forget(ref)
		return nil
	})
}

// Close ends the driver; the world goes on, as far as Advance lets it.
func (e *Engine) Close() error {
	e.once.Do(func() {
		close(e.closed)
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		if e.w.feed == e.feed {
			e.w.feed = nil
		}
	})
	return nil
}
