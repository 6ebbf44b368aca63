package sim_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/sim/sim"
	"github.com/coxswain-sched/coxswain/sim/trace"
)

// TestRemaining: a short job lifts a long one, and its size counts where service does.
func TestRemaining(t *testing.T) {
	jobs := []trace.Job{
		{GPUs: 8, Run: 100 * time.Second},
		{GPUs: 6, Run: 30 * time.Second, Submit: 10 * time.Second},
		{GPUs: 2, Run: 40 * time.Second, Submit: 10 * time.Second},
		{GPUs: 20, Run: time.Second, Submit: 10 * time.Second}, // 2 whole nodes and a part of the third
	}
	r := sim.Remaining{Nodes: 3, PerNode: 8}
	// The last leaves room beside it for the third alone, for a second; then all fit.
	for i, want := range []time.Duration{101, 41, 50, 11} {
		if got := r.Run(jobs)[i]; got != want*time.Second {
			t.Errorf("job %d ended after %v, want %d s", i, got, want)
		}
	}
	one := sim.Remaining{Nodes: 1, PerNode: 8, Service: true}
	for i, want := range []time.Duration{140, 40, 50} {
		if got := one.Run(jobs[:3])[i]; got != want*time.Second {
			t.Errorf("by service: job %d ended after %v, want %d s", i, got, want)
		}
	}
	if one.Run(jobs) != nil {
		t.Error("a job that is larger than the machine has ended")
	}
}
