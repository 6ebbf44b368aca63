package whatif_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
	"github.com/coxswain-sched/coxswain/sched"
	"github.com/coxswain-sched/coxswain/sched/whatif"
)

// TestSmallestChange: three nodes of eight devices; one is held for an hour, half of another one
// for two. What waits first is job 3.
func TestSmallestChange(t *testing.T) {
	for _, c := range []struct {
		why  string
		spec *job.Spec
		want []whatif.Smaller
	}{
		{"fewer nodes, or less on each", gpus("anna", 3, 4, 60), []whatif.Smaller{{Option: "nodes", Value: "2", Of: "3"}}},
		{"fewer devices on each node", gpus("anna", 2, 8, 60), []whatif.Smaller{
			{Option: "nodes", Value: "1", Of: "2"}, {Option: "gpus-per-node", Value: "4", Of: "8"},
		}},
		{"what starts anyway", gpus("anna", 1, 8, 60), nil},
	} {
		core := sched.New(sched.Config{})
		core.Step(t0, sched.NodeSet{Node: node(1)}, sched.NodeSet{Node: node(2)}, sched.NodeSet{Node: node(3)},
			sched.Submitted{Job: 1, Spec: gpus("ben", 1, 8, 60), At: t0}, sched.Submitted{Job: 2, Spec: gpus("ben", 1, 4, 120), At: t0})
		core.Step(t0, sched.Submitted{Job: 3, Spec: c.spec, At: t0})
		if diff := cmp.Diff(c.want, whatif.NewAdviser(core.Snapshot().Sort(), t0).Smallest(3)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.why, diff)
		}
	}
}

// TestSmallestChangeBehindOthers: a job behind the head that would fit if it were shorter, and
// one that is held.
func TestSmallestChangeBehindOthers(t *testing.T) {
	core := sched.New(sched.Config{})
	core.Step(t0, sched.NodeSet{Node: node(1)}, sched.NodeSet{Node: node(2)},
		sched.Submitted{Job: 1, Spec: gpus("ben", 1, 8, 90), At: t0}, sched.Submitted{Job: 2, Spec: gpus("ben", 2, 8, 60), At: t0},
		sched.Submitted{Job: 3, Spec: gpus("anna", 1, 8, 600), At: t0},
		sched.Submitted{Job: 4, Spec: gpus("anna", 1, 1, 600), At: t0}, sched.Blocked{Job: 4, Why: reason.Reason{Code: reason.HeldUser}})
	a := whatif.NewAdviser(core.Snapshot().Sort(), t0)
	if diff := cmp.Diff([]whatif.Smaller{{Option: "time", Value: "1:30:00", Of: "10:00:00"}}, a.Smallest(3)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := a.Smallest(4); got != nil {
		t.Errorf("a held job: %+v", got)
	}
	want := []sched.Blocker{{Job: 1, Until: at(90), Nodes: []string{"g1"}}}
	if diff := cmp.Diff(want, a.Blockers(2)); diff != "" {
		t.Errorf("who holds it (-want +got)\n%s", diff)
	}
	if got := a.Blockers(3); got != nil {
		t.Errorf("what fits is held by %+v", got)
	}
}
