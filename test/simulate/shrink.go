package simulate

import (
	"fmt"
	"slices"
	"strings"
)

// Shrink takes requests and faults out of a failed run as long as the same promise
// breaks, by delta debugging, and returns the shortest run that it finds, with its
// story. again runs the seed with what is left, in a bubble of its own, at most so
// many times.
func Shrink(failed Result, again func(Options) Result, most int) Result {
	best := failed
	only := func(names []string) map[string]bool {
		m := make(map[string]bool, len(names))
		for _, n := range names {
			m[n] = true
		}
		return m
	}
	try := func(names []string, story bool) bool {
		most--
		r := again(Options{Seed: failed.Seed, Services: failed.Services, Only: only(names), Story: story})
		if !r.sameBreak(failed) {
			return false
		}
		best = r
		return true
	}
	for parts := 2; most > 0 && len(best.Done) > 0; {
		names := best.Done
		size := max(1, (len(names)+parts-1)/parts)
		found := false
		for from := 0; from < len(names) && most > 0; from += size {
			rest := slices.Delete(slices.Clone(names), from, min(from+size, len(names)))
			if try(rest, false) {
				found = true
				break
			}
		}
		switch {
		case found:
			parts = max(2, parts-1)
		case size == 1:
			most = 0
		default:
			parts = min(2*parts, len(names))
		}
	}
	if !try(best.Done, true) {
		best.Story = []string{"the story could not be told: what is left does not fail again"}
	}
	return best
}

// sameBreak reports whether a run broke what another one did.
func (r *Result) sameBreak(o Result) bool {
	return len(r.Broken) > 0 && r.Broken[0].Promise == o.Broken[0].Promise && r.Broken[0].Rule == o.Broken[0].Rule
}

// Tell is the account of a failed run for people: how to see it again, what had to
// happen, and the story.
func (r *Result) Tell() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks %s\n", r.Seed, r.Broken[0])
	kind := ""
	if r.Services {
		kind = "COX_SIM_SERVICES=1 "
	}
	fmt.Fprintf(&b, "see it whole: %sCOX_SIM_SEED=%d go test -count=1 -run 'TestOneSeed$' -v ./test/simulate\n", kind, r.Seed)
	fmt.Fprintf(&b, "what it takes (%d of the requests and faults of the seed):\n", len(r.Done))
	for _, name := range r.Done {
		fmt.Fprintf(&b, "  - %s\n", name)
	}
	fmt.Fprintf(&b, "the story:\n")
	for _, line := range r.Story {
		fmt.Fprintln(&b, line)
	}
	return b.String()
}
