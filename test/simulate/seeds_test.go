package simulate_test

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/test/simulate"
)

// seeds is how many worlds are run where nobody says otherwise: enough for the counts below. make
// torture runs twice as many from there on, and then others until it is stopped.
const seeds = 700

// told is how many failures are shortened and told.
const told = 3

// TestSeeds runs worlds with everything that goes wrong in them. COX_SIM_SEEDS says
// how many ("forever": until it is stopped), COX_SIM_SEED with which to begin.
func TestSeeds(t *testing.T) {
	first := number(t, "COX_SIM_SEED", 1)
	many := seeds
	switch {
	case testing.Short():
		many = 300
	case os.Getenv("COX_LONG") != "":
		many = 3 * seeds
	}
	runSeeds(t, &sweep{seen: map[string]int{}, first: first, next: first, last: first + number(t, "COX_SIM_SEEDS", uint64(many))})
}

// runSeeds runs the worlds of a sweep, and looks whether everything happened that is to happen in them.
func runSeeds(t *testing.T, s *sweep) {
	t.Run("worlds", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				for s.one(t) {
				}
			})
		}
	})
	t.Log(s.String())
	ran := s.next - s.first
	if s.bad > 0 || ran < seeds && !s.services || ran < 100 {
		return
	}
	for f, n := range s.faults { // the rarest comes 15 times in a hundred seeds
		if 20*uint64(n) < ran && s.services == simulate.Fault(f).OfServices() {
			t.Errorf("%s: only %d times in %d seeds", simulate.Fault(f), n, ran)
		}
	}
	if s.services {
		if n := s.seen["a replica is submitted"]; 2*uint64(n) < ran {
			t.Errorf("only %d replicas in %d seeds", n, ran)
		}
		return
	}
	for _, what := range simulate.Rare { // some of it many times in one world and in few worlds
		if n := s.seen[what]; 300*uint64(n) < ran {
			t.Errorf("%s: only %d times in %d seeds", what, n, ran)
		}
	}
}

// sweep counts what happens in many worlds.
type sweep struct {
	services          bool // the worlds have services
	mu                sync.Mutex
	first, next, last uint64
	events, less, bad int
	faults            [simulate.Faults]int
	seen              map[string]int
}

// one runs the next seed; false: there is none.
func (s *sweep) one(t *testing.T) bool {
	s.mu.Lock()
	seed := s.next
	if seed >= s.last {
		s.mu.Unlock()
		return false
	}
	s.next++
	if n := seed - s.first; n > 0 && n%10_000 == 0 {
		t.Log(s.String())
	}
	s.mu.Unlock()
	r := bubble(t, simulate.Options{Seed: seed, Services: s.services})
	if s.count(t, &r) {
		short := simulate.Shrink(r, func(o simulate.Options) simulate.Result { return bubble(t, o) }, 300)
		t.Log(short.Tell())
	}
	return true
}

// count notes a run, and reports whether its story is to be told.
func (s *sweep) count(t *testing.T, r *simulate.Result) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events += r.Events
	for f, n := range r.Faults {
		s.faults[f] += n
	}
	for what, n := range r.Seen {
		s.seen[what] += n
	}
	if len(r.Broken) == 0 {
		if r.Events < 200 {
			s.less++
		}
		return false
	}
	s.bad++
	t.Errorf("seed %d: %v", r.Seed, r.Broken[0])
	return s.bad <= told
}

// String is what was done so far.
func (s *sweep) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds from %d on, %d events, %d runs with less than 200, %d broke a promise", s.next-s.first, s.first, s.events, s.less, s.bad)
	for f, n := range s.faults {
		fmt.Fprintf(&b, "\n%8d  %s", n, simulate.Fault(f))
	}
	for _, what := range simulate.Rare {
		fmt.Fprintf(&b, "\n%8d  %s", s.seen[what], what)
	}
	return b.String()
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	text := os.Getenv(name)
	switch text {
	case "":
		return otherwise
	case "forever":
		return math.MaxUint32
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is no number", name, text)
	}
	return n
}
