package cli

import (
	"testing"

	"github.com/coxswain-sched/coxswain/api"
	"github.com/coxswain-sched/coxswain/model/job"
)

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		state  string
		status int
		want   int
	}{
		{"COMPLETED", 0, 0},
		{"FAILED", 3, 3},
		{"FAILED", 0, 1},
		{"TIMEOUT", 0, 124},
		{"DEADLINE", 0, 124},
		{"OUT_OF_MEMORY", 0, 137},
		{"CANCELLED", 0, 130},
		{"NODE_FAIL", 0, 75},
		{"A_STATE_OF_LATER", 0, 1},
	} {
		j := api.Job{Name: "7", State: c.state, Exit: job.ExitCode{Status: c.status}}
		if got := JobExitCode(&j); got != c.want {
			t.Errorf("%s, exit %d: %d, want %d", c.state, c.status, got, c.want)
		}
	}
}
