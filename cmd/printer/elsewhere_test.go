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
		{Pool: "slurm-b", Start: now.Add(time.Hour)}, {Pool: "slurm-c", Start: now}, {Pool: "slurm-d", Why: "it is silent"},
	}}
	text := Why(Page{Now: now}, w, j)
	for _, want := range []string{
		"in pool local: it is expected to start there first; slurm-b would have started it in about 2 h; not k8s: needs 2 nodes, only 1 qualify",
		"Other pools would start it: slurm-b in 1 h; slurm-c at once; slurm-d, nobody knows when: it is silent.",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
