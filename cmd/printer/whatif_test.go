package printer

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
)

// A change that lets jobs start that never would is not shown as a longer wait.
//
// Seen to fail with: "0.0 s" for the wait of no job.
func TestWhatIfOfJobsThatNeverStart(t *testing.T) {
	now := time.Date(2026, 11, 28, 8, 0, 0, 0, time.UTC)
	d := &api.WhatIfDone{
		Now: now, Added: []string{"a", "b"}, Sooner: 2,
		Before: api.Figures{Jobs: 2, Bounded: true},
		After:  api.Figures{Jobs: 2, Started: 2, Wait: api.Waits{Median: 44, P90: 3600}},
		Moved:  []api.Moved{{Job: "5", Name: "x", User: "anna", After: now}},
	}
	got := WhatIf(Page{}, &api.WhatIf{}, d)
	for _, want := range []string{"never → in 0.0 s", "started   0 of 2 jobs now, 2 then; the waits are those of the jobs that start", "Some jobs never start in this simulation"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if f := strings.Fields(line); len(f) > 3 && f[0] == "waits" && (f[2] != "-" || f[3] != "-") {
			t.Errorf("%q", line)
		}
	}
}

// The answer about rules of hand-over says which machines would go, and why another pool gets none.
//
// Seen to fail without the lines of moves and of pools.
func TestWhatIfOfHandovers(t *testing.T) {
	d := &api.WhatIfDone{
		Handovers: []api.HandoverMove{{Machine: "m4", From: "slurm", To: "kube", Takes: 360, Reason: "kube lacks 8 GPUs for 1 job; m4 of slurm is empty in 5m"}},
		Pools:     []api.HandoverPool{{Pool: "slurm", Machines: 3, Idle: 1, Lacks: 16, Why: "kube has only its minimum of 1 machine"}, {Pool: "kube", Machines: 1}},
	}
	got := WhatIf(Page{}, &api.WhatIf{Policy: "x", File: "queues.yaml"}, d)
	for _, want := range []string{
		"  m4 goes from slurm to kube, in 6 min: kube lacks 8 GPUs for 1 job; m4 of slurm is empty in 5m\n",
		"  slurm, with 3 machines of which 1 idle, lacks 16 and gets none: kube has only its minimum of 1 machine\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "kube, with") {
		t.Errorf("a pool that lacks nothing is listed:\n%s", got)
	}
}
