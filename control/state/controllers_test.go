package state

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coxswain-sched/coxswain/model/job"
)

// TestPartsAreAsASet: whatever the order in which jobs enter memory and leave it, the newest of each part is
// found, and at most half of what is kept of a part is of jobs that have left.
func TestPartsAreAsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := [2]job.Part{{Controller: "schedule/a"}, {Controller: "schedule/a", Index: 1}}
		p, want := newParts(), [2]map[job.ID]bool{{}, {}}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			id := job.ID(rapid.IntRange(1, 16).Draw(t, "id"))
			of := int(id) % len(parts)
			e := &JobRecord{ID: id}
			e.EnsureExtra().Part = &parts[of]
			if rapid.Bool().Draw(t, "add") {
				p.add(e)
				want[of][id] = true
			} else {
				p.remove(e)
				delete(want[of], id)
			}
			all := slices.Sorted(maps.Keys(want[0]))
			all = append(all, slices.Collect(maps.Keys(want[1]))...)
			if slices.Sort(all); !slices.Equal(p.Of("schedule/a"), all) {
				t.Fatalf("%v, not %v", p.Of("schedule/a"), all)
			}
			for i, part := range parts {
				newest := job.ID(0)
				for id := range want[i] {
					newest = max(newest, id)
				}
				if got := p.JobOf(part); got != newest {
					t.Fatalf("part %d: %d, not %d", i, got, newest)
				}
				if j := p.jobs[part]; (j != nil) != (newest != 0) || j != nil && (2*j.gone > len(j.ids) || len(j.ids)-j.gone != len(want[i])) {
					t.Fatalf("part %d: %+v for %v", i, j, want[i])
				}
			}
		}
	})
}
