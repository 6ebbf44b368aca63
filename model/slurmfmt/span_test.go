package slurmfmt

import (
	"strings"
	"testing"
	"time"
)

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "4h": 4 * time.Hour, "1d12h": 36 * time.Hour, "500ms": 500 * time.Millisecond, "1.5h": 90 * time.Minute,
		"10:00": 10 * time.Minute, "1:30:00": 90 * time.Minute, "2-0": 48 * time.Hour, "1h30m": 90 * time.Minute,
	} {
		if got, err := ParseSpan(text); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"5": "has no unit: write 5s for seconds, 5m for minutes", "soon": "is no length of time", "": "is no length of time", "4x": "is no length of time",
		"h": "is no length of time",
	} {
		if _, err := ParseSpan(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
