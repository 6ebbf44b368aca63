package control

import (
	"context"
	"slices"

	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/snapshot"
)

// flightRecorder is the record of the core's last steps: a state, and everything that it
// was told and decided since. Whoever reads it takes two pointers; the state of now is
// made from them apart from the loop. The state is taken anew when the steps since
// have become so many that taking it costs little in comparison, so that it costs each step little, and both
// together are bounded by what the core holds itself.
type flightRecorder struct {
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

// recordStep notes a step of the core. The state is locked.
func (l *loop) recordStep(now sched.Instant, events []sched.Event, out []sched.Decision) {
	f := &l.flight
	if len(events)+len(out) > 0 {
		f.news++
	}
	if f.weight >= flightLeast+len(l.state.Live)/8 {
		f.base, f.steps, f.weight = l.core.Snapshot(), nil, 0
		return
	}
	f.steps = append(f.steps, recordedStep{now, events, out})
	f.weight += 1 + len(events) + len(out)
}

// Flight is the core's state some steps ago and the steps since: what a decision can
// be made anew from. It holds no secrets once it is written (package snapshot).
func (c *Control) Flight(context.Context) (*snapshot.File, error) {
	c.state.RLock()
	f := c.flight
	c.state.RUnlock()
	state := *f.base
	state.Queue, state.Running, state.Memory.Lines = slices.Clone(state.Queue), slices.Clone(state.Running), slices.Clone(state.Memory.Lines)
	out := &snapshot.File{State: state.Sort()}
	for _, s := range f.steps {
		out.Steps = append(out.Steps, snapshot.Step{Now: s.now, Events: s.events, Out: snapshot.Encode(s.out)})
	}
	return out, nil
}
