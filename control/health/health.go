// Package health watches whether running jobs use what they hold: it finds nodes on
// which a job holds devices and has no process, or processes that use no CPU time.
//
// A Watch looks at every running job now and then. A job is idle on a node while its
// processes there use less than a hundredth of a CPU; since when is known to the length
// of a pause between two looks, and begins anew with the server.
//
// It looks at CPU time, not at the devices themselves: a kernel that computes for long
// without its process doing anything looks idle, and a process that waits in a loop
// looks busy. It ends nothing: what it finds is shown.
package health

import (
	"context"
	"sync"
	"time"

	"github.com/coxswain-sched/coxswain/engine"
)

// Idle is a node on which a running job does nothing.
type Idle struct {
	Node      string
	Processes int
	Since     time.Time
}

// busy is the share of one CPU from which on a job counts as doing something.
const busy = 0.01

// Watch keeps what was seen last. It is safe for concurrent use.
type Watch struct {
	mu   sync.Mutex
	seen map[engine.Ref]map[string]sample
}

// sample is what was seen of an attempt on a node.
type sample struct {
	at    time.Time
	cpu   time.Duration
	procs int
	idle  time.Time // since when; zero: it does something
}

// Of lists the nodes on which an attempt has been idle for at least so long.
func (w *Watch) Of(ref engine.Ref, now time.Time, least time.Duration) (all []Idle) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for node, s := range w.seen[ref] {
		if s.isIdle(now, least) {
			all = append(all, Idle{node, s.procs, s.idle})
		}
	}
	return all
}

// All says of each attempt and each node on which it was measured whether it has been idle there for at least so
// long. Attempts and nodes that nobody measured are left out.
func (w *Watch) All(now time.Time, least time.Duration) map[engine.Ref]map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[engine.Ref]map[string]bool, len(w.seen))
	for ref, nodes := range w.seen {
		out[ref] = make(map[string]bool, len(nodes))
		for node, s := range nodes {
			out[ref][node] = s.isIdle(now, least)
		}
	}
	return out
}

// isIdle reports whether nothing was done for at least so long.
func (s *sample) isIdle(now time.Time, least time.Duration) bool {
	return !s.idle.IsZero() && now.Sub(s.idle) >= least
}

// Run looks at the attempts that running lists, again and again with a pause, until ctx
// ends.
func (w *Watch) Run(ctx context.Context, m engine.Meter, pause time.Duration, running func() []engine.Ref) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		seen := map[engine.Ref][]engine.NodeUse{}
		for _, ref := range running() {
			if use, err := m.Measure(ctx, ref); err == nil { // else it has just ended
				seen[ref] = use
			}
		}
		w.Look(time.Now(), seen)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Look takes in what was measured at a moment of all running attempts; the others are
// forgotten.
func (w *Watch) Look(now time.Time, all map[engine.Ref][]engine.NodeUse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := make(map[engine.Ref]map[string]sample, len(all))
	for ref, uses := range all {
		next[ref] = make(map[string]sample, len(uses))
		for _, u := range uses {
			next[ref][u.Node] = nextSample(w.seen[ref][u.Node], now, u)
		}
	}
	w.seen = next
}

// nextSample is the next sample after one; the zero sample is none.
func nextSample(was sample, now time.Time, u engine.NodeUse) sample {
	s := sample{at: now, cpu: u.CPU, procs: u.Processes}
	past := now.Sub(was.at)
	if was.at.IsZero() || past <= 0 {
		return s
	}
	used := (u.CPU - was.cpu).Abs() // less than before: a process has ended, which is doing something
	if u.Processes == 0 && was.procs == 0 {
		used = 0
	}
	if used.Seconds() < busy*past.Seconds() {
		if s.idle = was.idle; s.idle.IsZero() {
			s.idle = was.at
		}
	}
	return s
}
