package simulate_test

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coxswain-sched/coxswain/test/simulate"
)

// handoverSeeds is how many worlds with hand-overs are run; make torture runs twenty times as many.
const handoverSeeds = 24

// handoverBubble runs hand-overs in a bubble of their own.
func handoverBubble(t *testing.T, opt simulate.Handovers) (out simulate.Result) {
	synctest.Test(t, func(*testing.T) { out = simulate.RunHandovers(opt) })
	return out
}

// TestHandovers hands machines over between two engines while everything goes wrong. COX_SIM_HANDOVERS says in
// how many worlds, COX_SIM_SEED with which to begin.
//
// Seen to fail with: devices that a check has fenced and placement uses all the same.
func TestHandovers(t *testing.T) {
	many := uint64(handoverSeeds)
	if os.Getenv("COX_LONG") != "" {
		many *= 20
	}
	first := number(t, "COX_SIM_SEED", 1)
	last := first + number(t, "COX_SIM_HANDOVERS", many)
	seeds := make(chan uint64)
	go func() {
		defer close(seeds)
		for seed := first; seed < last; seed++ {
			seeds <- seed
		}
	}()
	var mu sync.Mutex
	seen := map[string]int{}
	t.Run("worlds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for seed := range seeds {
					r := handoverBubble(t, simulate.Handovers{Seed: seed})
					mu.Lock()
					for what, n := range r.Seen {
						seen[what] += n
					}
					mu.Unlock()
					if len(r.Broken) > 0 {
						t.Errorf("seed %d: %s", seed, r.Broken[0])
					}
				}
			})
		}
	})
	t.Log(seen)
	for _, what := range []string{"a call is lost", "a call is late", "an answer is lost", "a server dies", "a hand-over begins", "a hand-over is aborted", "others start work", "an agent is silent", "an administrator drains", "a node goes bad", "a check fences", "a fence of a check goes"} {
		if last-first >= handoverSeeds && 2*seen[what] < int(last-first) {
			t.Errorf("%s: only %d times", what, seen[what])
		}
	}
}

// TestHandoversCrashAtEveryWrite kills the server before and after each of the first writes of the journal: at
// every seventh of these moments, and at each with make torture.
func TestHandoversCrashAtEveryWrite(t *testing.T) {
	step := 7
	if os.Getenv("COX_LONG") != "" {
		step = 1
	}
	for n := 0; n < 200; n += step {
		if r := handoverBubble(t, simulate.Handovers{Seed: 1 + uint64(n)%3, CrashAt: n/2 + 1, CrashAfter: n%2 == 1, For: 4 * 60e9}); len(r.Broken) > 0 {
			t.Fatalf("killed at write %d (after it: %v): %s", n/2+1, n%2 == 1, r.Broken[0])
		}
	}
}
