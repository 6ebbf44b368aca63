package jobs

import (
	"testing"
	"time"
)

func TestPastTimes(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		s    string
		want time.Time
	}{
		{"90m", now.Add(-90 * time.Minute)},
		{"7d", now.AddDate(0, 0, -7)},
		{"2w", now.AddDate(0, 0, -14)},
		{"yesterday", time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)},
		{"today", time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)},
		{"2026-11-01", time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)},
		{"09:30", time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)},
		{"23:30", time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC)},
	} {
		if got, err := parsePastTime("since", c.s, now); err != nil || !got.Equal(c.want) {
			t.Errorf("%s: %s, %v", c.s, got, err)
		}
	}
	for _, bad := range []string{"d", "-5d", "5x", "99999999999d"} {
		if got, err := parsePastTime("since", bad, now); err == nil {
			t.Errorf("%q was taken for %s", bad, got)
		}
	}
}
