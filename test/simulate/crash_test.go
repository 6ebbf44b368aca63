package simulate_test

import (
	"testing"

	"github.com/coxswain-sched/coxswain/test/simulate"
)

// TestCrashAtEveryWrite kills the server before and after each write of the journal
// and of the projection, in every fixed workload.
func TestCrashAtEveryWrite(t *testing.T) {
	plans := simulate.Plans()
	for _, name := range simulate.PlanNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opt := simulate.Options{Seed: 1, Calm: true, Plan: plans[name]}
			whole := bubble(t, opt)
			if len(whole.Broken) > 0 || whole.Writes < 5 {
				t.Fatalf("without a crash, with %d writes: %v", whole.Writes, whole.Broken)
			}
			for n := range 2 * whole.Writes {
				opt.CrashAt, opt.CrashAfter = n/2+1, n%2 == 1
				if r := bubble(t, opt); len(r.Broken) > 0 {
					opt.Story = true
					r = bubble(t, opt)
					t.Fatalf("killed at write %d (after it: %v): %s", opt.CrashAt, opt.CrashAfter, r.Tell())
				}
			}
			t.Logf("%d writes", whole.Writes)
		})
	}
}
