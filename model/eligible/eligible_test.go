package eligible_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/eligible"
	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/reason"
)

func TestCheck(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		why   string
		facts eligible.Facts
		want  reason.Reason
	}{
		{"nothing holds it", eligible.Facts{}, reason.Reason{}},
		{"held", eligible.Facts{Flags: job.Held}, reason.Reason{Code: reason.HeldUser}},
		{"held by an administrator", eligible.Facts{Flags: job.Held | job.HeldAdmin}, reason.Reason{Code: reason.HeldAdmin}},
		{"failed too often", eligible.Facts{Flags: job.Held | job.HeldFailed, Failed: 5}, reason.Reason{Code: reason.MaxRequeue, Need: 5}},
		{"later", eligible.Facts{Begin: now.Add(time.Second)}, reason.Reason{Code: reason.BeginTime, Until: 1001}},
		{"now", eligible.Facts{Begin: now}, reason.Reason{}},
		{"failed just now", eligible.Facts{Again: now.Add(2 * time.Second)}, reason.Reason{Code: reason.Backoff, Until: 1002}},
		{"array full", eligible.Facts{ArrayLimit: 2, ArrayOpen: 2}, reason.Reason{Code: reason.ArrayLimit, Need: 2}},
		{"array not full", eligible.Facts{ArrayLimit: 2, ArrayOpen: 1}, reason.Reason{}},
		{"array without limit", eligible.Facts{ArrayOpen: 99}, reason.Reason{}},
		{"depends", eligible.Facts{Depends: eligible.Judgement{Verdict: eligible.Waits, Clause: "afterok:7"}}, reason.Reason{Code: reason.Dependency, Want: "afterok:7"}},
		{"never", eligible.Facts{Depends: eligible.Judgement{Verdict: eligible.Never, Clause: "afterok:7"}, Begin: now.Add(1)}, reason.Reason{Code: reason.DependNever, Want: "afterok:7"}},
		{"a hold outranks all", eligible.Facts{Flags: job.Held, Depends: eligible.Judgement{Verdict: eligible.Never}}, reason.Reason{Code: reason.HeldUser}},
	} {
		c.facts.Now = now
		if got := eligible.Check(c.facts); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.why, got, c.want)
		}
	}
}

func TestTooLate(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		deadline time.Time
		need     time.Duration
		want     bool
	}{
		{time.Time{}, time.Hour, false},
		{now.Add(time.Hour), time.Hour, false},
		{now.Add(time.Hour - 1), time.Hour, true},
		{now.Add(1), 0, false},
		{now, 0, true},
		{now.Add(-1), 0, true},
	} {
		if got := eligible.TooLate(now, c.deadline, c.need); got != c.want {
			t.Errorf("deadline in %v, %v needed: %v", c.deadline.Sub(now), c.need, got)
		}
	}
}
