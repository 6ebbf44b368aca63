package localrun

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/state"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fleet"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/resource"
)

func TestExitCode(t *testing.T) {
	tests := []struct {
		state job.State
		exit  job.ExitCode
		want  int
	}{
		{job.Completed, job.ExitCode{}, 0},
		{job.Failed, job.ExitCode{Status: 3}, 3},
		{job.Failed, job.ExitCode{Signal: 11}, 139},
		{job.Failed, job.ExitCode{}, 1}, // never a success by accident
		{job.Timeout, job.ExitCode{Signal: 15}, 124},
		{job.OutOfMemory, job.ExitCode{Status: 1}, 137},
		{job.Cancelled, job.ExitCode{}, 130},
		{job.NodeFail, job.ExitCode{Status: 1}, 75},
		{job.Lost, job.ExitCode{}, 75},
	}
	for _, tt := range tests {
		if got := ExitCode(&job.Job{State: tt.state, Exit: tt.exit}); got != tt.want {
			t.Errorf("%s with %s: %d, want %d", tt.state, tt.exit, got, tt.want)
		}
	}
}

func TestSummary(t *testing.T) {
	start := time.Unix(100, 0)
	v := state.View{
		Job: job.Job{
			ID: 7, Spec: &job.Spec{}, State: job.Failed, Exit: job.ExitCode{Status: 1},
			Submitted: start.Add(-time.Second), Started: start, Ended: start.Add(4 * time.Second),
		},
		Claims: []fleet.Claim{
			{Node: "v1", Take: resource.Vector{CPU: resource.CPUs(2)}, Devices: []fleet.DeviceClaim{{Index: 0, Share: 1000}, {Index: 1, Share: 500}}},
			{Node: "v2", Take: resource.Vector{CPU: resource.CPUs(2)}},
		},
		Report: engine.Report{Message: "rank 1 on v2 ended with exit 1", Tasks: []engine.TaskReport{
			{Step: engine.BatchStep, Node: "v1", Exit: job.ExitCode{Status: 1}},
			{Step: 0, Rank: 0, Node: "v1"},
			{Step: 0, Rank: 1, Node: "v2", Exit: job.ExitCode{Status: 1}},
		}},
	}
	var out bytes.Buffer
	printSummary(&screen{out: bufio.NewWriter(io.Discard), err: &out}, &v, nil, lastLine)
	want := `done     job 7 FAILED in 4.0 s, waited 1.0 s: rank 1 on v2 ended with exit 1
used     2 nodes v[1-2], 4 CPUs, 1.5 GPUs × 4.0 s = 6.0 GPU-seconds
ranks    1 × exit 0, 1 × exit 1 (v2.1)
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
}

func TestTally(t *testing.T) {
	var views []*state.View
	for _, s := range []job.State{job.Failed, job.Completed, job.Completed} {
		views = append(views, &state.View{Job: job.Job{State: s}})
	}
	if got := tallyStates(views); got != "3 jobs: 2 × COMPLETED, 1 × FAILED" {
		t.Error(got)
	}
}

func TestTheStatusIsRemovedBeforeALine(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: bufio.NewWriter(&out), err: &out, live: true, width: 20}
	s.drawStatus([]string{"one", strings.Repeat("x", 50)})
	s.printLine("v1", "text")
	s.flush()
	want := "one\n" + strings.Repeat("x", 19) + "\n\x1b[2A\x1b[J v1 | text\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
