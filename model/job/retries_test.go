package job_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/job"
)

// TestPauseOfRetries: pauses double up to ten minutes; a longer first one stays.
//
// Seen to fail with: a pause that doubles once more than it should.
func TestPauseOfRetries(t *testing.T) {
	for _, tt := range []struct {
		backoff time.Duration
		want    []time.Duration // before retries 1, 2 …
	}{
		{0, []time.Duration{0, 0, 0}},
		{10 * time.Second, []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second}},
		{4 * time.Minute, []time.Duration{4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute}},
		{time.Hour, []time.Duration{time.Hour, time.Hour}},
	} {
		r := job.Retries{Count: job.MaxRetries, Backoff: tt.backoff}
		for i, want := range tt.want {
			if got := r.Pause(i + 1); got != want {
				t.Errorf("backoff %s, retry %d: %s, want %s", tt.backoff, i+1, got, want)
			}
		}
		if last := r.Pause(job.MaxRetries); last > max(tt.backoff, job.MaxRetryPause) {
			t.Errorf("backoff %s: the last pause is %s", tt.backoff, last)
		}
	}
}

// TestExitCodeSets of a site's rules: ranges, and what is none.
func TestExitCodeSets(t *testing.T) {
	c := job.ExitCodes("1-3, 18,200-255")
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	for status, want := range map[int]bool{0: false, 1: true, 3: true, 4: false, 18: true, 19: false, 199: false, 200: true, 255: true} {
		if c.Has(job.ExitCode{Status: status}) != want {
			t.Errorf("%s has %d: %v", c, status, !want)
		}
	}
	if c.Has(job.ExitCode{Signal: 2}) || c.Has(job.ExitCode{Status: 1, Signal: 2}) || job.ExitCodes("").Has(job.ExitCode{}) {
		t.Error("a signal, or no code, is one")
	}
	for _, bad := range []job.ExitCodes{"0", "256", "3-1", "a", "1,,2", "1-", "-1", ","} {
		if bad.Check() == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestRetryOn: a signal counts as 128 + its number, and entries that no job can have are refused.
func TestRetryOn(t *testing.T) {
	r := &job.Retries{On: []string{"137", "3"}}
	for exit, want := range map[job.ExitCode]bool{{Signal: 9}: true, {Status: 3}: true, {Status: 9}: false, {Signal: 3}: false} {
		if r.Covers(job.Failed, exit) != want {
			t.Errorf("%s is covered: %v", exit, !want)
		}
	}
	if (*job.Retries)(nil).Covers(job.Failed, job.ExitCode{Status: 1}) {
		t.Error("a job without retries is retried")
	}
	for entry, good := range map[string]bool{"1": true, "255": true, "oom": true, "0": false, "256": false, "-1": false, "+1": false, "01": false, "": false, "OOM": false} {
		if (job.CheckRetryOn(entry) == nil) != good {
			t.Errorf("%q: %v", entry, job.CheckRetryOn(entry))
		}
	}
	for _, bad := range []job.Retries{{}, {Count: -1}, {Count: job.MaxRetries + 1}, {Count: 1, Backoff: -1}, {Count: 1, Backoff: job.MaxRetryBackoff + 1}, {Count: 1, On: []string{"x"}}} {
		s := &job.Spec{Retries: &bad}
		if s.CheckOrder() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
