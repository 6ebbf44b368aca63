package slurm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/driver/slurm/explain"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
)

// TestWhenSlurmExpectsToStartIt: the report of a job that waits has Slurm's word and its
// estimate; one that moves a little is not told again, one that moves far is, and none of a job
// that is held, nor one that has passed. The word keeps its meaning.
//
// Seen to fail with: no estimate; each estimate told; that of a held job told.
func TestWhenSlurmExpectsToStartIt(t *testing.T) {
	s := &stage{}
	e, _, _ := play(t, s)
	var id uint32
	awaits(t, "handed over", func() bool {
		s.with(func() {
			if len(s.jobs) == 1 {
				id = s.jobs[0].ID
			}
		})
		return id != 0
	})
	first := time.Now().Add(time.Hour).Truncate(time.Second)
	set := func(at time.Time, reason string, held bool) {
		s.with(func() {
			for i := range s.jobs {
				if j := &s.jobs[i]; j.State == site.Pending {
					j.Started, j.Reason, j.Held = at, reason, held
				}
			}
		})
	}
	told := func(want string) {
		t.Helper()
		r := until(t, e, func(r engine.Report) bool { return r.Message == want || r.Gone })
		if r.Message != want || r.Phase != engine.Accepted {
			t.Fatalf("%s: %q, want %q", r.Phase, r.Message, want)
		}
	}
	says := func(word string, at time.Time) string {
		return word + ", and Slurm expects to start it at " + at.UTC().Format(time.RFC3339)
	}
	set(first, "Resources", false)
	told(says("Resources", first))
	set(first.Add(5*time.Minute), "Priority", false)
	told(says("Priority", first)) // a twelfth of the wait
	later := first.Add(30 * time.Minute)
	set(later, "Priority", false)
	told(says("Priority", later))
	set(later, "JobHeldUser", true)
	told("JobHeldUser")
	set(time.Now().Add(-time.Minute), "Resources", false)
	told("Resources")
	set(first.AddDate(1, 0, 0), "None", false)
	told("None")
	set(later, "", false)
	told(strings.TrimPrefix(says("", later), ", and "))
	for _, word := range []string{"Resources", "ReqNodeNotAvail, UnavailableNodes:n3"} {
		bare, _ := explain.Reason(word)
		if what, _ := explain.Reason(says(word, later)); what != bare || what == "" {
			t.Errorf("%s: %q, want %q", word, what, bare)
		}
	}
}
