package simulate_test

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/test/simulate"
)

// told is how many failures are shortened and told.
const told = 2

// TestSeeds runs worlds with everything that goes wrong in them. COX_SIM_SEEDS says
// how many, COX_SIM_SEED with which to begin.
func TestSeeds(t *testing.T) {
	n, first := number(t, "COX_SIM_SEEDS", 300), number(t, "COX_SIM_SEED", 1)
	var mu sync.Mutex
	events, short, bad := 0, 0, 0
	var faults [simulate.Faults]int
	next := first
	t.Run("worlds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for {
					mu.Lock()
					seed := next
					next++
					mu.Unlock()
					if seed >= first+n {
						return
					}
					r := bubble(t, simulate.Options{Seed: seed})
					mu.Lock()
					events += r.Events
					if r.Events < 200 {
						short++
					}
					for f, k := range r.Faults {
						faults[f] += k
					}
					if len(r.Broken) > 0 {
						bad++
						t.Errorf("seed %d: %v", seed, r.Broken[0])
					}
					tell := len(r.Broken) > 0 && bad <= told
					mu.Unlock()
					if tell {
						short := simulate.Shrink(r, func(o simulate.Options) simulate.Result { return bubble(t, o) }, 300)
						t.Log(short.Tell())
					}
				}
			})
		}
	})
	var b strings.Builder
	for f, k := range faults {
		fmt.Fprintf(&b, "\n%8d  %s", k, simulate.Fault(f))
	}
	t.Logf("%d seeds from %d on, %d events, %d runs with less than 200, %d broke a promise%s", n, first, events, short, bad, b.String())
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is no number", name, text)
	}
	return n
}
