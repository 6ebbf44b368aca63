// Package simulate runs the whole control plane in a world in which everything that
// can go wrong does: production code of control, the ledger, the scheduling core,
// dispatch, reconcile and the store, over the fake engine, inside a bubble of
// testing/synctest.
//
// Whatever goes outside (a write, a call of the engine, its answer, a report, a timer)
// stops at a gate. Once nothing else can move, a scheduler opens the gate whose turn
// it is, perhaps with a fault, and lets everything come to rest again: that is one
// event. Times and faults follow from a seed and from the name of the gate, so the
// same seed twice is the same history to the byte, and a run from which some requests
// and faults were taken out keeps the others: that is how a failure is shortened.
//
// The model (package model) is told of every fact and judges after every event. At
// the end the faults stop and the world has to come to rest.
//
// It does not simulate users other than by requests, nor the server's HTTP, and time
// inside of the process does not pass: only what waits takes time.
package simulate

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing/synctest"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/test/simulate/model"
)

// Options choose a run.
type Options struct {
	Seed uint64
	// Only are the names of the requests and faults that may happen; nil: all that
	// the seed brings.
	Only map[string]bool
	// Plan replaces the requests and outrages that follow from the seed; Calm leaves
	// out the faults that do.
	Plan func(*World) []Act
	Calm bool
	// CrashAt kills the server at the write of the journal or the projection of that
	// number, counted over all servers from 1: before it is made, or after with
	// CrashAfter.
	CrashAt    int
	CrashAfter bool
	// Open opens an empty store; nil: one in memory. It is closed at the end.
	Open func() (store.Store, error)
	// Services has each server run the controller of services, and draws a day of services beside
	// batch.
	Services bool
	// Story keeps every fact, as a sentence.
	Story bool
}

// Result is what became of a run.
type Result struct {
	Seed     uint64
	Services bool
	Events   int
	Writes   int           // of the journal and the projection
	Passed   time.Duration // in the world
	Faults   [Faults]int
	Broken   []model.Violation // what the model found; nil: nothing
	Events0  int               // events before the faults stopped
	Done     []string          // requests and faults that happened, in order
	Story    []string
	Seen     map[string]int // what happened that few runs have
}

// World is one run.
type World struct {
	opt   Options
	dice  dice
	start time.Time
	rates [Faults]float64
	model *model.Model
	store store.Store

	offset atomic.Int64  // of the wall clock
	led    atomic.Uint64 // the newest epoch
	slow   time.Duration

	mu     sync.Mutex // guards what goroutines of the servers touch
	seen   map[string]int
	gates  gates
	later  []model.Fact // to be told when everything is at rest
	heard  []answered
	opened []opening
	ended  []*server

	machine *machine
	servers []*server // that live, oldest first
	born    int
	full    bool // no room on the disk
	calm    bool
	jobs    map[string]job.ID // request → the number that it got
	tasks   map[string]int    // … and how many tasks
	asked   int
	out     Result

	load   int             // requests in flight, of each service that follows them
	scaled []string        // services that do
	asks   map[string]bool // requests to services that are made a second time; guarded by mu
}

// Run makes a world and lets it run to its end. It must be called in a bubble of
// testing/synctest.
func Run(opt Options) Result {
	w := &World{
		opt: opt, dice: dice(opt.Seed), start: time.Now(), model: model.New(), store: &store.Memory{},
		seen: map[string]int{}, jobs: map[string]job.ID{}, tasks: map[string]int{}, out: Result{Seed: opt.Seed, Services: opt.Services}, asks: map[string]bool{},
	}
	if opt.Open != nil {
		var err error
		if w.store, err = opt.Open(); err != nil {
			w.addBroken("the store does not open: %v", err)
			return w.out
		}
	}
	w.drawFaultProfile()
	w.machine = newMachine(w)
	plan := (*World).drawWorkload
	if opt.Services {
		plan = (*World).drawServices
	}
	if opt.Plan != nil {
		plan = opt.Plan
	}
	last := time.Duration(0)
	for _, a := range plan(w) {
		if w.isAllowed(a.Name) {
			w.runAct(a)
			last = max(last, a.At)
		}
	}
	w.openServer()
	w.restUntilStill()
	w.runUntil(last + 2*time.Minute)
	w.calmDown()
	w.settleServices()
	w.settleWorld()
	w.tearDown()
	if err := w.store.Close(); err != nil {
		w.addBroken("the store does not close: %v", err)
	}
	w.out.Passed, w.out.Seen = w.elapsedTime(), w.model.Seen()
	return w.out
}

// Rare is what the journals of many runs have to tell of (Result.Seen).
var Rare = []string{
	"suspended by somebody", "suspended to make room", "asked to give way to one whose turn it is", "goes on again",
	"given more", "asked for what it was given", "given no more, since something ended by itself or was not launched",
	"retried after a failure",
	"a controller's document is kept",
}

func (w *World) elapsedTime() time.Duration { return time.Since(w.start) }

// isAllowed reports whether a request or a fault may happen.
func (w *World) isAllowed(name string) bool { return w.opt.Only == nil || w.opt.Only[name] }

// runAct lets something of the plan happen at its time.
func (w *World) runAct(a Act) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gateAt(nil, a.Name, a.At, func(string) {
		w.out.Done = append(w.out.Done, a.Name)
		a.Do(w)
	})
}

// runUntil opens gates until a time, or until something is broken.
func (w *World) runUntil(until time.Duration) {
	for len(w.out.Broken) == 0 && w.stepOnce(until) {
	}
	if left := until - w.elapsedTime(); left > 0 && len(w.out.Broken) == 0 {
		time.Sleep(left)
	}
}

// stepOnce lets the next event happen, if it is before a time.
func (w *World) stepOnce(until time.Duration) bool {
	g := w.next()
	at := time.Duration(-1)
	if g != nil {
		at = g.at
	}
	if t, ok := w.machine.world.Next(); ok && (at < 0 || t.Sub(w.start) < at) {
		at, g = t.Sub(w.start), nil
	}
	if at < 0 || at > until {
		return false
	}
	if d := at - w.elapsedTime(); d > 0 {
		time.Sleep(min(d, glance)) // timers of the production code may fire and bring other gates
		synctest.Wait()
		return true
	}
	w.out.Events++
	if g == nil {
		w.advanceEngine()
		w.restUntilStill()
		return true
	}
	w.takeGate(g)
	if !g.quiet {
		w.addStory("%s", g.key)
	}
	g.open()
	w.restUntilStill()
	return true
}

// glance is how long the scheduler sleeps at most before it looks for gates of which
// it did not know.
const glance = 500 * time.Millisecond

// restUntilStill waits until nothing moves by itself, and tells the model what was seen.
func (w *World) restUntilStill() {
	for {
		synctest.Wait()
		if !w.collectFacts() {
			break
		}
	}
	w.showPublished(false)
}

// advanceEngine lets the work of the engine go on.
func (w *World) advanceEngine() {
	w.addStory("time passes for what runs")
	w.machine.world.Advance()
}

// addStory adds a line to the story.
func (w *World) addStory(format string, args ...any) {
	if !w.opt.Story {
		return
	}
	line := fmt.Sprintf(format, args...)
	w.out.Story = append(w.out.Story, fmt.Sprintf("%11.3fs  %s", w.elapsedTime().Seconds(), line))
}

// tellFact lets the model know a fact. Only the scheduler's goroutine tells.
func (w *World) tellFact(f model.Fact) {
	if w.opt.Story {
		w.addStory("    %s", f)
	}
	v := w.model.Tell(f)
	for _, b := range v {
		w.addStory("!!! %s", b)
	}
	w.out.Broken = append(w.out.Broken, v...)
}
