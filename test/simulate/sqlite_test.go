package simulate_test

import (
	"fmt"
	"testing"

	"github.com/coxswain-sched/coxswain/store"
	"github.com/coxswain-sched/coxswain/store/sqlite"
	"github.com/coxswain-sched/coxswain/test/simulate"
)

// TestSeedsOnSQLite runs some of the seeds on the store that a server really has.
func TestSeedsOnSQLite(t *testing.T) {
	n, first := min(number(t, "COX_SIM_SEEDS", 5000)/100, 200), number(t, "COX_SIM_SEED", 1)
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			opt := simulate.Options{Seed: seed, Open: func() (store.Store, error) { return sqlite.Open(dir) }}
			if r := bubble(t, opt); len(r.Broken) > 0 {
				t.Errorf("seed %d: %v", seed, r.Broken[0])
			}
		})
	}
}
