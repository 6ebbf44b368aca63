package poolmove

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/control/query"
)

// TestDecide has the bounds of moves.
//
// Seen to fail with: each of the bounds left out.
func TestDecide(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	in := func(minutes int) time.Time {
		if minutes < 0 {
			return time.Time{}
		}
		return now.Add(time.Duration(minutes) * time.Minute)
	}
	for _, x := range []struct {
		name   string
		here   int // minutes; -1: nobody knows
		places []int
		moves  int
		rested int // minutes since the last move, and since nobody knows
		silent bool
		want   int
		why    string
	}{
		{name: "at once elsewhere", here: 120, places: []int{0}, why: "moved from a, where it was expected to start in about 2 h"},
		{name: "nowhere else", here: 120, want: -1},
		{name: "nobody knows elsewhere", here: 120, places: []int{-1}, want: -1},
		{name: "ten minutes", here: 10, places: []int{0}, why: "moved from a, where it was expected to start in about 10 min"},
		{name: "nine minutes", here: 9, places: []int{0}, want: -1},
		{name: "a fifth", here: 100, places: []int{80}, why: "moved from a, where it was expected to start in about 1.5 h"},
		{name: "less than a fifth", here: 100, places: []int{81}, want: -1},
		{name: "the first of two that hardly differ", here: 100, places: []int{20, 15}, why: "moved from a, where it was expected to start in about 1.5 h"},
		{name: "the second", here: 100, places: []int{60, 15}, want: 1, why: "moved from a, where it was expected to start in about 1.5 h"},
		{name: "an hour after a move", here: 120, places: []int{0}, moves: 1, rested: 60, why: "moved from a, where it was expected to start in about 2 h"},
		{name: "less than an hour after a move", here: 120, places: []int{0}, moves: 1, rested: 59, want: -1},
		{name: "after three moves", here: 120, places: []int{0}, moves: 3, rested: 600, want: -1},
		{name: "silent", here: -1, places: []int{300}, rested: 5, silent: true, why: "moved from a, which does not answer"},
		{name: "silent just now", here: -1, places: []int{0}, rested: 4, silent: true, want: -1},
		{name: "silent, and nobody knows elsewhere", here: -1, places: []int{-1}, rested: 5, silent: true, want: -1},
		{name: "nobody knows when it has room", here: -1, places: []int{30}, rested: 5, why: "moved from a, where nobody knows when it would start"},
	} {
		w := Waiting{Pool: "a", Start: in(x.here), Moves: x.moves, Silent: x.silent, Unknown: now.Add(-time.Duration(x.rested) * time.Minute)}
		if x.moves > 0 {
			w.Moved = w.Unknown
		}
		var places []query.PoolStart
		for _, p := range x.places {
			places = append(places, query.PoolStart{Pool: "b", Start: in(p)})
		}
		if to, why := Decide(now, &w, places); to != x.want || why != x.why {
			t.Errorf("%s: to %d, %q, want %d, %q", x.name, to, why, x.want, x.why)
		}
	}
}
