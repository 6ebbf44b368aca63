package reconcile

import (
	"slices"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// TestFailureOf: whose failure each end is, and on which nodes.
//
// Seen to fail with: a device error taken for the job's; tasks that were killed with the gang counted.
func TestFailureOf(t *testing.T) {
	bad := job.ExitCode{Status: 1}
	two := []engine.NodeReport{{Node: "a1"}, {Node: "a2"}}
	lost := []engine.NodeReport{{Node: "a1"}, {Node: "a2", Lost: true}}
	ranks := []engine.TaskReport{
		{Step: engine.BatchStep, Node: "a1", Cause: engine.Exited, Exit: bad},
		{Rank: 0, Node: "a1", Cause: engine.Exited, Exit: job.ExitCode{Signal: 15}},
		{Rank: 1, Node: "a2", Cause: engine.Exited, Exit: job.ExitCode{Status: 7}},
	}
	for name, tt := range map[string]struct {
		r    engine.Report
		want engine.Failure
		on   []string
	}{
		"well":            {engine.Report{Cause: engine.Exited, Nodes: two}, engine.NoFailure, nil},
		"exit":            {engine.Report{Cause: engine.Exited, Exit: bad, Nodes: two, Tasks: ranks}, engine.JobFailure, []string{"a2"}},
		"script alone":    {engine.Report{Cause: engine.Exited, Exit: bad, Nodes: two, Tasks: ranks[:1]}, engine.JobFailure, nil},
		"one node":        {engine.Report{Cause: engine.Exited, Exit: bad, Nodes: two[:1]}, engine.JobFailure, []string{"a1"}},
		"memory":          {engine.Report{Cause: engine.OutOfMemory, Exit: bad, Nodes: two[1:]}, engine.JobFailure, []string{"a2"}},
		"time":            {engine.Report{Cause: engine.TimedOut, Exit: bad, Nodes: two}, engine.JobFailure, nil},
		"node":            {engine.Report{Cause: engine.NodeLost, Exit: bad, Nodes: lost}, engine.NodeFailure, []string{"a2"}},
		"node, not known": {engine.Report{Cause: engine.NodeLost, Exit: bad, Nodes: two, Tasks: ranks}, engine.NodeFailure, nil},
		"device":          {engine.Report{Cause: engine.Exited, Exit: bad, Nodes: lost, DeviceError: "NVRM: Xid 79"}, engine.NodeFailure, []string{"a2"}},
		"launch":          {engine.Report{Cause: engine.LaunchFailed, Exit: bad, Nodes: two}, engine.EngineFailure, nil},
		"not ready":       {engine.Report{Cause: engine.Unready, Exit: bad}, engine.EngineFailure, nil},
		"not fit":         {engine.Report{Cause: engine.Unready, Exit: bad, Nodes: lost}, engine.NodeFailure, []string{"a2"}},
		"refused":         {engine.Report{Cause: engine.Refused, Exit: bad}, engine.JobFailure, nil},
		"cancelled":       {engine.Report{Cause: engine.Stopped, Exit: job.ExitCode{Signal: 15}, Nodes: two[:1]}, engine.NoFailure, nil},
		"preempted":       {engine.Report{Cause: engine.Preempted, Nodes: two[:1]}, engine.NoFailure, nil},
		"judged before":   {engine.Report{Cause: engine.Exited, Exit: bad, Failure: engine.NodeFailure, Nodes: two[:1]}, engine.NodeFailure, []string{"a1"}},
	} {
		if got, on := FailureOf(&tt.r), FailedOn(&tt.r); got != tt.want || !slices.Equal(on, tt.on) {
			t.Errorf("%s: %q on %q, want %q on %q", name, got, on, tt.want, tt.on)
		}
	}
}
