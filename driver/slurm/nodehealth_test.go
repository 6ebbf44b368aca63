package slurm_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/fleet"
)

// What a HealthCheckProgram leaves on a node is a check of it. A drain that is our own fence is none.
//
// Seen to fail without the look at whose drain it is, and with the time of the look in place of the list's.
func TestNodesAsChecks(t *testing.T) {
	s := &stage{nodes: []site.Node{
		{Name: "a1", State: "mixed", Available: true},
		{Name: "a2", State: "idle+drain", Drained: true, Reason: "NHC: check_fs_mount: /home not mounted"},
		{Name: "a3", State: "down*", Down: true, Reason: "Not responding"},
		{Name: "a4", State: "idle+drain", Drained: true, Reason: "coxswain: fence epoch 3: pool k8s has it"},
		{Name: "a5", State: "idle+maint"},
	}}
	e, _ := stageWith(t, s, func(*slurm.Config) {})
	var c engine.NodeChecker = e
	var listed time.Time
	for node, want := range map[string]fleet.CheckResult{
		"a1": {Verdict: fleet.Passed, Text: "mixed"},
		"a2": {Verdict: fleet.Failed, Text: "idle+drain: NHC: check_fs_mount: /home not mounted"},
		"a3": {Verdict: fleet.Failed, Text: "down*: Not responding"},
		"a4": {Verdict: fleet.Passed, Text: "idle+drain: coxswain: fence epoch 3: pool k8s has it"},
		"a5": {Verdict: fleet.Warned, Text: "idle+maint"},
	} {
		want.Check, want.From = "node", "slurm"
		got, err := c.CheckNode(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		if at := got[0].At; at.IsZero() || !listed.IsZero() && !at.Equal(listed) {
			t.Errorf("%s: seen at %s, and the nodes were listed once, at %s", node, at, listed)
		}
		listed, got[0].At = got[0].At, time.Time{}
		if d := cmp.Diff([]fleet.CheckResult{want}, got); d != "" {
			t.Errorf("%s: %s", node, d)
		}
	}
	if _, err := c.CheckNode(t.Context(), "a9"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("a node that Slurm does not have: %v", err)
	}
}
