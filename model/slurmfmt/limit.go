package slurmfmt

import (
	"fmt"
	"strings"
	"time"
)

// TimeForms lists the forms of a time limit, for messages.
const TimeForms = "minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S"

// MaxTimeLimit is the longest limit that can be said, 100 years.
const MaxTimeLimit = 100 * 366 * 24 * time.Hour

// ParseTimeLimit reads a time limit. Seconds round up to a full minute. No limit
// (0, -1, INFINITE, UNLIMITED in any case) is 0.
func ParseTimeLimit(s string) (time.Duration, error) {
	d, err := ParseDuration(s)
	if err != nil {
		return 0, err
	}
	return (d + time.Minute - 1) / time.Minute * time.Minute, nil
}

// ParseDuration reads the same forms to the second. No limit is 0.
func ParseDuration(s string) (time.Duration, error) {
	switch strings.ToLower(s) {
	case "-1", "infinite", "unlimited":
		return 0, nil
	}
	notTime := textError(s, "is not a time (forms: %s)", TimeForms)
	days, clock, hasDays := strings.Cut(s, "-")
	var fields []string
	if hasDays {
		fields = append(fields, days)
		if clock != "" {
			fields = append(fields, strings.Split(clock, ":")...)
		}
	} else {
		fields = strings.Split(s, ":")
	}
	units, ok := timeUnits(len(fields), hasDays)
	if !ok {
		return 0, notTime
	}
	var total time.Duration
	for i, f := range fields {
		if !allDigits(f) {
			return 0, notTime
		}
		n, ok := parseDigits(f)
		if !ok || n > int64(MaxTimeLimit/units[i]) {
			return 0, textError(s, "is longer than 100 years; for no limit write UNLIMITED")
		}
		total += time.Duration(n) * units[i]
	}
	if total > MaxTimeLimit {
		return 0, textError(s, "is longer than 100 years; for no limit write UNLIMITED")
	}
	return total, nil
}

// timeUnits says what n colon-separated numbers count.
func timeUnits(n int, hasDays bool) ([]time.Duration, bool) {
	const day = 24 * time.Hour
	switch {
	case hasDays && n <= 4:
		return []time.Duration{day, time.Hour, time.Minute, time.Second}[:n], true
	case hasDays || n > 3:
		return nil, false
	case n == 3:
		return []time.Duration{time.Hour, time.Minute, time.Second}, true
	}
	return []time.Duration{time.Minute, time.Second}[:n], true
}

// FormatTimeLimit prints a limit as sbatch and scontrol do: "00:05:00",
// "1-02:03:00", and "UNLIMITED" for 0.
func FormatTimeLimit(d time.Duration) string {
	if d == 0 {
		return "UNLIMITED"
	}
	days, h, m, s := splitDuration(d)
	if days > 0 {
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, h, m, s)
	}
	return fmt.Sprintf("%02d:%02d:%02d", h, m, s)
}

// FormatElapsed prints a duration as squeue does, as short as it can be: "5:03",
// "1:05:03", "2-01:05:03". Parts of a second are dropped.
func FormatElapsed(d time.Duration) string {
	days, h, m, s := splitDuration(d)
	switch {
	case days > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", days, h, m, s)
	case h > 0:
		return fmt.Sprintf("%d:%02d:%02d", h, m, s)
	}
	return fmt.Sprintf("%d:%02d", m, s)
}

func splitDuration(d time.Duration) (days, hours, minutes, seconds int64) {
	n := int64(max(d, 0) / time.Second)
	return n / 86400, n / 3600 % 24, n / 60 % 60, n % 60
}
