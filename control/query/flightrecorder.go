package query

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/snapshot"
)

// FlightRecorder records the last steps of the core: a state, and everything that the core was
// told and decided since. Reading it takes two pointers; the present state is made from them
// apart from the loop. When the steps have become so many that taking a new state costs little
// in comparison, it is taken, so the cost for each step and the memory are bounded by the size
// of the core.
type FlightRecorder struct {
	base   *sched.Snapshot // not sorted; never written
	steps  []recordedStep  // since; what stands in it is never written
	weight int             // events and decisions of steps
	news   uint64          // steps in which something happened or was decided, ever
}

// recordedStep is one step.
type recordedStep struct {
	now    sched.Instant
	events []sched.Event
	out    []sched.Decision
}

// flightLeast is how many events and decisions are kept at least.
const flightLeast = 512

// Restart drops the steps and begins with a state.
func (f *FlightRecorder) Restart(base *sched.Snapshot) { f.base, f.steps, f.weight = base, nil, 0 }

// RecordStep records a step of the core. live is the number of live jobs. The caller holds the
// lock of the state.
func (f *FlightRecorder) RecordStep(core *sched.Core, live int, now sched.Instant, events []sched.Event, out []sched.Decision) {
	if len(events)+len(out) > 0 {
		f.news++
	}
	if f.weight >= flightLeast+live/8 {
		f.Restart(core.Snapshot())
		return
	}
	f.steps = append(f.steps, recordedStep{now, events, out})
	f.weight += 1 + len(events) + len(out)
}

// Flight is the core's state some steps ago and the steps since, from which a decision can be
// made again. It has no secrets once it is written (package snapshot).
func (rd *Reader) Flight(context.Context) (*snapshot.File, error) {
	rd.of.State.RLock()
	f := *rd.of.Flight
	rd.of.State.RUnlock()
	state := *f.base
	state.Queue, state.Running, state.Memory.Lines = slices.Clone(state.Queue), slices.Clone(state.Running), slices.Clone(state.Memory.Lines)
	out := &snapshot.File{State: state.Sort()}
	for _, s := range f.steps {
		out.Steps = append(out.Steps, snapshot.Step{Now: s.now, Events: s.events, Out: snapshot.Encode(s.out)})
	}
	return out, nil
}
