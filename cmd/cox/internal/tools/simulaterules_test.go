package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/clitest"
	"github.com/coxswain-sched/coxswain/sim/study"
	"github.com/spf13/cobra"
)

// simulateUnder runs cox simulate with a trace under rules.
func simulateUnder(t *testing.T, trace, rules string) *study.Result {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.swf": trace, "queues.yaml": rules} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := func(a *cli.App) *cobra.Command {
		r := a.Root()
		r.AddCommand(cli.Local(simulateCommand(a)))
		return r
	}
	ran := clitest.Run(t, root, "", "", "simulate", filepath.Join(dir, "a.swf"), "--policy", filepath.Join(dir, "queues.yaml"), "-o", "json")
	var out []*study.Result
	if err := json.Unmarshal([]byte(ran.Out), &out); err != nil || len(out) != 1 {
		t.Fatalf("%s: %v\n%s%s", rules, err, ran.Out, ran.Err)
	}
	return out[0]
}

// contended is a job of account 1 that fills the machine of 8 processors for 100 s, one of
// account 2 that wants all of it at 10 s, and short and small ones behind.
const contended = `; MaxProcs: 8
1 0 -1 100 8 -1 -1 8 100 -1 1 1 1 -1 -1 -1 -1 -1
2 10 -1 50 8 -1 -1 8 60 -1 1 2 2 -1 -1 -1 -1 -1
`

// TestPreemptionInStudies: the rules of preemption decide in a study as they do in a server.
// Account 2 has a QOS that takes the place of account 1's.
func TestPreemptionInStudies(t *testing.T) {
	const accounts = "accounts: [{name: \"1\", default_qos: low}, {name: \"2\", default_qos: high}]\nqos: [{name: low}, {name: high, preempts: [low]}]\n"
	for name, c := range map[string]struct {
		rules     string
		preempted int
		makespan  float64 // when the last has ended
		waits     float64 // of the one that waited longest
	}{
		"none":       {accounts, 0, 150, 90},
		"requeue":    {accounts + "preemption: {by: [qos]}\n", 1, 160, 60},               // 1 begins anew at 60
		"cancel":     {accounts + "preemption: {by: [qos], mode: cancel}\n", 1, 60, 0},   // 1 is gone at 10
		"suspend":    {accounts + "preemption: {by: [qos], mode: suspend}\n", 1, 150, 0}, // 1 goes on at 60
		"checkpoint": {accounts + "preemption: {by: [qos], mode: checkpoint}\n", 1, 150, 60},
		"grace":      {accounts + "preemption: {by: [qos], grace: 20s}\n", 1, 180, 80}, // 2 begins at 30
		"exempt":     {accounts + "preemption: {by: [qos], exempt: 30s}\n", 1, 180, 80},
		"late":       {accounts + "preemption: {by: [qos], grace: 95s}\n", 0, 150, 90}, // 1 has ended before that
	} {
		r := simulateUnder(t, contended, c.rules)
		if r.Preempted != c.preempted || r.Makespan != c.makespan || r.Wait.Most != c.waits || r.Never != 0 || r.Cut != 0 {
			t.Errorf("%s: preempted %d, makespan %v, longest wait %v, %d never, %d cut; want %d, %v, %v", name, r.Preempted, r.Makespan, r.Wait.Most, r.Never, r.Cut, c.preempted, c.makespan, c.waits)
		}
	}
}

// TestBackfillInStudies: the rules of backfill decide in a study as they do in a server.
func TestBackfillInStudies(t *testing.T) {
	const trace = `; MaxProcs: 8
1 0 -1 100 5 -1 -1 5 100 -1 1 1 1 -1 -1 -1 -1 -1
2 1 -1 50 8 -1 -1 8 60 -1 1 2 2 -1 -1 -1 -1 -1
3 2 -1 200 1 -1 -1 1 200 -1 1 2 2 -1 -1 -1 -1 -1
4 2 -1 20 2 -1 -1 2 20 -1 1 2 2 -1 -1 -1 -1 -1
`
	for rules, want := range map[string]float64{ // the last job's wait in the sum of all: it starts at once, or when the head has ended
		"{}":                                   0 + 99 + 148 + 0,
		"backfill: {off: true}":                0 + 99 + 148 + 148,
		"backfill: {depth: 1}":                 0 + 99 + 148 + 148,
		"{compat: slurm}":                      0 + 99 + 148 + 0,
		"compat: slurm\nbackfill: {off: true}": 0 + 99 + 148 + 148,
	} {
		r := simulateUnder(t, trace, rules)
		if got := 4 * r.Wait.Mean; got != want {
			t.Errorf("%s: the jobs waited %v s in all, want %v", rules, got, want)
		}
	}
}
