package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/model/schedule"
)

func parse(t *testing.T, cron, zone string) *schedule.Times {
	t.Helper()
	times, err := schedule.ParseCron(cron, zone)
	if err != nil {
		t.Fatalf("%s %s: %v", cron, zone, err)
	}
	return times
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestTimesOfExpressions reads the next times of expressions.
func TestTimesOfExpressions(t *testing.T) {
	for _, c := range []struct{ cron, zone, after, want string }{
		{"0 3 * * *", "Europe/Zurich", "2026-11-29T12:00:00Z", "2026-11-30T03:00:00+01:00 2026-12-01T03:00:00+01:00"},
		{"*/20 9-10 * * MON-FRI", "Etc/UTC", "2026-11-27T10:30:00Z", "2026-11-27T10:40:00Z 2026-11-30T09:00:00Z"},
		{"15,45 0 ? jan,7 ?", "Etc/UTC", "2026-01-31T00:15:00Z", "2026-01-31T00:45:00Z 2026-07-01T00:15:00Z"},
		{"0 0 13 * 5", "Etc/UTC", "2026-11-10T00:00:00Z", "2026-11-13T00:00:00Z 2026-11-20T00:00:00Z"}, // either day is enough
		{"0 0 29 2 *", "Etc/UTC", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z 2032-02-29T00:00:00Z"},
		{"@daily", "America/New_York", "2026-11-29T12:00:00Z", "2026-11-30T00:00:00-05:00 2026-12-01T00:00:00-05:00"},
		{"@every 90m", "Etc/UTC", "2026-11-29T12:00:00.7Z", "2026-11-29T13:30:00Z 2026-11-29T15:00:00Z"},
		// Clocks jump from 02:00 to 03:00 on 29 March 2026 in Zurich: 02:30 is left out on that day.
		{"30 2 * * *", "Europe/Zurich", "2026-03-28T12:00:00Z", "2026-03-30T02:30:00+02:00 2026-03-31T02:30:00+02:00"},
		{"0 * * * *", "Europe/Zurich", "2026-03-29T00:30:00Z", "2026-03-29T03:00:00+02:00 2026-03-29T04:00:00+02:00"},
		// Clocks go back from 03:00 to 02:00 on 25 October 2026: 02:30 comes twice.
		{"30 2 * * *", "Europe/Zurich", "2026-10-24T12:00:00Z", "2026-10-25T02:30:00+02:00 2026-10-25T02:30:00+01:00 2026-10-26T02:30:00+01:00"},
		{"0 3 * * *", "Europe/Zurich", "2026-10-24T12:00:00Z", "2026-10-25T03:00:00+01:00 2026-10-26T03:00:00+01:00"},
		// At midnight in Santiago: 6 September 2026 begins at 01:00, 5 April has 23:00 to 24:00 twice before it.
		{"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", "2026-09-07T00:00:00-03:00"},
	} {
		times, from := parse(t, c.cron, c.zone), at(t, c.after)
		for _, want := range strings.Fields(c.want) {
			from = times.Next(from)
			if got := from.Format(time.RFC3339); got != want {
				t.Errorf("%s in %s after %s: %s, want %s", c.cron, c.zone, c.after, got, want)
			}
		}
	}
}

// TestLatestIsTheLastOfAll compares Latest and Count with a walk through all times.
func TestLatestIsTheLastOfAll(t *testing.T) {
	for _, cron := range []string{"* * * * *", "*/7 3-5 * * *", "0 0 1 * *", "30 2 * * *", "0 12 29 2 *", "@every 7m", "@every 36h", "@yearly", "* 0 1 1 *"} {
		times := parse(t, cron, "Europe/Zurich")
		after := at(t, "2026-03-27T10:11:12Z")
		for _, later := range []time.Duration{0, time.Minute, 13 * time.Minute, 50 * time.Hour, 24 * 70 * time.Hour, 24 * 1000 * time.Hour} {
			now := after.Add(later)
			if later > 2000*time.Hour && times.Count(after, after.Add(50*time.Hour)) > 100 {
				continue // the walk would take too long
			}
			var last time.Time
			n := 0
			for x := times.Next(after); !x.After(now); x = times.Next(x) {
				last, n = x, n+1
			}
			if got := times.Latest(after, now); !got.Equal(last) {
				t.Errorf("%s: the latest within %s is %s, want %s", cron, later, got, last)
			}
			if got := times.Count(after, now); got != min(n, schedule.MostMissed+1) {
				t.Errorf("%s: %d times within %s, want %d", cron, got, later, n)
			}
		}
	}
}

// TestNeverFires finds expressions that have no time.
func TestNeverFires(t *testing.T) {
	now := at(t, "2026-11-29T12:00:00Z")
	for cron, never := range map[string]bool{"0 0 31 2 *": true, "0 0 31 4,6,9,11 *": true, ", * * * *": true, "0 0 29 2 *": false, "0 0 31 2 1": false, "@every 24h": false} {
		times := parse(t, cron, "")
		if got := times.Never(now); got != never {
			t.Errorf("%s: never is %v, want %v", cron, got, never)
		}
		if got := times.Latest(now.AddDate(-3, 0, 0), now); never && !got.IsZero() {
			t.Errorf("%s never fires, and did at %s", cron, got)
		}
	}
}

// TestBadExpressions says what is wrong and what to write.
func TestBadExpressions(t *testing.T) {
	for cron, want := range map[string]string{
		"":                         "empty",
		"0 25 * * *":               `hour "25": it takes 0-23`,
		"61 * * * *":               `minute "61": it takes 0-59`,
		"0 0 0 * *":                `day of the month "0": it takes 1-31`,
		"0 0 * foo *":              `month "foo": it takes 1-12 or JAN-DEC`,
		"0 0 * * 7":                `day of the week "7": it takes 0-6 or SUN-SAT, 0 is Sunday`,
		"0 0 L * *":                `day of the month "L"`,
		"*/0 * * * *":              `minute "*/0"`,
		"5-1 * * * *":              `minute "5-1"`,
		"0 3 * *":                  "4 of the five fields",
		"0 0 3 * * *":              "6 fields where five are taken",
		"@reboot":                  `"@reboot" is not known`,
		"@every":                   "is no duration",
		"@every 10s":               "the shortest is one minute",
		"TZ=Europe/Zurich":         "a time zone has no place",
		"CRON_TZ=UTC 0 3 * * *":    "a time zone has no place",
		strings.Repeat("1,", 300):  "more than 500 characters",
		"nightly at three, please": "4 of the five fields",
	} {
		_, err := schedule.ParseCron(cron, "")
		var e *schedule.CronError
		if !errors.As(err, &e) || !strings.Contains(e.Why, want) || e.Remedy == "" {
			t.Errorf("%q: %v, want %q with a remedy", cron, err, want)
		}
	}
	for _, zone := range []string{"Europe/Zuerich", "Local", "local", "../etc/passwd", "+01:00"} {
		_, err := schedule.ParseCron("@daily", zone)
		var e *schedule.ZoneError
		if !errors.As(err, &e) || !strings.Contains(e.Remedy(), "IANA") {
			t.Errorf("zone %s: %v", zone, err)
		}
	}
}

// TestCheckFindsWhatNoScheduleHas checks a whole specification.
func TestCheckFindsWhatNoScheduleHas(t *testing.T) {
	good := schedule.Spec{Name: "nightly", Settings: schedule.DefaultSettings()}
	good.Cron = "@daily"
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*schedule.Spec){
		"the name is empty":   func(s *schedule.Spec) { s.Name = "" },
		"is not made of":      func(s *schedule.Spec) { s.Name = "a/b" },
		"4 of the five":       func(s *schedule.Spec) { s.Cron = "0 3 * *" },
		"is no time zone":     func(s *schedule.Spec) { s.Zone = "Mars" },
		"is none of allow":    func(s *schedule.Spec) { s.Overlap = "Forbid" },
		"less than nothing":   func(s *schedule.Spec) { s.Late = -1 },
		"0 to 1000 runs":      func(s *schedule.Spec) { s.Keep.Failed = 2000 },
		"0 to 1000 runs can ": func(s *schedule.Spec) { s.Keep.Done = -1 },
	} {
		s := good
		change(&s)
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// FuzzCron checks that every text is refused or has times that grow.
func FuzzCron(f *testing.F) {
	for _, s := range []string{"0 3 * * *", "@every 1h", "*/5 1-3,7 ? JAN-MAR SUN", "TZ=", "@", "0 0 31 2 *"} {
		f.Add(s)
	}
	now := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		times, err := schedule.ParseCron(text, "Europe/Zurich")
		if err != nil {
			return
		}
		from := now
		for range 5 {
			next := times.Next(from)
			if next.IsZero() {
				return
			}
			if !next.After(from) {
				t.Fatalf("%q: %s comes after %s", text, next, from)
			}
			from = next
		}
	})
}
