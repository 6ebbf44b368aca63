package slurmfmt

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// UnitOf is the length of a unit of time: d, h, m or s; 0 for other letters.
func UnitOf(letter byte) time.Duration {
	switch letter {
	case 'd':
		return 24 * time.Hour
	case 'h':
		return time.Hour
	case 'm':
		return time.Minute
	case 's':
		return time.Second
	}
	return 0
}

// ParseUnits reads a duration in units, each at most once and the largest first: 1d12h, 90s,
// 1.5h. It reports false for another form.
func ParseUnits(s string) (time.Duration, bool) {
	var sum time.Duration
	last := time.Duration(math.MaxInt64)
	for s != "" {
		end := strings.IndexFunc(s, func(r rune) bool { return (r < '0' || r > '9') && r != '.' })
		if end <= 0 || end > 12 {
			return 0, false
		}
		unit := UnitOf(s[end])
		n, err := strconv.ParseFloat(s[:end], 64)
		if unit == 0 || err != nil || unit >= last || n > 1e6 && unit >= time.Hour || n > 1e9 {
			return 0, false
		}
		sum += time.Duration(math.Round(n * float64(unit)))
		last, s = unit, s[end+1:]
	}
	return sum, last < math.MaxInt64
}

// SpanForms are the forms that ParseSpan reads.
const SpanForms = "30s, 10m, 4h, 1d12h, H:M:S, D-H"

// ParseSpan reads a length of time that has a unit: 90s, 1d12h, 500ms, or Slurm's forms with
// colons or a dash. A number alone is refused, since commands differ in the unit that they take
// it for. The error completes a sentence that begins with the value.
func ParseSpan(s string) (time.Duration, error) {
	if d, ok := ParseUnits(s); ok {
		return d, nil
	}
	if d, err := time.ParseDuration(s); err == nil && (s == "0" || strings.IndexFunc(s, func(r rune) bool { return r >= 'a' }) >= 0) {
		return d, nil
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, fmt.Errorf("has no unit: write %ss for seconds, %sm for minutes", s, s)
	}
	if strings.ContainsAny(s, ":-") && !strings.HasPrefix(s, "-") {
		if d, err := ParseDuration(s); err == nil {
			return d, nil
		}
	}
	return 0, fmt.Errorf("is no length of time: forms are %s", SpanForms)
}
