package printer

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

// TestWhyThisPool: a job that named no pool says why it is in its pool, when the others would have started
// it at the submission, and when they would start it now.
//
// Seen to fail without either.
func TestWhyThisPool(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	j := &api.Job{Pool: "local", Spec: &job.Spec{Name: "train", Chosen: &job.Choice{
		Rule: "earliest-start", Why: "it is expected to start there first",
		Waits:  []job.PoolWait{{Pool: "local", Seconds: 600}, {Pool: "slurm-b", Seconds: 7200}},
		Passed: []job.Passed{{Pool: "k8s", Why: "needs 2 nodes, only 1 qualify"}},
	}}}
	w := &api.Why{Name: "7", State: "PENDING", Reasons: []reason.Reason{{Code: reason.Priority}}, Elsewhere: []api.PoolStart{
		{Pool: "slurm-b", Start: now.Add(time.Hour)}, {Pool: "slurm-c", Start: now}, {Pool: "k8s", Start: now.Add(2 * time.Hour), Lacks: "it cannot be asked"}, {Pool: "slurm-d", Why: "it is silent"},
	}}
	text := Why(Page{Now: now}, w, j)
	for _, want := range []string{
		"in pool local: it is expected to start there first; slurm-b would have started it in about 2 h; not k8s: needs 2 nodes, only 1 qualify",
		"Other pools would start it: slurm-b in 1 h; slurm-c at once; k8s in 2 h (its own scheduler does not say when: it cannot be asked); slurm-d, nobody knows when: it is silent.",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestMovesText: a job that moved between pools says when, from where to where, and how often it may still; one
// that is being taken back for a move says that. The pool's own scheduler that does not say when it starts a job is
// told from one that does.
//
// Seen to fail with: the bounds of a job that runs; the move under way left out.
func TestMovesText(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	p := Page{Now: now, Zone: time.UTC}
	why := "moved from b, where it was expected to start in about 2 h"
	last := &api.PoolMove{From: "b", To: "k", At: now.Add(-20 * time.Minute), Why: why}
	for want, m := range map[string]*api.PoolMoves{
		"moved once, at 11:40:00 from b to k; it may move 2 times more, from 12:40:00 on":                      {Count: 1, Left: 2, Next: now.Add(40 * time.Minute), Last: last},
		"moved 2 times, last at 11:40:00 from b to k; it may move once more, from 12:40:00 on":                 {Count: 2, Left: 1, Next: now.Add(40 * time.Minute), Last: last},
		"moved 3 times, last at 11:40:00; it does not move again":                                              {Count: 3, Last: &api.PoolMove{At: last.At}},
		"is taken back from b and goes to k, if it has not begun: where it was expected to start in about 2 h": {Left: 3, Under: last},
	} {
		j := &api.Job{State: "PENDING", Moved: m, Spec: &job.Spec{Name: "train", Chosen: &job.Choice{Why: why}}, Pool: "k"}
		w := &api.Why{Name: "7", State: "PENDING", Reasons: []reason.Reason{{Code: reason.Priority}}}
		for where, text := range map[string]string{"why": Why(p, w, j), "show": Job(p, j, "")} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", where, want, text)
			}
		}
	}
	if text := movesText(p, &api.Job{State: "RUNNING", Moved: &api.PoolMoves{Count: 1, Last: last}}); text != "moved once, at 11:40:00 from b to k" {
		t.Errorf("of one that runs: %q", text)
	}
	for want, here := range map[string]*api.PoolStart{
		"": {Pool: "b", Start: now.Add(time.Hour)},
		"When b starts it is not known: its own scheduler does not say.":                                              {Pool: "b", Lacks: "x"},
		"When b starts it is not known: its own scheduler does not say. By the waits of the last jobs there: in 1 h.": {Pool: "b", Start: now.Add(time.Hour), Lacks: "x"},
	} {
		if got := startsHere(p, here); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
