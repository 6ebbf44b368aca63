package control_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

// hand is an engine whose attempts do what the test says, when it says it. It
// keeps what it was told, so a control plane that is closed and opened anew finds
// the same engine.
type hand struct {
	nodes     []fleet.Node
	delegates bool // nodes are chosen by somebody else

	mu       sync.Mutex
	reports  map[engine.Ref]engine.Report
	launches map[engine.Ref]int // calls, repeated ones too
	stops    map[engine.Ref][]engine.Stop
	fenced   map[engine.Ref]bool
	log      []engine.Report
	wake     chan struct{}
	launch   func(engine.Ref) error // what Launch answers; nil: success
}

func newHand(nodes, gpus int) *hand {
	h := &hand{reports: map[engine.Ref]engine.Report{}, launches: map[engine.Ref]int{}, stops: map[engine.Ref][]engine.Stop{}, fenced: map[engine.Ref]bool{}, wake: make(chan struct{})}
	for i := range nodes {
		n := fleet.Node{Name: fmt.Sprintf("n%d", i+1), State: fleet.Up, Capacity: resource.Vector{CPU: resource.CPUs(8)}}
		for d := range gpus {
			n.Devices = append(n.Devices, fleet.Device{Index: d, Kind: "gpu", Type: "h100", NUMA: -1})
		}
		h.nodes = append(h.nodes, n)
	}
	return h
}

func (h *hand) Info(context.Context) (engine.Info, error) {
	return engine.Info{Name: "hand", Abilities: engine.Abilities{Gang: engine.GangStrict, Placed: true}}, nil
}

func (h *hand) Nodes(context.Context) ([]fleet.Node, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.nodes), nil
}

func (h *hand) Close() error { return nil }

func (h *hand) Delegates() bool { return h.delegates }

func (h *hand) Launch(_ context.Context, l *engine.Launch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.launches[l.Ref]++
	if h.fenced[l.Ref] {
		return fault.New(fault.Conflict, "attempt %s is fenced", l.Ref)
	}
	if h.launch != nil {
		if err := h.launch(l.Ref); err != nil {
			return err
		}
	}
	if _, known := h.reports[l.Ref]; !known {
		h.put(engine.Report{Ref: l.Ref, Job: l.Job.ID, Phase: engine.Accepted})
	}
	return nil
}

func (h *hand) Stop(_ context.Context, ref engine.Ref, s engine.Stop) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stops[ref] = append(h.stops[ref], s)
	close(h.wake)
	h.wake = make(chan struct{})
	if _, known := h.reports[ref]; !known {
		h.fenced[ref] = true
		return fault.New(fault.NotFound, "no attempt %s", ref)
	}
	return nil
}

// lastStop is how the engine was last told to stop an attempt.
func (h *hand) lastStop(ref engine.Ref) (engine.Stop, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.stops[ref])
	if n == 0 {
		return engine.Stop{}, false
	}
	return h.stops[ref][n-1], true
}

// stopped waits until the engine was told to stop an attempt.
func (h *hand) stopped(t *testing.T, ref engine.Ref) []engine.Stop {
	t.Helper()
	for {
		h.mu.Lock()
		stops, wake := slices.Clone(h.stops[ref]), h.wake
		h.mu.Unlock()
		if len(stops) > 0 {
			return stops
		}
		select {
		case <-wake:
		case <-time.After(2 * time.Minute):
			t.Fatalf("attempt %s was never stopped", ref)
		}
	}
}

func (h *hand) Signal(context.Context, engine.Ref, int, engine.Scope) error { return nil }

func (h *hand) Inspect(_ context.Context, ref engine.Ref) (engine.Report, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r, ok := h.reports[ref]
	if !ok {
		return r, fault.New(fault.NotFound, "no attempt %s", ref)
	}
	return r, nil
}

func (h *hand) List(context.Context) (out []engine.Report, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.reports {
		out = append(out, r)
	}
	return out, nil
}

func (h *hand) Watch(ctx context.Context, _ string, f func(engine.Event) error) error {
	for next := 0; ; {
		h.mu.Lock()
		reports, wake := slices.Clone(h.log[next:]), h.wake
		h.mu.Unlock()
		for _, r := range reports {
			if err := f(engine.Event{Report: r}); err != nil {
				return err
			}
			next++
		}
		if len(reports) > 0 {
			continue
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *hand) Forget(_ context.Context, ref engine.Ref) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.reports, ref)
	h.fenced[ref] = true
	return nil
}

// put notes a report; the caller holds the lock.
func (h *hand) put(r engine.Report) {
	r.Version = h.reports[r.Ref].Version + 1
	h.reports[r.Ref] = r
	h.log = append(h.log, r)
	close(h.wake)
	h.wake = make(chan struct{})
}

func (h *hand) report(r engine.Report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.Job = h.reports[r.Ref].Job
	h.put(r)
}

func (h *hand) start(v state.View) {
	h.report(engine.Report{Ref: v.Ref, Phase: engine.Running, Started: time.Now()})
}

func (h *hand) end(v state.View, cause engine.Cause, exit int) {
	h.report(engine.Report{Ref: v.Ref, Phase: engine.Ended, Gone: true, Cause: cause, Exit: job.ExitCode{Status: exit}, Started: time.Now(), Ended: time.Now()})
}
