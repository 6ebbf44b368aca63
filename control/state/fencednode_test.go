package state_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// A node that is closed by our fence says so where nobody else closes it. Seen to fail without the fence in
// NodeWithDrain.
func TestNodeWithFence(t *testing.T) {
	for name, c := range map[string]struct{ why, drain, want string }{
		"Alone":         {"", "", "its engine has our fence (epoch 5)"},
		"Drained here":  {"", "fan is noisy", "fan is noisy"},
		"Drained there": {"Slurm: idle+drain disk", "fan is noisy", "Slurm: idle+drain disk"},
	} {
		s := state.New()
		n := fleet.Node{Name: "n1", Pool: "p", State: fleet.Draining, Why: c.why, Fence: 5}
		s.Nodes.Set(n.Key(), n)
		if c.drain != "" {
			s.Drains.Set(n.Key(), state.Drain{Reason: c.drain})
		}
		if got, ok := s.NodeWithDrain(n.Key()); !ok || got.State != fleet.Draining || got.Why != c.want {
			t.Errorf("%s: %s, %q, want %q", name, got.State, got.Why, c.want)
		}
	}
}
