package plan_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/sched/plan"
)

// TestProfile compares what a profile says, whatever comes and goes, with the slow
// answer.
func TestProfile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wide := int64(rapid.SampledFrom([]int{10, 1000}).Draw(t, "instants"))
		var nodes [][]plan.Span[int64]
		draw := func() (out []plan.Span[int64]) {
			from := int64(0)
			for range rapid.IntRange(0, 3).Draw(t, "spans") {
				from += rapid.Int64Range(0, wide).Draw(t, "from")
				end := from + rapid.Int64Range(1, wide).Draw(t, "long")
				if rapid.IntRange(0, 2).Draw(t, "open") == 0 {
					end = plan.Never
				}
				out = append(out, plan.Span[int64]{From: from, End: end})
				if from = end; end == plan.Never {
					break
				}
			}
			return out
		}
		var p plan.Profile[int64]
		var from []int64
		for range rapid.SampledFrom([]int{0, 3, 400}).Draw(t, "at first") {
			at := rapid.Int64Range(0, wide).Draw(t, "at")
			from = append(from, at)
			nodes = append(nodes, []plan.Span[int64]{{From: at, End: plan.Never}})
		}
		p.Fill(from)
		for range rapid.IntRange(0, 300).Draw(t, "changes") {
			if i := rapid.IntRange(0, 2*len(nodes)).Draw(t, "node"); i < len(nodes) {
				for _, s := range nodes[i] {
					p.AddSpan(s, -1)
				}
				nodes = slices.Delete(nodes, i, i+1)
				continue
			}
			spans := draw()
			for _, s := range spans {
				p.AddSpan(s, 1)
			}
			nodes = append(nodes, spans)
		}
		if rapid.Bool().Draw(t, "copied") {
			var other plan.Profile[int64]
			other.Fill(slices.Clone(from))
			other.Copy(&p)
			p = other
		}
		var all []plan.Span[int64]
		for _, spans := range nodes {
			all = append(all, spans...)
		}
		for range 3 {
			after, need := rapid.Int64Range(0, 2*wide).Draw(t, "after"), rapid.IntRange(1, len(nodes)+1).Draw(t, "need")
			var later []plan.Span[int64]
			for _, s := range all {
				if s.End > after {
					later = append(later, plan.Span[int64]{From: max(s.From, after), End: s.End})
				}
			}
			if got, want := p.First(after, need), plan.Slowly(nil, later, need); got != want {
				t.Fatalf("%d from %d on: %d, looked for one by one: %d", need, after, got, want)
			}
			then, before := 0, 0
			for _, s := range all {
				if s.From <= after && after < s.End {
					then++
				}
				if s.From < after && after <= s.End {
					before++
				}
			}
			if a, b := p.Count(after); a != then || b != before {
				t.Fatalf("at %d: %d, and %d before, counted one by one: %d and %d", after, a, b, then, before)
			}
		}
	})
}
