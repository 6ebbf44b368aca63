package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/sched/plan"
)

// TestEarliest compares with the slow answer.
//
// Seen to fail with: ends that are counted from their instant on instead of before
// it, bounds that leave out the instants equal to the first.
func TestEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := func(label string) int64 {
			if rapid.IntRange(0, 9).Draw(t, "never") == 0 {
				return plan.Never
			}
			return int64(rapid.IntRange(0, 30).Draw(t, label))
		}
		var plain []int64
		for range rapid.IntRange(0, 12).Draw(t, "plain") {
			plain = append(plain, at("plain"))
		}
		var spans []plan.Span[int64]
		for range rapid.IntRange(0, 6).Draw(t, "nodes with spans") {
			from := int64(0)
			for range rapid.IntRange(0, 3).Draw(t, "spans") {
				from += int64(rapid.IntRange(0, 8).Draw(t, "from"))
				end := from + int64(rapid.IntRange(1, 8).Draw(t, "long"))
				if rapid.IntRange(0, 5).Draw(t, "open") == 0 {
					end = plan.Never
				}
				spans = append(spans, plan.Span[int64]{From: from, End: end})
				if from = end; end == plan.Never {
					break
				}
			}
		}
		need := rapid.IntRange(1, 8).Draw(t, "need")
		want := plan.Slowly(plain, spans, need)
		if got := plan.Earliest(slices.Clone(plain), slices.Clone(spans), need); got != want {
			t.Fatalf("%d of %v and %v: %d, looked for one by one: %d", need, plain, spans, got, want)
		}
	})
}
