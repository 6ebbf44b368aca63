package enginetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coxswain-sched/coxswain/engine"
)

// Tally is the ledger of a test in which things break: which attempts were handed over to a
// driver, and how each ended. Each ends once. The zero value is empty; it is safe for
// concurrent use.
type Tally struct {
	mu   sync.Mutex
	open map[engine.Ref]bool
	ends map[engine.Ref]engine.Report
}

// Hand says that an attempt was handed over: it has to end.
func (s *Tally) Hand(ref engine.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open, s.ends = map[engine.Ref]bool{}, map[engine.Ref]engine.Report{}
	}
	s.open[ref] = true
}

// Known reports whether an attempt has ended before. That it was another end is the test's
// failure.
func (s *Tally) Known(t testing.TB, r engine.Report) bool {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	was, known := s.ends[r.Ref]
	if known && (was.Cause != r.Cause || was.Exit != r.Exit || !was.Ended.Equal(r.Ended)) {
		t.Errorf("%s ended twice: as %s, %s, and as %s, %s", r.Ref, was.Cause, was.Exit, r.Cause, r.Exit)
	}
	return known
}

// End takes the end of an attempt.
func (s *Tally) End(r engine.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[r.Ref] = r
	delete(s.open, r.Ref)
}

// Open are the attempts that have not ended, in order.
func (s *Tally) Open() []engine.Ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.open), func(a, b engine.Ref) int { return int(a.Allocation) - int(b.Allocation) })
}

// Ends are the ends so far, in the order of attempts.
func (s *Tally) Ends() []engine.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.ends), func(a, b engine.Report) int { return int(a.Ref.Allocation) - int(b.Ref.Allocation) })
}

// String counts the ends: "exited 31, stopped 5".
func (s *Tally) String() string {
	count := map[engine.Cause]int{}
	for _, r := range s.Ends() {
		count[r.Cause]++
	}
	var out []string
	for _, c := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%s %d", c, count[c]))
	}
	return strings.Join(out, ", ")
}
