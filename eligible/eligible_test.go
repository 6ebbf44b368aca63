package eligible

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/job"
	"github.com/coxswain-sched/coxswain/reason"
)

func TestCheck(t *testing.T) {
	now := time.Unix(1000, 0)
	later := now.Add(time.Second)
	tests := []struct {
		name string
		job  job.Job
		run  int
		want reason.Code
	}{
		{"nothing asked", job.Job{Spec: &job.Spec{}}, 0, reason.None},
		{"held", job.Job{Flags: job.Held, Spec: &job.Spec{Begin: later}}, 0, reason.HeldUser},
		{"begins later", job.Job{Spec: &job.Spec{Begin: later}}, 0, reason.BeginTime},
		{"begins now", job.Job{Spec: &job.Spec{Begin: now}}, 0, reason.None},
		{"array full", job.Job{Spec: &job.Spec{}, Array: &job.ArrayTask{MaxRunning: 2}}, 2, reason.ArrayLimit},
		{"array has room", job.Job{Spec: &job.Spec{}, Array: &job.ArrayTask{MaxRunning: 2}}, 1, reason.None},
		{"array without limit", job.Job{Spec: &job.Spec{}, Array: &job.ArrayTask{}}, 99, reason.None},
	}
	for _, tt := range tests {
		if got := Check(&tt.job, Facts{Now: now, ArrayRunning: tt.run}); got.Code != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got.Code, tt.want)
		}
	}
}
