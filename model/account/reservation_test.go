package account_test

import (
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/account"
)

// TestNextOccurrence walks through the occurrences of repeating reservations.
func TestNextOccurrence(t *testing.T) {
	friday := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for every, want := range map[string][]int{"": {20}, "day": {20, 21, 22}, "weekday": {20, 23, 24}, "weekend": {21, 22, 28}, "week": {20, 27, 34}} {
		r := account.Reservation{Start: friday.Format(time.RFC3339), Duration: account.Duration(2 * time.Hour), Every: every}
		w, ok := r.Window()
		if !ok {
			t.Fatal("its start cannot be read")
		}
		from := friday.Add(-time.Hour).UnixNano()
		for _, day := range want {
			begin, end, ok := w.Next(from)
			if at := time.Date(2026, 11, day, 8, 0, 0, 0, time.UTC); !ok || begin != at.UnixNano() || end != at.Add(2*time.Hour).UnixNano() {
				t.Errorf("every %q: %v, want %v", every, time.Unix(0, begin).UTC(), at)
			}
			if again, _, _ := w.Next(end - 1); again != begin {
				t.Errorf("every %q: just before its end the next one is %v", every, time.Unix(0, again).UTC())
			}
			from = end
		}
		if _, _, ok := w.Next(from); every == "" && ok {
			t.Error("one that was to hold once comes again")
		}
	}
}

// TestOverlaps finds the instant at which two hold at once.
func TestOverlaps(t *testing.T) {
	day := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	window := func(at time.Time, long time.Duration, every string) account.Window {
		r := account.Reservation{Start: at.Format(time.RFC3339), Duration: account.Duration(long), Every: every}
		w, _ := r.Window()
		return w
	}
	daily, later := window(day, time.Hour, "day"), window(day.Add(72*time.Hour+30*time.Minute), time.Hour, "")
	if at, both := daily.Overlaps(&later, 0); !both || at != day.Add(72*time.Hour+30*time.Minute).UnixNano() {
		t.Errorf("they meet at %v (%v)", time.Unix(0, at).UTC(), both)
	}
	beside := window(day.Add(time.Hour), time.Hour, "day")
	if at, both := daily.Overlaps(&beside, 0); both {
		t.Errorf("one begins when the other ends, and they meet at %v", time.Unix(0, at).UTC())
	}
}
