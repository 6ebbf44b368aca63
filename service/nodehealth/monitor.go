// Package nodehealth has nodes checked, and fences those that fail.
//
// # Model
//
// A Monitor asks the engine of each pool what the checks of its nodes see (engine.NodeChecker): at
// intervals, when the last job of a node has ended, after a job that did not end well, and on request. No
// job waits for these: what counts before a job is the last result. Where the site wants it, an engine asks just before
// a job begins (FitNow). Decide says what follows: a check
// that failed often enough in a row fences the node, or the one device that it names; after so many
// passes in a row that fence is removed. Fences are in the journal (state.NodeHealth), results are in
// memory alone.
//
// # Guarantees
//
// It removes no fence of anybody else, and no drain. A check that could not be made neither fences nor
// releases. One node is checked once at a time. A check on request begins after the request; requests that wait for
// that share it.
//
// # Not done here
//
// Nodes of a pool whose own scheduler chooses the nodes are not fenced, since nothing of ours is placed
// there, and neither are nodes for checks of another system, which has acted upon them. Nothing that
// runs is ended.
package nodehealth

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/hostlist"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Plane is what a Monitor needs of a control plane.
type Plane interface {
	// Health is the present record of a node; known is false if no node of that name gets work of ours.
	Health(k fleet.NodeKey) (h state.NodeHealth, known bool)
	SetNodeHealth(ctx context.Context, by job.Actor, v state.NodeHealth) error
	// Listed lists the nodes of all pools, those too that the pool's own scheduler chooses.
	Listed(context.Context) ([]fleet.NodeKey, error)
	// Events waits for events after a number; gap says that there were more than are remembered.
	Events(ctx context.Context, after uint64) (evs []state.Event, last uint64, gap bool, err error)
	LastEvent() uint64
	// Places are the nodes of an attempt of a job; none if the job has begun another since.
	Places(ctx context.Context, id job.ID, attempt uint32) []fleet.NodeKey
	// Busy reports whether jobs hold something of a node.
	Busy(k fleet.NodeKey) bool
	// Engine is the engine of a pool; nil: it has none now.
	Engine(pool string) engine.Engine
}

// Config are the parts of a Monitor.
type Config struct {
	Plane   Plane
	Rules   Rules
	Every   time.Duration          // between two checks of a node; 0: none at intervals
	Retry   time.Duration          // … of one that is fenced; 0: a tenth of Every, but from 5 s to a minute; 30 s without Every
	After   func(pool string) bool // pools whose nodes are checked after jobs; nil: none
	Timeout time.Duration          // of all checks of a node; 0: a minute
	Now     func() time.Time       // nil: time.Now
	Log     *slog.Logger           // nil: none
}

// Result is what the last check of a node has seen.
type Result struct {
	Key     fleet.NodeKey
	At      time.Time // when the oldest of Results was seen
	Results []fleet.CheckResult
	Failure error // nobody looked; Results are those of before
}

// Monitor checks nodes. Its methods are safe for concurrent use.
type Monitor struct {
	cfg    Config
	after  uint64        // the newest event when it was made
	wake   chan struct{} // holds one at most
	room   chan struct{} // bounds the checks that run at a time
	checks sync.WaitGroup
	ctx    context.Context //nolint:containedctx // ends all checks, those too that requests share
	stop   context.CancelFunc

	mu     sync.Mutex
	nodes  map[fleet.NodeKey]*watched
	noted  map[fleet.NodeKey]bool // a check of them was asked for by the end of a job
	failed map[string]uint64      // checks that failed, by name
	ended  bool
}

// watched is what is known of a node.
type watched struct {
	last    Result
	checked time.Time // when the last check began; zero: never
	idle    bool      // what the end of a job asked for is only due if the node is idle
	streaks streaks
	under   *look // nil: none runs
}

// look is a check that runs.
type look struct {
	done     chan struct{}
	released bool // somebody asked for it

	results []fleet.CheckResult // once done is closed
	err     error               // nobody looked
}

const (
	atATime    = 8                // checks of nodes
	afterLeast = 5 * time.Second  // between two checks of a node, where jobs end
	glance     = time.Second      // between two looks at which nodes are due, or at those of jobs, at least …
	relist     = 30 * time.Second // … and at most: nodes may have come
)

// Actor is who changes fences, in the journal.
var Actor = job.Actor{Name: "health"}

// New makes a Monitor. Jobs count that end from now on, also before Run.
func New(cfg Config) *Monitor {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.After == nil {
		cfg.After = func(string) bool { return false }
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, time.Minute)
	if cfg.Retry == 0 {
		if cfg.Retry = 30 * time.Second; cfg.Every > 0 {
			cfg.Retry = min(max(cfg.Every/10, 5*time.Second), time.Minute, cfg.Every)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Monitor{ctx: ctx, stop: stop, cfg: cfg, after: cfg.Plane.LastEvent(), wake: make(chan struct{}, 1), room: make(chan struct{}, atATime), nodes: map[fleet.NodeKey]*watched{}, noted: map[fleet.NodeKey]bool{}, failed: map[string]uint64{}}
}

// Run checks nodes until ctx ends.
func (m *Monitor) Run(ctx context.Context) {
	defer m.endChecks()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m.checks.Go(func() { m.followJobs(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	var all, noted time.Time // when to look at all nodes again, and at the noted ones
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.wake:
		case <-timer.C:
		}
		now := m.cfg.Now()
		if !now.Before(all) {
			all = now.Add(m.startDue(ctx))
		}
		next := noted.Sub(now)
		if next <= 0 {
			next = m.startNoted(now)
			noted = now.Add(glance)
		}
		timer.Reset(min(all.Sub(now), next))
	}
}

// endChecks ends all checks.
func (m *Monitor) endChecks() {
	m.stop()
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.checks.Wait()
}

// startDue begins the checks that are due, and returns how long to wait for the next.
func (m *Monitor) startDue(ctx context.Context) time.Duration {
	list, err := m.cfg.Plane.Listed(ctx)
	if err != nil {
		return relist
	}
	now, pause := m.cfg.Now(), relist
	there := make(map[fleet.NodeKey]bool, len(list))
	for _, k := range list {
		there[k] = true
		h, _ := m.cfg.Plane.Health(k)
		at, ever := m.dueAt(k, len(h.Fences) > 0)
		switch {
		case !ever:
		case at.After(now):
			pause = min(pause, at.Sub(now))
		default:
			m.startLook(k, false)
			if pause = min(pause, m.cfg.Retry); m.cfg.Every > 0 {
				pause = min(pause, m.cfg.Every)
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, w := range m.nodes {
		if !there[k] && w.under == nil {
			delete(m.nodes, k)
			delete(m.noted, k)
		}
	}
	return max(pause, glance)
}

// dueAt is when a node is to be checked next at intervals; ever is false if it is not.
func (m *Monitor) dueAt(k fleet.NodeKey, fenced bool) (at time.Time, ever bool) {
	every := m.cfg.Every
	if fenced {
		every = m.cfg.Retry
	}
	if _, ok := m.cfg.Plane.Engine(k.Pool).(engine.NodeChecker); !ok || every <= 0 {
		return at, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.watchedNode(k)
	return w.checked.Add(every), w.under == nil
}

// startNoted begins the checks that the ends of jobs have asked for, and returns how long to wait for the next.
func (m *Monitor) startNoted(now time.Time) time.Duration {
	m.mu.Lock()
	list := slices.Collect(maps.Keys(m.noted))
	m.mu.Unlock()
	pause := relist
	for _, k := range list {
		busy := m.cfg.Plane.Busy(k)
		m.mu.Lock()
		w := m.watchedNode(k)
		wait, waits, runs := w.checked.Add(afterLeast).Sub(now), w.idle && busy, w.under != nil
		m.mu.Unlock()
		switch {
		case waits: // the end of its last job wakes us
		case runs:
			pause = min(pause, glance)
		case wait > 0:
			pause = min(pause, wait)
		default:
			m.startLook(k, false)
		}
	}
	return max(pause, glance)
}

// watchedNode is what is known of a node. The caller holds the lock.
func (m *Monitor) watchedNode(k fleet.NodeKey) *watched {
	w := m.nodes[k]
	if w == nil {
		w = &watched{last: Result{Key: k}, streaks: streaks{}}
		m.nodes[k] = w
	}
	return w
}

// followJobs has nodes checked whose jobs end, until ctx ends.
func (m *Monitor) followJobs(ctx context.Context) {
	for after := m.after; ctx.Err() == nil; {
		evs, last, _, err := m.cfg.Plane.Events(ctx, after)
		if err != nil {
			return // the control plane ends
		}
		after = last
		for i := range evs {
			if e := &evs[i]; e.Kind == state.EventEnded || e.Kind == state.EventRequeued {
				m.noteEnd(ctx, e)
			}
		}
	}
}

// noteEnd asks for a check of the nodes of an attempt that has ended.
func (m *Monitor) noteEnd(ctx context.Context, e *state.Event) {
	well := e.State == job.Completed.String() || e.State == job.Cancelled.String()
	noted := false
	for _, k := range m.cfg.Plane.Places(ctx, e.Job, e.Attempt) {
		if _, ok := m.cfg.Plane.Engine(k.Pool).(engine.NodeChecker); !ok || !m.cfg.After(k.Pool) {
			continue
		}
		m.mu.Lock()
		w := m.watchedNode(k)
		w.idle = well && (w.idle || !m.noted[k])
		m.noted[k], noted = true, true
		m.mu.Unlock()
	}
	if noted {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
}

// startLook starts a check of a node, or joins the one that runs: then first is false.
func (m *Monitor) startLook(k fleet.NodeKey, released bool) (l *look, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.watchedNode(k)
	if w.under != nil {
		w.under.released = w.under.released || released
		return w.under, false
	}
	l = &look{done: make(chan struct{}), released: released}
	if m.ended {
		l.err = fault.New(fault.Unavailable, "the server ends")
		close(l.done)
		return l, true
	}
	w.under, w.checked, w.idle = l, m.cfg.Now(), false
	delete(m.noted, k)
	m.checks.Go(func() { m.checkNode(k, l) })
	return l, true
}

// checkNode asks the engine for the checks of a node and takes in what it says.
func (m *Monitor) checkNode(k fleet.NodeKey, l *look) {
	defer close(l.done)
	m.room <- struct{}{}
	defer func() { <-m.room }()
	ctx, cancel := context.WithTimeout(m.ctx, m.cfg.Timeout)
	defer cancel()
	var results []fleet.CheckResult
	err := error(fault.New(fault.Unsupported, "the engine of pool %s has no checks", k.Pool))
	if e, ok := m.cfg.Plane.Engine(k.Pool).(engine.NodeChecker); ok {
		results, err = e.CheckNode(ctx, k.Name)
	}
	l.results, l.err = results, err
	m.mu.Lock()
	w := m.watchedNode(k)
	released := l.released
	if w.last.Failure = err; err == nil {
		w.last.Results, w.last.At = results, m.cfg.Now()
		for _, r := range results {
			if !r.At.IsZero() && r.At.Before(w.last.At) {
				w.last.At = r.At
			}
			if r.Verdict == fleet.Failed {
				m.failed[r.Check]++
			}
		}
	}
	m.mu.Unlock()
	if err == nil {
		err = m.keepFences(ctx, w.streaks, k, results, released)
	}
	if err != nil && ctx.Err() == nil && fault.KindOf(err) != fault.Unsupported {
		m.cfg.Log.Warn("a node was not checked", "node", k, "error", err)
	}
	m.mu.Lock()
	w.under = nil
	m.mu.Unlock()
}

// keepFences makes durable what follows from results. One check of a node runs at a time, so nobody else uses
// the streaks.
func (m *Monitor) keepFences(ctx context.Context, s streaks, k fleet.NodeKey, results []fleet.CheckResult, released bool) error {
	h, known := m.cfg.Plane.Health(k)
	if !known {
		return nil // another scheduler chooses the nodes
	}
	fences, text := m.cfg.Rules.Decide(s, h.Fences, results, released, m.cfg.Now())
	if text == "" {
		return nil
	}
	m.cfg.Log.Warn("the health of a node has changed", "node", k, "change", text)
	return m.cfg.Plane.SetNodeHealth(ctx, Actor, state.NodeHealth{Pool: k.Pool, Node: k.Name, Epoch: h.Epoch + 1, Fences: fences, Text: text})
}

// Check checks nodes now, and returns what was seen of each by a check that began after the request. A fence of a
// check that passes is removed at once: who asks has looked at the node.
func (m *Monitor) Check(ctx context.Context, nodes []fleet.NodeKey) ([]Result, error) {
	looks, began := make([]*look, len(nodes)), make([]bool, len(nodes))
	for i, k := range nodes {
		looks[i], began[i] = m.startLook(k, true)
	}
	for i, k := range nodes {
		if !began[i] { // too early
			if err := looks[i].await(ctx, k); err != nil {
				return nil, err
			}
			looks[i], _ = m.startLook(k, true)
		}
	}
	out := make([]Result, len(nodes))
	for i, l := range looks {
		if err := l.await(ctx, nodes[i]); err != nil {
			return nil, err
		}
		out[i] = m.Last(nodes[i])
	}
	return out, nil
}

// CheckNow runs the checks of a node that is about to get work, and returns what they saw: one that runs already
// began too early. Fences follow as from a check at an interval. The error says that nobody looked;
// fault.Unsupported: the engine has no checks.
func (m *Monitor) CheckNow(ctx context.Context, k fleet.NodeKey) ([]fleet.CheckResult, error) {
	l, began := m.startLook(k, false)
	if !began {
		if err := l.await(ctx, k); err != nil {
			return nil, err
		}
		l, _ = m.startLook(k, false) // also one that runs has begun since
	}
	if err := l.await(ctx, k); err != nil {
		return nil, err
	}
	return l.results, l.err
}

// await waits until the checks of a node have ended.
func (l *look) await(ctx context.Context, k fleet.NodeKey) error {
	select {
	case <-l.done:
		return nil
	case <-ctx.Done():
		return fault.New(fault.Unavailable, "the checks of %s have not ended: %w", k, ctx.Err())
	}
}

// FitNow says why a node, or one of some devices of it, should get no work that is about to start: which check has
// fenced it. Its checks run now, unless they have begun within the last 5 s. Empty: none has, or they have not ended
// when ctx ends.
func (m *Monitor) FitNow(ctx context.Context, k fleet.NodeKey, devices []int) string {
	m.mu.Lock()
	w := m.watchedNode(k)
	recent := w.under == nil && w.last.Failure == nil && !w.checked.IsZero() && m.cfg.Now().Sub(w.checked) < afterLeast
	m.mu.Unlock()
	if !recent {
		l, _ := m.startLook(k, false)
		select {
		case <-l.done:
		case <-ctx.Done():
			m.cfg.Log.Warn("a job does not wait for the checks of its node any longer", "node", k)
		}
	}
	h, _ := m.cfg.Plane.Health(k)
	for i := range h.Fences {
		f := &h.Fences[i]
		if f.Device == nil || slices.Contains(devices, *f.Device) {
			return leadText(f.Device) + f.String()
		}
	}
	return ""
}

// Nodes lists the nodes that can be checked, by pool and name.
func (m *Monitor) Nodes(ctx context.Context) ([]fleet.NodeKey, error) {
	list, err := m.cfg.Plane.Listed(ctx)
	slices.SortFunc(list, func(a, b fleet.NodeKey) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), hostlist.Compare(a.Name, b.Name))
	})
	return list, err
}

// Last is what the last check of a node has seen; At is zero if there was none.
func (m *Monitor) Last(k fleet.NodeKey) Result {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.nodes[k]; w != nil {
		r := w.last
		r.Results = slices.Clone(r.Results)
		return r
	}
	return Result{Key: k}
}

// Failures counts checks that failed since the Monitor began, by name.
func (m *Monitor) Failures() map[string]uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.failed)
}
